//! Reads TensorFlow Lite models (`.tflite`) as graphs.
//!
//! [`read`] turns the subgraph of a signature into a `GraphDef` whose nodes are ops of TensorFlow.
//! Operators on quantized tensors, whose results TensorFlow's ops do not define, become the ops
//! `TFLite*` of this compiler, with the scales and zero points as attributes.
//!
//! Sources: TensorFlow's `schema.fbs`, and the kernels in `tensorflow/lite/kernels` (their
//! reference versions where several exist).

mod builtin;
mod convert;
mod names;
mod ops;
mod options;
mod schema;
mod sparse;
mod variables;

use bytes::Bytes;
use convert::Settled;
use support::{Code, Coded as _, Error, Result};
use tf::model::Foreign;

/// Bytes 4 to 8 of a file.
pub const MAGIC: &[u8; 4] = b"TFL3";

/// True if the bytes are a TensorFlow Lite model.
pub fn is_model(bytes: &[u8]) -> bool {
    bytes.get(4..8) == Some(MAGIC)
}

/// The part of a model to read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// Key of a signature. Without it: the only signature, the one named `serving_default`, or else
    /// the first subgraph.
    pub signature: Option<&'a str>,
    /// True to leave open the sizes of feeds that callers may choose, false for those in the file.
    pub keeps_open: bool,
}

/// Reads a model.
///
/// Errors: `invalid` for damaged files and unknown signatures, `unsupported` for operators without
/// a counterpart. They name the tensor that the operator computes.
pub fn read(bytes: &Bytes, selection: Selection<'_>) -> Result<Foreign> {
    let Selection { signature, keeps_open } = selection;
    if !is_model(bytes) {
        return Err(Error::invalid(
            "the file is not a TensorFlow Lite model: it does not have the mark TFL3",
        )
        .coded(Code::ParseFile));
    }
    let model = schema::read(bytes).coded(Code::ParseFile)?;
    let keys: Vec<&str> = model.signatures.iter().map(|signature| signature.key.as_str()).collect();
    let selected = match (signature, keys.as_slice()) {
        (Some(key), keys) => Some(keys.iter().position(|known| *known == key).ok_or_else(|| {
            let known = keys.iter().map(|key| format!("'{key}'")).collect::<Vec<_>>().join(", ");
            Error::invalid(format!("the model has no signature '{key}'; its signatures are [{known}]"))
                .coded(Code::SavedModel)
        })?),
        (None, [_]) => Some(0),
        (None, keys) => keys.iter().position(|key| *key == "serving_default"),
    };
    let signature = selected.map(|index| &model.signatures[index]);
    let converted = convert::convert(&model, signature, keeps_open, ops::convert).coded(Code::Graph)?;
    let mut notes = Vec::new();
    if selected.is_none() && keys.len() > 1 {
        let known = keys.join(", ");
        notes.push(format!("the model's first subgraph is compiled; --signature selects another: {known}"));
    }
    notes.extend(converted.settled.iter().map(settled_note));
    Ok(Foreign {
        kind: "tflite".to_owned(),
        graph: converted.graph,
        config: converted.config,
        initial: converted.initial,
        notes,
    })
}

/// Says which sizes of a feed the caller may choose.
fn settled_note(feed: &Settled) -> String {
    let Settled { node, sizes, open } = feed;
    let list = |sizes: Vec<String>| sizes.join(",");
    let shape = list(sizes.iter().map(i64::to_string).collect());
    let asked = |(size, is_open): (&i64, &bool)| if *is_open { "?".to_owned() } else { size.to_string() };
    let asked = list(sizes.iter().zip(open).map(asked).collect());
    format!(
        "the file gives the feed '{node}' the sizes [{shape}] and leaves [{asked}] open; set them with \
         --shape {node}={asked}, with numbers for ?"
    )
}
