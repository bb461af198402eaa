//! Loops: how often they run, how much room stacks and tensor arrays get, and what comes out, against values worked out by
//! hand from TensorFlow's definition of the ops.

mod arrays;
mod bounds;
mod graphs;
mod stacks;
mod state;

use graphs::parse;
use hlo::{Module, Op};
use shape::{Literal, NativeType};
use std::collections::BTreeMap;

/// What `--loop-bound` promises.
type Promises<'a> = &'a [(&'a str, i64)];

fn import(text: &str, fetches: &[&str], promises: Promises<'_>) -> support::Result<Module> {
    let source = parse(text, fetches);
    let graph = tf::source::parse_graph_def(source.graph.into(), "graph.pbtxt").expect("a graph");
    let config = tf::source::parse_config(source.config.into(), "config.pbtxt").expect("a config");
    let mut program = tf::prepare(graph, config).expect("a valid program");
    program.loop_bounds =
        promises.iter().map(|&(name, bound)| (name.to_owned(), bound)).collect::<BTreeMap<_, _>>();
    let module = import::import(&program)?;
    hlo::verify(&module).expect("a valid module");
    Ok(module)
}

fn module(text: &str, fetches: &[&str]) -> Module {
    import(text, fetches, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn message(text: &str, fetches: &[&str]) -> String {
    import(text, fetches, &[]).expect_err("a refusal").to_string()
}

/// Imports, verifies and interprets.
fn run(text: &str, fetches: &[&str], arguments: &[Literal]) -> Vec<Literal> {
    evaluate(&module(text, fetches), arguments)
}

fn evaluate(module: &Module, arguments: &[Literal]) -> Vec<Literal> {
    match evaluator::evaluate(module, arguments).expect("it runs") {
        Literal::Tuple(results) => results,
        Literal::Array { .. } => panic!("the root is a tuple"),
    }
}

fn values<T: NativeType>(literal: &Literal) -> Vec<T> {
    literal.to_vec().expect("elements of this type")
}

/// How many loops a module has.
fn loops(module: &Module) -> usize {
    let all = module.computations().flat_map(|(_, computation)| computation.instructions());
    all.filter(|(_, instruction)| matches!(instruction.op(), Op::While { .. })).count()
}

/// The leading dimensions of the buffers of elements of shape `f32[7]`, the largest first.
fn places(module: &Module) -> Vec<i64> {
    let all = module.computations().flat_map(|(_, computation)| computation.instructions());
    let buffers = all.filter(|(_, instruction)| matches!(instruction.op(), Op::Broadcast { .. }));
    let shapes = buffers.filter_map(|(_, instruction)| instruction.shape().as_array());
    let mut places: Vec<i64> =
        shapes.filter(|shape| shape.rank() == 2 && shape.size(1) == 7).map(|shape| shape.size(0)).collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    places
}
