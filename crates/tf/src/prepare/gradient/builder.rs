//! Adds nodes to the graph of a gradient.

use super::super::nodes::{check_inputs, push_node};
use super::super::signatures::Signatures;
use crate::proto::{
    AttrValue, Dim, ListValue, NameAttrList, NodeDef, TensorProto, TensorShapeProto, attr_value::Value,
};
use crate::{DataType, Graph, Node, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// A node whose gradient is being built.
pub(super) struct Call {
    pub(super) node: Node,
    /// Inputs of the node.
    pub(super) x: Vec<OutputId>,
    /// Outputs of the node.
    pub(super) y: Vec<OutputId>,
    /// Gradient of each output.
    pub(super) dy: Vec<OutputId>,
}

/// The graph of a gradient that is being built.
pub(super) struct Builder<'a> {
    pub(super) graph: &'a mut Graph,
    signatures: &'a Signatures<'a>,
    names: BTreeSet<String>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(graph: &'a mut Graph, signatures: &'a Signatures<'a>) -> Self {
        let names = graph.nodes.iter().map(|(_, node)| node.name.clone()).collect();
        Self { graph, signatures, names }
    }

    /// Returns a name that no node has.
    pub(super) fn unused_name(&mut self, suffix: &str) -> String {
        let mut name = format!("gradients/{suffix}_{}", self.graph.nodes.len());
        while !self.names.insert(name.clone()) {
            name.push('_');
        }
        name
    }

    /// Returns the type of an output, or the type of the value if the output is a reference.
    pub(super) fn type_of(&self, output: OutputId) -> DataType {
        self.graph.output_type(output).base()
    }

    /// Adds a node. Missing attributes get their defaults. Returns an error if the graph has too
    /// many nodes.
    pub(super) fn node(
        &mut self,
        op: &str,
        inputs: &[OutputId],
        attributes: Vec<(&str, Value)>,
    ) -> Result<NodeId> {
        if self.graph.nodes.len() >= super::MAX_NODES {
            return Err(super::too_many());
        }
        let name = self.unused_name(op);
        let attr = attributes.into_iter().map(|(name, value)| (name.to_owned(), AttrValue::from(value)));
        let node = NodeDef { name, op: op.to_owned(), attr: attr.collect(), ..NodeDef::default() };
        let typed = self.signatures.apply(&node, node.attr.clone())?;
        let id = push_node(self.graph, &node, typed.values, inputs.to_vec(), Vec::new(), typed.output_types);
        check_inputs(self.graph, id, &typed.input_types)?;
        Ok(id)
    }

    /// Adds a node and returns its first output.
    pub(super) fn first(
        &mut self,
        op: &str,
        inputs: &[OutputId],
        attributes: Vec<(&str, Value)>,
    ) -> Result<OutputId> {
        Ok(OutputId { node: self.node(op, inputs, attributes)?, index: 0 })
    }

    /// Adds a node whose only attribute without a default is `T`, the type of its first input.
    /// Returns its first output.
    pub(super) fn op(&mut self, op: &str, inputs: &[OutputId]) -> Result<OutputId> {
        let first = inputs.first().ok_or_else(|| Error::internal(format!("op {op} has no inputs")))?;
        let data_type = self.type_of(*first);
        self.first(op, inputs, vec![type_attribute("T", data_type)])
    }

    /// Adds an `int32` constant: a vector, or a scalar if `scalar` is true.
    pub(super) fn integers(&mut self, values: &[i32], scalar: bool) -> Result<OutputId> {
        let dim = (!scalar).then(|| Dim { size: values.len() as i64, ..Dim::default() });
        let tensor = TensorProto {
            dtype: DataType::Int32.number(),
            tensor_shape: Some(TensorShapeProto { dim: dim.into_iter().collect(), ..Default::default() }),
            int_val: values.to_vec(),
            ..TensorProto::default()
        };
        self.first(
            "Const",
            &[],
            vec![type_attribute("dtype", DataType::Int32), ("value", Value::Tensor(Box::new(tensor)))],
        )
    }

    /// Adds a scalar of the type of another tensor.
    pub(super) fn number(&mut self, value: f32, like: OutputId) -> Result<OutputId> {
        let tensor = TensorProto {
            dtype: DataType::Float.number(),
            tensor_shape: Some(TensorShapeProto::default()),
            float_val: vec![value],
            ..TensorProto::default()
        };
        let number = self.first(
            "Const",
            &[],
            vec![type_attribute("dtype", DataType::Float), ("value", Value::Tensor(Box::new(tensor)))],
        )?;
        self.cast(number, self.type_of(like))
    }

    pub(super) fn cast(&mut self, x: OutputId, to: DataType) -> Result<OutputId> {
        let from = self.type_of(x);
        if from == to {
            return Ok(x);
        }
        self.first("Cast", &[x], vec![type_attribute("SrcT", from), type_attribute("DstT", to)])
    }

    /// Adds the `int32` shape of a tensor.
    pub(super) fn shape(&mut self, x: OutputId) -> Result<OutputId> {
        self.op("Shape", &[x])
    }

    pub(super) fn mul(&mut self, a: OutputId, b: OutputId) -> Result<OutputId> {
        self.op("Mul", &[a, b])
    }

    pub(super) fn neg(&mut self, x: OutputId) -> Result<OutputId> {
        self.op("Neg", &[x])
    }

    pub(super) fn sub(&mut self, a: OutputId, b: OutputId) -> Result<OutputId> {
        self.op("Sub", &[a, b])
    }

    /// Adds a sum over some dimensions.
    pub(super) fn sum(&mut self, x: OutputId, dimensions: OutputId, keep: bool) -> Result<OutputId> {
        let (data_type, index) = (self.type_of(x), self.type_of(dimensions));
        self.first(
            "Sum",
            &[x, dimensions],
            vec![
                type_attribute("T", data_type),
                type_attribute("Tidx", index),
                ("keep_dims", Value::B(keep)),
            ],
        )
    }

    pub(super) fn reshape(&mut self, x: OutputId, shape: OutputId) -> Result<OutputId> {
        let (data_type, index) = (self.type_of(x), self.type_of(shape));
        self.first(
            "Reshape",
            &[x, shape],
            vec![type_attribute("T", data_type), type_attribute("Tshape", index)],
        )
    }

    /// Adds the sum of all gradients of an output, or zeros if there are none.
    pub(super) fn total(&mut self, output: OutputId, parts: Option<Vec<OutputId>>) -> Result<OutputId> {
        let data_type = self.type_of(output);
        match parts.unwrap_or_default().as_slice() {
            [one] if data_type != DataType::Bool => Ok(*one),
            parts @ [first, ..] if data_type != DataType::Bool => {
                let data_type = self.type_of(*first);
                let count = Value::I(parts.len() as i64);
                self.first("AddN", parts, vec![type_attribute("T", data_type), ("N", count)])
            }
            _ => self.zeros(output),
        }
    }

    fn zeros(&mut self, output: OutputId) -> Result<OutputId> {
        if self.type_of(output) != DataType::Resource {
            return self.op("ZerosLike", &[output]);
        }
        let value =
            self.first("ReadVariableOp", &[output], vec![type_attribute("dtype", DataType::Float)])?;
        self.op("ZerosLike", &[value])
    }

    /// Adds the gradient of a function call, which is another `SymbolicGradient`.
    pub(super) fn function_gradient(&mut self, call: &Call, function: &str) -> Result<Vec<Option<OutputId>>> {
        let inputs = [call.x.as_slice(), call.dy.as_slice()].concat();
        let types = |this: &Self, outputs: &[OutputId]| -> Value {
            let r#type = outputs.iter().map(|&output| this.type_of(output).number()).collect();
            Value::List(Box::new(ListValue { r#type, ..ListValue::default() }))
        };
        let func = NameAttrList { name: function.to_owned(), attr: BTreeMap::new() };
        let attributes =
            vec![("Tin", types(self, &inputs)), ("Tout", types(self, &call.x)), ("f", Value::Func(func))];
        let node = self.node(super::OP, &inputs, attributes)?;
        Ok((0..call.x.len()).map(|index| Some(OutputId { node, index })).collect())
    }
}

/// Returns a type attribute.
pub(super) fn type_attribute(name: &str, data_type: DataType) -> (&str, Value) {
    (name, Value::Type(data_type.number()))
}

impl Call {
    /// Returns the node's attributes with the given names. Skips missing attributes.
    pub(super) fn attributes(&self, names: &[&'static str]) -> Vec<(&'static str, Value)> {
        let values = self.node.attributes.values();
        let value = |name: &&'static str| Some((*name, values.get(*name)?.value.clone()?));
        names.iter().filter_map(value).collect()
    }

    /// Returns the gradient of the first output.
    pub(super) fn gradient(&self) -> Result<OutputId> {
        self.dy
            .first()
            .copied()
            .ok_or_else(|| Error::internal("expected a gradient of an output, but the node has no outputs"))
    }

    /// Returns an input.
    pub(super) fn input(&self, k: usize) -> Result<OutputId> {
        self.x.get(k).copied().ok_or_else(|| Error::internal(format!("the node has no input {k}")))
    }
}
