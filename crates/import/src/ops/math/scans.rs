//! Scans: sums, products, and logarithms of sums of exponentials of all elements up to each one.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::Reducer;
use hlo::{ComparisonDirection, InstructionId, Op, Window, WindowDimension};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Cumsum", |cx| {
        let x = cx.input(0)?;
        scan(cx, x, 0.0, |cx, x, along| windowed(cx, x, Reducer::Add, along))
    })
    .types("T", NUMBERS)
    .types("Tidx", INDICES),
    rule("Cumprod", |cx| {
        let x = cx.input(0)?;
        scan(cx, x, 1.0, |cx, x, along| windowed(cx, x, Reducer::Multiply, along))
    })
    .types("T", NUMBERS)
    .types("Tidx", INDICES),
    rule("CumulativeLogsumexp", cumulative_log_sum_exp).types("T", FLOATS).types("Tidx", INDICES),
];

/// Direction and extent of a scan.
#[derive(Clone, Copy)]
struct Along {
    axis: usize,
    /// Excludes the element itself.
    exclusive: bool,
    /// Scans from the end.
    reverse: bool,
}

/// Computes the scan of a nonempty array.
type Totals = fn(&mut NodeContext<'_, '_>, InstructionId, Along) -> Result<InstructionId>;

/// `CumulativeLogsumexp(x)`: `log` of the sum of `exp` of the elements so far. NaN adds nothing, as
/// in TensorFlow and XLA.
fn cumulative_log_sum_exp(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let is_nan = cx.compare(ComparisonDirection::Ne, x, x)?;
    let nothing = cx.splat_like(x, f64::NEG_INFINITY)?;
    let numbers = cx.select(is_nan, nothing, x)?;
    scan(cx, numbers, f64::NEG_INFINITY, in_steps)
}

/// `log(exp(a) + exp(b))`, without overflow.
fn log_add_exp(cx: &mut NodeContext<'_, '_>, a: InstructionId, b: InstructionId) -> Result<InstructionId> {
    let (larger, smaller) = (cx.op(Op::Maximum {}, &[a, b])?, cx.op(Op::Minimum {}, &[a, b])?);
    let distance = cx.sub(smaller, larger)?;
    // The difference of equal infinities is NaN.
    let is_equal = cx.compare(ComparisonDirection::Eq, a, b)?;
    let zero = cx.splat_like(a, 0.0)?;
    let distance = cx.select(is_equal, zero, distance)?;
    let share = cx.op(Op::Exp {}, &[distance])?;
    let more = cx.op(Op::Log1p {}, &[share])?;
    cx.add(larger, more)
}

/// `result[i] = x[0] op ... op x[i]` along an axis. `exclusive` omits `x[i]`, and `reverse` scans
/// from the end. Narrow floating point is combined in 32 bits. Elements beyond the true sizes of
/// bounded arrays are replaced by the identity.
fn scan(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    neutral: f64,
    totals: Totals,
) -> Result<InstructionId> {
    let axis = cx.constant_i64(1)?;
    let axis = cx.dimension(axis, cx.rank(x))?;
    let (exclusive, reverse) =
        (cx.attributes().bool_or("exclusive", false)?, cx.attributes().bool_or("reverse", false)?);
    if cx.is_bounded(x) {
        // Padding adds nothing, wherever it is.
        let bounded = cx.split(x)?;
        let element_type = cx.element_type(x);
        let nothing = cx.scalar(element_type, neutral);
        let whole = cx.masked(&bounded, &[axis], nothing)?;
        let sums = scan(cx, whole, neutral, totals)?;
        return cx.bounded(sums, &bounded.sizes);
    }
    let element_type = cx.element_type(x);
    if cx.sizes(x).contains(&0) {
        return Ok(x);
    }
    let wide = match element_type {
        PrimitiveType::F16 | PrimitiveType::Bf16 => PrimitiveType::F32,
        other => other,
    };
    let x = cx.convert(x, wide)?;
    let sums = totals(cx, x, Along { axis, exclusive, reverse })?;
    cx.convert(sums, element_type)
}

/// Computes each result as a window that begins with the first element or, with `reverse`, ends
/// with the last.
fn windowed(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    reducer: Reducer,
    Along { axis, exclusive, reverse }: Along,
) -> Result<InstructionId> {
    let size = cx.sizes(x)[axis];
    let (mut before, mut after) = if exclusive { (size, -1) } else { (size - 1, 0) };
    if reverse {
        std::mem::swap(&mut before, &mut after);
    }
    let mut dimensions = vec![WindowDimension::of_size(1); cx.rank(x)];
    dimensions[axis] =
        WindowDimension { padding_low: before, padding_high: after, ..WindowDimension::of_size(size) };
    cx.reduce_window(x, reducer, Window { dimensions })
}

/// Logarithms of sums of exponentials. Elements are combined with those 1, 2, 4, ... before them.
/// The number of nested functions and the errors thus grow with the logarithm of the axis' length.
fn in_steps(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    Along { axis, exclusive, reverse }: Along,
) -> Result<InstructionId> {
    let size = cx.sizes(x)[axis];
    let mut sums = if reverse { cx.reverse(x, vec![axis])? } else { x };
    if exclusive {
        sums = moved(cx, sums, axis, 1, f64::NEG_INFINITY)?;
    }
    let mut distance = 1;
    while distance < size {
        let before = moved(cx, sums, axis, distance, f64::NEG_INFINITY)?;
        sums = log_add_exp(cx, before, sums)?;
        distance *= 2;
    }
    if reverse { cx.reverse(sums, vec![axis]) } else { Ok(sums) }
}

/// `x[0] + ... + x[i]` along a nonempty axis, in the type of `x`.
pub(crate) fn running_sum(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axis: usize,
) -> Result<InstructionId> {
    windowed(cx, x, Reducer::Add, Along { axis, exclusive: false, reverse: false })
}

/// Shifts the elements toward the end of an axis, and fills the beginning with the identity.
fn moved(
    cx: &mut NodeContext<'_, '_>,
    id: InstructionId,
    axis: usize,
    distance: i64,
    neutral: f64,
) -> Result<InstructionId> {
    let size = cx.sizes(id)[axis];
    let rest = cx.slice_in(id, axis, 0, size - distance)?;
    let element_type = cx.element_type(id);
    let neutral = cx.scalar(element_type, neutral);
    let mut padding = vec![(0, 0, 0); cx.rank(id)];
    padding[axis].0 = distance;
    cx.pad(rest, neutral, &padding)
}
