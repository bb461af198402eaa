//! Conversions between real and stored numbers, and between stored numbers of different scales.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::lite::contraction::{centered, clamped, stored};
use crate::ops::lite::fixed_point::{self, Multiplier};
use crate::ops::lite::operands::{Operands, Quantization};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{Literal, NativeType, PrimitiveType};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("TFLiteQuantize", quantize),
    rule("TFLiteDequantize", dequantize),
    rule("TFLiteEmbeddingLookup", embedding_lookup),
];

/// A number for the whole tensor, or for each index of the quantized dimension, in the shape of an
/// array.
fn spread<T: NativeType>(
    cx: &mut NodeContext<'_, '_>,
    values: &[T],
    dimension: usize,
    like: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(like);
    if let [only] = values {
        let scalar = cx.literal(Literal::scalar(*only));
        return cx.broadcast(scalar, &sizes, &[]);
    }
    cx.check(sizes.get(dimension).copied() == Some(values.len() as i64), || {
        format!("{} scales do not fit dimension {dimension} of {sizes:?}", values.len())
    })?;
    let vector = cx.literal(Literal::from_elements(&[values.len() as i64], values));
    cx.broadcast(vector, &sizes, &[dimension])
}

/// Zero points in the shape of an array; `None` if all are 0.
fn zero_points(
    cx: &mut NodeContext<'_, '_>,
    quantization: &Quantization,
    like: InstructionId,
) -> Result<Option<InstructionId>> {
    if quantization.zero_points.iter().all(|&zero| zero == 0) {
        return Ok(None);
    }
    let zeros: Vec<i32> = quantization.zero_points.iter().map(|&zero| zero as i32).collect();
    spread(cx, &zeros, quantization.dimension, like).map(Some)
}

/// Stored numbers for real ones or for those of another scale.
fn quantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let (x, from) = operands.input(cx, 0)?;
    let to = operands.output(cx, 0)?;
    if !to.is_quantized() {
        return Err(cx.invalid("the output has no scale"));
    }
    if !from.element_type.is_floating_point() {
        let x = centered(cx, x, from.zero_point(), PrimitiveType::S32)?;
        let scaled = fixed_point::multiply(cx, x, &[Multiplier::of(from.scale() / to.scale())], 0)?;
        return stored(cx, scaled, &to);
    }
    let x = cx.convert(x, PrimitiveType::F32)?;
    let scales = spread(cx, &to.scales, to.dimension, x)?;
    let steps = cx.div(x, scales)?;
    let steps = cx.op(Op::RoundNearestAfz {}, &[steps])?;
    // In the reference, numbers beyond 32 bits become the least one.
    let fits = cx.compare_scalar(ComparisonDirection::Lt, steps, 2f64.powi(31))?;
    let converted = cx.convert(steps, PrimitiveType::S32)?;
    let least = cx.splat_like(converted, f64::from(i32::MIN))?;
    let mut y = cx.select(fits, converted, least)?;
    if let Some(zero_points) = zero_points(cx, &to, y)? {
        y = cx.add(y, zero_points)?;
    }
    y = clamped(cx, y, to.limits())?;
    cx.convert(y, to.element_type)
}

/// Real numbers for stored ones. Products with scales are exact before they are rounded.
fn dequantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let (x, from) = operands.input(cx, 0)?;
    let output = cx.output_type(0)?;
    real(cx, x, &from, output)
}

fn real(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: &Quantization,
    output: PrimitiveType,
) -> Result<InstructionId> {
    let mut y = cx.convert(x, PrimitiveType::S32)?;
    if let Some(zero_points) = zero_points(cx, from, y)? {
        y = cx.sub(y, zero_points)?;
    }
    let y = cx.convert(y, PrimitiveType::F32)?;
    let scales = spread(cx, &from.scales, from.dimension, y)?;
    let y = cx.mul(y, scales)?;
    cx.convert(y, output)
}

/// Rows of a table, as stored or as real numbers.
fn embedding_lookup(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let (indices, _) = operands.input(cx, 0)?;
    let (table, from) = operands.input(cx, 1)?;
    let output = cx.output_type(0)?;
    let rows = cx.gather_along(table, indices, 0, 0)?;
    if output == from.element_type {
        return Ok(rows);
    }
    // The reference ignores the zero point.
    let rows = cx.convert(rows, PrimitiveType::F32)?;
    if from.scales.len() == 1 {
        let scale = spread(cx, &from.scales, 0, rows)?;
        return cx.mul(rows, scale);
    }
    let (table_sizes, sizes) = (cx.sizes(table), cx.sizes(rows));
    let blocks = from.scales.len() as i64 / table_sizes[0].max(1);
    let width = cx.checked_product(&sizes[1..])?;
    cx.check(
        blocks > 0 && blocks * table_sizes[0] == from.scales.len() as i64 && width % blocks == 0,
        || format!("{} scales do not fit a table {table_sizes:?}", from.scales.len()),
    )?;
    let scales = cx.literal(Literal::from_elements(&[table_sizes[0], blocks], &from.scales));
    let scales = cx.gather_along(scales, indices, 0, 0)?;
    let scales = cx.broadcast(scales, &[sizes[0], blocks, width / blocks], &[0, 1])?;
    let scales = cx.reshape(scales, &sizes)?;
    cx.mul(rows, scales)
}
