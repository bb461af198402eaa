//! Checks that a prepared program has functional control flow only, and that calls fit the
//! functions they name.

use std::collections::BTreeSet;
use tf::{DataType, Function, Graph, Node, OutputId, Program};

/// Panics with what is wrong.
pub fn check(program: &Program, what: &str) {
    graph(program, &program.graph, what);
    for function in program.library.functions() {
        let what = format!("{what}: function '{}'", function.name);
        graph(program, &function.graph, &what);
        for (i, &id) in function.arguments.iter().enumerate() {
            let node = &function.graph.nodes[id];
            assert_eq!(node.op, "_Arg", "{what}");
            assert_eq!(node.attributes.int("index").expect("an index"), i as i64, "{what}");
        }
        for &result in &function.results {
            assert!(result.index < function.graph.nodes[result.node].output_types.len(), "{what}");
        }
    }
}

fn graph(program: &Program, graph: &Graph, what: &str) {
    graph.topological_order().unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut names = BTreeSet::new();
    for node in graph.nodes.values() {
        let left = ["Switch", "Merge", "Enter", "Exit", "NextIteration"];
        let is_left = |op: &&str| node.op == **op || node.op.strip_prefix("Ref") == Some(op);
        let is_control_flow = left.iter().any(is_left) || node.op == "LoopCond" || node.op == "_SwitchN";
        assert!(!is_control_flow, "{what}: node '{}' (op {})", node.name, node.op);
        assert!(names.insert(&node.name), "{what}: two nodes have the name '{}'", node.name);
        call(program, graph, node, &format!("{what}: node '{}' (op {})", node.name, node.op));
    }
}

fn call(program: &Program, graph: &Graph, node: &Node, what: &str) {
    let inputs: Vec<DataType> = node.inputs.iter().map(|&o| graph.output_type(o).base()).collect();
    let outputs: Vec<DataType> = node.output_types.iter().map(|t| t.base()).collect();
    let function = |name: &str| {
        program.library.get(name).unwrap_or_else(|| panic!("{what}: no function '{name}' in the library"))
    };
    let branch = |name: &str| {
        let function = function(name);
        assert_eq!(argument_types(function), inputs[1..], "{what}: arguments of '{name}'");
        assert_eq!(result_types(function), outputs, "{what}: results of '{name}'");
    };
    match node.op.as_str() {
        "While" | "StatelessWhile" => {
            let cond = function(node.attributes.func("cond").expect("cond").0);
            let body = function(node.attributes.func("body").expect("body").0);
            let types: Vec<DataType> =
                node.attributes.types("T").expect("T").iter().map(|t| t.base()).collect();
            assert_eq!(types, inputs, "{what}");
            assert_eq!(types, outputs, "{what}");
            assert_eq!(argument_types(cond), types, "{what}: arguments of cond");
            assert_eq!(argument_types(body), types, "{what}: arguments of body");
            assert_eq!(result_types(body), types, "{what}: results of body");
            assert_eq!(result_types(cond).len(), 1, "{what}: results of cond");
        }
        "If" | "StatelessIf" => {
            branch(node.attributes.func("then_branch").expect("then_branch").0);
            branch(node.attributes.func("else_branch").expect("else_branch").0);
        }
        "Case" | "StatelessCase" => {
            for (name, _) in node.attributes.funcs("branches").expect("branches") {
                branch(name);
            }
        }
        _ => {}
    }
}

fn argument_types(function: &Function) -> Vec<DataType> {
    let type_of = |&node| function.graph.output_type(OutputId { node, index: 0 }).base();
    function.arguments.iter().map(type_of).collect()
}

fn result_types(function: &Function) -> Vec<DataType> {
    function.results.iter().map(|&output| function.graph.output_type(output).base()).collect()
}
