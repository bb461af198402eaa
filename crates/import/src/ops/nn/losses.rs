//! Softmax and cross entropy.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::math::reductions::accumulation_type;
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Softmax", softmax).types("T", FLOATS),
    rule("LogSoftmax", log_softmax).types("T", FLOATS),
    rule_many("SoftmaxCrossEntropyWithLogits", softmax_cross_entropy).types("T", FLOATS),
    rule_many("SparseSoftmaxCrossEntropyWithLogits", sparse_softmax_cross_entropy)
        .types("T", FLOATS)
        .types("Tlabels", INDICES),
];

/// `x - max(x)`, its exponential, and the sum of the exponential, all along the last dimension. The
/// sum does not have that dimension.
struct Shifted {
    shifted: InstructionId,
    exp: InstructionId,
    sum: InstructionId,
    /// All dimensions except the last.
    rows: Vec<usize>,
}

fn shifted(cx: &mut NodeContext<'_, '_>, logits: InstructionId) -> Result<Shifted> {
    let sizes = cx.sizes(logits);
    cx.check(!sizes.is_empty(), || "logits: expected one or more dimensions, got a scalar".to_owned())?;
    let last = sizes.len() - 1;
    let rows: Vec<usize> = (0..last).collect();
    let largest = cx.reduce(logits, Reducer::Maximum, &[last])?;
    let largest = cx.broadcast(largest, &sizes, &rows)?;
    let shifted = cx.sub(logits, largest)?;
    let exp = cx.op(Op::Exp {}, &[shifted])?;
    let sum = sum_in_32_bits(cx, exp, last)?;
    Ok(Shifted { shifted, exp, sum, rows })
}

fn sum_in_32_bits(cx: &mut NodeContext<'_, '_>, x: InstructionId, axis: usize) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let sum = cx.reduce(wide, Reducer::Add, &[axis])?;
    cx.convert(sum, element_type)
}

/// `exp(x - max) / sum(exp(x - max))` along the last dimension.
fn softmax(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let logits = cx.input(0)?;
    softmax_of(cx, logits)
}

/// Like [`softmax`], for any array.
pub(crate) fn softmax_of(cx: &mut NodeContext<'_, '_>, logits: InstructionId) -> Result<InstructionId> {
    let parts = shifted(cx, logits)?;
    let sizes = cx.sizes(logits);
    let sum = cx.broadcast(parts.sum, &sizes, &parts.rows)?;
    cx.div(parts.exp, sum)
}

/// `(x - max) - log(sum(exp(x - max)))` along the last dimension.
fn log_softmax(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let logits = cx.input(0)?;
    log_softmax_of(cx, logits)
}

/// Like [`log_softmax`], for any array.
pub(crate) fn log_softmax_of(cx: &mut NodeContext<'_, '_>, logits: InstructionId) -> Result<InstructionId> {
    let parts = shifted(cx, logits)?;
    let sizes = cx.sizes(logits);
    let log = cx.op(Op::Log {}, &[parts.sum])?;
    let log = cx.broadcast(log, &sizes, &parts.rows)?;
    cx.sub(parts.shifted, log)
}

/// Returns the loss of each row and its gradient with respect to the logits: `-sum(labels *
/// log_softmax)` and `softmax - labels`. A label of 0 contributes nothing, even if the logarithm is
/// infinite, as in XLA.
fn cross_entropy(
    cx: &mut NodeContext<'_, '_>,
    logits: InstructionId,
    labels: InstructionId,
) -> Result<Vec<InstructionId>> {
    let parts = shifted(cx, logits)?;
    let sizes = cx.sizes(logits);
    let log = cx.op(Op::Log {}, &[parts.sum])?;
    let log = cx.broadcast(log, &sizes, &parts.rows)?;
    let log_softmax = cx.sub(parts.shifted, log)?;
    let no_label = cx.compare_scalar(ComparisonDirection::Eq, labels, 0.0)?;
    let zero = cx.splat_like(log_softmax, 0.0)?;
    let counted = cx.select(no_label, zero, log_softmax)?;
    let negative = cx.neg(labels)?;
    let products = cx.mul(negative, counted)?;
    let loss = sum_in_32_bits(cx, products, sizes.len() - 1)?;
    let sum = cx.broadcast(parts.sum, &sizes, &parts.rows)?;
    let softmax = cx.div(parts.exp, sum)?;
    let backprop = cx.sub(softmax, labels)?;
    Ok(vec![loss, backprop])
}

/// Cross entropy of two matrices, logits and labels, which are broadcast against each other.
fn softmax_cross_entropy(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (logits, labels) = cx.binary_inputs()?;
    let sizes = cx.sizes(logits);
    cx.check(sizes.len() == 2, || format!("logits: expected a matrix, got shape {}", list(&sizes)))?;
    cross_entropy(cx, logits, labels)
}

/// Cross entropy with labels that are class numbers. A label out of range makes its row NaN.
fn sparse_softmax_cross_entropy(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (logits, labels) = (cx.input(0)?, cx.input(1)?);
    let (sizes, label_sizes) = (cx.sizes(logits), cx.sizes(labels));
    let fits = sizes.len() == 2 && label_sizes.len() == 1 && sizes[0] == label_sizes[0] && sizes[1] > 0;
    cx.check(fits, || {
        format!(
            "expected a matrix of logits [batch, classes] and a vector of labels [batch], got shapes {} and {}",
            list(&sizes),
            list(&label_sizes)
        )
    })?;
    let (element_type, label_type) = (cx.element_type(logits), cx.element_type(labels));
    let classes = cx.iota(label_type, &sizes, 1)?;
    let columns = cx.broadcast(labels, &sizes, &[0])?;
    let is_class = cx.compare(ComparisonDirection::Eq, classes, columns)?;
    let (one, zero) = (cx.splat(element_type, &sizes, 1.0)?, cx.splat(element_type, &sizes, 0.0)?);
    let one_hot = cx.select(is_class, one, zero)?;

    let not_negative = cx.compare_scalar(ComparisonDirection::Ge, labels, 0.0)?;
    let below = if cx.array(logits).dimensions[1].is_dynamic {
        let count = cx.true_size(logits, 1)?;
        let count = cx.convert(count, label_type)?;
        let count = cx.broadcast(count, &label_sizes, &[])?;
        cx.compare(ComparisonDirection::Lt, labels, count)?
    } else {
        cx.compare_scalar(ComparisonDirection::Lt, labels, sizes[1] as f64)?
    };
    let in_range = cx.op(Op::And {}, &[not_negative, below])?;
    let (fine, nan) =
        (cx.splat(element_type, &label_sizes, 0.0)?, cx.splat(element_type, &label_sizes, f64::NAN)?);
    let nan_or_zero = cx.select(in_range, fine, nan)?;
    let nan_or_zero = cx.broadcast(nan_or_zero, &sizes, &[0])?;
    let one_hot = cx.add(one_hot, nan_or_zero)?;
    cross_entropy(cx, logits, one_hot)
}
