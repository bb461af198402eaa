//! Reads ONNX models (`.onnx`) as graphs.
//!
//! [`read`] turns the graph of a model into a `GraphDef` whose nodes are ops of TensorFlow where
//! the result is the same for every shape, and otherwise ops `Onnx*` of this compiler, with the
//! node's attributes. Functions of the model are inlined, sequences are their elements, and
//! subgraphs become functions.
//!
//! Sources: `onnx.proto`, ONNX's operator specification, and the kernels of ONNX Runtime for the
//! ops of its domain `com.microsoft`.

mod convert;
mod memory;
mod ops;
mod proto;
mod tensor;

use bytes::Bytes;
use prost::Message;
use proto::ModelProto;
use std::collections::BTreeMap;
use support::{Code, Coded as _, Error, Result};
use tf::model::Foreign;

/// Reads a file by its path relative to the folder of the model.
pub type External<'e> = dyn FnMut(&str) -> Result<Bytes> + 'e;

/// True if the bytes are an ONNX model: the format has no mark, but its fields are unlike those of
/// other models.
pub fn is_model(bytes: &[u8]) -> bool {
    memory::has_fields_of_model(bytes)
}

/// Names of the ops of this compiler that models are read as.
pub fn own_ops() -> impl Iterator<Item = String> {
    ops::own_ops()
}

/// A model, and the names of its dimensions.
#[derive(Clone, Debug, Default)]
pub struct Read {
    /// The model.
    pub foreign: Foreign,
    /// Symbolic dimensions of the inputs.
    pub dims: Vec<String>,
}

/// Reads a model. `dims` are sizes of symbolic dimensions, and `external` reads the files with
/// external data.
///
/// Errors: `invalid` for damaged files, `unsupported` for ops without a counterpart. They name the
/// node.
pub fn read(bytes: &Bytes, dims: &BTreeMap<String, i64>, external: &mut External<'_>) -> Result<Read> {
    let taken = memory::of_model(bytes);
    if taken > memory::MOST_BYTES {
        return Err(Error::unsupported(format!(
            "the decoded model would take {} MiB, but at most {} MiB are supported",
            taken >> 20,
            memory::MOST_BYTES >> 20
        ))
        .coded(Code::ParseFile));
    }
    let model = ModelProto::decode(bytes.clone())
        .map_err(|e| Error::invalid(format!("the file is not an ONNX model: {e}")).coded(Code::ParseFile))?;
    let converted = convert::convert(&model, dims, external, ops::convert).coded(Code::Graph)?;
    Ok(converted)
}
