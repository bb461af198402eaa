//! Reductions, softmax, and losses.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::math::reductions::{accumulation_type, count_like, restored};
use crate::ops::nn::losses::{log_softmax_of, softmax_of};
use crate::ops::onnx::operands::{dimensions, flag, integers, optional, required, wrapped};
use crate::ops::onnx::selection::rows_of_softmax;
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxLogSoftmax", |cx| softmax(cx, true)),
    rule("OnnxNegativeLogLikelihoodLoss", likelihood_loss),
    rule("OnnxReduceL1", |cx| reduce(cx, Kind::L1)),
    rule("OnnxReduceL2", |cx| reduce(cx, Kind::L2)),
    rule("OnnxReduceLogSum", |cx| reduce(cx, Kind::LogSum)),
    rule("OnnxReduceLogSumExp", |cx| reduce(cx, Kind::LogSumExp)),
    rule("OnnxReduceMax", |cx| reduce(cx, Kind::Max)),
    rule("OnnxReduceMean", |cx| reduce(cx, Kind::Mean)),
    rule("OnnxReduceMin", |cx| reduce(cx, Kind::Min)),
    rule("OnnxReduceProd", |cx| reduce(cx, Kind::Product)),
    rule("OnnxReduceSum", |cx| reduce(cx, Kind::Sum)),
    rule("OnnxReduceSumSquare", |cx| reduce(cx, Kind::SumSquare)),
    rule("OnnxSoftmax", |cx| softmax(cx, false)),
    rule_many("OnnxSoftmaxCrossEntropyLoss", cross_entropy_loss),
];

/// A function of all elements along some axes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    L1,
    L2,
    LogSum,
    LogSumExp,
    Max,
    Mean,
    Min,
    Product,
    Sum,
    SumSquare,
}

fn reduce(cx: &mut NodeContext<'_, '_>, kind: Kind) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let axes = integers(cx, "axes", 1)?.unwrap_or_default();
    if axes.is_empty() && flag(cx, "noop_with_empty_axes", false)? {
        return of_one(cx, x, kind);
    }
    let axes = if axes.is_empty() { (0..sizes.len()).collect() } else { dimensions(cx, &axes, sizes.len())? };
    let wide = match kind {
        Kind::Max | Kind::Min => x,
        _ => cx.convert(x, accumulation_type(element_type))?,
    };
    let reduced = match kind {
        Kind::Max | Kind::Min => extremum(cx, wide, kind, &axes)?,
        Kind::Product => cx.reduce(wide, Reducer::Multiply, &axes)?,
        Kind::Sum | Kind::LogSum | Kind::Mean => cx.reduce(wide, Reducer::Add, &axes)?,
        Kind::L1 => {
            let size = magnitude(cx, wide)?;
            cx.reduce(size, Reducer::Add, &axes)?
        }
        Kind::L2 | Kind::SumSquare => {
            let square = cx.mul(wide, wide)?;
            cx.reduce(square, Reducer::Add, &axes)?
        }
        Kind::LogSumExp => log_sum_exp(cx, wide, &axes)?,
    };
    let reduced = match kind {
        Kind::L2 => square_root(cx, reduced)?,
        Kind::LogSum => logarithm(cx, reduced)?,
        Kind::Mean => {
            let count = count_like(cx, x, &axes, reduced)?;
            cx.div(reduced, count)?
        }
        _ => reduced,
    };
    let reduced = cx.convert(reduced, element_type)?;
    if flag(cx, "keepdims", true)? { restored(cx, reduced, &sizes, &axes) } else { Ok(reduced) }
}

/// The reduction of single elements.
fn of_one(cx: &mut NodeContext<'_, '_>, x: InstructionId, kind: Kind) -> Result<InstructionId> {
    match kind {
        Kind::L1 | Kind::L2 => magnitude(cx, x),
        Kind::SumSquare => cx.mul(x, x),
        Kind::LogSum => logarithm(cx, x),
        _ => Ok(x),
    }
}

fn magnitude(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    if cx.element_type(x).is_unsigned_integer() { Ok(x) } else { cx.op(Op::Abs {}, &[x]) }
}

/// A function of floats, also of integers, for which it is computed in double precision.
fn of_floats(cx: &mut NodeContext<'_, '_>, x: InstructionId, op: Op) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    if element_type.is_floating_point() {
        return cx.op(op, &[x]);
    }
    let x = cx.convert(x, PrimitiveType::F64)?;
    let y = cx.op(op, &[x])?;
    cx.convert(y, element_type)
}

fn square_root(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    of_floats(cx, x, Op::Sqrt {})
}

fn logarithm(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    of_floats(cx, x, Op::Log {})
}

fn extremum(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    kind: Kind,
    axes: &[usize],
) -> Result<InstructionId> {
    let is_max = kind == Kind::Max;
    if cx.element_type(x) == PrimitiveType::Pred {
        return cx.reduce(x, if is_max { Reducer::Or } else { Reducer::And }, axes);
    }
    cx.reduce(x, if is_max { Reducer::Maximum } else { Reducer::Minimum }, axes)
}

/// `log(sum(exp(x)))`, with the largest element taken out, so that nothing overflows.
fn log_sum_exp(cx: &mut NodeContext<'_, '_>, x: InstructionId, axes: &[usize]) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    if !element_type.is_floating_point() {
        let x = cx.convert(x, PrimitiveType::F64)?;
        let y = log_sum_exp(cx, x, axes)?;
        return cx.convert(y, element_type);
    }
    let sizes = cx.sizes(x);
    let largest = cx.reduce(x, Reducer::Maximum, axes)?;
    let is_finite = cx.op(Op::IsFinite {}, &[largest])?;
    let zero = cx.splat_like(largest, 0.0)?;
    let offset = cx.select(is_finite, largest, zero)?;
    let others: Vec<usize> = (0..sizes.len()).filter(|d| !axes.contains(d)).collect();
    let spread = cx.broadcast(offset, &sizes, &others)?;
    let shifted = cx.sub(x, spread)?;
    let exp = cx.op(Op::Exp {}, &[shifted])?;
    let sum = cx.reduce(exp, Reducer::Add, axes)?;
    let log = cx.op(Op::Log {}, &[sum])?;
    cx.add(log, offset)
}

/// Softmax along one axis, or its logarithm.
pub(crate) fn softmax_along(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
    is_log: bool,
) -> Result<InstructionId> {
    let rank = cx.rank(x);
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis, rank - 1);
    let rows = cx.transpose(x, &order)?;
    let y = if is_log { log_softmax_of(cx, rows)? } else { softmax_of(cx, rows)? };
    cx.transpose(y, &order)
}

fn softmax(cx: &mut NodeContext<'_, '_>, is_log: bool) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    if cx.rank(x) == 0 {
        return cx.splat_like(x, if is_log { 0.0 } else { 1.0 });
    }
    let all = cx.all_sizes(x)?;
    let (rows, axis, sizes) = rows_of_softmax(cx, x)?;
    let y = softmax_along(cx, rows, axis, is_log)?;
    if cx.is_bounded(y) { cx.reshape_to(y, &all) } else { cx.reshape(y, &sizes) }
}

/// The loss for logarithms of probabilities of classes, in dimension 1.
fn loss(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let target = required(cx, 1)?;
    let sizes = cx.sizes(x);
    cx.check(sizes.len() >= 2, || format!("expected two or more dimensions, got {}", list(&sizes)))?;
    let target_sizes = [&sizes[..1], &sizes[2..]].concat();
    cx.check(cx.sizes(target) == target_sizes, || format!("the labels do not fit {}", list(&sizes)))?;
    let ignored =
        cx.attributes().has("ignore_index").then(|| cx.attributes().int("ignore_index")).transpose()?;
    let target = cx.convert(target, PrimitiveType::S64)?;
    let classes = sizes[1];
    let wrapped_target = wrapped(cx, target, classes)?;
    let others: Vec<usize> = (0..sizes.len()).filter(|&d| d != 1).collect();
    let spread = cx.broadcast(wrapped_target, &sizes, &others)?;
    let positions = cx.iota(PrimitiveType::S64, &sizes, 1)?;
    let is_target = cx.compare(ComparisonDirection::Eq, positions, spread)?;
    let zero = cx.splat_like(x, 0.0)?;
    let chosen = cx.select(is_target, x, zero)?;
    let chosen = cx.reduce(chosen, Reducer::Add, &[1])?;
    let negative = cx.neg(chosen)?;
    let element_type = cx.element_type(x);
    // The weight of each label: that of its class, or 0 for labels that are ignored.
    let mut weights = match optional(cx, 2)? {
        Some(weights) => {
            cx.check(cx.sizes(weights) == [classes], || "expected one weight for each class".to_owned())?;
            let spread = cx.broadcast(weights, &sizes, &[1])?;
            let chosen = cx.select(is_target, spread, zero)?;
            Some(cx.reduce(chosen, Reducer::Add, &[1])?)
        }
        None => None,
    };
    if let Some(ignored) = ignored {
        let ignored = cx.literal(shape::Literal::scalar(ignored));
        let ignored = cx.broadcast(ignored, &target_sizes, &[])?;
        let is_kept = cx.compare(ComparisonDirection::Ne, target, ignored)?;
        let kept = match weights {
            Some(weights) => weights,
            None => cx.splat(element_type, &target_sizes, 1.0)?,
        };
        let none = cx.splat(element_type, &target_sizes, 0.0)?;
        weights = Some(cx.select(is_kept, kept, none)?);
    }
    let weighted = match weights {
        Some(weights) => cx.mul(negative, weights)?,
        None => negative,
    };
    let all: Vec<usize> = (0..target_sizes.len()).collect();
    match cx.text_or("reduction", "mean")? {
        "none" => Ok(weighted),
        "sum" => cx.reduce(weighted, Reducer::Add, &all),
        "mean" => {
            let sum = cx.reduce(weighted, Reducer::Add, &all)?;
            let number = cx.checked_product(&target_sizes)? as f64;
            let count = match weights {
                Some(weights) => cx.reduce(weights, Reducer::Add, &all)?,
                None => cx.scalar(element_type, number),
            };
            cx.div(sum, count)
        }
        other => Err(cx.invalid(format!("reduction: '{other}' does not exist"))),
    }
}

fn likelihood_loss(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    loss(cx, x)
}

fn cross_entropy_loss(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let scores = required(cx, 0)?;
    let rank = cx.rank(scores);
    cx.check(rank >= 2, || "the scores need two or more dimensions".to_owned())?;
    let logarithms = softmax_along(cx, scores, 1, true)?;
    let loss = loss(cx, logarithms)?;
    let count = cx.node().output_types.len();
    Ok([loss, logarithms].into_iter().take(count).collect())
}
