//! Reduction of angles by multiples of `pi/2`, for all magnitudes.

use super::exact::{Pair, quick_two_sum, two_product, two_sum};
use super::lanes::Lanes;

/// `x = quadrant * pi/2 + angle`. The angle exceeds `pi/4` at most slightly.
#[derive(Clone, Copy)]
pub(super) struct Reduced<'s> {
    /// An integer. Only its two low bits are meaningful.
    pub(super) quadrant: Lanes<'s>,
    pub(super) angle: Lanes<'s>,
    /// Rounding error of the angle.
    pub(super) tail: Lanes<'s>,
}

/// `pi/2` in parts of 33 bits and a remainder. Products of the parts with integers below `2^20` are
/// exact in `F64`.
const DOUBLE_PARTS: [f64; 4] =
    [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32];
/// `pi/2` in parts of 13 bits and a remainder. Products of the parts with integers below `2^11` are
/// exact in `F32`.
const SINGLE_PARTS: [f64; 4] =
    [1.570556640625, 0.0002396702766418457, 1.5890691429376602e-08, 2.5633440682570896e-12];
const DOUBLE_LIMIT: f64 = 1048576.0;
const SINGLE_LIMIT: f64 = 3200.0;

/// Reduces a nonnegative number. Infinity and NaN give NaN.
pub(super) fn reduce(x: Lanes<'_>) -> Reduced<'_> {
    let (near, limit) = if x.is_single() {
        (reduce_near_single(x), SINGLE_LIMIT)
    } else {
        (reduce_near_double(x), DOUBLE_LIMIT)
    };
    let is_far = x.at_least(limit);
    let values = is_far.any().if_else(
        &[x, is_far, near.quadrant, near.angle, near.tail],
        |values| {
            let (x, is_far) = (values[0], values[1]);
            let far = if x.is_single() { reduce_far_single(x) } else { reduce_far_double(x) };
            [far.quadrant, far.angle, far.tail]
                .into_iter()
                .zip(&values[2..])
                .map(|(far, &near)| is_far.choose(far, near))
                .collect()
        },
        |values| values[2..].to_vec(),
    );
    Reduced { quadrant: values[0], angle: values[1], tail: values[2] }
}

/// Returns the nearest integer to `x / (pi/2)`, as a float and in the low bits of an integer.
fn nearest_multiple(x: Lanes<'_>) -> (Lanes<'_>, Lanes<'_>) {
    let shifter = if x.is_single() { 1.5 * 2f64.powi(23) } else { 1.5 * 2f64.powi(52) };
    let shifted = x.mul_add(std::f64::consts::FRAC_2_PI, shifter);
    (shifted - shifter, shifted.bits())
}

fn reduce_near_single(x: Lanes<'_>) -> Reduced<'_> {
    let (n, quadrant) = nearest_multiple(x);
    let [first, second, third, last] = SINGLE_PARTS;
    // All products are exact, and so are all differences except the last one.
    let rest = n.mul_add(-second, n.mul_add(-first, x));
    let angle = n.mul_add(-third, rest);
    let lost = n.mul_add(-third, rest - angle);
    Reduced { quadrant, angle, tail: n.mul_add(-last, lost) }
}

fn reduce_near_double(x: Lanes<'_>) -> Reduced<'_> {
    let (n, quadrant) = nearest_multiple(x);
    let [first, second, third, last] = DOUBLE_PARTS;
    let sum = two_sum(x - n * first, n * -second);
    let next = two_sum(sum.high, n * -third);
    let angle = quick_two_sum(next.high, (sum.low + next.low) - n * last);
    Reduced { quadrant, angle: angle.high, tail: angle.low }
}

/// Reduces in `F64`, which is more precise than needed.
fn reduce_far_single(x: Lanes<'_>) -> Reduced<'_> {
    let far = reduce(x.to_double());
    let angle = (far.angle + far.tail).to_single();
    let tail = (far.angle - angle.to_double()).to_single();
    Reduced { quadrant: far.quadrant.to_i32(), angle, tail }
}

/// 34 zero bits, then the binary digits of `2/pi`.
const TWO_OVER_PI: [u32; 38] = [
    0x00000000, 0x28BE60DB, 0x9391054A, 0x7F09D5F4, 0x7D4D3770, 0x36D8A566, 0x4F10E410, 0x7F9458EA,
    0xF7AEF158, 0x6DC91B8E, 0x909374B8, 0x01924BBA, 0x82746487, 0x3F877AC7, 0x2C4A69CF, 0xBA208D7D,
    0x4BAED121, 0x3A671C09, 0xAD17DF90, 0x4E64758E, 0x60D4CE7D, 0x272117E2, 0xEF7E4A0E, 0xC7FE25FF,
    0xF7816603, 0xFBCBC462, 0xD6829B47, 0xDB4D9FB3, 0xC9F2C26D, 0xD3D18FD9, 0xA797FA8B, 0x5D49EEB1,
    0xFAF97C5E, 0xCF41CE7D, 0xE294A4BA, 0x9AFED7EC, 0x47E35742, 0x1580CC11,
];
/// Biased exponent of the smallest number that is reduced with these digits, `2^20`.
const FIRST_EXPONENT: i64 = 1043;
const LOW_WORD: i64 = 0xFFFF_FFFF;
/// Number of words of `2/pi` that are multiplied by a mantissa: 128 significant bits of the
/// product, and 64 guard bits.
const WINDOW: usize = 6;

/// Payne-Hanek reduction, for numbers of at least `2^20`. It computes only those digits of the
/// product with `2/pi` that matter modulo 4, in integers.
fn reduce_far_double(x: Lanes<'_>) -> Reduced<'_> {
    let bits = x.bits();
    let mantissa = (bits & ((1i64 << 52) - 1)) | (1i64 << 52);
    let position = bits.shr(52i64) + (-FIRST_EXPONENT);
    let window = window_at(position);
    let [high, low] = product_fraction(mantissa, &window);
    // The two highest bits are the quadrant. Rounding to the nearest quadrant leaves a signed
    // fraction.
    let quadrant = high.shr(62i64) + (high.shr(61i64) & 1i64);
    let (high, low) = (high.shl(2i64) | low.shr(62i64), low.shl(2i64));
    let sign = high.sar(63i64);
    let fraction = float_fraction(high ^ sign, low ^ sign);
    // Multiply by pi/2.
    let product = two_product(fraction.high, x.number(std::f64::consts::FRAC_PI_2));
    let rest =
        product.low + (fraction.high * 6.123233995736766e-17 + fraction.low * std::f64::consts::FRAC_PI_2);
    let angle = quick_two_sum(product.high, rest);
    let sign = sign & i64::MIN;
    let is_finite = x.below(f64::INFINITY);
    Reduced {
        quadrant,
        angle: is_finite.choose(angle.high.flip_sign(sign), f64::NAN),
        tail: is_finite.choose(angle.low.flip_sign(sign), f64::NAN),
    }
}

/// Returns the words of `2/pi` from a bit on, each in the low half of an `I64`. Positions out of
/// range give arbitrary words.
fn window_at(position: Lanes<'_>) -> [Lanes<'_>; WINDOW] {
    let pair = |k: usize| {
        let low = TWO_OVER_PI.get(k + 1).copied().unwrap_or(0);
        position.number((i64::from(TWO_OVER_PI[k]) << 32) | i64::from(low))
    };
    let mut words: Vec<Lanes<'_>> = (0..TWO_OVER_PI.len()).map(pair).collect();
    // Binary selection by the bits of the word index, highest first. The remaining words begin at
    // the index.
    for bit in (0..5).rev() {
        let step = 1usize << bit;
        let is_set = (position & (32i64 << bit)).differs(0i64);
        words = (0..step - 1 + WINDOW).map(|k| is_set.choose(words[k + step], words[k])).collect();
    }
    let shift = position & 31i64;
    std::array::from_fn(|k| words[k].shl(shift).shr(32i64))
}

/// Returns the highest 128 of the lowest 192 bits of a mantissa times the words.
fn product_fraction<'s>(mantissa: Lanes<'s>, window: &[Lanes<'s>; WINDOW]) -> [Lanes<'s>; 2] {
    let (low, high) = (mantissa & LOW_WORD, mantissa.shr(32i64));
    // Column k has the weight of word k. It is the low half times that word plus the high half
    // times the next word.
    let by_low: [Lanes<'s>; WINDOW] = std::array::from_fn(|k| low * window[k]);
    let by_high: [Lanes<'s>; WINDOW] = std::array::from_fn(|k| high * window[k]);
    let mut carry = by_low[WINDOW - 1].shr(32i64);
    let mut columns = [mantissa; WINDOW - 1];
    for k in (0..WINDOW - 1).rev() {
        let sum = (by_low[k] & LOW_WORD) + (by_high[k + 1] & LOW_WORD) + carry;
        carry = by_low[k].shr(32i64) + by_high[k + 1].shr(32i64) + sum.shr(32i64);
        columns[k] = sum & LOW_WORD;
    }
    let join = |k: usize| columns[k].shl(32i64) | columns[k + 1];
    [join(0), join(2)]
}

/// Converts 128 bits after the binary point, of which the highest is 0, to floats.
fn float_fraction<'s>(high: Lanes<'s>, low: Lanes<'s>) -> Pair<'s> {
    // Placing a word in the low bits of 2^52 yields the sum of that float and the word.
    let float = |word: Lanes<'s>, exponent: i32| {
        let base = 2f64.powi(52);
        ((word | base.to_bits() as i64).as_float() - base) * 2f64.powi(exponent)
    };
    let upper = quick_two_sum(float(high.shr(32i64), -32), float(high & LOW_WORD, -64));
    let lower = float(low.shr(32i64), -96) + float(low & LOW_WORD, -128);
    let sum = two_sum(upper.high, lower);
    quick_two_sum(sum.high, upper.low + sum.low)
}
