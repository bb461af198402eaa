//! Random numbers from a key and a counter, and distributions over their bits, number for number as
//! in XLA (`xla/hlo/builder/lib/prng.cc`, `tf2xla/lib/random.cc`).

use crate::expression::Expression;
use crate::function::Function;
use crate::special::erf_inv;
use hlo::{Op, RandomAlgorithm};
use shape::{PrimitiveType, Shape};

fn bits_of_state<'f>(
    function: &'f Function,
    algorithm: RandomAlgorithm,
    state: Expression<'f>,
    bits: PrimitiveType,
    sizes: &[i64],
) -> (Expression<'f>, Expression<'f>) {
    let shape = Shape::Tuple(vec![state.array().into(), Shape::array(bits, sizes)]);
    let pair = function.op(Op::RngBitGenerator { algorithm }, &[state], Some(shape));
    (pair.element(1), pair.element(0))
}

/// A stream of random bits.
#[derive(Clone, Copy)]
pub struct Generator<'f> {
    /// Philox or ThreeFry.
    pub algorithm: RandomAlgorithm,
    /// A scalar `u64`.
    pub key: Expression<'f>,
    /// `u64[2]` for Philox, `u64[1]` for ThreeFry.
    pub counter: Expression<'f>,
}

impl<'f> Generator<'f> {
    /// Draws bits of an unsigned type and advances the counter by the blocks used.
    pub fn bits(&mut self, bits: PrimitiveType, sizes: &[i64]) -> Expression<'f> {
        let function = self.key.function();
        let state = function.concatenate(&[self.key.reshape(&[1]), self.counter], 0);
        let (numbers, state) = bits_of_state(function, self.algorithm, state, bits, sizes);
        let words = state.sizes().first().copied().unwrap_or(1);
        self.counter = state.slice_in(0, 1, words);
        numbers
    }

    /// Draws uniform numbers in `[low, 1)` of type `f16`, `f32`, or `f64`: the mantissa's bits over
    /// a power of 2. `low` is the least positive normal number if `positive`, else 0. For `f16`,
    /// `low` is always 0.
    pub fn uniform(&mut self, float: PrimitiveType, sizes: &[i64], positive: bool) -> Expression<'f> {
        if float == PrimitiveType::F16 {
            let mantissa = self.bits(PrimitiveType::U16, sizes) & f64::from(0x3ff);
            let one_and = mantissa | f64::from(15 << 10);
            return one_and.bitcast_convert(float) - 1.0;
        }
        let (bits, drop, scale, least) = match float {
            PrimitiveType::F64 => (PrimitiveType::U64, 12.0, 2f64.powi(-52), f64::MIN_POSITIVE),
            _ => (PrimitiveType::U32, 9.0, 2f64.powi(-23), f64::from(f32::MIN_POSITIVE)),
        };
        let unit = (self.bits(bits, sizes) >> drop).convert(float) * scale;
        // Equals `unit * (1 - least) + least` within rounding.
        if positive { unit.max(least) } else { unit }
    }

    /// Draws uniform integers in `[low, high)`, two scalars of a 32- or 64-bit integer type, by
    /// remainder.
    pub fn uniform_int(
        &mut self,
        low: Expression<'f>,
        high: Expression<'f>,
        sizes: &[i64],
    ) -> Expression<'f> {
        let bits = self.bits(unsigned_like(low.element_type()), sizes);
        between(bits, low, high)
    }

    /// Draws normal numbers of type `f16`, `f32`, or `f64` by the Box-Muller transform.
    ///
    /// The two numbers of a pair are neighbors along the first even dimension or, if there is none,
    /// along the largest.
    pub fn normal(&mut self, float: PrimitiveType, sizes: &[i64]) -> Expression<'f> {
        let function = self.key.function();
        let even = sizes.iter().position(|size| size % 2 == 0);
        let largest = || (0..sizes.len()).rev().max_by_key(|&d| sizes[d]);
        let split = even.or_else(largest);
        let mut paired = sizes.to_vec();
        match split {
            Some(split) => {
                paired[split] = (sizes[split] + 1) / 2;
                paired.insert(split + 1, 2);
            }
            None => paired.push(2),
        }
        let pair = split.map_or(0, |split| split + 1);
        let uniform = self.uniform(float, &paired, false);
        // Avoid the logarithm of 0.
        let first = uniform.slice_in(pair, 0, 1).max(f64::from(1.0e-7f32));
        let angle = uniform.slice_in(pair, 1, 2) * (2.0 * std::f64::consts::PI);
        let radius = (first.log() * -2.0).sqrt();
        let numbers = function.concatenate(&[angle.sin() * radius, angle.cos() * radius], pair);
        let Some(split) = split else { return numbers.slice_in(0, 0, 1).reshape(&[]) };
        let mut rounded = sizes.to_vec();
        rounded[split] = (sizes[split] + 1) / 2 * 2;
        numbers.reshape(&rounded).slice_in(split, 0, sizes[split])
    }
}

/// Maps a uniform number to the normal distribution truncated to two bounds, by the inverse of the
/// distribution function.
///
/// `mean`, `deviation`, `low`, and `high` have the shape of `uniform`.
pub fn truncated_normal<'f>(
    uniform: Expression<'f>,
    [mean, deviation, low, high]: [Expression<'f>; 4],
) -> Expression<'f> {
    let float = uniform.element_type();
    let distribution = |x: Expression<'f>| ((x / 2f64.sqrt()).erf() + 1.0) / 2.0;
    let below = distribution((low - mean) / deviation);
    let above = distribution((high - mean) / deviation);
    let p = below + (above - below) * uniform;
    let epsilon = match float {
        PrimitiveType::F64 => f64::EPSILON,
        PrimitiveType::F16 => 2f64.powi(-10),
        _ => f64::from(f32::EPSILON),
    };
    let v = (p * 2.0 - 1.0).max(epsilon - 1.0).min(1.0 - epsilon);
    let x = mean + deviation * 2f64.sqrt() * erf_inv(v);
    x.max(low).min(high)
}

/// Maps a uniform number to the normal distribution truncated to two standard deviations.
pub fn standard_truncated_normal(uniform: Expression<'_>) -> Expression<'_> {
    let [mean, deviation, low, high] = [0.0, 1.0, -2.0, 2.0].map(|value| uniform.splat(value));
    truncated_normal(uniform, [mean, deviation, low, high])
}

/// Converts `f32` to `bf16` by truncation, since rounding would reach 1.
pub fn truncate_to_bf16(x: Expression<'_>) -> Expression<'_> {
    let high = x.bitcast_convert(PrimitiveType::U32) & f64::from(0xFFFF_0000u32);
    high.bitcast_convert(PrimitiveType::F32).convert(PrimitiveType::Bf16)
}

/// Returns the unsigned type with the width of a 32- or 64-bit integer type.
pub(crate) fn unsigned_like(integer: PrimitiveType) -> PrimitiveType {
    if integer.byte_size() == 8 { PrimitiveType::U64 } else { PrimitiveType::U32 }
}

/// Maps random bits to integers in `[low, high)`, two scalars, by remainder.
pub(crate) fn between<'f>(bits: Expression<'f>, low: Expression<'f>, high: Expression<'f>) -> Expression<'f> {
    let (integer, unsigned) = (low.element_type(), bits.element_type());
    let low = low.bitcast_convert(unsigned);
    let range = high.bitcast_convert(unsigned) - low;
    (low.spread_like(bits) + bits % range.spread_like(bits)).bitcast_convert(integer)
}
