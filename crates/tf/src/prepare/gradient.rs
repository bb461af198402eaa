//! Gradients of functions: replaces each `SymbolicGradient` by a call of a function that computes
//! it.
//!
//! The gradient function first runs the body of the original function. It then goes backward from
//! the results: the gradient of each op computes the gradients of a node's inputs from the
//! gradients of its outputs. Gradients of the same output are summed.

mod arrays;
mod broadcast;
mod builder;
mod math;
mod network;

use super::signatures::Signatures;
use crate::{DataType, Function, FunctionLibrary, Graph, NodeId, OutputId, Program};
use builder::{Builder, Call};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Op of a node that computes the gradient of a function.
pub(super) const OP: &str = "SymbolicGradient";

/// Maximum number of nodes in one gradient function, and in all of them together.
const MAX_NODES: usize = 250_000;

/// Kind of gradient that an op has.
enum Kind {
    /// Built by a function, which returns a gradient, or `None` for zero, for each input.
    Built(fn(&mut Builder<'_>, &Call) -> Result<Vec<Option<OutputId>>>),
    /// The gradients of all inputs are zero.
    Zero,
    /// The gradient of a called function.
    Function(String),
}

/// Ops whose gradient is zero in TensorFlow.
const ZERO: &[&str] = &[
    "Const",
    "EditDistance",
    "Equal",
    "FakeQuantWithMinMaxArgsGradient",
    "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    "Floor",
    "FloorDiv",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "LinSpace",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "NotEqual",
    "OnesLike",
    "RandomUniform",
    "Range",
    "Rank",
    "Shape",
    "Size",
    "StatelessMultinomial",
    "StatelessRandomNormal",
    "StatelessRandomUniform",
    "StatelessTruncatedNormal",
    "StopGradient",
    "TruncateDiv",
    "ZerosLike",
];

/// Replaces every `SymbolicGradient` of a program.
pub(super) fn expand(program: &mut Program, signatures: &Signatures<'_>) -> Result<()> {
    let mut expansion = Expansion {
        signatures,
        library: std::mem::take(&mut program.library),
        gradients: BTreeMap::new(),
        nodes: 0,
        waiting: Vec::new(),
    };
    expansion.waiting = expansion.library.functions().map(|function| function.name.clone()).collect();
    expansion.resolve(&mut program.graph)?;
    while let Some(name) = expansion.waiting.pop() {
        let function = expansion.library.get(&name).filter(|function| has_gradients(&function.graph));
        let Some(mut function) = function.cloned() else { continue };
        expansion.resolve(&mut function.graph)?;
        expansion.library.insert(function);
    }
    program.library = expansion.library;
    Ok(())
}

fn has_gradients(graph: &Graph) -> bool {
    graph.nodes.iter().any(|(_, node)| node.op == OP)
}

struct Expansion<'a> {
    signatures: &'a Signatures<'a>,
    library: FunctionLibrary,
    /// Gradient function of each function that has one.
    gradients: BTreeMap<String, String>,
    nodes: usize,
    /// Functions that may still contain gradients.
    waiting: Vec<String>,
}

impl Expansion<'_> {
    /// Replaces the gradients in a graph by calls.
    fn resolve(&mut self, graph: &mut Graph) -> Result<()> {
        for id in graph.nodes.ids() {
            let node = &graph.nodes[id];
            if node.op != OP {
                continue;
            }
            let name = node.name.clone();
            let at_node = |e: Error| e.context(format!("node '{name}' (op {OP})"));
            let function = node.attributes.func("f").map_err(at_node)?.0.to_owned();
            let types = (
                node.inputs.iter().map(|&i| graph.output_type(i).base()).collect::<Vec<_>>(),
                &node.output_types,
            );
            let gradient = self.gradient(&function, &types.0, types.1).map_err(at_node)?;
            graph.nodes[id].op = gradient;
        }
        Ok(())
    }

    /// Returns the name of the gradient of a function. Builds it on first use.
    fn gradient(&mut self, name: &str, inputs: &[DataType], outputs: &[DataType]) -> Result<String> {
        let Some(function) = self.library.get(name) else {
            return Err(Error::unsupported(format!(
                "'{name}' is not a function in the graph's library: gradients are supported only for those, so call the \
                 op from a function"
            )));
        };
        check_signature(function, inputs, outputs)?;
        if let Some(gradient) = self.gradients.get(name) {
            return Ok(gradient.clone());
        }
        let function = function.clone();
        let gradient_name = self.library.unused_name(&format!("{name}__gradient"));
        let gradient = self
            .backward(function, gradient_name.clone())
            .map_err(|e| e.context(format!("the gradient of function '{name}'")))?;
        self.nodes += gradient.graph.nodes.len();
        if self.nodes > MAX_NODES {
            return Err(Error::invalid(format!(
                "the gradients of functions have more than {MAX_NODES} nodes"
            )));
        }
        self.library.insert(gradient);
        self.gradients.insert(name.to_owned(), gradient_name.clone());
        self.waiting.push(gradient_name.clone());
        Ok(gradient_name)
    }

    /// Builds the function that computes the gradients of the arguments from the arguments and the
    /// gradients of the results.
    fn backward(&self, function: Function, name: String) -> Result<Function> {
        let Function { mut graph, mut arguments, results, control_results, .. } = function;
        let order = graph.topological_order()?;
        let depends = dependents(&graph, &order, &arguments);
        let forward = arguments.len();
        let mut gradients: BTreeMap<OutputId, Vec<OutputId>> = BTreeMap::new();
        let mut builder = Builder::new(&mut graph, self.signatures);
        for (k, &result) in results.iter().enumerate() {
            let data_type = builder.type_of(result);
            let argument = builder.unused_name("dy");
            let argument = builder.graph.push_argument(&argument, forward + k, data_type);
            arguments.push(argument);
            gradients.entry(result).or_default().push(OutputId { node: argument, index: 0 });
        }
        for &id in order.iter().rev() {
            let outputs = builder.graph.nodes[id].output_types.len();
            let has_any = (0..outputs).any(|index| gradients.contains_key(&OutputId { node: id, index }));
            if !has_any || !depends.contains(&id) || arguments[..forward].contains(&id) {
                continue;
            }
            let mut dy = Vec::new();
            for index in 0..outputs {
                let output = OutputId { node: id, index };
                dy.push(builder.total(output, gradients.remove(&output))?);
            }
            let inputs = builder.graph.nodes[id].inputs.clone();
            let back = self.node_gradients(&mut builder, id, dy)?;
            for (input, gradient) in inputs.into_iter().zip(back) {
                if let Some(gradient) = gradient.filter(|_| depends.contains(&input.node)) {
                    gradients.entry(input).or_default().push(gradient);
                }
            }
        }
        let mut results = Vec::new();
        for &argument in &arguments[..forward] {
            let output = OutputId { node: argument, index: 0 };
            results.push(builder.total(output, gradients.remove(&output))?);
        }
        Ok(Function { name, graph, arguments, results, control_results })
    }

    /// Returns the gradients of the inputs of a node.
    fn node_gradients(
        &self,
        builder: &mut Builder<'_>,
        id: NodeId,
        dy: Vec<OutputId>,
    ) -> Result<Vec<Option<OutputId>>> {
        let node = builder.graph.nodes[id].clone();
        let y = (0..node.output_types.len()).map(|index| OutputId { node: id, index }).collect();
        let call = Call { x: node.inputs.clone(), y, dy, node };
        let at_node = |e: Error| e.context(format!("node '{}' (op {})", call.node.name, call.node.op));
        match self.kind(&call).map_err(at_node)? {
            Kind::Zero => Ok(vec![None; call.x.len()]),
            Kind::Function(function) => builder.function_gradient(&call, &function).map_err(at_node),
            Kind::Built(build) => build(builder, &call).map_err(at_node),
        }
    }

    fn kind(&self, call: &Call) -> Result<Kind> {
        let op = call.node.op.as_str();
        if self.library.get(op).is_some() {
            return Ok(Kind::Function(op.to_owned()));
        }
        if op == "PartitionedCall" || op == "StatefulPartitionedCall" {
            return Ok(Kind::Function(call.node.attributes.func("f")?.0.to_owned()));
        }
        if ZERO.contains(&op) {
            return Ok(Kind::Zero);
        }
        let build = math::find(op).or_else(|| broadcast::find(op)).or_else(|| arrays::find(op));
        build.or_else(|| network::find(op)).map(Kind::Built).ok_or_else(|| {
            Error::unsupported(format!(
                "TensorFlow has no gradient of op {op} for functions: compute the gradient with a GradientTape when \
                 building the graph"
            ))
        })
    }
}

fn too_many() -> Error {
    Error::invalid(format!("the gradients of functions have more than {MAX_NODES} nodes"))
}

/// Returns the arguments and all nodes downstream of them.
fn dependents(graph: &Graph, order: &[NodeId], arguments: &[NodeId]) -> BTreeSet<NodeId> {
    let mut depends: BTreeSet<NodeId> = arguments.iter().copied().collect();
    for &id in order {
        if graph.nodes[id].inputs.iter().any(|input| depends.contains(&input.node)) {
            depends.insert(id);
        }
    }
    depends
}

/// Rejects a node whose inputs and outputs do not match the gradient of a function. The inputs must
/// be the arguments and the gradients of the results, and the outputs the gradients of the
/// arguments.
fn check_signature(function: &Function, inputs: &[DataType], outputs: &[DataType]) -> Result<()> {
    let types = |outputs: Vec<OutputId>| -> Vec<DataType> {
        outputs.into_iter().map(|output| function.graph.output_type(output).base()).collect()
    };
    let arguments = types(function.arguments.iter().map(|&node| OutputId { node, index: 0 }).collect());
    let expected = [arguments.clone(), types(function.results.clone())].concat();
    let plain = |types: &[DataType]| -> Vec<DataType> {
        types.iter().map(|&t| if t == DataType::Resource { DataType::Float } else { t }).collect()
    };
    if inputs == expected && plain(outputs) == plain(&arguments) {
        return Ok(());
    }
    let list = |types: &[DataType]| types.iter().map(|t| t.name()).collect::<Vec<_>>().join(", ");
    Err(Error::invalid(format!(
        "the gradient of '{}' has inputs ({}) and outputs ({}), but the node has inputs ({}) and outputs ({})",
        function.name,
        list(&expected),
        list(&arguments),
        list(inputs),
        list(outputs)
    )))
}
