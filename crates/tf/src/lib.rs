//! Reads TensorFlow graphs, checks them, and prepares them for import.
//!
//! [`model`] reads models, and [`source`] reads single files. [`prepare()`] turns a
//! [`proto::GraphDef`] and a [`proto::Config`] into a [`Program`]: it replaces feeds, prunes,
//! infers types, instantiates functions, and functionalizes control flow.
//! [`freeze`](freeze::freeze) puts a checkpoint's values into a graph. Nothing in this crate
//! depends on HLO.

mod attributes;
mod bind;
pub mod checkpoint;
mod data_type;
pub mod foreign;
pub mod freeze;
mod function;
mod functionalize;
mod graph;
mod inline;
pub mod model;
mod node_program;
mod op_def;
mod partial_shape;
mod prepare;
mod problem;
mod program;
pub mod proto;
mod saved_model;
pub mod source;
pub mod substitutions;
mod tensor;
mod text;
mod versions;
pub mod wire;

pub use attributes::Attributes;
pub use data_type::DataType;
pub use function::{Function, FunctionLibrary};
pub use functionalize::functionalize;
pub use graph::{Graph, Node, NodeId, OutputId};
pub use inline::{RETVAL, inline};
pub use node_program::{NodeProgram, NodeVariable};
pub use op_def::{NodeTypes, node_types, op_signature};
pub use partial_shape::PartialShape;
pub use prepare::{
    BATCH_RANGE, DimSize, Examined, InferOptions, Inferred, Resolved, RunRequest, config_quantization,
    examine, fetch_nodes, infer, is_prepared, prepare, resolve, without_constant_feeds,
};
pub use problem::Problem;
pub use program::{Dimension, Feed, Fetch, Program, Resource, Variable, VariableState};
pub use versions::check_versions;
