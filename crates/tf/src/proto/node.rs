//! Nodes and attribute values.

use super::{TensorProto, TensorShapeProto};
use bytes::Bytes;
use prost::Message;
use std::collections::BTreeMap;

/// `tensorflow.NodeDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of node_def.proto")]
pub struct NodeDef {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub op: String,
    #[prost(string, repeated, tag = "3")]
    pub input: Vec<String>,
    #[prost(string, tag = "4")]
    pub device: String,
    #[prost(btree_map = "string, message", tag = "5")]
    pub attr: BTreeMap<String, AttrValue>,
}

/// `tensorflow.AttrValue`.
#[derive(Clone, PartialEq, Message)]
pub struct AttrValue {
    /// The value. Absent if the message does not set any.
    #[prost(oneof = "attr_value::Value", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
    pub value: Option<attr_value::Value>,
}

/// Kinds of values of an [`AttrValue`].
pub mod attr_value {
    use super::*;

    /// The value of an attribute.
    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Value {
        /// `list(...)`.
        #[prost(message, tag = "1")]
        List(Box<ListValue>),
        /// A string, which may contain any bytes.
        #[prost(bytes = "bytes", tag = "2")]
        S(Bytes),
        /// An integer.
        #[prost(int64, tag = "3")]
        I(i64),
        /// A float.
        #[prost(float, tag = "4")]
        F(f32),
        /// A bool.
        #[prost(bool, tag = "5")]
        B(bool),
        /// Number of a data type.
        #[prost(int32, tag = "6")]
        Type(i32),
        /// A shape.
        #[prost(message, tag = "7")]
        Shape(TensorShapeProto),
        /// A tensor.
        #[prost(message, tag = "8")]
        Tensor(Box<TensorProto>),
        /// Within a function body, the name of the function's attribute whose value is used.
        #[prost(string, tag = "9")]
        Placeholder(String),
        /// A function with attributes.
        #[prost(message, tag = "10")]
        Func(NameAttrList),
    }
}

/// `tensorflow.AttrValue.ListValue`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of attr_value.proto")]
pub struct ListValue {
    #[prost(bytes = "bytes", repeated, tag = "2")]
    pub s: Vec<Bytes>,
    #[prost(int64, repeated, tag = "3")]
    pub i: Vec<i64>,
    #[prost(float, repeated, tag = "4")]
    pub f: Vec<f32>,
    #[prost(bool, repeated, tag = "5")]
    pub b: Vec<bool>,
    #[prost(int32, repeated, tag = "6")]
    pub r#type: Vec<i32>,
    #[prost(message, repeated, tag = "7")]
    pub shape: Vec<TensorShapeProto>,
    #[prost(message, repeated, tag = "8")]
    pub tensor: Vec<TensorProto>,
    #[prost(message, repeated, tag = "9")]
    pub func: Vec<NameAttrList>,
}

/// `tensorflow.NameAttrList`: a function and values for its attributes.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of attr_value.proto")]
pub struct NameAttrList {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(btree_map = "string, message", tag = "2")]
    pub attr: BTreeMap<String, AttrValue>,
}

impl From<attr_value::Value> for AttrValue {
    fn from(value: attr_value::Value) -> Self {
        Self { value: Some(value) }
    }
}
