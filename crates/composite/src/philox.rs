//! Philox and distributions over its words, number for number as in TensorFlow's CPU kernels
//! (`tsl/lib/random/random_distributions.h`, `core/kernels/random_op_cpu.h`).
//!
//! Logarithms, sines, and cosines of `f32` match the kernels' C library bit for bit. Those of `f64`
//! are our own, within a unit or two in the last place.

use crate::c_library::{logf, sincosf};
use crate::expression::Expression;
use crate::random::{between, unsigned_like};
use hlo::{Op, RandomAlgorithm};
use shape::index::element_count;
use shape::{Literal, PrimitiveType, Shape};

/// Number of 32-bit words per counter value.
const BLOCK: i64 = 4;

/// Number of words reserved per number of a rejection-sampled distribution.
const RESERVED: i64 = 256;

/// Key and counter of a generator.
#[derive(Clone, Copy)]
pub struct Philox<'f> {
    /// A scalar `u64`.
    pub key: Expression<'f>,
    /// `u64[2]`, low word first.
    pub counter: Expression<'f>,
}

impl<'f> Philox<'f> {
    /// Creates the generator for two seeds, integers of any width.
    pub fn of_seeds(seeds: Expression<'f>) -> Self {
        const SCRAMBLER: u64 = 0x0246_1e29_3ec8_f720;
        let function = seeds.function();
        let seeds = seeds.convert(PrimitiveType::S64).bitcast_convert(PrimitiveType::U64);
        let scrambler = function.literal(Literal::from_elements(&[], &[SCRAMBLER]));
        let mixed = Philox { key: scrambler, counter: seeds }.bits(PrimitiveType::U64, 2);
        let zero = function.splat(PrimitiveType::U64, &[1], 0.0);
        let counter = function.concatenate(&[zero, mixed.slice_in(0, 1, 2)], 0);
        Self { key: mixed.slice_in(0, 0, 1).reshape(&[]), counter }
    }

    /// Draws `count` `u32`s or `u64`s, in order.
    fn bits(self, bits: PrimitiveType, count: i64) -> Expression<'f> {
        let function = self.key.function();
        let state = function.concatenate(&[self.key.reshape(&[1]), self.counter], 0);
        let shape = Shape::Tuple(vec![state.array().into(), Shape::array(bits, &[count])]);
        function
            .op(Op::RngBitGenerator { algorithm: RandomAlgorithm::Philox }, &[state], Some(shape))
            .element(1)
    }

    /// Draws bits of an unsigned 32- or 64-bit type.
    pub fn full_integers(self, bits: PrimitiveType, sizes: &[i64]) -> Expression<'f> {
        self.bits(bits, count(sizes)).reshape(sizes)
    }

    /// Draws uniform integers in `[low, high)`, two scalars of a 32- or 64-bit integer type, by
    /// remainder.
    pub fn uniform_integers(
        self,
        low: Expression<'f>,
        high: Expression<'f>,
        sizes: &[i64],
    ) -> Expression<'f> {
        between(self.full_integers(unsigned_like(low.element_type()), sizes), low, high)
    }

    /// Draws uniform numbers in `[0, 1)` of any floating-point type.
    pub fn uniform(self, float: PrimitiveType, sizes: &[i64]) -> Expression<'f> {
        let bits = if float == PrimitiveType::F64 { PrimitiveType::U64 } else { PrimitiveType::U32 };
        unit(self.bits(bits, count(sizes)).reshape(sizes), float)
    }

    /// Draws normal numbers of any floating-point type, in pairs by the Box-Muller transform.
    pub fn normal(self, float: PrimitiveType, sizes: &[i64]) -> Expression<'f> {
        let wide = draw_type(float);
        let bits = if wide == PrimitiveType::F64 { PrimitiveType::U64 } else { PrimitiveType::U32 };
        let count = count(sizes);
        let pairs = count / 2 + count % 2;
        let words = self.bits(bits, 2 * pairs).reshape(&[pairs, 2]);
        let column = |k: i64| unit(words.slice_in(1, k, k + 1), wide);
        let numbers = self.key.function().concatenate(&box_muller(column(0), column(1)), 1);
        numbers.reshape(&[2 * pairs]).slice_in(0, 0, count).reshape(sizes).convert(float)
    }

    /// Draws normal numbers of any floating-point type, rejecting those 2 or more standard
    /// deviations away.
    ///
    /// Numbers are drawn in groups of 4 (of 2 for `f64`). Each group has its own words and consumes
    /// pairs of them until enough numbers are accepted.
    pub fn truncated_normal(self, float: PrimitiveType, sizes: &[i64]) -> Expression<'f> {
        let function = self.key.function();
        let wide = draw_type(float);
        let group = if wide == PrimitiveType::F64 { BLOCK / 2 } else { BLOCK };
        let count = count(sizes);
        let groups = (count + group - 1) / group;
        let stride = group * RESERVED / BLOCK;
        let word = |k: i64| self.counter.slice_in(0, k, k + 1).reshape(&[]);
        let first = function.iota(PrimitiveType::U64, &[groups], 0) * stride as f64;
        let counter = Counter { low: word(0).spread_like(first), high: word(1).spread_like(first) };
        let counter = counter.skip(first);
        let mut state =
            vec![self.key, counter.low, counter.high, first.splat(0.0).convert(PrimitiveType::S32)];
        state.extend((0..group).map(|_| function.splat(wide, &[groups], 0.0)));
        let outputs = function.while_loop(
            &state,
            |_, state| state[3].lt(group as f64).any(),
            |_, state| {
                let counter = Counter { low: state[1], high: state[2] };
                let (mut filled, mut numbers) = (state[3], state[4..].to_vec());
                for candidate in candidates(counter.words(state[0]), wide) {
                    let counts = candidate.abs().lt(2.0);
                    for (slot, number) in numbers.iter_mut().enumerate() {
                        *number = (counts & filled.equal(slot as f64)).select(candidate, *number);
                    }
                    filled = filled + counts.convert(PrimitiveType::S32);
                }
                let next = counter.skip(counter.low.splat(1.0));
                let mut state = vec![state[0], next.low, next.high, filled];
                state.extend(numbers);
                state
            },
        );
        let columns: Vec<Expression<'f>> = outputs[4..].iter().map(|e| e.reshape(&[groups, 1])).collect();
        let numbers = function.concatenate(&columns, 1).reshape(&[groups * group]);
        numbers.slice_in(0, 0, count).reshape(sizes).convert(float)
    }
}

fn count(sizes: &[i64]) -> i64 {
    element_count(sizes).unwrap_or(i64::MAX)
}

/// Returns the type in which numbers of a floating-point type are drawn.
fn draw_type(float: PrimitiveType) -> PrimitiveType {
    if float == PrimitiveType::F64 { float } else { PrimitiveType::F32 }
}

/// Converts words to numbers in `[0, 1)`: fills the mantissa, with the exponent of 1.
fn unit(words: Expression<'_>, float: PrimitiveType) -> Expression<'_> {
    let (unsigned, mantissa, one) = match float {
        PrimitiveType::F64 => {
            // The first of two words holds the high bits.
            let high = (words & f64::from(0xf_ffff)) << 32.0;
            let one = words.splat(1023.0) << 52.0;
            return ((high | (words >> 32.0)) | one).bitcast_convert(float) - 1.0;
        }
        PrimitiveType::F32 => (PrimitiveType::U32, 0x7f_ffff, 127 << 23),
        PrimitiveType::F16 => (PrimitiveType::U16, 0x3ff, 15 << 10),
        _ => (PrimitiveType::U16, 0x7f, 127 << 7),
    };
    let bits = (words & f64::from(mantissa)).convert(unsigned) | f64::from(one);
    bits.bitcast_convert(float) - 1.0
}

/// Converts two uniform numbers to two normal ones.
fn box_muller<'f>(first: Expression<'f>, second: Expression<'f>) -> [Expression<'f>; 2] {
    // Avoid the logarithm of 0.
    if first.element_type() == PrimitiveType::F64 {
        let radius = (first.max(1.0e-7).log() * -2.0).sqrt();
        let angle = second * (2.0 * std::f64::consts::PI);
        return [angle.sin() * radius, angle.cos() * radius];
    }
    let radius = (logf(first.max(f64::from(1.0e-7f32))) * -2.0).sqrt();
    let angle = second.convert(PrimitiveType::F64) * (2.0 * std::f64::consts::PI);
    sincosf(angle.convert(PrimitiveType::F32)).map(|value| value * radius)
}

/// Computes normal numbers from the words of one counter value.
fn candidates(words: [Expression<'_>; 4], float: PrimitiveType) -> Vec<Expression<'_>> {
    let [a, b, c, d] = words;
    if float == PrimitiveType::F64 {
        let joined = |low, high| {
            let [low, high] = [low, high].map(|e: Expression<'_>| e.convert(PrimitiveType::U64));
            unit(low | (high << 32.0), float)
        };
        return box_muller(joined(a, b), joined(c, d)).to_vec();
    }
    let [a, b, c, d] = [a, b, c, d].map(|e| unit(e, float));
    [box_muller(a, b), box_muller(c, d)].concat()
}

/// An array of 128-bit counters.
#[derive(Clone, Copy)]
struct Counter<'f> {
    low: Expression<'f>,
    high: Expression<'f>,
}

impl<'f> Counter<'f> {
    /// Advances the counters.
    fn skip(self, counts: Expression<'f>) -> Self {
        let low = self.low + counts;
        let carry = low.lt(counts).convert(PrimitiveType::U64);
        Self { low, high: self.high + carry }
    }

    /// Returns the four words of each counter after ten rounds with a shared key.
    fn words(self, key: Expression<'f>) -> [Expression<'f>; 4] {
        let halves = |e: Expression<'f>| {
            [(e & f64::from(u32::MAX)).convert(PrimitiveType::U32), (e >> 32.0).convert(PrimitiveType::U32)]
        };
        let [[a, b], [c, d]] = [halves(self.low), halves(self.high)];
        let [mut first, mut second] = halves(key);
        let mut words = [a, b, c, d];
        for _ in 0..10 {
            let product = |word: Expression<'f>, factor: u32| {
                halves(word.convert(PrimitiveType::U64) * f64::from(factor))
            };
            let ([low0, high0], [low1, high1]) =
                (product(words[0], 0xd251_1f53), product(words[2], 0xcd9e_8d57));
            words = [
                high1 ^ words[1] ^ first.spread_like(low0),
                low1,
                high0 ^ words[3] ^ second.spread_like(low0),
                low0,
            ];
            first = first + f64::from(0x9e37_79b9u32);
            second = second + f64::from(0xbb67_ae85u32);
        }
        words
    }
}

/// Creates a generator from a key and a counter, given as arrays of any 64-bit integer type.
pub fn of_key_and_counter<'f>(key: Expression<'f>, counter: Expression<'f>) -> Philox<'f> {
    let [key, counter] = [key, counter].map(|words| words.bitcast_convert(PrimitiveType::U64));
    Philox { key: key.reshape(&[]), counter }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Function;
    use hlo::{Module, OpMetadata};

    #[test]
    fn groups_cover_sizes_that_they_do_not_divide() {
        let mut module = Module::new("test");
        let seeds = Shape::array(PrimitiveType::S32, &[2]);
        let computation =
            crate::build(&mut module, "f", &OpMetadata::default(), &[seeds], |_: &Function, p| {
                let philox = Philox::of_seeds(p[0]);
                vec![
                    philox.truncated_normal(PrimitiveType::F32, &[7]),
                    philox.truncated_normal(PrimitiveType::F64, &[3, 1]),
                    philox.normal(PrimitiveType::Bf16, &[5]),
                    philox.uniform(PrimitiveType::F16, &[]),
                    philox.normal(PrimitiveType::F32, &[0, 4]),
                ]
            })
            .expect("well formed");
        let root = module[computation].root();
        let shape = module[computation][root].shape().to_string();
        assert_eq!(shape, "(f32[7], f64[3,1], bf16[5], f16[], f32[0,4])");
    }
}
