//! Calls of functions that must be compiled as a whole.

use crate::candidates::{Context, MUST_COMPILE};
use crate::graph::attributes::function_attribute;
use crate::graph::{Edge, Graph, Node, NodeId, OutputArgument};
use crate::report::Report;
use crate::rewrite::encapsulate::{Counts, LaunchOrder, launch_attributes, output_text};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;
use tf::DataType;
use tf::proto::{ArgDef, FunctionDef, NodeDef, OpDef};

/// Op of a node that runs such a function.
const LAUNCH: &str = "XlaLaunch";

/// Replaces every call of such a function by a launch. A launch has its own argument order, so it
/// runs a new function that only calls the other. Returns these new functions.
pub(crate) fn launch_functions(
    graph: &mut Graph,
    context: &Context<'_>,
    used_names: &mut BTreeSet<String>,
    report: &mut Report,
) -> Result<Vec<FunctionDef>> {
    let mut functions = Vec::new();
    for id in graph.ids().collect::<Vec<_>>() {
        let node = &graph[id];
        if context.pinned.contains(node.name()) || !context.has_attribute(node, MUST_COMPILE) {
            continue;
        }
        let attributes = &node.def.attr;
        let (callee, values) = match function_attribute(attributes, "f") {
            Some(func) if matches!(node.op(), "PartitionedCall" | "StatefulPartitionedCall") => {
                (func.name.as_str(), &func.attr)
            }
            _ => (node.op(), attributes),
        };
        if context.library.definitions.function(callee).is_none() {
            continue;
        }
        let constants = context.constants.of_function(callee, values)?;
        let types: Vec<DataType> = node.input_types.iter().map(|t| t.base()).collect();
        let LaunchOrder { order, counts } = LaunchOrder::new(&types, &constants);
        let mut name = format!("{callee}_xla");
        let mut number = 0;
        while !used_names.insert(name.clone()) {
            number += 1;
            name = format!("{callee}_xla_{number}");
        }
        functions.push(caller(node, &name, &order, &types));
        report.must_compile.push((node.name().to_owned(), callee.to_owned()));
        replace(graph, id, &name, &order, &types, counts)?;
    }
    Ok(functions)
}

/// A function that calls the node's callee with reordered arguments.
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

/// Replaces the node by a launch of the function.
fn replace(
    graph: &mut Graph,
    id: NodeId,
    function: &str,
    order: &[usize],
    types: &[DataType],
    counts: Counts,
) -> Result<()> {
    let mut inputs = vec![None; order.len()];
    for edge_id in graph[id].in_edges.clone() {
        let edge = graph.edge(edge_id);
        if let Some(input) = edge.input() {
            inputs[input] = edge.tensor();
            graph.disconnect(edge_id);
        }
    }
    let arguments: Vec<DataType> = order.iter().map(|&index| types[index]).collect();
    let results: Vec<DataType> = graph[id].output_types.iter().map(|t| t.base()).collect();
    let node = &mut graph[id];
    LAUNCH.clone_into(&mut node.def.op);
    node.def.attr = launch_attributes(function, &arguments, &results, counts);
    node.input_types = arguments;
    node.output_types = results;
    node.output_arguments = vec![OutputArgument { name: "results".to_owned(), start: 0 }];
    node.is_stateful = true;
    for (place, &index) in order.iter().enumerate() {
        if let Some(tensor) = inputs[index] {
            graph.connect(Edge::data(tensor, id, place))?;
        }
    }
    Ok(())
}
