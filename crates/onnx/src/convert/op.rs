//! The node that is being converted: what conversions read of it, and what they add.

use super::{Array, Converter, Frame, Value, domain};
use crate::proto::{AttributeProto, GraphProto, NodeProto};
use crate::tensor::Constant;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Attribute, Outputs, Ref, scalar_bytes, ty};

/// The node that is being converted.
pub(crate) struct Op<'c, 'a, 'e> {
    pub(crate) converter: &'c mut Converter<'a, 'e>,
    pub(crate) frame: &'c mut Frame<'a>,
    node: &'a NodeProto,
    inputs: Vec<Option<Value>>,
    /// Beginning of the names of nodes.
    pub(crate) name: String,
    pub(crate) outputs: Vec<Option<Value>>,
}

impl<'c, 'a, 'e> Op<'c, 'a, 'e> {
    pub(super) fn new(
        converter: &'c mut Converter<'a, 'e>,
        frame: &'c mut Frame<'a>,
        node: &'a NodeProto,
        inputs: Vec<Option<Value>>,
        name: String,
    ) -> Self {
        let outputs = vec![None; node.output.len()];
        Self { converter, frame, node, inputs, name, outputs }
    }

    pub(crate) fn op_type(&self) -> &'a str {
        &self.node.op_type
    }

    pub(crate) fn domain(&self) -> &'a str {
        domain(&self.node.domain)
    }

    /// Version of the ops of the node's domain.
    pub(crate) fn version(&self) -> i64 {
        self.converter.version(self.domain())
    }

    pub(crate) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    pub(crate) fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// True if an output is used.
    pub(crate) fn has_output(&self, k: usize) -> bool {
        self.node.output.get(k).is_some_and(|name| !name.is_empty())
    }

    /// An input of any kind, if it is present.
    pub(crate) fn optional_value(&self, k: usize) -> Option<&Value> {
        self.inputs.get(k).and_then(Option::as_ref)
    }

    /// An input of any kind.
    pub(crate) fn value(&self, k: usize) -> Result<Value> {
        let value = self.optional_value(k).cloned();
        value.ok_or_else(|| Error::invalid(format!("input {k} is missing")))
    }

    /// An array, if the input is present.
    pub(crate) fn optional(&self, k: usize) -> Result<Option<Array>> {
        match self.optional_value(k) {
            None => Ok(None),
            Some(Value::Array(array)) => Ok(Some(array.clone())),
            Some(_) => Err(Error::invalid(format!("input {k} must be an array"))),
        }
    }

    /// An input that is an array.
    pub(crate) fn input(&self, k: usize) -> Result<Array> {
        self.optional(k)?.ok_or_else(|| Error::invalid(format!("input {k} is missing")))
    }

    /// The integers of an input that the file states.
    pub(crate) fn constant_longs(&self, k: usize) -> Result<Option<Vec<i64>>> {
        Ok(self.optional(k)?.and_then(|array| array.constant?.longs()))
    }

    /// Attributes of the node, with those of the function around it in place of references.
    pub(crate) fn attributes(&self) -> Vec<(&'a str, &'a AttributeProto)> {
        let outer = self.converter.attributes.last().expect("attributes");
        let resolve = |attribute: &'a AttributeProto| {
            let given = match attribute.ref_attr_name.as_str() {
                "" => attribute,
                name => outer.get(name).copied()?,
            };
            Some((attribute.name.as_str(), given))
        };
        self.node.attribute.iter().filter_map(resolve).collect()
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.attributes().into_iter().find(|(own, _)| *own == name).map(|(_, attribute)| attribute)
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.i)
    }

    pub(crate) fn float(&self, name: &str, default: f32) -> f32 {
        self.attribute(name).map_or(default, |attribute| attribute.f)
    }

    pub(crate) fn text(&self, name: &str, default: &'static str) -> Result<&'a str> {
        match self.attribute(name) {
            None => Ok(default),
            Some(attribute) => {
                std::str::from_utf8(&attribute.s).map_err(|_| Error::invalid(format!("{name} is not a text")))
            }
        }
    }

    /// A subgraph.
    pub(crate) fn graph(&self, name: &str) -> Result<&'a GraphProto> {
        let graph = self.attribute(name).and_then(|attribute| attribute.g.as_deref());
        graph.ok_or_else(|| Error::invalid(format!("attribute '{name}' must be a graph")))
    }

    /// The type that an attribute names.
    pub(crate) fn type_attribute(&self, name: &str) -> Result<Option<DataType>> {
        match self.attribute(name).map(|attribute| attribute.i) {
            None | Some(0) => Ok(None),
            Some(number) => {
                let number = i32::try_from(number).unwrap_or(-1);
                crate::tensor::data_type(number).map(Some).map_err(|e| e.context(name.to_owned()))
            }
        }
    }

    /// Adds a node.
    pub(crate) fn add(
        &mut self,
        op: &str,
        inputs: &[Ref],
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Result<Outputs> {
        self.frame.body.add(&format!("{}/{op}", self.name), op, inputs, attributes)
    }

    /// Adds a node with one output.
    pub(crate) fn node(
        &mut self,
        op: &str,
        inputs: &[Ref],
        attributes: impl IntoIterator<Item = Attribute>,
    ) -> Result<Ref> {
        Ok(self.add(op, inputs, attributes)?.remove(0))
    }

    /// Adds an op of one array, with a result of the same type.
    pub(crate) fn unary(&mut self, op: &str, x: &Array) -> Result<Array> {
        let value = self.node(op, std::slice::from_ref(&x.value), [ty("T", x.data_type)])?;
        Ok(Array::new(value, x.data_type))
    }

    /// Adds an op of two arrays of one type, which are broadcast, with a result of that type.
    pub(crate) fn binary(&mut self, op: &str, x: &Array, y: &Array) -> Result<Array> {
        self.check_types(x, y)?;
        let value = self.node(op, &[x.value.clone(), y.value.clone()], [ty("T", x.data_type)])?;
        Ok(Array::new(value, x.data_type))
    }

    /// Adds a comparison.
    pub(crate) fn comparison(&mut self, op: &str, x: &Array, y: &Array) -> Result<Array> {
        let result = self.binary(op, x, y)?;
        Ok(Array::new(result.value, DataType::Bool))
    }

    /// Adds an op of truth values.
    pub(crate) fn logical(&mut self, op: &str, inputs: &[&Array]) -> Result<Array> {
        if let Some(other) = inputs.iter().find(|array| array.data_type != DataType::Bool) {
            return Err(Error::invalid(format!(
                "an input has type {}, but it must be bool",
                other.data_type
            )));
        }
        let inputs: Vec<Ref> = inputs.iter().map(|array| array.value.clone()).collect();
        Ok(Array::new(self.node(op, &inputs, [])?, DataType::Bool))
    }

    /// `condition ? x : y`.
    pub(crate) fn select(&mut self, condition: &Array, x: &Array, y: &Array) -> Result<Array> {
        self.check_types(x, y)?;
        let inputs = [condition.value.clone(), x.value.clone(), y.value.clone()];
        let value = self.node("SelectV2", &inputs, [ty("T", x.data_type)])?;
        Ok(Array::new(value, x.data_type))
    }

    fn check_types(&self, x: &Array, y: &Array) -> Result<()> {
        if x.data_type == y.data_type {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "inputs of types {} and {} must have the same type",
            x.data_type, y.data_type
        )))
    }

    /// Converts to another type.
    pub(crate) fn cast(&mut self, x: &Array, to: DataType) -> Result<Array> {
        if x.data_type == to {
            return Ok(x.clone());
        }
        let attributes = [ty("SrcT", x.data_type), ty("DstT", to)];
        Ok(Array::new(self.node("Cast", std::slice::from_ref(&x.value), attributes)?, to))
    }

    /// Changes the dimensions of an array.
    pub(crate) fn reshape(&mut self, x: &Array, sizes: &[i64]) -> Result<Array> {
        let sizes = self.longs(sizes)?;
        let attributes = [ty("T", x.data_type), ty("Tshape", DataType::Int64)];
        Ok(Array::new(self.node("Reshape", &[x.value.clone(), sizes.value], attributes)?, x.data_type))
    }

    /// Adds a constant.
    pub(crate) fn constant(&mut self, constant: Constant) -> Result<Array> {
        let base = format!("{}/Const", self.name);
        self.converter.constant(&mut self.frame.body, &base, constant)
    }

    /// Adds a vector of 64-bit integers.
    pub(crate) fn longs(&mut self, values: &[i64]) -> Result<Array> {
        self.constant(Constant::of_longs(&[values.len() as i64], values))
    }

    /// Adds a 64-bit integer.
    pub(crate) fn long(&mut self, value: i64) -> Result<Array> {
        self.constant(Constant::of_longs(&[], &[value]))
    }

    /// Adds a 32-bit integer.
    pub(crate) fn int32(&mut self, value: i32) -> Result<Array> {
        let bytes = value.to_le_bytes().to_vec().into();
        self.constant(Constant { data_type: DataType::Int32, sizes: Vec::new(), bytes })
    }

    /// Adds a scalar of a type.
    pub(crate) fn scalar(&mut self, data_type: DataType, value: f64) -> Result<Array> {
        let bytes = scalar_bytes(data_type, value)?;
        self.constant(Constant { data_type, sizes: Vec::new(), bytes })
    }

    /// Sets an output.
    pub(crate) fn set(&mut self, k: usize, value: Value) {
        if let Some(output) = self.outputs.get_mut(k) {
            *output = Some(value);
        }
    }

    /// Sets the first output to an array.
    pub(crate) fn set_array(&mut self, array: Array) -> Result<()> {
        self.set(0, Value::Array(array));
        Ok(())
    }
}
