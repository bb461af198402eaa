//! Block floating point: a row whose blocks have one exponent each, and products of its integers
//! with numbers of four bits.
//!
//! The element of a block with the largest exponent gets an integer of 30 bits. The others are
//! multiples of the same power of two, the step: at most half a step, which is less than 2^-29 of
//! the largest one, is lost. Each integer is four signed digits of eight bits. The processor
//! multiplies four digits by four numbers at once, and the sums of such products are exact.
//!
//! ```text
//! block  | word 0 | word 1 | ..  | four sums | step |       each word has eight elements:
//! word   | digit 0 of elements 0 2 4 6 | digit 1 .. | .. | digit 0 of elements 1 3 5 7 | ..
//! ```
//!
//! A word of the weights has the even numbers in the lower halves of its bytes, and the odd ones in
//! the upper halves. Numbers of four bits are stored without sign; the sums begin with the digits'
//! sums times what was added to the numbers, negated.
//!
//! A NaN makes the step NaN. In a block with infinities, the step is infinite, infinities are equal
//! integers, and finite elements are 0. So the product of a lone infinity is an infinity with the
//! sign of its weight, or NaN for the weight 0. Several in one block are NaN if their weights, with
//! the signs of the infinities, add up to 0.

use super::pack::scratch;
use crate::context::KernelContext;
use nest::{BinaryOp, ConvertOp, FunctionBuilder, GroupKind, Predicate, ScalarType, Type, UnaryOp, ValueId};
use plan::{BlockFloat, DotPlan, NIBBLES};
use support::Result;

/// Bytes of the digits of eight elements.
pub(super) const WORD_BYTES: i64 = 32;

/// Digits of an integer.
const DIGITS: i64 = 4;

/// Bytes of the digits that one instruction multiplies.
const GROUP_BYTES: i64 = 4;

/// Bits that make signed bytes of the unsigned ones of a sum with the same bits.
const UPPER_BITS: i64 = 0x8080_8080_u32 as i32 as i64;

/// Each byte's lower half.
const LOWER_HALVES: i64 = 0x0f0f_0f0f;

const MANTISSA_BITS: i64 = 23;

const EXPONENT_BIAS: i64 = 127;

/// The least exponent of a block, in the form of a float. Its step is the least subnormal float.
const LEAST_EXPONENT: i64 = 7;

/// Bits by which the first of two multiplications shifts an integer.
const FIRST_BITS: i64 = 4;

/// Bits by which the second multiplication reduces finite elements next to an infinity to zero. The
/// first one leaves them less than 16.
const ZERO_BITS: i64 = 30;

/// The bits of an infinity.
const INFINITY: i64 = 0xff << MANTISSA_BITS;

/// Bits of the integer of the largest element, not counting its leading one.
const INTEGER_BITS: i64 = 29;

const F32: Type = Type::scalar(ScalarType::F32);
const I32: Type = Type::scalar(ScalarType::I32);

/// Writes a row of `f32` to scratch and returns its address there.
pub(super) fn pack(
    cx: &mut KernelContext<'_>,
    plan: &DotPlan,
    row: BlockFloat,
    from: ValueId,
) -> Result<ValueId> {
    let to = scratch(cx)?;
    let bias = plan.weights.map_or(0, |weights| i64::from(weights.bias()));
    cx.for_range(0, plan.shape.k / row.block, 1, |cx, number| {
        let number = cx.scalar_value(&number)?;
        let from = cx.offset(from, number, row.block * 4);
        let to = cx.offset(to, number, row.block_bytes());
        pack_block(cx, row, bias, from, to)
    })?;
    Ok(to)
}

fn pack_block(
    cx: &mut KernelContext<'_>,
    row: BlockFloat,
    bias: i64,
    from: ValueId,
    to: ValueId,
) -> Result<()> {
    let lanes = NIBBLES as u32;
    let (floats, integers) = (Type::vector(ScalarType::F32, lanes), Type::vector(ScalarType::I32, lanes));
    // As integers, the magnitudes of floats have the same order, with NaN as the largest.
    let zero = cx.integer(integers, 0);
    let largest = cx.for_range_carrying(0, row.block, NIBBLES, &[zero], |cx, index, largest| {
        let index = cx.scalar_value(&index)?;
        let from = cx.offset(from, index, 4);
        let bits = cx.load(integers, from, 4);
        let magnitude = cx.integer(integers, i64::from(i32::MAX));
        let bits = cx.and(bits, magnitude);
        Ok(vec![maximum(cx, bits, largest[0])])
    })?;
    let mut largest = largest[0];
    for half in [4, 2, 1] {
        let upper = cx.shuffle(largest, largest, (half..2 * half).collect());
        let lower = cx.shuffle(largest, largest, (0..half).collect());
        largest = maximum(cx, lower, upper);
    }
    let largest = cx.extract(largest, 0);
    let exponent = cx.integer(I32, INFINITY);
    let exponent = cx.and(largest, exponent);
    let least = cx.integer(I32, LEAST_EXPONENT << MANTISSA_BITS);
    let exponent = maximum(cx, exponent, least);
    // The factor of the integers, 2^29 over the power of two, could be too large for a float.
    let reciprocal = cx.integer(I32, (2 * EXPONENT_BIAS + FIRST_BITS) << MANTISSA_BITS);
    let first = cx.sub(reciprocal, exponent);
    let first = cx.bitcast(first, F32);
    let first = cx.splat(first, lanes);
    let infinity = cx.integer(I32, INFINITY);
    let is_finite = cx.compare(Predicate::Less, largest, infinity);
    let second = cx.float(F32, f64::from(1u32 << (INTEGER_BITS - FIRST_BITS)));
    let to_zero = cx.float(F32, 1.0 / f64::from(1u32 << ZERO_BITS));
    let second = cx.select(is_finite, second, to_zero);
    let second = cx.splat(second, lanes);
    let power = cx.bitcast(exponent, F32);
    let step = cx.float(F32, 1.0 / f64::from(1u32 << INTEGER_BITS));
    let step = cx.mul(power, step);
    let is_nan = cx.compare(Predicate::Greater, largest, infinity);
    let nan = cx.bitcast(largest, F32);
    let step = cx.select(is_nan, nan, step);

    let half = Type::vector(ScalarType::I32, lanes / 2);
    let zero = cx.integer(half, 0);
    let sums = cx.for_range_carrying(0, row.block, NIBBLES, &[zero], |cx, index, sums| {
        let index = cx.scalar_value(&index)?;
        let (from, to) = (cx.offset(from, index, 4), cx.offset(to, index, WORD_BYTES / NIBBLES));
        let value = cx.load(floats, from, 4);
        let value = cx.mul(value, first);
        let value = cx.mul(value, second);
        let value = cx.unary(UnaryOp::RoundEven, value);
        let value = cx.convert(ConvertOp::FloatToSigned, value, ScalarType::I32);
        // Infinities have become the largest integers, which have no digits.
        let most = cx.integer(integers, 2 << INTEGER_BITS);
        let least = cx.integer(integers, -(2 << INTEGER_BITS));
        let value = maximum(cx, value, least);
        let is_less = cx.compare(Predicate::Less, value, most);
        let value = cx.select(is_less, value, most);
        let upper = cx.integer(integers, UPPER_BITS);
        let value = cx.add(value, upper);
        let value = cx.binary(BinaryOp::Xor, value, upper);
        let bytes = cx.bitcast(value, Type::vector(ScalarType::I8, 4 * lanes));
        let mut sum = sums[0];
        for odd in 0..2 {
            let order = (0..16u32).map(|k| (2 * (k % 4) + odd) * 4 + k / 4).collect();
            let digits = cx.shuffle(bytes, bytes, order);
            let digits = cx.bitcast(digits, half);
            let to = cx.offset_bytes(to, i64::from(odd) * DIGITS * GROUP_BYTES);
            cx.store(digits, to, 16);
            let factors = cx.integer(half, bias * 0x0101_0101);
            sum = cx.group_multiply_add(kind(row), factors, digits, sum);
        }
        Ok(vec![sum])
    })?;
    let zero = cx.integer(half, 0);
    let sums = cx.sub(zero, sums[0]);
    let after = cx.offset_bytes(to, row.block * 4);
    cx.store(sums, after, 16);
    let after = cx.offset_bytes(after, DIGITS * 4);
    cx.store(step, after, 4);
    Ok(())
}

/// The larger of signed integers.
fn maximum(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let is_larger = b.compare(Predicate::Greater, x, y);
    b.select(is_larger, x, y)
}

fn kind(row: BlockFloat) -> GroupKind {
    if row.is_signed { GroupKind::SignedBytes } else { GroupKind::UnsignedBytes }
}

/// Returns the sums of each digit with which the products of a block begin.
pub(super) fn start(b: &mut FunctionBuilder, row: BlockFloat, block: ValueId, lanes: u32) -> Vec<ValueId> {
    let load = |digit: i64| {
        let pointer = b.offset_bytes(block, row.block * 4 + digit * 4);
        let sum = b.load(I32, pointer, 4);
        b.splat(sum, lanes)
    };
    (0..DIGITS).map(load).collect()
}

/// Adds the products of a word of the row with a vector of words of the weights to the sums of each
/// digit.
pub(super) fn multiply_add(
    b: &mut FunctionBuilder,
    row: BlockFloat,
    word: ValueId,
    weights: ValueId,
    sums: &mut [ValueId],
) {
    let ty = b.ty(weights);
    let halves = b.integer(ty, LOWER_HALVES);
    let even = b.and(weights, halves);
    let shift = b.integer(ty, 4);
    let odd = b.binary(BinaryOp::ShiftRightLogical, weights, shift);
    let odd = b.and(odd, halves);
    let mut pointer = word;
    for numbers in [even, odd] {
        for sum in &mut *sums {
            let digits = b.load(I32, pointer, 4);
            let digits = b.splat(digits, ty.lanes);
            *sum = b.group_multiply_add(kind(row), numbers, digits, *sum);
            pointer = b.offset_bytes(pointer, GROUP_BYTES);
        }
    }
}

/// Returns the sum of a block's products as a float.
pub(super) fn sum(b: &mut FunctionBuilder, row: BlockFloat, block: ValueId, sums: &[ValueId]) -> ValueId {
    let floats: Vec<ValueId> =
        sums.iter().map(|&sum| b.convert(ConvertOp::SignedToFloat, sum, ScalarType::F32)).collect();
    let ty = b.ty(floats[0]);
    let base = b.float(ty, 256.0);
    let horner = |b: &mut FunctionBuilder, all: ValueId, &digit: &ValueId| b.multiply_add(all, base, digit);
    let (last, rest) = floats.split_last().expect("an integer has digits");
    let all = rest.iter().rev().fold(*last, |all, digit| horner(b, all, digit));
    let pointer = b.offset_bytes(block, row.block * 4 + DIGITS * 4);
    let step = b.load(F32, pointer, 4);
    let step = b.splat(step, ty.lanes);
    b.mul(all, step)
}
