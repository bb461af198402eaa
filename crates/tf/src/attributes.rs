//! Typed access to the attributes of a node.

use crate::proto::{AttrValue, NameAttrList, TensorProto, attr_value::Value};
use crate::tensor::Tensor;
use crate::{DataType, PartialShape};
use bytes::Bytes;
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;
use std::sync::Arc;
use support::{Error, Result};

/// A node's attributes, defaults included, with the node's name and op for messages.
///
/// Each getter returns an error that names the node, the op, and the attribute if the attribute is
/// absent or has another kind. Getters ending in `_or` return a default for an absent attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Attributes {
    node: Arc<str>,
    op: Arc<str>,
    values: BTreeMap<String, AttrValue>,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident / $or:ident: $kind:literal, $value:pat => $result:expr, $type:ty;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(&self, name: &str) -> Result<$type> {
                match self.value(name)? {
                    $value => Ok($result),
                    _ => Err(self.wrong_kind(name, $kind)),
                }
            }

            /// Same as the getter above, with a default for an absent attribute.
            pub fn $or(&self, name: &str, default: $type) -> Result<$type> {
                if self.has(name) { self.$name(name) } else { Ok(default) }
            }
        )*
    };
}

impl Attributes {
    /// Creates the attributes of one node.
    pub fn new(node: &str, op: &str, values: BTreeMap<String, AttrValue>) -> Self {
        Self { node: node.into(), op: op.into(), values }
    }

    /// True if the attribute has a value.
    pub fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|v| v.value.is_some())
    }

    /// All attributes, by name.
    pub fn values(&self) -> &BTreeMap<String, AttrValue> {
        &self.values
    }

    /// Sets an attribute.
    pub fn set(&mut self, name: &str, value: Value) {
        self.values.insert(name.to_owned(), value.into());
    }

    getters! {
        /// An integer.
        int / int_or: "an int", Value::I(i) => *i, i64;
        /// A float.
        float / float_or: "a float", Value::F(f) => *f, f32;
        /// A bool.
        bool / bool_or: "a bool", Value::B(b) => *b, bool;
        /// A string, which may contain any bytes.
        string / string_or: "a string", Value::S(s) => s.clone(), Bytes;
        /// A list of integers.
        ints / ints_or: "a list of ints", Value::List(l) => l.i.clone(), Vec<i64>;
        /// A list of floats.
        floats / floats_or: "a list of floats", Value::List(l) => l.f.clone(), Vec<f32>;
        /// A list of bools.
        bools / bools_or: "a list of bools", Value::List(l) => l.b.clone(), Vec<bool>;
        /// A list of strings.
        strings / strings_or: "a list of strings", Value::List(l) => l.s.clone(), Vec<Bytes>;
    }

    /// A data type.
    pub fn ty(&self, name: &str) -> Result<DataType> {
        match self.value(name)? {
            Value::Type(number) => self.data_type(name, *number),
            _ => Err(self.wrong_kind(name, "a type")),
        }
    }

    /// A data type, or the default for an absent attribute.
    pub fn ty_or(&self, name: &str, default: DataType) -> Result<DataType> {
        if self.has(name) { self.ty(name) } else { Ok(default) }
    }

    /// A list of data types.
    pub fn types(&self, name: &str) -> Result<Vec<DataType>> {
        match self.value(name)? {
            Value::List(list) => list.r#type.iter().map(|&number| self.data_type(name, number)).collect(),
            _ => Err(self.wrong_kind(name, "a list of types")),
        }
    }

    /// A string that must be UTF-8.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.value(name)? {
            Value::S(bytes) => {
                std::str::from_utf8(bytes).map_err(|_| self.error(name, "expected a UTF-8 string"))
            }
            _ => Err(self.wrong_kind(name, "a string")),
        }
    }

    /// A shape.
    pub fn shape(&self, name: &str) -> Result<PartialShape> {
        match self.value(name)? {
            Value::Shape(proto) => PartialShape::from_proto(proto).map_err(|e| self.error(name, e.message())),
            _ => Err(self.wrong_kind(name, "a shape")),
        }
    }

    /// A shape, or the default for an absent attribute.
    pub fn shape_or(&self, name: &str, default: PartialShape) -> Result<PartialShape> {
        if self.has(name) { self.shape(name) } else { Ok(default) }
    }

    /// A list of shapes.
    pub fn shapes(&self, name: &str) -> Result<Vec<PartialShape>> {
        match self.value(name)? {
            Value::List(list) => list
                .shape
                .iter()
                .map(|proto| PartialShape::from_proto(proto).map_err(|e| self.error(name, e.message())))
                .collect(),
            _ => Err(self.wrong_kind(name, "a list of shapes")),
        }
    }

    /// Data type and shape of a tensor. Does not materialize its elements.
    pub fn tensor_type(&self, name: &str) -> Result<(DataType, Vec<i64>)> {
        let tensor = self.tensor_value(name)?;
        Ok((tensor.data_type(), tensor.sizes().to_vec()))
    }

    /// A tensor with its elements. Returns an error for strings and other non-numeric types, and
    /// for tensors that omit more than 256 MiB of repeated elements.
    pub fn tensor(&self, name: &str) -> Result<Literal> {
        self.tensor_value(name)?.literal().map_err(|e| self.at_attribute(name, e))
    }

    /// Returns the common element and the tensor's shape if the encoding itself shows that all
    /// elements are equal. Takes constant time. A tensor with at most one element does not count as
    /// a splat.
    pub fn tensor_is_splat(&self, name: &str) -> Result<Option<(Literal, ArrayShape)>> {
        self.tensor_value(name)?.splat().map_err(|e| self.at_attribute(name, e))
    }

    /// Elements of a tensor of strings, in row-major order. Returns an error for more than 2^20.
    pub fn tensor_strings(&self, name: &str) -> Result<Vec<Bytes>> {
        self.tensor_value(name)?.strings().map_err(|e| self.at_attribute(name, e))
    }

    /// The proto of a tensor.
    pub fn tensor_proto(&self, name: &str) -> Result<&TensorProto> {
        match self.value(name)? {
            Value::Tensor(proto) => Ok(proto),
            _ => Err(self.wrong_kind(name, "a tensor")),
        }
    }

    /// Name of a function and the values of its attributes.
    pub fn func(&self, name: &str) -> Result<(&str, Attributes)> {
        match self.value(name)? {
            Value::Func(func) => Ok(self.name_attrs(func)),
            _ => Err(self.wrong_kind(name, "a function")),
        }
    }

    /// A list of functions, for instance `Case`'s branches.
    pub fn funcs(&self, name: &str) -> Result<Vec<(&str, Attributes)>> {
        match self.value(name)? {
            Value::List(list) => Ok(list.func.iter().map(|func| self.name_attrs(func)).collect()),
            _ => Err(self.wrong_kind(name, "a list of functions")),
        }
    }

    fn name_attrs<'a>(&self, func: &'a NameAttrList) -> (&'a str, Attributes) {
        (&func.name, Self { node: self.node.clone(), op: self.op.clone(), values: func.attr.clone() })
    }

    fn tensor_value(&self, name: &str) -> Result<Tensor<'_>> {
        Tensor::new(self.tensor_proto(name)?).map_err(|e| self.at_attribute(name, e))
    }

    fn value(&self, name: &str) -> Result<&Value> {
        self.values.get(name).and_then(|v| v.value.as_ref()).ok_or_else(|| {
            Error::invalid(format!("node '{}' (op {}) has no attribute '{name}'", self.node, self.op))
        })
    }

    fn data_type(&self, name: &str, number: i32) -> Result<DataType> {
        DataType::from_number(number)
            .ok_or_else(|| self.error(name, &format!("unknown data type number {number}")))
    }

    fn wrong_kind(&self, name: &str, kind: &str) -> Error {
        self.error(name, &format!("expected {kind}"))
    }

    fn error(&self, name: &str, what: &str) -> Error {
        Error::invalid(format!("node '{}' (op {}): attribute '{name}': {what}", self.node, self.op))
    }

    fn at_attribute(&self, name: &str, error: Error) -> Error {
        error.context(format!("node '{}' (op {}): attribute '{name}'", self.node, self.op))
    }
}
