//! V1 conditionals compute after functionalisation what TensorFlow computed before it.
//!
//! The graphs and values come from `data/make_conditionals.py`. A small interpreter of scalars runs the programs.

use std::collections::BTreeMap;
use std::path::Path;
use tf::proto::{self, TensorId};
use tf::{Graph, NodeId, Program, source};

/// A value of the interpreter: shapes are empty, since all tensors are scalars.
#[derive(Clone, Copy, Debug)]
enum Value {
    Number(f32),
    Bool(bool),
    Handle,
    Shape,
}

use Value::*;

impl Value {
    fn number(self) -> f32 {
        match self {
            Number(number) => number,
            other => panic!("{other:?} is no number"),
        }
    }

    fn bool(self) -> bool {
        matches!(self, Bool(true))
    }
}

struct Interpreter<'a> {
    program: &'a Program,
    variable: f32,
}

impl Interpreter<'_> {
    /// All nodes of a graph, once each, inputs and control inputs first.
    fn run(&mut self, graph: &Graph, arguments: &[Value]) -> BTreeMap<(NodeId, usize), Value> {
        let mut values = BTreeMap::new();
        for id in graph.topological_order().expect("no cycle") {
            let node = &graph.nodes[id];
            let inputs: Vec<Value> = node.inputs.iter().map(|o| values[&(o.node, o.index)]).collect();
            for (index, value) in self.node(node, &inputs, arguments).into_iter().enumerate() {
                values.insert((id, index), value);
            }
        }
        values
    }

    fn call(&mut self, name: &str, arguments: &[Value]) -> Vec<Value> {
        let function = self.program.library.get(name).unwrap_or_else(|| panic!("function {name}"));
        assert_eq!(function.arguments.len(), arguments.len(), "{name}");
        let values = self.run(&function.graph, arguments);
        function.results.iter().map(|o| values[&(o.node, o.index)]).collect()
    }

    fn node(&mut self, node: &tf::Node, inputs: &[Value], arguments: &[Value]) -> Vec<Value> {
        let number = |i: usize| inputs[i].number();
        match node.op.as_str() {
            "_Arg" => vec![arguments[node.attributes.int("index").expect("an index") as usize]],
            "Const" => match node.attributes.tensor("value") {
                Ok(literal) if literal.bytes().is_empty() => vec![Shape],
                Ok(literal) => match literal.scalar_at(0) {
                    shape::Scalar::Float(v) => vec![Number(v as f32)],
                    shape::Scalar::Signed(v) => vec![Number(v as f32)],
                    shape::Scalar::Pred(v) => vec![Bool(v)],
                    other => panic!("{other:?}"),
                },
                // A message of an Assert.
                Err(_) => vec![Shape],
            },
            "Identity" | "Cast" => vec![inputs[0]],
            "AddV2" | "AddN" => vec![Number(inputs.iter().map(|v| v.number()).sum())],
            "Sub" => vec![Number(number(0) - number(1))],
            "Mul" => vec![Number(number(0) * number(1))],
            "Neg" => vec![Number(-number(0))],
            "Less" => vec![Bool(number(0) < number(1))],
            "Shape" => vec![Shape],
            "Fill" => vec![inputs[1]],
            "NoOp" => vec![],
            "Assert" => {
                assert!(inputs[0].bool());
                vec![]
            }
            "VarHandleOp" => vec![Handle],
            "ReadVariableOp" => vec![Number(self.variable)],
            "AssignVariableOp" => {
                self.variable = number(1);
                vec![]
            }
            "AssignAddVariableOp" => {
                self.variable += number(1);
                vec![]
            }
            "If" | "StatelessIf" => {
                let branch = if inputs[0].bool() { "then_branch" } else { "else_branch" };
                let (name, _) = node.attributes.func(branch).expect("a function");
                self.call(name, &inputs[1..])
            }
            op => self.call(op, inputs),
        }
    }
}

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
        let mut interpreter = Interpreter { program: &program, variable: numbers[2] };
        let values = interpreter.run(&program.graph, &[Number(numbers[0]), Number(numbers[1])]);
        let result = program.fetches[0].tensor;
        assert_eq!(values[&(result.node, result.index)].number(), numbers[3], "{line}");
        assert_eq!(interpreter.variable, numbers[4], "{line}");
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
fn what_only_one_branch_computes_is_no_result() {
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
