//! Sinks of a graph: results that the graph does not use itself, except for remnants of training.

use super::super::signatures::Signatures;
use super::super::variables::is_variable;
use super::edges::Edges;
use super::feeds::{is_pipeline, is_placeholder};
use crate::proto::{GraphDef, NodeDef};

/// Ops that run for their effect or hold a value, so that their output is not a result.
const NO_RESULTS: [&str; 30] = [
    "Assert",
    "Assign",
    "AssignAdd",
    "AssignSub",
    "CheckNumerics",
    "Const",
    "ControlTrigger",
    "Enter",
    "IsVariableInitialized",
    "LoopCond",
    "NextIteration",
    "NoOp",
    "Placeholder",
    "PlaceholderV2",
    "PlaceholderWithDefault",
    "Print",
    "ReadVariableOp",
    "RefEnter",
    "RefNextIteration",
    "RefSwitch",
    "Restore",
    "RestoreSlice",
    "RestoreV2",
    "StackPush",
    "StackPushV2",
    "Switch",
    "VarIsInitializedOp",
    "VariableShape",
    "_CheckedAssert",
    "_SwitchN",
];

/// Ops whose results depend only on shapes or are constant.
const SHAPES: [&str; 8] =
    ["BroadcastGradientArgs", "ConcatOffset", "OnesLike", "Rank", "Shape", "ShapeN", "Size", "ZerosLike"];

/// Ops that return the results of a loop, which computes all of them even if they are unused.
const LOOPS: [&str; 4] = ["Exit", "RefExit", "StatelessWhile", "While"];

/// Sinks of a graph, as positions of nodes.
#[derive(Default)]
pub(super) struct Sinks {
    /// Nodes that no other node reads or waits for.
    pub(super) results: Vec<usize>,
    /// Nodes that only summaries read, or that only have control edges to other nodes.
    pub(super) observed: Vec<usize>,
    /// Nodes without a result that update variables or wait for nodes that do.
    pub(super) updates: Vec<usize>,
    /// Unused results of loops.
    pub(super) of_loops: Vec<usize>,
    /// Unused results that depend on variables but on nothing else that varies.
    pub(super) of_variables: Vec<usize>,
    /// Other unused results: gradients, shapes, and constants.
    pub(super) rest: Vec<usize>,
    /// For each node, true if it updates a variable.
    pub(super) is_update: Vec<bool>,
}

impl Sinks {
    /// Finds the sinks of a graph.
    pub(super) fn find(graph: &GraphDef, edges: &Edges, signatures: &Signatures<'_>) -> Self {
        let nodes = graph.node.as_slice();
        let varies = find_varying(nodes, edges, signatures);
        let of_variables = edges.computed_from((0..nodes.len()).filter(|&at| is_variable(&nodes[at].op)));
        let mut sinks = Self { is_update: find_updates(nodes, edges), ..Self::default() };
        let updating = downstream(edges, &sinks.is_update);
        for (at, node) in nodes.iter().enumerate() {
            let (is_read, is_waited_for) = (!edges.readers[at].is_empty(), !edges.waiting[at].is_empty());
            let only_observed = edges.readers[at].iter().all(|&reader| is_summary(&nodes[reader].op));
            if !only_observed || is_summary(&node.op) {
                continue;
            }
            if !has_result(nodes, edges, signatures, at) {
                if !is_read && !is_waited_for && updating[at] {
                    sinks.updates.push(at);
                }
                continue;
            }
            let origin = &nodes[edges.origin(nodes, at)];
            let is_of_training = [node, origin].iter().any(|node| is_of_gradient(&node.name));
            let list = if is_of_training
                || SHAPES.contains(&node.op.as_str())
                || node.name.contains("/AssertGuard/")
            {
                &mut sinks.rest
            } else if !varies[at] {
                if of_variables[at] { &mut sinks.of_variables } else { &mut sinks.rest }
            } else if LOOPS.contains(&origin.op.as_str()) {
                &mut sinks.of_loops
            } else if is_read || is_waited_for {
                &mut sinks.observed
            } else {
                &mut sinks.results
            };
            list.push(at);
        }
        sinks
    }
}

/// Returns the positions of a node's outputs that hold numbers or bools.
pub(super) fn numeric_outputs(node: &NodeDef, signatures: &Signatures<'_>) -> Vec<i64> {
    let Ok((_, types)) = signatures.output_types(node) else { return Vec::new() };
    (0..).zip(&types).filter(|(_, t)| t.primitive_type().is_some()).map(|(k, _)| k).collect()
}

/// True if a node computes numbers, rather than a copy of a variable, a side effect, or an output
/// of a `Switch`.
fn has_result(nodes: &[NodeDef], edges: &Edges, signatures: &Signatures<'_>, at: usize) -> bool {
    let is_effect = |op: &str| {
        NO_RESULTS.contains(&op) || is_variable(op) || is_update_op(op) || op.starts_with("TensorArray")
    };
    let origin = nodes[edges.origin(nodes, at)].op.as_str();
    !is_effect(&nodes[at].op)
        && !matches!(origin, "ReadVariableOp" | "Switch" | "RefSwitch")
        && !is_variable(origin)
        && !numeric_outputs(&nodes[at], signatures).is_empty()
}

fn is_summary(op: &str) -> bool {
    op.contains("Summary")
}

/// True if a name is in one of the scopes that TensorFlow uses for gradients.
fn is_of_gradient(name: &str) -> bool {
    name.split('/').any(|scope| {
        let base = scope.trim_end_matches(|c: char| c.is_ascii_digit());
        let base = base.strip_suffix('_').unwrap_or(scope);
        matches!(base, "gradients" | "gradient_tape") || base.ends_with("_grad")
    })
}

fn is_update_op(op: &str) -> bool {
    let starts = ["Apply", "SparseApply", "ResourceApply", "ResourceSparseApply", "ResourceScatter"];
    let scatters = ["Add", "Div", "Max", "Min", "Mul", "Sub", "Update"];
    let scattered = op.strip_prefix("ScatterNd").or_else(|| op.strip_prefix("Scatter"));
    starts.iter().any(|start| op.starts_with(start))
        || scattered.is_some_and(|operation| scatters.contains(&operation))
        || matches!(
            op,
            "AssignAdd"
                | "AssignAddVariableOp"
                | "AssignSub"
                | "AssignSubVariableOp"
                | "ResourceStridedSliceAssign"
                | "StridedSliceAssign"
        )
}

/// Returns for each node whether it updates a variable: by its op, or by assigning a value computed
/// from variables, which distinguishes updates from initializers and restores.
fn find_updates(nodes: &[NodeDef], edges: &Edges) -> Vec<bool> {
    let from_variables = edges.computed_from((0..nodes.len()).filter(|&at| is_variable(&nodes[at].op)));
    let is_update = |at: usize| {
        let node = &nodes[at];
        match (node.op.as_str(), edges.data[at].as_slice()) {
            ("Assign" | "AssignVariableOp", [variable, value, ..]) => {
                let variable_name = nodes[variable.node].name.as_str();
                from_variables[value.node]
                    && node.name.strip_prefix(variable_name).is_none_or(|rest| !rest.starts_with("/Assign"))
            }
            ("PartitionedCall" | "StatefulPartitionedCall", _) => from_variables[at],
            (op, _) => is_update_op(op),
        }
    };
    (0..nodes.len()).map(is_update).collect()
}

/// Returns for each node whether it is a root or downstream of one.
fn downstream(edges: &Edges, roots: &[bool]) -> Vec<bool> {
    let mut reached = vec![false; roots.len()];
    let mut work: Vec<usize> = (0..roots.len()).filter(|&at| roots[at]).collect();
    while let Some(at) = work.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            work.extend(&edges.readers[at]);
            work.extend(&edges.waiting[at]);
        }
    }
    reached
}

/// Returns for each node whether its value depends on feeds, pipelines, or random numbers.
fn find_varying(nodes: &[NodeDef], edges: &Edges, signatures: &Signatures<'_>) -> Vec<bool> {
    let is_source = |&at: &usize| {
        let op = nodes[at].op.as_str();
        let is_random = ["Random", "Multinomial", "TruncatedNormal"].iter().any(|word| op.contains(word));
        is_placeholder(op)
            || is_pipeline(op)
            || op == "PlaceholderWithDefault"
            || is_random && !op.contains("Queue") && signatures.get(op).is_some_and(|s| s.is_stateful)
            || edges.data[at].is_empty() && signatures.function(op).is_some()
            || signatures.get(op).is_none()
    };
    edges.computed_from((0..nodes.len()).filter(is_source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_are_known_by_their_scopes() {
        for name in [
            "gradients/zeros_like",
            "a/gradients_1/b/Shape",
            "gradient_tape/model/dense/MatMul",
            "g/rnn/while_grad/Identity",
            "m/Mul_grad_2/Reshape",
        ] {
            assert!(is_of_gradient(name), "{name}");
        }
        for name in ["loss", "my_gradients_norm/Sqrt", "gradual/x", "model/graduate"] {
            assert!(!is_of_gradient(name), "{name}");
        }
    }
}
