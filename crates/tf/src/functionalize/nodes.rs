//! Nodes that functionalization adds, and the properties of ops that it uses.

use super::Assumption;
use crate::op_def;
use crate::proto::{ListValue, NameAttrList, TensorProto, TensorShapeProto, attr_value::Value};
use crate::{DataType, Graph, Node, NodeId, OutputId};
use std::collections::BTreeSet;

/// True if an op forwards its data to exactly one of its outputs.
pub(super) fn is_switch(op: &str) -> bool {
    matches!(op, "Switch" | "RefSwitch" | "_SwitchN")
}

/// True if an op forwards whichever input is alive.
pub(super) fn is_merge(op: &str) -> bool {
    matches!(op, "Merge" | "RefMerge")
}

pub(super) fn is_enter(op: &str) -> bool {
    matches!(op, "Enter" | "RefEnter")
}

pub(super) fn is_exit(op: &str) -> bool {
    matches!(op, "Exit" | "RefExit")
}

pub(super) fn is_next_iteration(op: &str) -> bool {
    matches!(op, "NextIteration" | "RefNextIteration")
}

/// True if an op belongs to a TensorFlow 1 while loop.
pub(super) fn is_loop(op: &str) -> bool {
    is_enter(op) || is_exit(op) || is_next_iteration(op) || op == "LoopCond"
}

/// True if an op only creates the handle of a variable, so that its position does not matter.
pub(super) fn is_variable(op: &str) -> bool {
    matches!(op, "VarHandleOp" | "VariableV2" | "Variable")
}

/// True if an op has an effect or a state, so that it must run exactly once.
pub(super) fn is_stateful(op: &str) -> bool {
    // Unregistered ops are library functions.
    op_def::lookup(op).is_none_or(|op| op.is_stateful) && op != "_Arg"
}

/// True if an op is stateful only because it reads a variable.
pub(super) fn is_read(op: &str) -> bool {
    matches!(
        op,
        "ReadVariableOp" | "VariableShape" | "VarIsInitializedOp" | "ResourceGather" | "ResourceGatherNd"
    )
}

/// The output that a predicate copies through `Identity` nodes.
pub(super) fn canonical(graph: &Graph, mut output: OutputId) -> OutputId {
    while let "Identity" | "RefIdentity" = graph.nodes[output.node].op.as_str() {
        output = graph.nodes[output.node].inputs[0];
    }
    output
}

/// Adds an `Identity` of a value.
pub(super) fn push_identity(graph: &mut Graph, name: &str, input: OutputId) -> NodeId {
    let data_type = graph.output_type(input).base();
    let values = [("T", Value::Type(data_type.number()))];
    let identity = Node::unconnected(name, "Identity", values, vec![data_type]);
    graph.nodes.push(Node { inputs: vec![input], ..identity })
}

/// Adds a `Switch` and a node that runs only under the given outcome of a predicate.
pub(super) fn push_pivot(
    graph: &mut Graph,
    name: &str,
    predicate: OutputId,
    Assumption { outcome, count }: Assumption,
) -> [NodeId; 2] {
    let data_type = graph.output_type(predicate).base();
    let is_bool = data_type == DataType::Bool;
    let op = if is_bool { "Switch" } else { "_SwitchN" };
    let values = [("T", Value::Type(data_type.number())), ("num_outs", Value::I(count as i64))];
    let switch = Node::unconnected(format!("{name}/Switch"), op, values, vec![data_type; count]);
    let switch = graph.nodes.push(Node { inputs: vec![predicate, predicate], ..switch });
    [switch, push_identity(graph, name, OutputId { node: switch, index: outcome })]
}

/// Turns a node into an `Identity` of a value of its own type. The node keeps its name, id, and
/// control inputs.
pub(super) fn become_identity(graph: &mut Graph, id: NodeId, input: OutputId) {
    let node = &mut graph.nodes[id];
    let data_type = node.output_types[0];
    let op = if data_type.is_ref() { "RefIdentity" } else { "Identity" };
    let values = [("T", Value::Type(data_type.base().number()))];
    let identity = node.replacement(op, values, node.output_types.clone());
    let control_inputs = std::mem::take(&mut node.control_inputs);
    *node = Node { inputs: vec![input], control_inputs, ..identity };
}

/// Adds a constant `int32` scalar.
pub(super) fn push_index(graph: &mut Graph, name: &str, value: usize) -> NodeId {
    let tensor = TensorProto {
        dtype: DataType::Int32.number(),
        tensor_shape: Some(TensorShapeProto::default()),
        int_val: vec![value as i32],
        ..TensorProto::default()
    };
    let values =
        [("dtype", Value::Type(DataType::Int32.number())), ("value", Value::Tensor(Box::new(tensor)))];
    graph.nodes.push(Node::unconnected(name, "Const", values, vec![DataType::Int32]))
}

/// Adds the arguments of a function. A name that is already taken gets a suffix.
pub(super) fn push_arguments(graph: &mut Graph, parameters: &[(String, DataType)]) -> Vec<NodeId> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut arguments = Vec::new();
    for (i, (name, data_type)) in parameters.iter().enumerate() {
        let mut name = name.clone();
        while !taken.insert(name.clone()) {
            name = format!("{name}/{i}");
        }
        arguments.push(graph.push_argument(&name, i, *data_type));
    }
    arguments
}

fn types(types: &[DataType]) -> Value {
    let r#type = types.iter().map(|t| t.number()).collect();
    Value::List(Box::new(ListValue { r#type, ..ListValue::default() }))
}

fn function(name: &str) -> NameAttrList {
    NameAttrList { name: name.to_owned(), ..NameAttrList::default() }
}

/// A node that calls one of several functions.
pub(super) struct Choice<'a> {
    pub(super) name: String,
    /// A bool predicate for an `If`, or the index of a function for a `Case`.
    pub(super) selector: OutputId,
    pub(super) inputs: Vec<OutputId>,
    pub(super) control_inputs: Vec<NodeId>,
    pub(super) output_types: Vec<DataType>,
    /// The functions for false and true, or for each index.
    pub(super) functions: &'a [String],
    pub(super) has_effects: bool,
}

impl Choice<'_> {
    /// Adds an `If` or a `Case`.
    pub(super) fn push(self, graph: &mut Graph) -> NodeId {
        let input_types: Vec<DataType> = self.inputs.iter().map(|&o| graph.output_type(o)).collect();
        let selector_type = graph.output_type(self.selector).base();
        let (inputs, outputs) = (types(&input_types), types(&self.output_types));
        let (op, values) = if selector_type == DataType::Bool {
            let branch = |i: usize| Value::Func(function(&self.functions[i]));
            let values = vec![
                ("Tcond", Value::Type(selector_type.number())),
                ("Tin", inputs),
                ("Tout", outputs),
                ("else_branch", branch(0)),
                ("then_branch", branch(1)),
                ("output_shapes", Value::List(Box::default())),
            ];
            (if self.has_effects { "If" } else { "StatelessIf" }, values)
        } else {
            let func = self.functions.iter().map(|name| function(name)).collect();
            let values = vec![
                ("Tin", inputs),
                ("Tout", outputs),
                ("branches", Value::List(Box::new(ListValue { func, ..ListValue::default() }))),
                ("output_shapes", Value::List(Box::default())),
            ];
            (if self.has_effects { "Case" } else { "StatelessCase" }, values)
        };
        graph.nodes.push(Node {
            inputs: std::iter::once(self.selector).chain(self.inputs).collect(),
            control_inputs: self.control_inputs,
            ..Node::unconnected(self.name, op, values, self.output_types)
        })
    }
}

/// A node that calls the function `body` while the function `cond` returns true.
pub(super) struct Repetition {
    pub(super) name: String,
    pub(super) inputs: Vec<OutputId>,
    pub(super) control_inputs: Vec<NodeId>,
    pub(super) output_types: Vec<DataType>,
    pub(super) cond: String,
    pub(super) body: String,
    pub(super) has_effects: bool,
}

impl Repetition {
    /// Adds a `While`.
    pub(super) fn push(self, graph: &mut Graph) -> NodeId {
        let op = if self.has_effects { "While" } else { "StatelessWhile" };
        let values = [
            ("T", types(&self.output_types)),
            ("cond", Value::Func(function(&self.cond))),
            ("body", Value::Func(function(&self.body))),
            ("output_shapes", Value::List(Box::default())),
        ];
        graph.nodes.push(Node {
            inputs: self.inputs,
            control_inputs: self.control_inputs,
            ..Node::unconnected(self.name, op, values, self.output_types)
        })
    }
}
