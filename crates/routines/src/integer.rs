//! Integer operations that small processors lack: products and shifts of 64 bits, and division.

use crate::bits::{Bits, LONG, WORD};
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder, ValueId};
use support::Result;

/// The lower half of a product of two words, from sums.
pub(crate) fn short_product(b: &mut FunctionBuilder, [x, y]: [ValueId; 2]) -> Result<ValueId> {
    let zero = b.number(WORD, 0);
    let last = b.while_carrying(
        &[zero, x, y],
        |b, values| Ok(b.is(Predicate::NotEqual, values[2], 0)),
        |b, values| {
            let digit = b.mask(values[2], 1);
            let is_set = b.is(Predicate::NotEqual, digit, 0);
            let sum = b.add(values[0], values[1]);
            let sum = b.select(is_set, sum, values[0]);
            Ok(vec![sum, b.left(values[1], 1), b.right(values[2], 1)])
        },
    )?;
    Ok(last[0])
}

/// The lower half of a product of two numbers of 64 bits, from products of 16 bits.
pub(crate) fn long_product(b: &mut FunctionBuilder, [x, y]: [ValueId; 2]) -> ValueId {
    let (x0, x1) = (b.resize(x, WORD), b.upper(x));
    let (y0, y1) = (b.resize(y, WORD), b.upper(y));
    let halves = |b: &mut FunctionBuilder, x| (b.mask(x, 0xffff), b.right(x, 16));
    let ((x00, x01), (y00, y01)) = (halves(b, x0), halves(b, y0));
    let (low, high) = (b.mul(x00, y00), b.mul(x01, y01));
    let (first, second) = (b.mul(x00, y01), b.mul(x01, y00));
    // The middle of the product of the lower words does not overflow: 0xffff^2 + 2 * 0xffff.
    let carried = b.right(low, 16);
    let of_first = b.mask(first, 0xffff);
    let middle = b.add(carried, second);
    let middle = b.add(middle, of_first);
    let (low, upper_middle) = (b.mask(low, 0xffff), b.left(middle, 16));
    let lower = b.or(low, upper_middle);
    let (middle, first) = (b.right(middle, 16), b.right(first, 16));
    let mut upper = b.add(high, middle);
    upper = b.add(upper, first);
    for (x, y) in [(x0, y1), (x1, y0)] {
        let cross = b.mul(x, y);
        upper = b.add(upper, cross);
    }
    b.join(lower, upper)
}

/// Shifts 64 bits by 0 to 63.
pub(crate) fn long_shift(
    b: &mut FunctionBuilder,
    op: BinaryOp,
    x: ValueId,
    bits: ValueId,
) -> Result<ValueId> {
    let (lower, upper) = (b.resize(x, WORD), b.upper(x));
    let is_left = op == BinaryOp::ShiftLeft;
    let is_far = b.is(Predicate::Above, bits, 31);
    let parts = b.if_else(
        is_far,
        |b| {
            let bits = b.plus(bits, -32);
            let moved = b.shift(op, if is_left { lower } else { upper }, bits);
            Ok(match op {
                BinaryOp::ShiftLeft => vec![b.number(WORD, 0), moved],
                BinaryOp::ShiftRightArithmetic => vec![moved, b.with(op, upper, 31)],
                _ => vec![moved, b.number(WORD, 0)],
            })
        },
        |b| {
            // The bits that move to the other word, in two steps because 32 is out of range.
            let others = b.less(31, bits);
            let (from, to) = if is_left { (lower, upper) } else { (upper, lower) };
            let logical = if is_left { BinaryOp::ShiftRightLogical } else { BinaryOp::ShiftLeft };
            let crossing = b.with(logical, from, 1);
            let crossing = b.shift(logical, crossing, others);
            let toward = if is_left { op } else { BinaryOp::ShiftRightLogical };
            let to = b.shift(toward, to, bits);
            let (to, from) = (b.or(to, crossing), b.shift(op, from, bits));
            Ok(if is_left { vec![from, to] } else { vec![to, from] })
        },
    )?;
    Ok(b.join(parts[0], parts[1]))
}

/// Quotient and remainder, of signed numbers rounded toward zero. For a divisor of 0, the quotient
/// has no meaning.
pub(crate) fn divide(b: &mut FunctionBuilder, is_signed: bool, [x, y]: [ValueId; 2]) -> Result<[ValueId; 2]> {
    if !is_signed {
        return divide_unsigned(b, [x, y]);
    }
    let zero = b.number(b.ty(x), 0);
    let is_negative = [x, y].map(|x| b.is(Predicate::Less, x, 0));
    let negate_if = |b: &mut FunctionBuilder, condition, x| {
        let negated = b.sub(zero, x);
        b.select(condition, negated, x)
    };
    let magnitudes = [negate_if(b, is_negative[0], x), negate_if(b, is_negative[1], y)];
    let [quotient, remainder] = divide_unsigned(b, magnitudes)?;
    let differs = b.op(BinaryOp::Xor, is_negative[0], is_negative[1]);
    Ok([negate_if(b, differs, quotient), negate_if(b, is_negative[0], remainder)])
}

fn divide_unsigned(b: &mut FunctionBuilder, [dividend, divisor]: [ValueId; 2]) -> Result<[ValueId; 2]> {
    let ty = b.ty(dividend);
    let (zero, one) = (b.number(ty, 0), b.number(ty, 1));
    // Moves the divisor left until it exceeds the dividend or its highest bit is set.
    let aligned = b.while_carrying(
        &[divisor, one],
        |b, values| {
            let is_below = b.compare(Predicate::Below, values[0], dividend);
            let has_room = b.is(Predicate::GreaterEqual, values[0], 0);
            let is_digit = b.is(Predicate::NotEqual, values[1], 0);
            let goes_on = b.and(is_below, has_room);
            Ok(b.and(goes_on, is_digit))
        },
        |b, values| Ok(values.iter().map(|&value| b.left(value, 1)).collect()),
    )?;
    let last = b.while_carrying(
        &[aligned[0], aligned[1], zero, dividend],
        |b, values| Ok(b.is(Predicate::NotEqual, values[1], 0)),
        |b, values| {
            let [divisor, digit, quotient, rest] = [values[0], values[1], values[2], values[3]];
            let fits = b.compare(Predicate::AboveEqual, rest, divisor);
            let reduced = b.sub(rest, divisor);
            let rest = b.select(fits, reduced, rest);
            let digits = b.or(quotient, digit);
            let quotient = b.select(fits, digits, quotient);
            Ok(vec![b.right(divisor, 1), b.right(digit, 1), quotient, rest])
        },
    )?;
    Ok([last[2], last[3]])
}

/// Number of leading zeros of a word or of two, as a word.
pub(crate) fn leading_zeros(b: &mut FunctionBuilder, x: ValueId) -> ValueId {
    let long = b.ty(x) == LONG;
    let mut count = b.number(WORD, 0);
    let mut word = x;
    if long {
        let (lower, upper) = (b.resize(x, WORD), b.upper(x));
        let is_zero = b.is(Predicate::Equal, upper, 0);
        let more = b.number(WORD, 32);
        count = b.select(is_zero, more, count);
        word = b.select(is_zero, lower, upper);
    }
    for bits in [16_u32, 8, 4, 2, 1] {
        let is_zero = b.is(Predicate::Below, word, 1 << (32 - bits));
        let (moved, more) = (b.left(word, bits), b.plus(count, bits.into()));
        word = b.select(is_zero, moved, word);
        count = b.select(is_zero, more, count);
    }
    let is_zero = b.is(Predicate::GreaterEqual, word, 0);
    let more = b.bit(is_zero, WORD);
    b.add(count, more)
}
