//! Tables of functions: one entry for each number of 8 bits, or 513 with interpolation for those of
//! 16 bits.

use super::operands::Quantization;
use crate::node::context::NodeContext;
use ::composite::{Expression, Function};
use hlo::{GatherDimensionNumbers, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::Result;

/// The entries at some indices of a table.
pub(super) fn looked_up<'f>(table: Expression<'f>, indices: Expression<'f>) -> Expression<'f> {
    let gather_dimension_numbers = GatherDimensionNumbers {
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        index_vector_dim: indices.rank(),
        ..Default::default()
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes: vec![1], indices_are_sorted: false };
    table.function().op(op, &[table, indices.convert(PrimitiveType::S32)], None)
}

/// The 256 numbers from `least`, in `s64`: a constant, which passes fold with the functions applied
/// to it.
pub(super) fn all_numbers(function: &Function, least: i64) -> Expression<'_> {
    let numbers: Vec<i64> = (least..least + 256).collect();
    function.literal(Literal::from_elements(&[256], &numbers))
}

/// Applies a function to numbers of 8 bits by its values for all of them. The function maps `s64`
/// to `s64`, which is clamped to the limits of the result.
pub(super) fn of_8_bits(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: &Quantization,
    to: &Quantization,
    body: impl for<'f> FnOnce(Expression<'f>) -> Expression<'f>,
) -> Result<InstructionId> {
    let [least, _] = from.limits();
    let [low, high] = to.limits().map(|limit| limit as f64);
    cx.composite_one(&[x], |function, operands| {
        let table = body(all_numbers(function, least)).max(low).min(high).convert(to.element_type);
        let index = operands[0].convert(PrimitiveType::S32) - least as f64;
        looked_up(table, index)
    })
}

/// Applies a function of real numbers to numbers of 8 or 16 bits (`LUTPopulate`).
pub(super) fn of_function(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: &Quantization,
    to: &Quantization,
    function: impl Fn(f32) -> f32,
) -> Result<InstructionId> {
    if from.element_type == PrimitiveType::S16 {
        let range =
            |q: &Quantization| q.limits().map(|limit| q.scale() as f32 * (limit - q.zero_point()) as f32);
        let table = interpolated(range(from), range(to), |x| f64::from(function(x as f32)), single);
        return cx.composite_one(&[x], |_, operands| {
            let x = operands[0].convert(PrimitiveType::S32);
            of_16_bits(&table, x).convert(PrimitiveType::S16)
        });
    }
    let inverse = 1.0 / to.scale() as f32;
    let real = |stored: i64| from.scale() as f32 * (stored - from.zero_point()) as f32;
    of_entries(cx, x, from, to, |stored| (function(real(stored)) * inverse).round() + to.zero_point() as f32)
}

/// Replaces numbers of 8 bits. Results are clamped.
pub(super) fn of_entries(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: &Quantization,
    to: &Quantization,
    function: impl Fn(i64) -> f32,
) -> Result<InstructionId> {
    let [least, largest] = from.limits();
    let [low, high] = to.limits();
    let entry = |stored: i64| {
        let result = function(stored);
        // C++ leaves the conversion of other numbers to the machine, which gives the least integer.
        let integer = if result.abs() < 2f32.powi(31) { result as i64 } else { i64::from(i32::MIN) };
        integer.clamp(low, high)
    };
    let entries: Vec<i64> = (least..=largest).map(entry).collect();
    let table = Literal::from_elements(&[256], &entries);
    cx.composite_one(&[x], |function, operands| {
        let table = function.literal(table).convert(to.element_type);
        looked_up(table, operands[0].convert(PrimitiveType::S32) - least as f64)
    })
}

/// Rounds to single precision.
pub(super) fn single(x: f64) -> f64 {
    f64::from(x as f32)
}

/// The table of 513 entries for numbers of 16 bits, which stand for ranges of real numbers.
/// Arithmetic is that of the type to which `rounded` rounds.
pub(super) fn interpolated<T: Into<f64>>(
    from: [T; 2],
    to: [T; 2],
    function: impl Fn(f64) -> f64,
    rounded: impl Fn(f64) -> f64,
) -> Vec<i32> {
    let [[from, end], [low, high]] = [from, to].map(|range| range.map(Into::into));
    let step = rounded(rounded(end - from) / 512.0);
    let inverse = rounded(65536.0 / rounded(high - low));
    let at = |offset: f64| rounded(function(offset));
    let scaled = |value: f64| rounded(value * inverse);
    let clamped = |value: f64| value.clamp(-32768.0, 32767.0) as i32;
    let entry = |k: usize| {
        let start = rounded(from + rounded(k as f64 * step));
        let value = scaled(at(start)).round();
        let middle = scaled(at(rounded(start + step / 2.0))).round();
        let next = scaled(at(rounded(from + rounded((k + 1) as f64 * step))));
        let between = (rounded(next + value) / 2.0).round();
        let bias = ((between - middle) / 2.0).round();
        clamped(value - bias)
    };
    let mut table: Vec<i32> = (0..512).map(entry).collect();
    table.push(clamped(scaled(at(end)).round()));
    table
}

/// Applies a table of 513 entries to numbers of 16 bits, both in `s32` (`LUTLookup`).
pub(super) fn of_16_bits<'f>(table: &[i32], x: Expression<'f>) -> Expression<'f> {
    let slopes: Vec<i32> = table.windows(2).map(|pair| i32::from((pair[1] - pair[0]) as i16)).collect();
    let vector = |entries: &[i32]| x.function().literal(Literal::from_elements(&[512], entries));
    let index = x.shift_right_arithmetic(7.0) + 256.0;
    let base = looked_up(vector(&table[..512]), index);
    let slope = looked_up(vector(&slopes), index);
    let offset = x & 127.0;
    base + (slope * offset + 64.0).shift_right_arithmetic(7.0)
}
