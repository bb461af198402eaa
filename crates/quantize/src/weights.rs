//! Constant weights as integers with scales, or as shorter floats.

use crate::layer::elements;
use half::{bf16, f16};
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, PrimitiveType};

/// Integers and scales of constant weights.
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizedWeights {
    /// The integers, `s8` or `s4`. Their zero point is 0.
    pub integers: Literal,
    /// The scales, `f32`.
    pub scales: Literal,
    /// Dimensions of the integers along which the scales lie.
    pub dimensions: Vec<usize>,
}

/// Number of consecutive summands that share a scale in [`blocks_of_s4`].
pub const BLOCK: usize = 32;

/// Fractions of the largest weight that are tried as the end of the range, in hundredths.
const TRIED: std::ops::RangeInclusive<u32> = 60..=100;

/// Weights as `s8` from -127 to 127 with a scale for each index of the channel, or one for all.
/// `search` chooses the scales with the least squared error; otherwise the largest weight becomes
/// 127.
pub fn per_channel(weights: &Literal, channel: Option<usize>, search: bool) -> QuantizedWeights {
    let sizes = weights.array_shape().sizes();
    let stride = channel.map_or(1, |d| row_major_strides(&sizes)[d] as usize);
    let count = channel.map_or(1, |d| sizes[d] as usize);
    let values = elements(weights);
    let outer = values.len() / (stride * count).max(1);
    let (mut integers, mut scales) = (vec![0i8; values.len()], Vec::with_capacity(count));
    for index in 0..count {
        let start = move |outer: usize| (outer * count + index) * stride;
        let positions = (0..outer).flat_map(move |outer| start(outer)..start(outer) + stride);
        let of_channel: Vec<f32> = positions.clone().map(|k| values[k]).collect();
        let scale = scale(&of_channel, -127.0, 127.0, search);
        for (k, &value) in positions.zip(&of_channel) {
            integers[k] = step(value, scale, -127.0, 127.0) as i8;
        }
        scales.push(scale);
    }
    let counts: Vec<i64> = channel.iter().map(|&d| sizes[d]).collect();
    QuantizedWeights {
        integers: Literal::from_elements(&sizes, &integers),
        scales: Literal::from_elements(&counts, &scales),
        dimensions: channel.into_iter().collect(),
    }
}

/// Weights `[K, N]` as `s4[K / 32, 32, N]` with scales `[K / 32, N]`. `None` if K is not a multiple
/// of 32.
pub fn blocks_of_s4(weights: &Literal) -> Option<QuantizedWeights> {
    let &[summands, outputs] = &weights.array_shape().sizes()[..] else { return None };
    let (summands, outputs) = (summands as usize, outputs as usize);
    if !summands.is_multiple_of(BLOCK) {
        return None;
    }
    let values = elements(weights);
    let (mut integers, mut scales) = (vec![0i8; values.len()], Vec::new());
    for block in 0..summands / BLOCK {
        for output in 0..outputs {
            let at = |k: usize| (block * BLOCK + k) * outputs + output;
            let members: Vec<f32> = (0..BLOCK).map(|k| values[at(k)]).collect();
            let scale = scale(&members, -8.0, 7.0, true);
            for (k, &value) in members.iter().enumerate() {
                integers[at(k)] = step(value, scale, -8.0, 7.0) as i8;
            }
            scales.push(scale);
        }
    }
    let blocks = (summands / BLOCK) as i64;
    let shape = ArrayShape::new(PrimitiveType::S4, &[blocks, BLOCK as i64, outputs as i64]);
    // Each integer of four bits has a byte, with its sign in the upper bits.
    let bytes: Vec<u8> = integers.iter().map(|&q| q as u8).collect();
    Some(QuantizedWeights {
        integers: Literal::from_bytes(shape, bytes.into())?,
        scales: Literal::from_elements(&[blocks, outputs as i64], &scales),
        dimensions: vec![0, 2],
    })
}

/// Weights rounded to `bf16` or `f16`. `None` if a weight becomes infinite.
pub fn rounded(weights: &Literal, element_type: PrimitiveType) -> Option<Literal> {
    let values = elements(weights);
    let sizes = weights.array_shape().sizes();
    Some(match element_type {
        PrimitiveType::Bf16 => {
            let rounded: Vec<bf16> = values.iter().map(|&v| bf16::from_f32(v)).collect();
            rounded.iter().all(|v| v.is_finite()).then(|| Literal::from_elements(&sizes, &rounded))?
        }
        _ => {
            let rounded: Vec<f16> = values.iter().map(|&v| f16::from_f32(v)).collect();
            rounded.iter().all(|v| v.is_finite()).then(|| Literal::from_elements(&sizes, &rounded))?
        }
    })
}

impl QuantizedWeights {
    /// The real numbers that the integers stand for, in the order of the integers.
    pub fn values(&self) -> Vec<f32> {
        let sizes = self.integers.array_shape().sizes();
        let strides = row_major_strides(&sizes);
        let scales = elements(&self.scales);
        let scale_of = |linear: usize| {
            let index = |&d: &usize| linear as i64 / strides[d] % sizes[d];
            self.dimensions.iter().fold(0, |at, d| at * sizes[*d] + index(d)) as usize
        };
        let integers = self.integers.scalars().enumerate();
        integers.map(|(k, q)| q.as_i64().unwrap_or(0) as f32 * scales[scale_of(k)]).collect()
    }
}

fn step(value: f32, scale: f32, least: f32, most: f32) -> f32 {
    (value / scale).round_ties_even().clamp(least, most)
}

/// A scale for these values. A range that is longer on one side serves the longer side of the
/// values, if necessary by a negative scale.
fn scale(values: &[f32], least: f32, most: f32, search: bool) -> f32 {
    let largest = values.iter().fold(0f32, |largest, v| if v.abs() > largest.abs() { *v } else { largest });
    // A scale has to be a normal number, so that it can be divided by.
    if largest.abs() / most < f32::MIN_POSITIVE {
        return 1.0;
    }
    if !search {
        return largest.abs() / most;
    }
    let error = |scale: f32| -> f64 {
        let differences = values.iter().map(|&v| f64::from(v - step(v, scale, least, most) * scale));
        differences.map(|d| d * d).sum()
    };
    let ends =
        if -least > most { vec![largest / least, largest.abs() / most] } else { vec![largest.abs() / most] };
    let tried = TRIED.rev().step_by(4);
    let candidates = ends.iter().flat_map(|end| tried.clone().map(move |part| end * part as f32 / 100.0));
    let errors = candidates.map(|scale| (error(scale), scale));
    errors.min_by(|(a, _), (b, _)| a.total_cmp(b)).map_or(1.0, |(_, scale)| scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values computed by hand: 127 steps for the largest weight of each column.
    #[test]
    fn each_channel_has_its_scale() {
        let weights = Literal::from_elements(&[3, 2], &[1.27f32, -0.5, -0.635, 0.25, 0.01, 0.0]);
        let quantized = per_channel(&weights, Some(1), false);
        assert_eq!(quantized.integers, Literal::from_elements(&[3, 2], &[127i8, -127, -64, 64, 1, 0]));
        let scales = elements(&quantized.scales);
        assert_eq!(scales.len(), 2);
        assert!((scales[0] - 0.01).abs() < 1e-8 && (scales[1] - 0.5 / 127.0).abs() < 1e-9, "{scales:?}");
        assert!((quantized.values()[2] + 0.64).abs() < 1e-6, "dequantized with the scale of column 0");
    }

    #[test]
    fn weights_without_channels_have_one_scale() {
        let weights = Literal::from_elements(&[2, 2], &[1f32, -2.0, 0.5, 0.0]);
        let quantized = per_channel(&weights, None, false);
        assert_eq!(quantized.scales, Literal::scalar(2f32 / 127.0));
        assert_eq!(quantized.integers, Literal::from_elements(&[2, 2], &[64i8, -127, 32, 0]));
        assert_eq!(quantized.values()[1], -2.0);
    }

    #[test]
    fn a_search_never_increases_the_error() {
        let values: Vec<f32> = (0..64).map(|k| ((k * 37 % 64) as f32 - 30.5).powi(3) / 1000.0).collect();
        let weights = Literal::from_elements(&[64, 1], &values);
        let error = |quantized: QuantizedWeights| -> f64 {
            quantized.values().iter().zip(&values).map(|(a, b)| f64::from(a - b).powi(2)).sum()
        };
        let (plain, searched) = (per_channel(&weights, Some(1), false), per_channel(&weights, Some(1), true));
        assert!(error(searched) <= error(plain));
    }

    #[test]
    fn blocks_of_32_summands_share_a_scale() {
        // Output 0 has the values -8 to 7 in both halves of its block, which four bits hold
        // exactly; its second block is four times as large. Output 1 is zero.
        let value = |k: i64, n: i64| {
            if n == 1 { 0.0 } else { (k % 16 - 8) as f32 * if k < 32 { 0.5 } else { 2.0 } }
        };
        let values: Vec<f32> = (0..64).flat_map(|k| [value(k, 0), value(k, 1)]).collect();
        let quantized = blocks_of_s4(&Literal::from_elements(&[64, 2], &values)).expect("two blocks");
        assert_eq!(quantized.integers.array_shape().to_string(), "s4[2,32,2]");
        assert_eq!(elements(&quantized.scales), [0.5, 1.0, 2.0, 1.0]);
        assert_eq!(quantized.values(), values);
        assert_eq!(blocks_of_s4(&Literal::from_elements(&[33, 1], &[1f32; 33])), None);
    }

    /// 2049 and 65520 lie between numbers of 16 bits; the latter rounds to infinity in `f16`.
    #[test]
    fn half_floats_round_to_nearest_even_and_refuse_infinities() {
        let weights = Literal::from_elements(&[2], &[2049f32, -1.0]);
        let halves = rounded(&weights, PrimitiveType::F16).expect("finite");
        assert_eq!(halves.floats().expect("floats"), [2048.0, -1.0]);
        assert_eq!(
            rounded(&weights, PrimitiveType::Bf16).expect("finite").floats().expect("floats"),
            [2048.0, -1.0]
        );
        assert_eq!(rounded(&Literal::from_elements(&[1], &[65520f32]), PrimitiveType::F16), None);
    }
}
