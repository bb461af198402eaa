//! The nodes that a function call must run.

use crate::node::rule::RuleTable;
use std::collections::BTreeSet;
use tf::{Function, NodeId};

/// Returns the nodes of a function that a call must run: those that results and control results
/// need, and those with effects.
pub(crate) fn needed_nodes(
    rules: &RuleTable,
    program: &tf::Program,
    function: &Function,
) -> BTreeSet<NodeId> {
    let graph = &function.graph;
    let effects = graph.nodes.iter().filter(|(_, node)| match rules.find(&node.op) {
        Some(rule) => rule.has_effect,
        // A call may write variables inside the function.
        None => program.library.get(&node.op).is_some(),
    });
    let mut stack: Vec<NodeId> = effects.map(|(id, _)| id).collect();
    stack.extend(function.results.iter().map(|output| output.node));
    stack.extend(&function.control_results);
    let mut needed = BTreeSet::new();
    while let Some(id) = stack.pop() {
        if needed.insert(id) {
            let node = &graph.nodes[id];
            stack.extend(node.inputs.iter().map(|input| input.node));
            stack.extend(&node.control_inputs);
        }
    }
    needed
}
