//! Loops: numbers of iterations, capacities of stacks and tensor arrays, and results, compared with
//! values computed by hand from TensorFlow's definition of the ops.

mod arrays;
mod bounds;
mod graphs;
mod stacks;
mod state;

use graphs::parse;
use hlo::{Module, Op};
use shape::{Literal, NativeType};
use std::collections::BTreeMap;

/// Loop bounds that `--loop-bound` promises: names of loops and numbers of iterations.
type Promises<'a> = &'a [(&'a str, i64)];

fn import(text: &str, fetches: &[&str], promises: Promises<'_>) -> support::Result<Module> {
    let source = parse(text, fetches);
    let graph =
        tf::source::parse_graph_def(source.graph.into(), "graph.pbtxt").expect("the graph should parse");
    let config =
        tf::source::parse_config(source.config.into(), "config.pbtxt").expect("the config should parse");
    let mut program = tf::prepare(graph, config).expect("the program should be valid");
    program.loop_bounds =
        promises.iter().map(|&(name, bound)| (name.to_owned(), bound)).collect::<BTreeMap<_, _>>();
    let module = import::import(&program)?;
    hlo::verify(&module).expect("the module should be valid");
    Ok(module)
}

fn module(text: &str, fetches: &[&str]) -> Module {
    import(text, fetches, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn message(text: &str, fetches: &[&str]) -> String {
    import(text, fetches, &[]).expect_err("the import should fail").to_string()
}

/// Imports the graph, verifies the module, and interprets it.
fn run(text: &str, fetches: &[&str], arguments: &[Literal]) -> Vec<Literal> {
    evaluate(&module(text, fetches), arguments)
}

fn evaluate(module: &Module, arguments: &[Literal]) -> Vec<Literal> {
    match evaluator::evaluate(module, arguments).expect("the module should run") {
        Literal::Tuple(results) => results,
        Literal::Array { .. } => panic!("the root is not a tuple"),
    }
}

fn values<T: NativeType>(literal: &Literal) -> Vec<T> {
    literal.to_vec().expect("the element type should match")
}

/// Returns the number of loops in a module.
fn loops(module: &Module) -> usize {
    let all = module.computations().flat_map(|(_, computation)| computation.instructions());
    all.filter(|(_, instruction)| matches!(instruction.op(), Op::While { .. })).count()
}

/// Returns the capacities of the buffers whose elements have the shape `f32[7]`, the largest first.
fn capacities(module: &Module) -> Vec<i64> {
    let all = module.computations().flat_map(|(_, computation)| computation.instructions());
    let buffers = all.filter(|(_, instruction)| matches!(instruction.op(), Op::Broadcast { .. }));
    let shapes = buffers.filter_map(|(_, instruction)| instruction.shape().as_array());
    let mut capacities: Vec<i64> =
        shapes.filter(|shape| shape.rank() == 2 && shape.size(1) == 7).map(|shape| shape.size(0)).collect();
    capacities.sort_unstable_by(|a, b| b.cmp(a));
    capacities
}
