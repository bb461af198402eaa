//! Normalizations of rows, as Keras's layer normalization states them. The rows of `[samples,
//! words, features]` become the channels of `[1, rows, features, 1]`, whose statistics are those of
//! a batch. The rows of texts of any number and length are normalized before that reshape, so that
//! they stay where they are.

use crate::node::context::NodeContext;
use bounded::{Reducer, Size, bounds, run_time};
use hlo::{InstructionId, Op};
use support::Result;

/// Returns the normalized rows, their means, and their variances, each as a whole array with
/// channels. `None` if the channels are not rows that a reshape joined, or if their scales and
/// offsets differ.
pub(super) fn normalized(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    [scale, offset]: [InstructionId; 2],
    epsilon: f32,
) -> Result<Option<[InstructionId; 3]>> {
    let Some((rows, sizes)) = cx.before_joining(x) else { return Ok(None) };
    let from = cx.all_sizes(rows)?;
    let (Some((&features, outer)), &[one, channels, inner, last]) = (from.split_last(), &sizes[..]) else {
        return Ok(None);
    };
    let is_one = |size: Size| size == Size::known(1);
    let has_rows = is_one(one) && is_one(last) && inner == features && features.size.is_none();
    let (true, Some(scale), Some(offset)) = (has_rows, cx.repeated(scale)?, cx.repeated(offset)?) else {
        return Ok(None);
    };
    let kept: Vec<usize> = (0..outer.len()).collect();
    let along_rows = |cx: &mut NodeContext<'_, '_>, id: InstructionId| {
        let whole = cx.split(id)?.data;
        let repeated = cx.broadcast(whole, &bounds(&from), &kept)?;
        cx.bounded(repeated, &run_time(&from))
    };
    let mean_of = |cx: &mut NodeContext<'_, '_>, id: InstructionId| {
        let sum = cx.reduce(id, Reducer::Add, &[outer.len()])?;
        let count = cx.splat_like(sum, features.bound as f64)?;
        cx.div(sum, count)
    };
    let mean = mean_of(cx, rows)?;
    let means = along_rows(cx, mean)?;
    let centered = cx.sub(rows, means)?;
    let squares = cx.mul(centered, centered)?;
    let variance = mean_of(cx, squares)?;
    let shifted = cx.add_scalar(variance, f64::from(epsilon))?;
    let inverse = cx.op(Op::Rsqrt {}, &[shifted])?;
    let factor = cx.mul_scalar(inverse, scale)?;
    let factors = along_rows(cx, factor)?;
    let scaled = cx.mul(centered, factors)?;
    let y = cx.add_scalar(scaled, offset)?;
    let y = cx.reshape_to(y, &sizes)?;
    let (mean, variance) = (cx.reshape_to(mean, &[channels])?, cx.reshape_to(variance, &[channels])?);
    Ok(Some([cx.split(y)?.data, cx.split(mean)?.data, cx.split(variance)?.data]))
}
