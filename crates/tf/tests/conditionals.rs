//! V1 conditionals compute after functionalization what TensorFlow computed before it.
//!
//! The graphs and values come from `data/make_conditionals.py`. A small interpreter of scalars runs
//! the programs.

use crate::shared::interpreter::{Interpreter, Value::Number};
use std::path::Path;
use tf::proto::{self, TensorId};
use tf::{Program, source};

fn id(name: &str) -> Option<TensorId> {
    Some(TensorId { node_name: name.to_owned(), output_index: 0 })
}

fn prepared(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(format!("{name}.pbtxt"));
    let graph = source::read_graph_def(&path).expect("a graph");
    let feed = |name| proto::Feed { id: id(name), ..proto::Feed::default() };
    let variable = proto::Variable { node_name: "v".to_owned(), ..proto::Variable::default() };
    let config = proto::Config {
        feed: vec![feed("x"), feed("y")],
        fetch: vec![proto::Fetch { id: id("result"), ..proto::Fetch::default() }],
        variable: vec![variable],
        ..proto::Config::default()
    };
    tf::prepare(graph, config).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn programs_compute_what_the_graphs_did() {
    let runs = include_str!("data/conditionals.txt");
    assert!(runs.lines().count() >= 50);
    for line in runs.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<f32> = words[1..].iter().map(|w| w.parse().expect("a number")).collect();
        let program = prepared(words[0]);
        let mut interpreter = Interpreter::new(&program, &[("v", numbers[2])]);
        let values = interpreter.run(&program.graph, &[Number(numbers[0]), Number(numbers[1])]);
        let result = program.fetches[0].tensor;
        assert_eq!(values[&(result.node, result.index)].number(), numbers[3], "{line}");
        assert_eq!(interpreter.variables["v"], numbers[4], "{line}");
    }
}

#[test]
fn one_conditional_makes_one_if() {
    let ifs = |name: &str| {
        let program = prepared(name);
        let graphs = std::iter::once(&program.graph).chain(program.library.functions().map(|f| &f.graph));
        graphs.flat_map(|g| g.nodes.values()).filter(|n| n.op == "If" || n.op == "StatelessIf").count()
    };
    assert_eq!(ifs("two_results"), 1);
    assert_eq!(ifs("nested"), 3);
    assert_eq!(ifs("sequential"), 2);
}

#[test]
fn a_value_of_one_branch_alone_is_not_a_result() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/two_results.pbtxt");
    let graph = source::read_graph_def(&path).expect("a graph");
    let inside = graph.node.iter().find(|n| n.op == "Mul" && n.name.starts_with("cond")).expect("a product");
    let fetch = proto::Fetch { id: id(&inside.name), ..proto::Fetch::default() };
    let feed = |name| proto::Feed { id: id(name), ..proto::Feed::default() };
    let config =
        proto::Config { feed: vec![feed("x"), feed("y")], fetch: vec![fetch], ..proto::Config::default() };
    let name = inside.name.clone();
    let message = tf::prepare(graph, config).expect_err("no result").to_string();
    assert!(message.contains(&format!("fetch '{name}:0' is computed only if 'Less' is false")), "{message}");
}

#[test]
fn the_index_of_the_branch_that_ran_is_a_result() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gradient.pbtxt");
    let graph = source::read_graph_def(&path).expect("a graph");
    let merge = graph.node.iter().find(|n| n.name == "cond/Merge").expect("a Merge");
    assert_eq!(merge.input, ["cond/sub", "cond/mul_1"], "its first input is that of a false predicate");
    let fetch = |output_index| proto::Fetch {
        id: Some(TensorId { node_name: "cond/Merge".to_owned(), output_index }),
        ..proto::Fetch::default()
    };
    let feed = |name| proto::Feed { id: id(name), ..proto::Feed::default() };
    // The index alone, with the value, and in any order.
    for outputs in [&[1][..], &[0, 1], &[1, 0]] {
        let config = proto::Config {
            feed: vec![feed("x"), feed("y")],
            fetch: outputs.iter().map(|&index| fetch(index)).collect(),
            ..proto::Config::default()
        };
        let program = tf::prepare(graph.clone(), config).expect("a program");
        // x - y if x is not less than y, and x * x * y if it is.
        for (x, y, expected) in [(5.0, 3.0, [2.0, 0.0]), (2.0, 3.0, [12.0, 1.0])] {
            let mut interpreter = Interpreter::new(&program, &[]);
            let values = interpreter.run(&program.graph, &[Number(x), Number(y)]);
            for (fetch, &output) in program.fetches.iter().zip(outputs) {
                let value = values[&(fetch.tensor.node, fetch.tensor.index)].number();
                assert_eq!(value, expected[output as usize], "x={x} y={y} {outputs:?}");
            }
        }
    }
}
