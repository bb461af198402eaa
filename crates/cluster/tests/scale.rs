//! Large graphs, and graphs designed to be slow.

use crate::build::{Builder, UNCOMPILABLE, options, run};
use tf::DataType;

/// Number of nodes of the largest graphs. An algorithm with quadratic cost would take minutes to
/// hours.
const MANY: usize = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

#[test]
fn a_long_chain_is_one_cluster() {
    let mut graph = Builder::new();
    graph.placeholder("n0");
    // The file lists the nodes in reverse order.
    for i in (1..MANY).rev() {
        graph.node(&format!("n{i}"), "Relu", &[&format!("n{}", i - 1)]);
    }
    let report = run(&graph, &options()).report;
    assert_eq!(report.clusters.len(), 1);
    assert_eq!(report.clusters[0].nodes.len(), MANY - 1);
    assert!(!report.gave_up);
}

/// A constant used by all nodes of a chain is cloned for each of them, and the clones come after
/// the whole chain.
#[test]
fn a_chain_that_shares_a_constant_is_one_cluster() {
    let mut graph = Builder::new();
    graph.placeholder("n0");
    graph.constant("one", DataType::Float, &[]);
    let nodes = MANY / 4;
    for i in 1..nodes {
        graph.node(&format!("n{i}"), "AddV2", &[&format!("n{}", i - 1), "one"]);
    }
    let report = run(&graph, &options()).report;
    assert_eq!(report.clusters.len(), 1);
    assert_eq!(report.clusters[0].nodes.len(), 2 * (nodes - 1));
    assert!(!report.gave_up);
}

#[test]
fn stars_are_clusters() {
    let mut graph = Builder::new();
    graph.placeholder("in");
    graph.node("hub", "Relu", &["in"]);
    for i in 0..MANY / 2 {
        graph.node(&format!("ray{i}"), "Relu", &["hub"]);
    }
    let rays: Vec<String> = (0..MANY / 2).map(|i| format!("ray{i}")).collect();
    let inputs: Vec<&str> = rays.iter().map(String::as_str).collect();
    graph.node("sum", "AddN", &inputs);
    let report = run(&graph, &options()).report;
    assert_eq!(report.clusters.len(), 1);
    assert_eq!(report.clusters[0].nodes.len(), MANY / 2 + 2);
}

#[test]
fn stars_around_what_cannot_be_compiled_end() {
    let mut graph = Builder::new();
    graph.placeholder("in");
    graph.node("hub", "Relu", &["in"]);
    for i in 0..MANY / 4 {
        graph.node(&format!("out{i}"), UNCOMPILABLE, &["hub"]);
        graph.node(&format!("back{i}"), "Add", &["hub", &format!("out{i}")]);
    }
    let report = run(&graph, &options()).report;
    assert!(report.clusters.is_empty());
}

#[test]
fn many_writers_and_readers_in_turn_end() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    let rounds = MANY / 8;
    for i in 0..rounds {
        graph.variable(&format!("v{i}"));
        let (read, write) = (format!("read{i}"), format!("write{i}"));
        graph.node(&read, "ReadVariableOp", &[&format!("v{i}")]).ty("dtype", DataType::Float);
        graph.node(&write, "AssignVariableOp", &[&format!("v{i}"), &read]).ty("dtype", DataType::Float);
        if i > 0 {
            graph.wait(&read, &format!("write{}", i - 1));
        }
    }
    // Each read is clustered with its write, but no two such pairs merge.
    let report = run(&graph, &options()).report;
    assert_eq!(report.clusters.len(), rounds);
}

#[test]
fn conditions_within_conditions_end() {
    let mut graph = Builder::new();
    graph.placeholder("x0");
    let depth = MANY / 10;
    for i in 0..depth {
        graph.placeholder(&format!("c{i}")).ty("dtype", DataType::Bool);
        graph.node(&format!("s{i}"), "Switch", &[&format!("x{i}"), &format!("c{i}")]);
        graph.node(&format!("t{i}"), "Tanh", &[&format!("s{i}:1")]);
        graph.node(&format!("x{}", i + 1), "Exp", &[&format!("t{i}")]);
    }
    let report = run(&graph, &options()).report;
    // Each pair has its own condition. If the formulas exceed the budget, nothing is clustered.
    assert!(report.clusters.len() == depth || report.clusters.is_empty(), "{}", report.clusters.len());
}

#[test]
fn functions_that_call_two_each_are_followed_once() {
    let mut graph = Builder::new();
    graph.placeholder("x");
    graph.node("call", "f0", &["x"]);
    for i in 0..40 {
        let mut body = Builder::new();
        let callee = format!("f{}", i + 1);
        body.node("a", &callee, &["x"]);
        body.node("b", &callee, &["a:out:0"]);
        graph.function(&format!("f{i}"), &["x"], &["out=b:out:0"], body);
    }
    let mut body = Builder::new();
    body.node("a", "Tanh", &["x"]);
    body.node("b", UNCOMPILABLE, &["a:y:0"]);
    graph.function("f40", &["x"], &["out=b:y:0"], body);
    let report = run(&graph, &options()).report;
    assert!(report.clusters.is_empty());
}
