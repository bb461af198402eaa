//! Biases: an offset for each channel.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::math::reductions::accumulation_type;
use bounded::{Reducer, list};
use hlo::InstructionId;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("BiasAdd", bias_add).types("T", NUMBERS_AND_QUANTIZED),
    rule("BiasAddV1", bias_add).types("T", NUMBERS_AND_QUANTIZED),
    rule("BiasAddGrad", bias_add_grad).types("T", NUMBERS_AND_QUANTIZED),
];

/// `BiasAdd(x, bias)` with one bias for each channel.
fn bias_add(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, bias) = (cx.input(0)?, cx.input(1)?);
    let (sizes, bias_sizes) = (cx.sizes(x), cx.sizes(bias));
    let channel = channel_dimension(cx, sizes.len())?;
    cx.check(bias_sizes == [sizes[channel]], || {
        format!(
            "the numbers of biases and channels differ: {} vs. {} (dimension {channel})",
            list(&bias_sizes),
            list(&sizes)
        )
    })?;
    let bias = cx.broadcast(bias, &sizes, &[channel])?;
    cx.add(x, bias)
}

/// Returns the sum over all dimensions except that of the channels.
fn bias_add_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (rank, element_type) = (cx.rank(x), cx.element_type(x));
    let channel = channel_dimension(cx, rank)?;
    let others: Vec<usize> = (0..rank).filter(|&d| d != channel).collect();
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let sum = cx.reduce(wide, Reducer::Add, &others)?;
    cx.convert(sum, element_type)
}

/// Returns the dimension of the channels: the last or, with `data_format = "NCHW"`, the one after
/// the batch.
fn channel_dimension(cx: &NodeContext<'_, '_>, rank: usize) -> Result<usize> {
    cx.check(rank >= 2, || format!("expected two or more dimensions, got {rank}"))?;
    match cx.text_or("data_format", "NHWC")? {
        "NHWC" => Ok(rank - 1),
        "NCHW" => Ok(1),
        other => Err(cx.invalid(format!("data_format: expected NHWC or NCHW, got '{other}'"))),
    }
}
