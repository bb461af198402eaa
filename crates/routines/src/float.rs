//! Arithmetic of floats: sums, products, quotients, square roots, and comparisons. Results are
//! rounded to nearest, ties to even, and subnormal numbers count.

use crate::bits::{Bits, DOUBLE, Format, GUARD, LONG, WORD};
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder, Type, ValueId};
use support::Result;

/// `a + b`, or `a - b`.
pub(crate) fn sum(
    b: &mut FunctionBuilder,
    f: Format,
    is_difference: bool,
    [x, y]: [ValueId; 2],
) -> Result<ValueId> {
    let y = if is_difference { b.with(BinaryOp::Xor, y, f.sign_bit()) } else { y };
    let (of_x, of_y) = (f.magnitude(b, x), f.magnitude(b, y));
    let is_less = b.compare(Predicate::Below, of_x, of_y);
    let (large, small) = (b.select(is_less, y, x), b.select(is_less, x, y));
    let exponent = f.exponent(b, large);
    let differs = b.op(BinaryOp::Xor, large, small);
    let differs = b.is(Predicate::Less, differs, 0);
    let is_special = b.is(Predicate::Equal, exponent, f.special());
    b.choose(
        is_special,
        |b| {
            // The larger one is infinity or NaN.
            let same = f.magnitude(b, small);
            let same = b.is(Predicate::Equal, same, f.infinity());
            let cancels = b.and(differs, same);
            let nan = f.is_nan(b, large);
            let cancels = b.or(cancels, nan);
            let nan = b.number(f.ty, f.nan());
            Ok(b.select(cancels, nan, large))
        },
        |b| {
            let (exponent, first) = guarded(b, f, large, exponent);
            let other = f.exponent(b, small);
            let (other, second) = guarded(b, f, small, other);
            let distance = b.sub(exponent, other);
            let second = b.shift_sticky(second, distance);
            let sign = f.sign(b, large);
            b.choose(
                differs,
                |b| difference(b, f, [sign, exponent], [first, second]),
                |b| {
                    let sum = b.add(first, second);
                    let carried = b.right(sum, f.mantissa + GUARD + 1);
                    let halved = b.right_sticky(sum, 1);
                    let carries = b.is(Predicate::NotEqual, carried, 0);
                    let sum = b.select(carries, halved, sum);
                    let carried = b.resize(carried, WORD);
                    let exponent = b.add(exponent, carried);
                    Ok(f.round(b, sign, exponent, sum))
                },
            )
        },
    )
}

/// The exponent, at least 1, and the mantissa with its hidden bit and guard bits.
fn guarded(b: &mut FunctionBuilder, f: Format, x: ValueId, exponent: ValueId) -> (ValueId, ValueId) {
    let fraction = b.mask(x, f.hidden() - 1);
    let is_normal = b.is(Predicate::NotEqual, exponent, 0);
    let (one, with_hidden) = (b.number(WORD, 1), b.with(BinaryOp::Or, fraction, f.hidden()));
    let mantissa = b.select(is_normal, with_hidden, fraction);
    (b.select(is_normal, exponent, one), b.left(mantissa, GUARD))
}

/// The difference of two mantissas, of which the first one is not smaller.
fn difference(
    b: &mut FunctionBuilder,
    f: Format,
    [sign, exponent]: [ValueId; 2],
    [first, second]: [ValueId; 2],
) -> Result<ValueId> {
    let difference = b.sub(first, second);
    let is_zero = b.is(Predicate::Equal, difference, 0);
    b.choose(
        is_zero,
        |b| Ok(b.number(f.ty, 0)),
        |b| {
            let zeros = b.leading_zeros(difference);
            let zeros = b.plus(zeros, -i64::from(f.width() - 1 - f.mantissa - GUARD));
            // Numbers with the least exponent are subnormal.
            let most = b.plus(exponent, -1);
            let is_more = b.compare(Predicate::Above, zeros, most);
            let distance = b.select(is_more, most, zeros);
            let mantissa = b.shift(BinaryOp::ShiftLeft, difference, distance);
            let exponent = b.sub(exponent, distance);
            Ok(f.round(b, sign, exponent, mantissa))
        },
    )
}

/// A product or a quotient: the value of `special` if a number is 0, infinity, or NaN, and
/// otherwise the value that `finite` computes from the sign, the exponents, and the mantissas.
fn by_parts(
    b: &mut FunctionBuilder,
    f: Format,
    [x, y]: [ValueId; 2],
    special: impl FnOnce(&mut FunctionBuilder, [ValueId; 3]) -> ValueId,
    finite: impl FnOnce(&mut FunctionBuilder, ValueId, [ValueId; 2], [ValueId; 2]) -> Result<ValueId>,
) -> Result<ValueId> {
    let sign = b.op(BinaryOp::Xor, x, y);
    let sign = f.sign(b, sign);
    let (of_x, of_y) = (f.magnitude(b, x), f.magnitude(b, y));
    // Infinity, NaN, and 0, of which 1 is subtracted, are the largest numbers.
    let is_special = |b: &mut FunctionBuilder, magnitude| {
        let less = b.plus(magnitude, -1);
        b.is(Predicate::AboveEqual, less, f.infinity() - 1)
    };
    let (first, second) = (is_special(b, of_x), is_special(b, of_y));
    let any = b.or(first, second);
    b.choose(
        any,
        |b| Ok(special(b, [sign, of_x, of_y])),
        |b| {
            let (e, m) = f.normalized(b, x)?;
            let (other_e, other_m) = f.normalized(b, y)?;
            finite(b, sign, [e, other_e], [m, other_m])
        },
    )
}

/// `a * b`.
pub(crate) fn product(b: &mut FunctionBuilder, f: Format, factors: [ValueId; 2]) -> Result<ValueId> {
    by_parts(
        b,
        f,
        factors,
        |b, [sign, x, y]| {
            // The larger one is infinity or NaN, or the smaller one is 0.
            let is_less = b.compare(Predicate::Below, x, y);
            let (large, small) = (b.select(is_less, y, x), b.select(is_less, x, y));
            let is_finite = b.is(Predicate::Below, large, f.infinity());
            let is_nan = b.is(Predicate::Above, large, f.infinity());
            let is_zero = b.is(Predicate::Equal, small, 0);
            let is_nan = b.or(is_nan, is_zero);
            let (zero, nan) = (b.number(f.ty, 0), b.number(f.ty, f.nan()));
            let infinity = b.number(f.ty, f.infinity());
            let special = b.select(is_nan, nan, infinity);
            let magnitude = b.select(is_finite, zero, special);
            b.or(magnitude, sign)
        },
        |b, sign, [e, other_e], [m, other_m]| {
            // The product has its highest bit at the guarded mantissa's hidden bit or above it.
            let product = if f == DOUBLE {
                let (m, other_m) = (b.left(m, 11), b.left(other_m, 11));
                let upper = upper_product(b, [m, other_m]);
                b.right_sticky(upper, 7)
            } else {
                let (m, other_m) = (b.left(m, 4), b.left(other_m, 8));
                let product = long_product(b, m, other_m);
                let (lower, upper) = (b.resize(product, WORD), b.upper(product));
                let lost = b.is(Predicate::NotEqual, lower, 0);
                let lost = b.bit(lost, WORD);
                b.or(upper, lost)
            };
            let carried = b.right(product, f.mantissa + GUARD + 1);
            let halved = b.right_sticky(product, 1);
            let carries = b.is(Predicate::NotEqual, carried, 0);
            let mantissa = b.select(carries, halved, product);
            let carried = b.resize(carried, WORD);
            let exponent = b.add(e, other_e);
            let exponent = b.add(exponent, carried);
            let exponent = b.plus(exponent, -f.bias());
            f.round_any(b, sign, exponent, mantissa)
        },
    )
}

/// The product of two words.
fn long_product(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let (x, y) = (b.resize(x, LONG), b.resize(y, LONG));
    b.mul(x, y)
}

/// The upper half of a product of 128 bits. Its lowest bit is also set if the lower half is not 0.
fn upper_product(b: &mut FunctionBuilder, [x, y]: [ValueId; 2]) -> ValueId {
    let (x0, x1) = (b.resize(x, WORD), b.upper(x));
    let (y0, y1) = (b.resize(y, WORD), b.upper(y));
    let (low, high) = (long_product(b, x0, y0), long_product(b, x1, y1));
    let (first, second) = (long_product(b, x0, y1), long_product(b, x1, y0));
    let carried = b.right(low, 32);
    let word = |b: &mut FunctionBuilder, x| b.mask(x, 0xffff_ffff);
    let (of_first, of_second) = (word(b, first), word(b, second));
    let middle = b.add(carried, of_first);
    let middle = b.add(middle, of_second);
    let mut upper = high;
    for part in [first, second, middle] {
        let part = b.right(part, 32);
        upper = b.add(upper, part);
    }
    let lower = b.or(low, middle);
    let lower = b.resize(lower, WORD);
    let lost = b.is(Predicate::NotEqual, lower, 0);
    let lost = b.bit(lost, LONG);
    b.or(upper, lost)
}

/// `a / b`.
pub(crate) fn quotient(b: &mut FunctionBuilder, f: Format, operands: [ValueId; 2]) -> Result<ValueId> {
    by_parts(
        b,
        f,
        operands,
        |b, [sign, x, y]| {
            let nans = [x, y].map(|x| b.is(Predicate::Above, x, f.infinity()));
            let is_same = b.compare(Predicate::Equal, x, y);
            let is_nan = b.or(nans[0], nans[1]);
            // Of equal numbers, which are zeros or infinities here.
            let is_nan = b.or(is_nan, is_same);
            let is_above = b.compare(Predicate::Above, x, y);
            let (zero, infinity) = (b.number(f.ty, 0), b.number(f.ty, f.infinity()));
            let magnitude = b.select(is_above, infinity, zero);
            let nan = b.number(f.ty, f.nan());
            let magnitude = b.select(is_nan, nan, magnitude);
            b.or(magnitude, sign)
        },
        |b, sign, [e, other_e], [m, divisor]| {
            let is_less = b.compare(Predicate::Below, m, divisor);
            let less = b.bit(is_less, WORD);
            let doubled = b.left(m, 1);
            let dividend = b.select(is_less, doubled, m);
            let exponent = b.sub(e, other_e);
            let exponent = b.sub(exponent, less);
            let exponent = b.plus(exponent, f.bias());
            // The quotient is at least 1, so its first digit is.
            let zero = b.number(f.ty, 0);
            let last = b.while_carrying(
                &[zero, dividend],
                |b, values| Ok(b.is(Predicate::Below, values[0], f.hidden() << GUARD)),
                |b, values| {
                    let fits = b.compare(Predicate::AboveEqual, values[1], divisor);
                    let digit = b.bit(fits, f.ty);
                    let quotient = b.left(values[0], 1);
                    let reduced = b.sub(values[1], divisor);
                    let rest = b.select(fits, reduced, values[1]);
                    Ok(vec![b.or(quotient, digit), b.left(rest, 1)])
                },
            )?;
            let lost = b.is(Predicate::NotEqual, last[1], 0);
            let lost = b.bit(lost, f.ty);
            let mantissa = b.or(last[0], lost);
            f.round_any(b, sign, exponent, mantissa)
        },
    )
}

/// The square root.
pub(crate) fn square_root(b: &mut FunctionBuilder, f: Format, x: ValueId) -> Result<ValueId> {
    let magnitude = f.magnitude(b, x);
    let is_zero = b.is(Predicate::Equal, magnitude, 0);
    let is_finite_positive = b.is(Predicate::Below, x, f.infinity());
    let is_number = b.is(Predicate::NotEqual, magnitude, 0);
    let is_usual = b.and(is_finite_positive, is_number);
    b.choose(
        is_usual,
        |b| {
            let (exponent, mantissa) = f.normalized(b, x)?;
            // The unbiased exponent is odd if the biased one is even.
            let parity = b.mask(exponent, 1);
            let is_odd = b.is(Predicate::Equal, parity, 0);
            let doubled = b.left(mantissa, 1);
            let mantissa = b.select(is_odd, doubled, mantissa);
            let mantissa = b.left(mantissa, 1);
            let halved = b.plus(exponent, f.bias());
            let halved = b.right(halved, 1);
            let (zero, first) = (b.number(f.ty, 0), b.number(f.ty, f.hidden() << 1));
            // Digits from the highest one on: the next one is 1 if the rest allows.
            let last = b.while_carrying(
                &[zero, zero, mantissa, first],
                |b, values| Ok(b.is(Predicate::NotEqual, values[3], 0)),
                |b, values| {
                    let [root, twice, rest, digit] = [values[0], values[1], values[2], values[3]];
                    let tried = b.add(twice, digit);
                    let fits = b.compare(Predicate::BelowEqual, tried, rest);
                    let reduced = b.sub(rest, tried);
                    let rest = b.select(fits, reduced, rest);
                    let grown = b.add(tried, digit);
                    let twice = b.select(fits, grown, twice);
                    let larger = b.add(root, digit);
                    let root = b.select(fits, larger, root);
                    Ok(vec![root, twice, b.left(rest, 1), b.right(digit, 1)])
                },
            )?;
            let lost = b.is(Predicate::NotEqual, last[2], 0);
            let lost = b.bit(lost, f.ty);
            let root = b.left(last[0], 2);
            let root = b.or(root, lost);
            let sign = b.number(f.ty, 0);
            Ok(f.round(b, sign, halved, root))
        },
        |b| {
            // Zeros and infinity are their own roots.
            let is_infinite = b.is(Predicate::Equal, x, f.infinity());
            let is_own = b.or(is_zero, is_infinite);
            let nan = b.number(f.ty, f.nan());
            Ok(b.select(is_own, x, nan))
        },
    )
}

/// A number whose order among integers is that of the float.
fn order(b: &mut FunctionBuilder, f: Format, x: ValueId) -> ValueId {
    let magnitude = f.magnitude(b, x);
    let negated = b.less(0, magnitude);
    let is_negative = b.is(Predicate::Less, x, 0);
    b.select(is_negative, negated, magnitude)
}

fn any_nan(b: &mut FunctionBuilder, f: Format, [x, y]: [ValueId; 2]) -> ValueId {
    let (first, second) = (f.is_nan(b, x), f.is_nan(b, y));
    b.or(first, second)
}

/// 1 if the comparison holds, which it does not for NaN.
pub(crate) fn holds(
    b: &mut FunctionBuilder,
    f: Format,
    predicate: Predicate,
    operands: [ValueId; 2],
) -> ValueId {
    let nan = any_nan(b, f, operands);
    let [x, y] = operands.map(|x| order(b, f, x));
    let holds = b.compare(predicate, x, y);
    let no = b.number(Type::BOOL, 0);
    let holds = b.select(nan, no, holds);
    b.bit(holds, WORD)
}

/// 1 if an operand is NaN.
pub(crate) fn unordered(b: &mut FunctionBuilder, f: Format, operands: [ValueId; 2]) -> ValueId {
    let nan = any_nan(b, f, operands);
    b.bit(nan, WORD)
}

/// -1, 0, or 1 for less, equal, or greater, and `of_nan` if an operand is NaN.
pub(crate) fn three_way(b: &mut FunctionBuilder, f: Format, of_nan: i64, operands: [ValueId; 2]) -> ValueId {
    let nan = any_nan(b, f, operands);
    let [x, y] = operands.map(|x| order(b, f, x));
    let (less, greater) = (b.compare(Predicate::Less, x, y), b.compare(Predicate::Greater, x, y));
    let (less, greater) = (b.bit(less, WORD), b.bit(greater, WORD));
    let result = b.sub(greater, less);
    let of_nan = b.number(WORD, of_nan);
    b.select(nan, of_nan, result)
}
