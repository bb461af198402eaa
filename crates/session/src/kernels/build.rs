//! From a node and its operands to a program of that node alone.

use super::{Operand, Site};
use crate::op_kind::{is_array, must_compile};
use bytes::Bytes;
use prost::Message;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use support::{Error, Id, Result};
use tf::proto::{AttrValue, Dim, NameAttrList, TensorProto, TensorShapeProto, attr_value::Value as Attr};
use tf::{
    Attributes, DataType, Feed, Fetch, FunctionLibrary, Graph, Node, NodeId, OutputId, Program, Resource,
    Variable, VariableState,
};

/// What an output of a node comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A result of the kernel.
    Result(usize),
    /// The reference that the node got.
    Reference(usize),
}

/// A program of one node.
pub(super) struct OneNode {
    pub(super) program: Program,
    /// Which input of the node each feed is.
    pub(super) feeds: Vec<usize>,
    pub(super) outputs: Vec<Source>,
}

/// The program of a node for operands; `None` as a library for nodes that call nothing.
pub(super) fn program(site: &Site, operands: &[Operand], library: &FunctionLibrary) -> Result<OneNode> {
    let mut builder = Builder::default();
    let inputs = operands.iter().zip(&site.input_types).enumerate();
    let inputs = inputs.map(|(k, (operand, &data_type))| builder.input(k, operand, data_type));
    let inputs: Vec<OutputId> = inputs.collect::<Result<_>>()?;
    let mut node = site.node.clone();
    node.inputs = inputs;
    node.control_inputs.clear();
    let is_call = must_compile(&site.node);
    if is_call {
        call(&mut node, library)?;
    }
    let mut outputs = Vec::new();
    let mut fetches = Vec::new();
    for (index, &data_type) in node.output_types.iter().enumerate() {
        if data_type.is_ref() {
            // An op that updates a variable returns the reference that it got first.
            outputs.push(Source::Reference(0));
            continue;
        }
        if !is_array(data_type) {
            return Err(Error::unsupported(format!(
                "output {index} is of {data_type}, and no kernel makes such"
            )));
        }
        outputs.push(Source::Result(fetches.len()));
        fetches.push(index);
    }
    let name = node.name.clone();
    let id = builder.graph.nodes.push(node);
    let fetches = fetches.into_iter().map(|index| Fetch {
        tensor: OutputId { node: id, index },
        id: (name.clone(), index as i64),
        name: String::new(),
    });
    let fetches = fetches.collect();
    let Builder { graph, feeds, inputs, variables } = builder;
    let library = if is_call { called(library, &graph) } else { FunctionLibrary::default() };
    let mut program = Program { graph, library, feeds, fetches, variables, loop_bounds: BTreeMap::new() };
    if is_call {
        tf::functionalize(&mut program)?;
    }
    for k in 0..program.variables.len() {
        program.variables[k].readonly = !import::may_write(&program, k);
    }
    Ok(OneNode { program, feeds: inputs, outputs })
}

/// Makes a node call its function by name, as the importer knows calls.
fn call(node: &mut Node, library: &FunctionLibrary) -> Result<()> {
    let attribute = match node.op.as_str() {
        "_XlaLaunch" | "XlaLaunch" => "function",
        "PartitionedCall" | "StatefulPartitionedCall" => "f",
        _ => return Ok(()),
    };
    let name = node.attributes.func(attribute)?.0.to_owned();
    if library.get(&name).is_none() {
        return Err(Error::invalid(format!("there is no function '{name}' in the graph's library")));
    }
    node.attributes = Attributes::new(&node.name, &name, BTreeMap::new());
    node.op = name;
    Ok(())
}

/// What tells the functions that a node calls from others of their names.
pub(super) fn hash_of_called(node: &Node, library: &FunctionLibrary) -> Vec<u8> {
    let mut graph = Graph::default();
    graph.nodes.push(node.clone());
    let mut hash = Sha256::new();
    for function in called(library, &graph).functions() {
        add_function(function, &mut hash);
    }
    hash.finalize().to_vec()
}

/// Adds everything that a function computes to a hash; lists and texts after their lengths.
fn add_function(function: &tf::Function, hash: &mut Sha256) {
    let mut bytes = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let mut numbers = Vec::new();
    let mut list = |list: &mut dyn ExactSizeIterator<Item = u64>| {
        numbers.extend((list.len() as u64).to_le_bytes());
        list.for_each(|number| numbers.extend(number.to_le_bytes()));
    };
    let output = |output: &OutputId| (output.node.index() as u64) << 32 | output.index as u64;
    let node = |id: &NodeId| id.index() as u64;
    bytes(function.name.as_bytes());
    list(&mut function.arguments.iter().map(node));
    list(&mut function.results.iter().map(output));
    list(&mut function.control_results.iter().map(node));
    for Node { name, op, inputs, control_inputs, attributes, output_types } in function.graph.nodes.values() {
        let attr = attributes.values().clone();
        bytes(name.as_bytes());
        bytes(&NameAttrList { name: op.clone(), attr }.encode_to_vec());
        list(&mut inputs.iter().map(output));
        list(&mut control_inputs.iter().map(node));
        list(&mut output_types.iter().map(|t| t.number() as u64));
    }
    bytes(&numbers);
}

/// The functions that a graph calls, directly or not.
fn called(library: &FunctionLibrary, graph: &Graph) -> FunctionLibrary {
    let mut called = FunctionLibrary::default();
    let mut work: Vec<&Graph> = vec![graph];
    while let Some(graph) = work.pop() {
        for node in graph.nodes.values() {
            let mut names = vec![node.op.as_str()];
            for value in node.attributes.values().values() {
                match &value.value {
                    Some(Attr::Func(func)) => names.push(&func.name),
                    Some(Attr::List(list)) => names.extend(list.func.iter().map(|func| func.name.as_str())),
                    _ => {}
                }
            }
            for name in names {
                if called.get(name).is_none()
                    && let Some(function) = library.get(name)
                {
                    called.insert(function.clone());
                    work.push(&function.graph);
                }
            }
        }
    }
    called
}

#[derive(Default)]
struct Builder {
    graph: Graph,
    feeds: Vec<Feed>,
    inputs: Vec<usize>,
    variables: Vec<Variable>,
}

impl Builder {
    /// The output that stands for an input.
    fn input(&mut self, k: usize, operand: &Operand, data_type: DataType) -> Result<OutputId> {
        let node = match operand {
            Operand::Array(shape) => {
                let index = self.feeds.len();
                let name = format!("input_{k}");
                let values = [
                    ("T".to_owned(), Attr::Type(data_type.base().number())),
                    ("index".to_owned(), Attr::I(index as i64)),
                ];
                let id = self.push(&name, "_Arg", values, data_type.base());
                self.feeds.push(Feed {
                    tensor: OutputId { node: id, index: 0 },
                    id: (name, 0),
                    name: String::new(),
                    shape: shape.sizes(),
                    data_type: data_type.base(),
                });
                self.inputs.push(k);
                id
            }
            Operand::Constant(tensor) => {
                let dim =
                    tensor.shape().sizes().iter().map(|&size| Dim { size, name: String::new() }).collect();
                let proto = TensorProto {
                    dtype: data_type.base().number(),
                    tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
                    tensor_content: Bytes::copy_from_slice(tensor.bytes()),
                    ..TensorProto::default()
                };
                let values = [
                    ("dtype".to_owned(), Attr::Type(data_type.base().number())),
                    ("value".to_owned(), Attr::Tensor(Box::new(proto))),
                ];
                self.push(&format!("input_{k}"), "Const", values, data_type.base())
            }
            Operand::Variable { shape, index, is_replaced } => {
                let state = if *is_replaced { VariableState::Replaced } else { VariableState::Kept };
                // No name of TensorFlow's has a space.
                let name = format!("variable {index}");
                return self.variable(&name, &shape.sizes(), shape.element_type, data_type.is_ref(), state);
            }
            Operand::Unset { name, data_type: of, .. } => {
                let element_type = of.primitive_type();
                let element_type = element_type.ok_or_else(|| {
                    Error::unsupported(format!("variable '{name}' is of {of}, and no kernel makes such"))
                })?;
                return self.variable(name, &[], element_type, data_type.is_ref(), VariableState::Unset);
            }
        };
        Ok(OutputId { node, index: 0 })
    }

    /// The node of a variable; it may come in twice.
    fn variable(
        &mut self,
        name: &str,
        sizes: &[i64],
        element_type: shape::PrimitiveType,
        is_reference: bool,
        state: VariableState,
    ) -> Result<OutputId> {
        if let Some(known) = self.variables.iter().find(|variable| variable.node_name == name)
            && let Some(node) = known.node
        {
            return Ok(OutputId { node, index: 0 });
        }
        let data_type = DataType::ALL.iter().find(|t| t.primitive_type() == Some(element_type));
        let data_type = *data_type.ok_or_else(|| Error::internal("a variable of no type"))?;
        let dim = sizes.iter().map(|&size| Dim { size, name: String::new() }).collect();
        let values = [
            ("dtype".to_owned(), Attr::Type(data_type.number())),
            (
                "shape".to_owned(),
                Attr::Shape(TensorShapeProto { dim, unknown_rank: state == VariableState::Unset }),
            ),
        ];
        let node = if is_reference {
            self.push(name, "VariableV2", values, data_type.reference())
        } else {
            self.push(name, "VarHandleOp", values, DataType::Resource)
        };
        self.variables.push(Variable {
            node_name: name.to_owned(),
            name: String::new(),
            shape: sizes.to_vec(),
            data_type,
            readonly: false,
            state,
            node: Some(node),
            resource: Resource::new(name, &[], &[]),
        });
        Ok(OutputId { node, index: 0 })
    }

    fn push(&mut self, name: &str, op: &str, values: [(String, Attr); 2], output: DataType) -> NodeId {
        let values: BTreeMap<String, AttrValue> =
            values.into_iter().map(|(name, value)| (name, value.into())).collect();
        let id = NodeId::from_index(self.graph.nodes.len());
        let made = self.graph.nodes.push(Node {
            name: name.to_owned(),
            op: op.to_owned(),
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            attributes: Attributes::new(name, op, values),
            output_types: vec![output],
        });
        debug_assert_eq!(id, made);
        made
    }
}
