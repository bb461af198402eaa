//! The conversion of each operator.

mod contraction;
mod control;
mod custom;
mod elementwise;
mod image;
mod indexing;
mod lookup;
mod mediapipe;
mod normalization;
mod pooling;
mod quantized;
mod random;
mod recurrent;
mod reduction;
mod segments;
mod shape;
mod stablehlo;

use crate::convert::Op;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use support::{Error, Result};
use tf::DataType;
use tf::foreign::{Ref, float, ty};

/// Converts one operator.
type Convert = fn(&mut Op<'_, '_>) -> Result<()>;

/// A builtin operator with its conversion.
type Row = (&'static str, Convert);

const FAMILIES: &[&[Row]] = &[
    contraction::ROWS,
    control::ROWS,
    elementwise::ROWS,
    image::ROWS,
    indexing::ROWS,
    lookup::ROWS,
    normalization::ROWS,
    pooling::ROWS,
    random::ROWS,
    recurrent::ROWS,
    reduction::ROWS,
    segments::ROWS,
    shape::ROWS,
    stablehlo::ROWS,
];

static BY_NAME: LazyLock<BTreeMap<&str, Convert>> =
    LazyLock::new(|| FAMILIES.iter().copied().flatten().copied().collect());

/// Converts an operator.
pub(crate) fn convert(op: &mut Op<'_, '_>) -> Result<()> {
    let name = op.operator().op;
    if quantized::applies(op)? {
        return quantized::convert(op);
    }
    if !op.operator().custom.is_empty() {
        return custom::convert(op);
    }
    match BY_NAME.get(name) {
        Some(convert) => convert(op),
        None => Err(Error::unsupported(refusal(name))),
    }
}

/// Reason why an operator is refused.
fn refusal(name: &str) -> String {
    let reason = match name {
        _ if name.starts_with("HASHTABLE") => "tables of strings are looked up on the host",
        "SKIP_GRAM" => "it works on strings",
        "DELEGATE" => "it belongs to a delegate of another runtime",
        "CONCAT_EMBEDDINGS" => "it has no kernel in TensorFlow Lite, either",
        _ => return "it is not supported".to_owned(),
    };
    format!("it is not supported: {reason}")
}

/// Numbers of the fused activations.
const ACTIVATIONS: [&str; 5] = ["", "RELU", "RELU_N1_TO_1", "RELU6", "TANH"];

/// Applies the fused activation that a field of the options names. Hyperbolic tangent has no effect
/// here, as in TensorFlow Lite's kernels.
fn activated(op: &mut Op<'_, '_>, value: Ref, field: usize) -> Result<Ref> {
    let number = op.options().byte(field)?;
    let name = usize::try_from(number).ok().and_then(|number| ACTIVATIONS.get(number));
    let data_type = op.result(0)?.data_type;
    match name {
        Some(&("" | "TANH")) => Ok(value),
        Some(name) => activation(op, name, value, data_type),
        None => Err(Error::unsupported(format!("fused activation {number} is not supported"))),
    }
}

/// Applies an activation.
fn activation(op: &mut Op<'_, '_>, name: &str, value: Ref, data_type: DataType) -> Result<Ref> {
    let t = || [ty("T", data_type)];
    match name {
        "RELU" => op.node("Relu", &[value], t()),
        "RELU6" => op.node("Relu6", &[value], t()),
        "TANH" => op.node("Tanh", &[value], t()),
        "RELU_N1_TO_1" => clip(op, value, data_type, -1.0, 1.0),
        "RELU_0_TO_1" => clip(op, value, data_type, 0.0, 1.0),
        _ => Err(Error::internal(format!("'{name}' is not an activation"))),
    }
}

fn clip(op: &mut Op<'_, '_>, value: Ref, data_type: DataType, low: f64, high: f64) -> Result<Ref> {
    let (low, high) = (op.scalar(data_type, low)?, op.scalar(data_type, high)?);
    let raised = op.node("Maximum", &[value, low], [ty("T", data_type)])?;
    op.node("Minimum", &[raised, high], [ty("T", data_type)])
}

/// `Cast` to another type, unless the value has it already.
fn cast(op: &mut Op<'_, '_>, value: Ref, from: DataType, to: DataType) -> Result<Ref> {
    if from == to {
        return Ok(value);
    }
    op.node("Cast", &[value], [ty("SrcT", from), ty("DstT", to)])
}

/// `LeakyRelu`.
fn leaky_relu(op: &mut Op<'_, '_>, value: Ref, data_type: DataType, alpha: f32) -> Result<Ref> {
    op.node("LeakyRelu", &[value], [ty("T", data_type), float("alpha", alpha)])
}
