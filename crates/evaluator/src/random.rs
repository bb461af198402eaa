//! Random numbers: Philox 4x32-10 and ThreeFry 2x32-20 (Salmon et al., "Parallel random numbers: as
//! easy as 1, 2, 3", SC 2011), in XLA's order, and the distributions of `rng` over them.

use crate::array::{array, from_bytes, from_scalars, scalar};
use crate::evaluator::Evaluator;
use crate::float::round_float;
use crate::integer::wrap;
use hlo::{RandomAlgorithm, RandomDistribution};
use shape::index::{indices, linear_index};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

/// The key of `rng`, whose numbers are not specified. Its counter is the module's random state.
const RNG_KEY: u64 = 0x7012_3955;

/// Ten rounds of Philox 4x32.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let multiply = |x: u32, y: u32| {
        let product = u64::from(x) * u64::from(y);
        ((product >> 32) as u32, product as u32)
    };
    for _ in 0..10 {
        let (high0, low0) = multiply(counter[0], 0xD251_1F53);
        let (high1, low1) = multiply(counter[2], 0xCD9E_8D57);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    counter
}

/// Twenty rounds of ThreeFry 2x32.
fn three_fry(counter: [u32; 2], key: [u32; 2]) -> [u32; 2] {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    let keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1BD1_1BDA];
    let mut x = [counter[0].wrapping_add(keys[0]), counter[1].wrapping_add(keys[1])];
    for group in 0..5 {
        for rotation in ROTATIONS[group % 2] {
            x[0] = x[0].wrapping_add(x[1]);
            x[1] = x[1].rotate_left(rotation) ^ x[0];
        }
        x[0] = x[0].wrapping_add(keys[(group + 1) % 3]);
        x[1] = x[1].wrapping_add(keys[(group + 2) % 3]).wrapping_add(group as u32 + 1);
    }
    x
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

fn join(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Returns Philox words in order for `count` elements of up to 64 bits, and the number of blocks of
/// four words consumed.
fn philox_bits(key: u64, counter: u128, bit_width: u32, count: u64) -> (Vec<u64>, u64) {
    let words_each = if bit_width == 64 { 2 } else { 1 };
    let blocks = (count * words_each).div_ceil(4);
    let mut bits = Vec::with_capacity(count as usize + 3);
    for block in 0..blocks {
        let [low, high] = [counter as u64, (counter >> 64) as u64];
        let (low, carry) = low.overflowing_add(block);
        let [a, b] = halves(low);
        let [c, d] = halves(high.wrapping_add(carry.into()));
        let [w, x, y, z] = philox([a, b, c, d], halves(key));
        if bit_width == 64 {
            bits.extend([join(w, x), join(y, z)]);
        } else {
            bits.extend([w, x, y, z].map(u64::from));
        }
    }
    bits.truncate(count as usize);
    (bits, blocks)
}

/// Returns ThreeFry numbers for an array, and the number of counters consumed. 32-bit words come in
/// pairs, which are adjacent along the first even dimension or, if there is none, along the
/// largest.
fn three_fry_bits(key: u64, counter: u64, bit_width: u32, sizes: &[i64]) -> (Vec<u64>, u64) {
    let word_pair = |i: i64| three_fry(halves(counter.wrapping_add(i as u64)), halves(key));
    let count: i64 = sizes.iter().product();
    if bit_width == 64 {
        let bits = (0..count).map(word_pair).map(|[low, high]| join(low, high)).collect();
        return (bits, count as u64);
    }
    let even = sizes.iter().position(|size| size % 2 == 0);
    let largest = || (0..sizes.len()).rev().max_by_key(|&d| sizes[d]);
    let Some(split) = even.or_else(largest) else { return (vec![word_pair(0)[0].into()], 1) };
    let mut half_sizes = sizes.to_vec();
    half_sizes[split] = (sizes[split] + 1) / 2;
    let bits = indices(sizes).map(|mut index| {
        let which = (index[split] % 2) as usize;
        index[split] /= 2;
        word_pair(linear_index(&half_sizes, &index))[which].into()
    });
    (bits.collect(), half_sizes.iter().product::<i64>() as u64)
}

/// Evaluates `rng-bit-generator`: returns the new state and the bits. The state is the key and the
/// counter. The counter is one word or, for Philox, one or two words, low word first.
pub(crate) fn rng_bit_generator(
    shape: &Shape,
    state: &Literal,
    algorithm: RandomAlgorithm,
) -> Result<Literal> {
    let data = match shape.as_tuple() {
        None => array(shape)?,
        Some([_, data]) => array(data)?,
        Some(_) => {
            return Err(Error::invalid(format!("expected a state and data as the result, got {shape}")));
        }
    };
    let Some(mut words) = state.to_vec::<u64>().filter(|words| words.len() == 2 || words.len() == 3) else {
        return Err(Error::unsupported(format!(
            "unsupported random state {}; expected u64[2] or u64[3]",
            state.shape()
        )));
    };
    if !data.element_type.is_integer() {
        return Err(Error::unsupported(format!(
            "unsupported type {} of random bits; expected an integer type",
            data.element_type
        )));
    }
    let bit_width = data.element_type.bit_width();
    let bits = match algorithm {
        RandomAlgorithm::Default | RandomAlgorithm::Philox => {
            // A state of two words uses the key twice: it is also the counter's high word.
            let [low, high] = if words.len() == 3 { [words[1], words[2]] } else { [words[1], words[0]] };
            let counter = u128::from(high) << 64 | u128::from(low);
            let (bits, blocks) = philox_bits(words[0], counter, bit_width, data.element_count() as u64);
            let next = counter.wrapping_add(blocks.into());
            words[1] = next as u64;
            if let [_, _, high] = words.as_mut_slice() {
                *high = (next >> 64) as u64;
            }
            bits
        }
        RandomAlgorithm::ThreeFry => {
            if words.len() != 2 {
                return Err(Error::invalid("expected a ThreeFry state of u64[2], got u64[3]"));
            }
            let (bits, counters) = three_fry_bits(words[0], words[1], bit_width, &data.sizes());
            words[1] = words[1].wrapping_add(counters);
            bits
        }
    };
    let numbers = bits.into_iter().map(|b| wrap(data.element_type, b.into()));
    let numbers = Literal::from_scalars(data.clone(), numbers);
    if shape.as_tuple().is_none() {
        return Ok(numbers);
    }
    Ok(Literal::Tuple(vec![Literal::from_elements(&[words.len() as i64], &words), numbers]))
}

impl Evaluator<'_> {
    /// Evaluates `rng-get-and-update-state`: returns the counter, low word first, and then adds
    /// `delta` to it.
    pub(crate) fn rng_get_and_update_state(&mut self, shape: &Shape, delta: i64) -> Result<Literal> {
        let state = self.random_state;
        self.random_state = state.wrapping_add(delta as u128);
        from_bytes(&array(shape)?, state.to_le_bytes().to_vec())
    }

    /// Evaluates `rng`: Philox numbers with a fixed key and the module's counter, which advances by
    /// the 32-bit words consumed.
    pub(crate) fn rng(
        &mut self,
        shape: &Shape,
        [a, b]: [&Literal; 2],
        distribution: RandomDistribution,
    ) -> Result<Literal> {
        let result = array(shape)?;
        let (a, b) = (scalar(a)?, scalar(b)?);
        // Narrow floating-point types are drawn as f32.
        let bit_width = result.element_type.bit_width().max(32);
        let count = result.element_count() as u64;
        let draw_count =
            if distribution == RandomDistribution::Normal { count.next_multiple_of(2) } else { count };
        let (bits, _) = philox_bits(RNG_KEY, self.random_state, bit_width, draw_count);
        self.random_state =
            self.random_state.wrapping_add(u128::from(draw_count) * u128::from(bit_width / 32));
        let scalars = match (a, b, distribution) {
            (Scalar::Float(low), Scalar::Float(high), RandomDistribution::Uniform) => {
                uniform(&result, &bits, bit_width, low, high)
            }
            (Scalar::Float(mean), Scalar::Float(deviation), RandomDistribution::Normal) => {
                normal(&bits, bit_width, mean, deviation)
            }
            (Scalar::Signed(_) | Scalar::Unsigned(_), _, RandomDistribution::Uniform) => {
                uniform_integers(&result, &bits, integer(a), integer(b))?
            }
            _ => {
                return Err(Error::unsupported(format!(
                    "unsupported type for {distribution:?} random numbers: {}",
                    result.element_type
                )));
            }
        };
        Ok(from_scalars(&result, scalars.into_iter().take(count as usize)))
    }
}

fn integer(scalar: Scalar) -> i128 {
    match scalar {
        Scalar::Unsigned(value) => value.into(),
        other => other.as_i64().unwrap_or(0).into(),
    }
}

/// Returns a number in [0, 1) with as many bits as the mantissa of `f32` or `f64`.
fn unit(bits: u64, bit_width: u32) -> f64 {
    let mantissa_bits = if bit_width == 64 { 52 } else { 23 };
    (bits >> (bit_width - mantissa_bits)) as f64 * 2f64.powi(-(mantissa_bits as i32))
}

/// Returns numbers in [low, high). A number rounded up to the upper bound becomes the lower bound.
fn uniform(result: &ArrayShape, bits: &[u64], bit_width: u32, low: f64, high: f64) -> Vec<Scalar> {
    let number = |&b: &u64| {
        let value = round_float(result.element_type, unit(b, bit_width) * (high - low) + low);
        Scalar::Float(if value >= high && low < high { low } else { value })
    };
    bits.iter().map(number).collect()
}

/// Applies Box-Muller to pairs of uniform numbers.
fn normal(bits: &[u64], bit_width: u32, mean: f64, deviation: f64) -> Vec<Scalar> {
    let pair = |pair: &[u64]| {
        let radius = (-2.0 * libm::log(unit(pair[0], bit_width).max(1e-7))).sqrt();
        let angle = std::f64::consts::TAU * unit(pair[1], bit_width);
        [libm::sin(angle), libm::cos(angle)].map(|z| Scalar::Float(mean + deviation * radius * z))
    };
    bits.chunks_exact(2).flat_map(pair).collect()
}

/// Returns integers in [low, high) by remainder, or the lower bound if the range is empty.
fn uniform_integers(result: &ArrayShape, bits: &[u64], low: i128, high: i128) -> Result<Vec<Scalar>> {
    let (element_type, range) = (result.element_type, high - low);
    if element_type == PrimitiveType::Pred {
        return Err(Error::unsupported("unsupported type for uniform random numbers: pred"));
    }
    Ok(bits.iter().map(|&b| wrap(element_type, low + i128::from(b) % range.max(1))).collect())
}
