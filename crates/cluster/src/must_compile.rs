//! Calls of functions that must be compiled as a whole.

use crate::candidates::{Context, MUST_COMPILE};
use crate::encapsulate::{Counts, launch_attributes, output_text};
use crate::graph::{Edge, Graph, Node};
use crate::library::function_attribute;
use crate::report::Report;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;
use tf::DataType;
use tf::proto::{ArgDef, FunctionDef, NodeDef, OpDef};

/// The op of a node that runs such a function.
const LAUNCH: &str = "XlaLaunch";

/// Makes a launch of every call of such a function. A launch has its arguments in an order of its own, so it runs a function
/// that only calls the other; those are returned.
pub(crate) fn launch_functions(
    graph: &mut Graph,
    context: &Context<'_>,
    used: &mut BTreeSet<String>,
    report: &mut Report,
) -> Result<Vec<FunctionDef>> {
    let mut functions = Vec::new();
    for id in graph.ids().collect::<Vec<_>>() {
        let node = &graph[id];
        if context.pinned.contains(node.name()) || !context.says(node, MUST_COMPILE) {
            continue;
        }
        let attributes = &node.def.attr;
        let (callee, given) = match function_attribute(attributes, "f") {
            Some(func) if matches!(node.op(), "PartitionedCall" | "StatefulPartitionedCall") => {
                (func.name.as_str(), &func.attr)
            }
            _ => (node.op(), attributes),
        };
        if context.library.function(callee).is_none() {
            continue;
        }
        let constants = context.constants.of_function(callee, given)?;
        let types: Vec<DataType> = node.input_types.iter().map(|t| t.base()).collect();
        let rank = |index: usize| match (types[index] == DataType::Resource, constants.contains(&index)) {
            (true, _) => 2,
            (false, true) => 0,
            (false, false) => 1,
        };
        let mut order: Vec<usize> = (0..types.len()).collect();
        order.sort_by_key(|&index| rank(index));
        let count = |wanted: u8| order.iter().filter(|&&index| rank(index) == wanted).count();
        let counts = Counts { constants: count(0), resources: count(2) };
        let mut name = format!("{callee}_xla");
        let mut number = 0;
        while !used.insert(name.clone()) {
            number += 1;
            name = format!("{callee}_xla_{number}");
        }
        functions.push(caller(node, &name, &order, &types));
        report.must_compile.push((node.name().to_owned(), callee.to_owned()));
        replace(graph, id, &name, &order, &types, counts)?;
    }
    Ok(functions)
}

/// A function that calls what the node calls, with arguments in another order.
fn caller(node: &Node, name: &str, order: &[usize], types: &[DataType]) -> FunctionDef {
    let mut signature = OpDef { name: name.to_owned(), is_stateful: node.is_stateful, ..OpDef::default() };
    let arg =
        |name: String, data_type: DataType| ArgDef { name, r#type: data_type.number(), ..ArgDef::default() };
    let mut inputs = vec![String::new(); order.len()];
    for &index in order {
        let name = format!("arg_{index}");
        signature.input_arg.push(arg(name.clone(), types[index]));
        inputs[index] = name;
    }
    let mut def = NodeDef { name: "call".to_owned(), input: inputs, ..node.def.clone() };
    def.attr.remove(MUST_COMPILE);
    let call = Node { def: def.clone(), output_arguments: node.output_arguments.clone(), ..Node::default() };
    let mut ret = BTreeMap::new();
    for (index, data_type) in node.output_types.iter().enumerate() {
        let name = format!("result_{index}");
        signature.output_arg.push(arg(name.clone(), data_type.base()));
        ret.insert(name, output_text(&call, index));
    }
    signature.control_output.push("call".to_owned());
    let control_ret = BTreeMap::from([("call".to_owned(), "call".to_owned())]);
    FunctionDef {
        signature: Some(signature),
        node_def: vec![def],
        ret,
        control_ret,
        ..FunctionDef::default()
    }
}

/// Makes the node a launch of the function.
fn replace(
    graph: &mut Graph,
    id: usize,
    function: &str,
    order: &[usize],
    types: &[DataType],
    counts: Counts,
) -> Result<()> {
    let inputs: Vec<(usize, Edge)> = graph[id]
        .in_edges
        .iter()
        .map(|&edge| (edge, graph.edge(edge)))
        .filter(|(_, edge)| !edge.is_control())
        .collect();
    for (edge, _) in &inputs {
        graph.disconnect(*edge);
    }
    let by_index: BTreeMap<usize, Edge> =
        inputs.into_iter().map(|(_, edge)| (edge.dst_input, edge)).collect();
    let arguments: Vec<DataType> = order.iter().map(|&index| types[index]).collect();
    let results: Vec<DataType> = graph[id].output_types.iter().map(|t| t.base()).collect();
    let node = &mut graph[id];
    LAUNCH.clone_into(&mut node.def.op);
    node.def.attr = launch_attributes(function, &arguments, &results, counts);
    node.input_types = arguments;
    node.output_types = results;
    node.output_arguments = vec![("results".to_owned(), 0)];
    node.is_stateful = true;
    for (place, index) in order.iter().enumerate() {
        if let Some(edge) = by_index.get(index) {
            graph.connect(Edge { dst_input: place, ..*edge })?;
        }
    }
    Ok(())
}
