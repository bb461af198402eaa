//! Products of matrices.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::linalg::products::{batched, dot};
use crate::ops::onnx::operands::{flag, float, optional, required};
use bounded::list;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxGemm", gemm),
    rule("OnnxMatMul", mat_mul),
    rule("OnnxMatMulInteger", mat_mul_integer),
    rule("OnnxMsFusedGemm", gemm),
    rule("OnnxMsFusedMatMul", fused_mat_mul),
    rule("OnnxMsMatMulInteger16", mat_mul_integer),
];

/// The product of matrices in the last two dimensions. A vector is a row on the left and a column
/// on the right.
pub(crate) fn multiplied(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    y: InstructionId,
) -> Result<InstructionId> {
    let (x_sizes, y_sizes) = (cx.sizes(x), cx.sizes(y));
    cx.check(!x_sizes.is_empty() && !y_sizes.is_empty(), || "expected matrices, got a scalar".to_owned())?;
    let (is_row, is_column) = (x_sizes.len() == 1, y_sizes.len() == 1);
    let x = if is_row { cx.reshape(x, &[1, x_sizes[0]])? } else { x };
    let y = if is_column { cx.reshape(y, &[y_sizes[0], 1])? } else { y };
    let element_type = cx.element_type(x);
    let product = batched(cx, x, y, [false, false], element_type)?;
    if !is_row && !is_column {
        return Ok(product);
    }
    let sizes = cx.sizes(product);
    let rank = sizes.len();
    let kept = (0..rank).filter(|&d| !(is_row && d + 2 == rank || is_column && d + 1 == rank));
    let kept: Vec<i64> = kept.map(|d| sizes[d]).collect();
    cx.reshape(product, &kept)
}

fn mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, y) = (required(cx, 0)?, required(cx, 1)?);
    multiplied(cx, x, y)
}

/// Exchanges the last two dimensions.
pub(crate) fn transposed(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let rank = cx.rank(x);
    let mut permutation: Vec<usize> = (0..rank).collect();
    permutation.swap(rank - 2, rank - 1);
    cx.transpose(x, &permutation)
}

/// `alpha * a * b + beta * c`, with transposed matrices if attributes say so.
fn gemm(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b) = (required(cx, 0)?, required(cx, 1)?);
    let (a_sizes, b_sizes) = (cx.sizes(a), cx.sizes(b));
    cx.check_rank("a", &a_sizes, 2)?;
    cx.check_rank("b", &b_sizes, 2)?;
    let (a_inner, b_inner) =
        (usize::from(!flag(cx, "transA", false)?), usize::from(flag(cx, "transB", false)?));
    cx.check(a_sizes[a_inner] == b_sizes[b_inner], || {
        format!("matrices {} and {} do not fit each other", list(&a_sizes), list(&b_sizes))
    })?;
    let mut y = dot(cx, a, b, 0, a_inner, b_inner)?;
    let (alpha, beta) = (float(cx, "alpha", 1.0)?, float(cx, "beta", 1.0)?);
    y = scaled(cx, y, alpha)?;
    if let Some(c) = optional(cx, 2)? {
        let c = scaled(cx, c, beta)?;
        let sizes = cx.sizes(y);
        let c = cx.broadcast_to(c, &sizes)?;
        y = cx.add(y, c)?;
    }
    if cx.attributes().has("activation") {
        let name = cx.attributes().text("activation")?;
        return super::recurrent_functions::activation(cx, name, [0.0; 2], y);
    }
    Ok(y)
}

fn scaled(cx: &mut NodeContext<'_, '_>, x: InstructionId, factor: f64) -> Result<InstructionId> {
    if factor == 1.0 { Ok(x) } else { cx.mul_scalar(x, factor) }
}

/// `alpha * a * b`, with transposed matrices, or with batches after the rows.
fn fused_mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (mut a, mut b) = (required(cx, 0)?, required(cx, 1)?);
    for (x, batch, trans) in [(&mut a, "transBatchA", "transA"), (&mut b, "transBatchB", "transB")] {
        let rank = cx.rank(*x);
        if flag(cx, batch, false)? && rank > 2 {
            // (rows, batches.., columns) instead of (batches.., rows, columns).
            let mut permutation: Vec<usize> = (1..rank - 1).collect();
            permutation.extend([0, rank - 1]);
            *x = cx.transpose(*x, &permutation)?;
        }
        if flag(cx, trans, false)? && rank > 1 {
            *x = transposed(cx, *x)?;
        }
    }
    let y = multiplied(cx, a, b)?;
    let alpha = float(cx, "alpha", 1.0)?;
    scaled(cx, y, alpha)
}

/// 32-bit integers less a zero point: one number, or one for each row or column of the matrices.
pub(crate) fn centered(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    zero_point: Option<InstructionId>,
    dimension: usize,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let wide = cx.convert(x, PrimitiveType::S32)?;
    let Some(zero_point) = zero_point else { return Ok(wide) };
    if cx.fold(zero_point).is_some_and(|literal| literal.scalars().all(|zero| zero.as_f64() == Some(0.0))) {
        return Ok(wide);
    }
    let zero_point = cx.convert(zero_point, PrimitiveType::S32)?;
    let spread = spread_along(cx, zero_point, &sizes, dimension)?;
    cx.sub(wide, spread)
}

/// One number, one for each index of a dimension, or an array that broadcasts.
pub(crate) fn spread_along(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    sizes: &[i64],
    dimension: usize,
) -> Result<InstructionId> {
    let own = cx.sizes(x);
    let count = cx.checked_product(&own)?;
    if count == 1 {
        let x = cx.reshape(x, &[])?;
        return cx.broadcast(x, sizes, &[]);
    }
    if own.len() > 1 {
        return cx.broadcast_to(x, sizes);
    }
    cx.check(sizes.get(dimension) == Some(&count), || {
        format!("{count} numbers do not fit dimension {dimension} of {}", list(sizes))
    })?;
    cx.broadcast(x, sizes, &[dimension])
}

fn mat_mul_integer(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b) = (required(cx, 0)?, required(cx, 1)?);
    let (a_zero, b_zero) = (optional(cx, 2)?, optional(cx, 3)?);
    integer_product(cx, [a, b], [a_zero, b_zero])
}

/// The product of integers less their zero points, with sums of 32 bits.
pub(crate) fn integer_product(
    cx: &mut NodeContext<'_, '_>,
    [a, b]: [InstructionId; 2],
    [a_zero, b_zero]: [Option<InstructionId>; 2],
) -> Result<InstructionId> {
    let (a_rank, b_rank) = (cx.rank(a), cx.rank(b));
    let a = centered(cx, a, a_zero, a_rank.saturating_sub(2))?;
    let b = centered(cx, b, b_zero, b_rank.saturating_sub(1))?;
    multiplied(cx, a, b)
}

/// Rounds to integers of the type of a zero point: halves to even, and beyond the limits to them.
pub(crate) fn quantized(
    cx: &mut NodeContext<'_, '_>,
    steps: InstructionId,
    zero_point: Option<InstructionId>,
    element_type: PrimitiveType,
    dimension: usize,
) -> Result<InstructionId> {
    let (sizes, real) = (cx.sizes(steps), cx.element_type(steps));
    let mut steps = cx.op(Op::RoundNearestEven {}, &[steps])?;
    if let Some(zero_point) = zero_point {
        let zero_point = cx.convert(zero_point, real)?;
        let zero_point = spread_along(cx, zero_point, &sizes, dimension)?;
        steps = cx.add(steps, zero_point)?;
    }
    if element_type.is_integer() {
        let [least, most] = hlo::quantization::integer_range(element_type);
        let (least, most) = (cx.splat_like(steps, least as f64)?, cx.splat_like(steps, most as f64)?);
        steps = cx.op(Op::Clamp {}, &[least, steps, most])?;
    }
    cx.convert(steps, element_type)
}
