//! The conversion of each op.

mod arrays;
mod constants;
mod control;
mod elementwise;
mod own;
mod random;
mod sequences;
mod trees;

use crate::convert::{ConvertNode, Op};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use support::{Error, Result};

/// An op of ONNX's own domain with its conversion.
type Row = (&'static str, ConvertNode);

const FAMILIES: &[&[Row]] =
    &[arrays::ROWS, constants::ROWS, control::ROWS, elementwise::ROWS, random::ROWS, sequences::ROWS];

static BY_NAME: LazyLock<BTreeMap<&str, ConvertNode>> =
    LazyLock::new(|| FAMILIES.iter().copied().flatten().copied().collect());

/// Converts a node.
pub(crate) fn convert(op: &mut Op<'_, '_, '_>) -> Result<()> {
    if op.domain().is_empty()
        && let Some(convert) = BY_NAME.get(op.op_type())
    {
        return convert(op);
    }
    if op.domain() == "ai.onnx.ml" && op.op_type() == "ZipMap" {
        // The values of the maps, in the order of the keys that the node states.
        return constants::identity(op);
    }
    if own::convert(op)? {
        return Ok(());
    }
    Err(Error::unsupported(refusal(op.domain(), op.op_type())))
}

/// Names of the ops of this compiler.
pub(crate) fn own_ops() -> impl Iterator<Item = String> {
    own::names()
}

/// Reason why an op is refused.
fn refusal(domain: &str, name: &str) -> String {
    let reason = match (domain, name) {
        ("", "ImageDecoder") => "it decodes images, which a compiled function does not: feed the pixels",
        ("", _) if name.starts_with("String") || name == "RegexFullMatch" => "it works on strings",
        ("ai.onnx.ml", "CastMap" | "DictVectorizer") => "it works on maps",
        ("ai.onnx.ml", "CategoryMapper") => "it works on strings",
        ("" | "ai.onnx.ml" | "com.microsoft", _) => return "the op is not supported".to_owned(),
        (domain, _) => {
            return format!(
                "the op is not supported: domain '{domain}' is unknown, and the model has no function of this name"
            );
        }
    };
    format!("the op is not supported: {reason}")
}
