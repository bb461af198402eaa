//! Programs with a single node, for compiling a graph node by node.

use crate::functionalize;
use crate::proto::{Dim, TensorProto, TensorShapeProto, attr_value::Value};
use crate::{
    Attributes, DataType, Dimension, Feed, Fetch, FunctionLibrary, Graph, Node, NodeId, OutputId, Program,
    Resource, Variable, VariableState,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use support::{Error, Result};

/// Builder for the program of one node. Add the inputs in order, then call [`NodeProgram::finish`].
#[derive(Debug)]
pub struct NodeProgram {
    graph: Graph,
    inputs: Vec<OutputId>,
    feeds: Vec<Feed>,
    variables: Vec<Variable>,
    dimensions: Vec<Dimension>,
}

/// A variable that a node reads or writes.
#[derive(Clone, Copy, Debug)]
pub struct NodeVariable<'v> {
    /// Name. Inputs with the same name are the same variable.
    pub name: &'v str,
    /// Size of each dimension. Empty if the variable has no value.
    pub shape: &'v [i64],
    /// Element type.
    pub data_type: DataType,
    /// True if the node's input is a reference rather than a handle.
    pub is_reference: bool,
    /// State of the variable before and after a run.
    pub state: VariableState,
}

impl NodeProgram {
    /// Creates a program without inputs.
    #[expect(clippy::new_without_default, reason = "a program without a node is not a useful default")]
    pub fn new() -> Self {
        let graph = Graph::new();
        let (inputs, feeds) = (Vec::new(), Vec::new());
        Self { graph, inputs, feeds, variables: Vec::new(), dimensions: Vec::new() }
    }

    /// Adds a named dimension, whose size is between 1 and `high`. Returns its number.
    pub fn dimension(&mut self, high: i64) -> usize {
        let number = self.dimensions.len();
        self.dimensions.push(Dimension { name: format!("size_{number}"), low: 1, high });
        number
    }

    /// Adds an argument of the program as the next input. `dimensions` are the numbers of its named
    /// dimensions, whose sizes in `shape` are the largest.
    pub fn argument(&mut self, data_type: DataType, shape: Vec<i64>, dimensions: BTreeMap<usize, usize>) {
        let name = self.input_name();
        let node = self.graph.push_argument(&name, self.feeds.len(), data_type);
        let tensor = OutputId { node, index: 0 };
        let (id, name) = ((name, 0), String::new());
        self.feeds.push(Feed { tensor, id, name, shape, dimensions, data_type, quantization: None });
        self.inputs.push(tensor);
    }

    /// Adds a constant with the elements `content` as the next input.
    pub fn constant(&mut self, data_type: DataType, shape: &[i64], content: Bytes) {
        let tensor = TensorProto {
            dtype: data_type.number(),
            tensor_shape: Some(shape_proto(shape)),
            tensor_content: content,
            ..TensorProto::default()
        };
        let values = [("dtype", Value::Type(data_type.number())), ("value", Value::Tensor(Box::new(tensor)))];
        let constant = Node::unconnected(self.input_name(), "Const", values, vec![data_type]);
        let node = self.graph.nodes.push(constant);
        self.inputs.push(OutputId { node, index: 0 });
    }

    /// Adds a variable as the next input.
    pub fn variable(&mut self, variable: NodeVariable<'_>) {
        let known = self.variables.iter().find(|known| known.node_name == variable.name);
        let node = known.and_then(|known| known.node).unwrap_or_else(|| self.push_variable(variable));
        self.inputs.push(OutputId { node, index: 0 });
    }

    fn push_variable(&mut self, variable: NodeVariable<'_>) -> NodeId {
        let NodeVariable { name, shape, data_type, is_reference, state } = variable;
        let unknown_rank = state == VariableState::Uninitialized;
        let shape_proto = TensorShapeProto { unknown_rank, ..shape_proto(shape) };
        let values = [("dtype", Value::Type(data_type.number())), ("shape", Value::Shape(shape_proto))];
        let (op, output) = if is_reference {
            ("VariableV2", data_type.reference())
        } else {
            ("VarHandleOp", DataType::Resource)
        };
        let node = self.graph.nodes.push(Node::unconnected(name, op, values, vec![output]));
        self.variables.push(Variable {
            node_name: name.to_owned(),
            name: String::new(),
            shape: shape.to_vec(),
            data_type,
            readonly: false,
            state,
            node: Some(node),
            resource: Resource::new(name, &[], &[]),
            quantization: None,
        });
        node
    }

    fn input_name(&self) -> String {
        format!("input_{}", self.inputs.len())
    }

    /// Returns the program that computes all outputs of `node` except references. Replaces the
    /// node's own inputs by the added ones. With a library, a node that calls a function through an
    /// attribute calls it directly, and the program contains all functions that it needs.
    pub fn finish(self, node: &Node, library: Option<&FunctionLibrary>) -> Result<Program> {
        let Self { mut graph, inputs, feeds, variables, dimensions } = self;
        let mut node = Node { inputs, control_inputs: Vec::new(), ..node.clone() };
        if let Some(library) = library {
            call(&mut node, library)?;
        }
        let functions = library.map(|library| library.called_by(&node)).unwrap_or_default();
        let outputs = node.output_types.iter().enumerate().filter(|(_, data_type)| !data_type.is_ref());
        let outputs: Vec<usize> = outputs.map(|(index, _)| index).collect();
        let name = node.name.clone();
        let node = graph.nodes.push(node);
        let fetches = outputs.into_iter().map(|index| Fetch {
            tensor: OutputId { node, index },
            id: (name.clone(), index as i64),
            name: String::new(),
            quantization: None,
        });
        let mut program = Program {
            graph,
            library: functions,
            feeds,
            dimensions,
            fetches: fetches.collect(),
            variables,
            loop_bounds: BTreeMap::new(),
            form_rows: None,
        };
        if library.is_some() {
            functionalize(&mut program)?;
        }
        Ok(program)
    }
}

fn shape_proto(sizes: &[i64]) -> TensorShapeProto {
    let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
    TensorShapeProto { dim, unknown_rank: false }
}

/// Replaces a call through an attribute by a direct call of the function.
fn call(node: &mut Node, library: &FunctionLibrary) -> Result<()> {
    let attribute = match node.op.as_str() {
        "_XlaLaunch" | "XlaLaunch" => "function",
        "PartitionedCall" | "StatefulPartitionedCall" => "f",
        _ => return Ok(()),
    };
    let name = node.attributes.func(attribute)?.0.to_owned();
    if library.get(&name).is_none() {
        return Err(Error::invalid(format!("function '{name}' is missing from the graph's library")));
    }
    node.attributes = Attributes::new(&node.name, &name, BTreeMap::new());
    node.op = name;
    Ok(())
}
