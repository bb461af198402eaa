//! Packs the constant kernel of a Winograd convolution in transformed form.

use super::WinogradPlan;
use super::dims::ConvolutionDims;
use super::winograd_matrices::Transform;
use crate::contraction::panels::for_each_panel;
use bytes::Bytes;
use shape::{Literal, PrimitiveType, Scalar};

/// The panels of a kernel `[3][3][inputs][outputs]`, each `[frequency][inputs][width]`, computed in
/// `f64` and rounded once.
pub(super) fn panels(
    literal: &Literal,
    dims: &ConvolutionDims,
    plan: &WinogradPlan,
    accumulator: PrimitiveType,
) -> Bytes {
    // Floats of every type are exact in `f64`; 32-bit floats are read in place.
    let is_f32 = literal.array_shape().element_type == PrimitiveType::F32;
    let (bytes, numbers) = (literal.bytes(), if is_f32 { Vec::new() } else { numbers(literal) });
    let weight_at = |k: usize| match bytes.get(4 * k..4 * k + 4) {
        Some(&[a, b, c, d]) if is_f32 => f64::from(f32::from_ne_bytes([a, b, c, d])),
        _ => numbers[k],
    };
    let (inputs, outputs) = (dims.inputs as usize, dims.outputs as usize);
    let (width, frequencies) = (plan.panels.width as usize, plan.transform.frequencies() as usize);
    let element = plan.panels.element_bytes as usize;
    let mut packed = vec![0u8; plan.panels.bytes() as usize];
    let frequency_bytes = inputs * width * element;
    for_each_panel(&mut packed, plan.panels.panel_bytes() as usize, |number, packed| {
        let first = number * width;
        let mut window = [0.0; 9];
        let mut transformed = vec![0.0; frequencies];
        for input in 0..inputs {
            for column in 0..width.min(outputs - first) {
                for (tap, weight) in window.iter_mut().enumerate() {
                    *weight = weight_at((tap * inputs + input) * outputs + first + column);
                }
                transform_window(plan.transform, &window, &mut transformed);
                for (frequency, &value) in transformed.iter().enumerate() {
                    let to = frequency * frequency_bytes + (input * width + column) * element;
                    match accumulator {
                        PrimitiveType::F32 => {
                            packed[to..to + 4].copy_from_slice(&(value as f32).to_ne_bytes());
                        }
                        _ => packed[to..to + 8].copy_from_slice(&value.to_ne_bytes()),
                    }
                }
            }
        }
    });
    packed.into()
}

/// All elements as `f64`.
fn numbers(literal: &Literal) -> Vec<f64> {
    let number = |scalar| match scalar {
        Scalar::Float(x) => x,
        Scalar::Signed(i) => i as f64,
        Scalar::Unsigned(i) => i as f64,
        Scalar::Pred(p) => f64::from(u8::from(p)),
        Scalar::Complex(re, _) => re,
    };
    literal.scalars().map(number).collect()
}

/// Computes `G g G'` for a 3x3 window.
fn transform_window(transform: Transform, window: &[f64; 9], frequencies: &mut [f64]) {
    let n = transform.kernel.len();
    for (i, row) in transform.kernel.iter().enumerate() {
        let sums: [f64; 3] = std::array::from_fn(|c| (0..3).map(|r| row[r] * window[r * 3 + c]).sum());
        for (j, column) in transform.kernel.iter().enumerate() {
            frequencies[i * n + j] = (0..3).map(|c| column[c] * sums[c]).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_transformed_in_both_dimensions() {
        let window = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
        let mut frequencies = [0.0; 16];
        transform_window(Transform::SMALL, &window, &mut frequencies);
        // By hand: G g = [[1,2,3], [6,7.5,9], [2,2.5,3], [7,8,9]], and the same along the rows.
        let expected =
            [[1.0, 3.0, 1.0, 3.0], [6.0, 11.25, 3.75, 9.0], [2.0, 3.75, 1.25, 3.0], [7.0, 12.0, 4.0, 9.0]];
        assert_eq!(frequencies, expected.concat()[..]);
    }
}
