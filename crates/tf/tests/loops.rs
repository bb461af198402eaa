//! V1 while loops compute after functionalization what TensorFlow computed before it.
//!
//! The graphs and values come from `data/make_loops.py`. A small interpreter of scalars runs the
//! programs.

use crate::shared::interpreter::{Interpreter, Value::Number};
use std::path::Path;
use tf::proto::{self, TensorId};
use tf::{Program, source};

fn id(name: &str) -> Option<TensorId> {
    Some(TensorId { node_name: name.to_owned(), output_index: 0 })
}

fn config(fetch: &str) -> proto::Config {
    let feed = |name| proto::Feed { id: id(name), ..proto::Feed::default() };
    let variable = |name: &str| proto::Variable { node_name: name.to_owned(), ..proto::Variable::default() };
    proto::Config {
        feed: vec![feed("x"), feed("y")],
        fetch: vec![proto::Fetch { id: id(fetch), ..proto::Fetch::default() }],
        variable: vec![variable("v"), variable("r")],
        ..proto::Config::default()
    }
}

fn prepared(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/loops").join(format!("{name}.pb"));
    let graph = source::read_graph_def(&path).expect("a graph");
    let mut config = config("result");
    config.variable.retain(|variable| graph.node.iter().any(|node| node.name == variable.node_name));
    let program = tf::prepare(graph, config).unwrap_or_else(|e| panic!("{name}: {e}"));
    crate::shared::well_formed::check(&program, name);
    program
}

#[test]
fn programs_compute_what_the_graphs_did() {
    let runs = include_str!("data/loops.txt");
    assert!(runs.lines().count() >= 200);
    for line in runs.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<f32> = words[1..].iter().map(|w| w.parse().expect("a number")).collect();
        let program = prepared(words[0]);
        let mut interpreter = Interpreter::new(&program, &[("v", numbers[2]), ("r", numbers[3])]);
        let values = interpreter.run(&program.graph, &[Number(numbers[0]), Number(numbers[1])]);
        let result = program.fetches[0].tensor;
        let result = values[&(result.node, result.index)].number();
        let near = |a: f32, b: f32| (a - b).abs() <= 1e-5 * b.abs() || a == b;
        let (v, r) = (interpreter.variables["v"], interpreter.variables["r"]);
        assert!(near(result, numbers[4]), "{line}: {result}");
        assert!(near(v, numbers[5]) && near(r, numbers[6]), "{line}: {v} and {r}");
    }
}

/// All nodes of the program and of its functions that have an op.
fn count(program: &Program, op: &str) -> usize {
    let graphs = std::iter::once(&program.graph).chain(program.library.functions().map(|f| &f.graph));
    graphs.flat_map(|g| g.nodes.values()).filter(|n| n.op.trim_start_matches("Stateless") == op).count()
}

#[test]
fn a_frame_makes_one_while() {
    let of = |name: &str| {
        let program = prepared(name);
        [count(&program, "While"), count(&program, "If"), count(&program, "Case")]
    };
    assert_eq!(of("power"), [1, 0, 0]);
    assert_eq!(of("triple"), [3, 0, 0]);
    assert_eq!(of("cond_in_body"), [1, 2, 0]);
    assert_eq!(of("loop_in_cond"), [2, 1, 0]);
    assert_eq!(of("gradient"), [2, 0, 0]);
    // Nodes between the conditional and its gradient become part of the branches, so that no push
    // runs twice.
    assert_eq!(of("gradient_loop_in_cond"), [2, 1, 0]);
    assert_eq!(of("switch_n_in_loop"), [1, 0, 1]);
    assert_eq!(of("no_loop"), [0, 0, 0]);
}

/// The `While` is named after the frame; loop variables come first, then what does not change.
#[test]
fn a_while_has_the_name_and_the_values_of_its_frame() {
    let program = prepared("power");
    let (_, node) = program.graph.nodes.iter().find(|(_, n)| n.op == "StatelessWhile").expect("a loop");
    assert_eq!(node.name, "while/while_context");
    let body = program.library.get(node.attributes.func("body").expect("a body").0).expect("a function");
    let names: Vec<&str> = body.arguments.iter().map(|&id| body.graph.nodes[id].name.as_str()).collect();
    assert_eq!(names, ["while/Merge", "while/Merge_1", "x", "y"]);
    for unchanged in 2..4 {
        assert_eq!(body.results[unchanged].node, body.arguments[unchanged]);
    }
    assert!(body.control_results.is_empty());
}

#[test]
fn a_value_inside_an_iteration_is_not_a_result() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/loops/power.pb");
    let graph = source::read_graph_def(&path).expect("a graph");
    let mut config = config("while/mul");
    config.variable.clear();
    let message = tf::prepare(graph, config).expect_err("no result").to_string();
    let wanted = "fetch 'while/mul:0' is in the while loop 'while/while_context'";
    assert!(message.contains(wanted), "{message}");
}

/// A loop of single ops, with parts that a test replaces.
const LOOP: &str = "
    node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
    node { name: 'y' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } }
    node { name: 'limit' op: 'Enter' input: 'x' T FRAME attr { key: 'is_constant' value { b: true } } }
    node { name: 'enter' op: 'Enter' input: 'y' T FRAME }
    node { name: 'head' op: 'Merge' input: 'enter' input: 'next' T attr { key: 'N' value { i: 2 } } }
    node { name: 'less' op: 'Less' input: 'head' input: 'limit' T }
    node { name: 'goes_on' op: 'LoopCond' input: 'less' }
    node { name: 'switch' op: 'Switch' input: 'head' input: 'goes_on' T }
    node { name: 'sum' op: 'AddV2' input: 'switch:1' input: 'switch:1' T }
    node { name: 'next' op: 'NextIteration' input: 'sum' T }
    node { name: 'exit' op: 'Exit' input: 'switch' T }
    node { name: 'result' op: 'Identity' input: 'exit' T }";

fn with(replacements: &[(&str, &str)]) -> support::Result<Program> {
    let mut text = LOOP.to_owned();
    for (from, to) in replacements {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let text = text
        .replace(" T", " attr { key: 'T' value { type: DT_FLOAT } }")
        .replace(" FRAME", " attr { key: 'frame_name' value { s: 'round' } }");
    let graph = source::parse_graph_def(text.into(), "g.pbtxt").expect("a graph");
    let mut config = config("result");
    config.variable.clear();
    tf::prepare(graph, config)
}

#[test]
fn malformed_frames_are_refused_with_their_names() {
    crate::shared::well_formed::check(&with(&[]).expect("a loop"), "the loop");
    let other = "node { name: 'o' op: 'Enter' input: 'x' T attr { key: 'frame_name' value { s: 'other' } } }
                 node { name: 'exit'";
    let second = "node { name: 'more' op: 'Greater' input: 'head' input: 'limit' T }
                  node { name: 'also' op: 'LoopCond' input: 'more' }
                  node { name: 's2' op: 'Switch' input: 'head' input: 'also' T }
                  node { name: 'sum' op: 'AddV2' input: 'switch:1' input: 's2:1' T }
                  node { name: 'unused'";
    let cases: [(&[(&str, &str)], &str); 12] = [
        (&[("op: 'LoopCond'", "op: 'LogicalNot'")], "'next' (op NextIteration) starts another iteration"),
        (&[("node { name: 'sum'", second)], "two conditions: nodes 'goes_on' and 'also'"),
        (
            &[("input: 'switch:1' input: 'switch:1'", "input: 'head' input: 'head'")],
            "does not depend on a Switch",
        ),
        (
            &[("name: 'exit' op: 'Exit' input: 'switch'", "name: 'exit' op: 'Exit' input: 'switch:1'")],
            "node 'exit' (op Exit) uses node 'switch' (op Switch), which is computed in an iteration",
        ),
        (
            &[("input: 'switch:1' input: 'switch:1'", "input: 'switch' input: 'switch:1'")],
            "is therefore never computed",
        ),
        (&[("op: 'Identity' input: 'exit'", "op: 'Identity' input: 'sum'")], "is in the while loop 'round'"),
        (
            &[("op: 'Identity' input: 'exit'", "op: 'Exit' input: 'exit'")],
            "'result' (op Exit) is not in a while loop",
        ),
        (
            &[("input: 'enter' input: 'next' T", "input: 'y' input: 'next' T")],
            "node 'head' (op Merge) is in no while loop but uses node 'next'",
        ),
        (
            &[(
                "input: 'enter' input: 'next' T attr { key: 'N' value { i: 2 }",
                "input: 'enter' input: 'next' input: 'enter' T attr { key: 'N' value { i: 3 }",
            )],
            "expected one Enter and one NextIteration as inputs",
        ),
        (
            &[
                ("node { name: 'exit'", other),
                ("input: 'switch:1' input: 'switch:1'", "input: 'switch:1' input: 'o'"),
            ],
            "node 'sum' (op AddV2) has input 'switch' from frame 'round' and input 'o' from frame 'other'",
        ),
        (
            &[("op: 'Identity' input: 'exit'", "op: 'AddV2' input: 'next' input: 'exit'")],
            "node 'result' (op AddV2) uses node 'next' (op NextIteration)",
        ),
        (
            &[
                ("input: 'head' input: 'limit'", "input: 'limit' input: 'limit'"),
                (
                    "input: 'enter' input: 'next' T attr { key: 'N' value { i: 2 } }",
                    "input: 'enter' T attr { key: 'N' value { i: 1 } }",
                ),
            ],
            "its condition 'less' never changes",
        ),
    ];
    for (replacements, wanted) in cases {
        let error = with(replacements).expect_err(wanted);
        assert!(error.message().contains(wanted), "{wanted}: {error}");
    }
}

/// TensorFlow refuses these graphs, but what they mean is clear.
#[test]
fn values_from_outside_need_no_enter() {
    let program =
        with(&[("input: 'switch:1' input: 'switch:1'", "input: 'switch:1' input: 'y'")]).expect("a loop");
    crate::shared::well_formed::check(&program, "no Enter");
    let mut interpreter = Interpreter::new(&program, &[]);
    let values = interpreter.run(&program.graph, &[Number(7.0), Number(2.0)]);
    let result = program.fetches[0].tensor;
    assert_eq!(values[&(result.node, result.index)].number(), 8.0);
}

/// Loops without an Exit run for what they do.
#[test]
fn a_loop_without_an_exit_runs_for_its_effect() {
    let assign = "
        node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }
               attr { key: 'shape' value { shape { } } } }
        node { name: 'handle' op: 'Enter' input: 'v' attr { key: 'T' value { type: DT_RESOURCE } } FRAME
               attr { key: 'is_constant' value { b: true } } }
        node { name: 'assign' op: 'AssignAddVariableOp' input: 'handle' input: 'switch:1'
               attr { key: 'dtype' value { type: DT_FLOAT } } }
        node { name: 'result' op: 'ReadVariableOp' input: 'v' input: '^assign'
               attr { key: 'dtype' value { type: DT_FLOAT } } }
        node { name: 'unused'";
    let mut text = LOOP.replace("node { name: 'result'", assign);
    text = text.replace(" T", " attr { key: 'T' value { type: DT_FLOAT } }");
    text = text.replace(" FRAME", " attr { key: 'frame_name' value { s: 'round' } }");
    let graph = source::parse_graph_def(text.into(), "g.pbtxt").expect("a graph");
    let mut config = config("result");
    config.variable.retain(|variable| variable.node_name == "v");
    let program = tf::prepare(graph, config).expect("a program");
    crate::shared::well_formed::check(&program, "effects");
    let mut interpreter = Interpreter::new(&program, &[("v", 0.5)]);
    let values = interpreter.run(&program.graph, &[Number(10.0), Number(1.5)]);
    let result = program.fetches[0].tensor;
    // 1.5 + 3 + 6 on top of 0.5.
    assert_eq!(values[&(result.node, result.index)].number(), 11.0);
    assert_eq!(interpreter.variables["v"], 11.0);
}
