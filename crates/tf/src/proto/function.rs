//! Function libraries and op signatures.

use super::node::{AttrValue, NodeDef};
use prost::Message;
use std::collections::BTreeMap;

/// `tensorflow.FunctionDefLibrary`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of function.proto")]
pub struct FunctionDefLibrary {
    #[prost(message, repeated, tag = "1")]
    pub function: Vec<FunctionDef>,
    #[prost(message, repeated, tag = "2")]
    pub gradient: Vec<GradientDef>,
}

/// `tensorflow.FunctionDef`.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of function.proto")]
pub struct FunctionDef {
    #[prost(message, optional, tag = "1")]
    pub signature: Option<OpDef>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub attr: BTreeMap<String, AttrValue>,
    #[prost(message, repeated, tag = "3")]
    pub node_def: Vec<NodeDef>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub ret: BTreeMap<String, String>,
    #[prost(btree_map = "string, string", tag = "6")]
    pub control_ret: BTreeMap<String, String>,
    #[prost(btree_map = "uint32, message", tag = "7")]
    pub arg_attr: BTreeMap<u32, ArgAttrs>,
}

/// `tensorflow.FunctionDef.ArgAttrs`: attributes of an argument of a function.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of function.proto")]
pub struct ArgAttrs {
    #[prost(btree_map = "string, message", tag = "1")]
    pub attr: BTreeMap<String, AttrValue>,
}

/// `tensorflow.GradientDef`: the function that computes the gradient of another function.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of function.proto")]
pub struct GradientDef {
    #[prost(string, tag = "1")]
    pub function_name: String,
    #[prost(string, tag = "2")]
    pub gradient_func: String,
}

/// `tensorflow.OpDef`: the signature of an op or of a library function.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of op_def.proto")]
pub struct OpDef {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, repeated, tag = "2")]
    pub input_arg: Vec<ArgDef>,
    #[prost(message, repeated, tag = "3")]
    pub output_arg: Vec<ArgDef>,
    #[prost(string, repeated, tag = "20")]
    pub control_output: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    pub attr: Vec<AttrDef>,
    #[prost(bool, tag = "17")]
    pub is_stateful: bool,
}

/// `tensorflow.OpDef.ArgDef`: an input or output. Exactly one of `type`, `type_attr`, and
/// `type_list_attr` is set.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of op_def.proto")]
pub struct ArgDef {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "3")]
    pub r#type: i32,
    #[prost(string, tag = "4")]
    pub type_attr: String,
    #[prost(string, tag = "5")]
    pub number_attr: String,
    #[prost(string, tag = "6")]
    pub type_list_attr: String,
    #[prost(bool, tag = "16")]
    pub is_ref: bool,
}

/// `tensorflow.OpDef.AttrDef`: an attribute of an op.
#[derive(Clone, PartialEq, Message)]
#[expect(missing_docs, reason = "the names are those of op_def.proto")]
pub struct AttrDef {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub r#type: String,
    #[prost(message, optional, tag = "3")]
    pub default_value: Option<AttrValue>,
    #[prost(bool, tag = "5")]
    pub has_minimum: bool,
    #[prost(int64, tag = "6")]
    pub minimum: i64,
    #[prost(message, optional, tag = "7")]
    pub allowed_values: Option<AttrValue>,
}
