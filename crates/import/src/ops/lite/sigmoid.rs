//! Logistic and tanh. Both interpolate one table for numbers of 16 bits.

use super::activations::{operand, real, wide};
use super::operands::Quantization;
use super::tables::looked_up;
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use ::composite::Expression;
use hlo::InstructionId;
use shape::{Literal, PrimitiveType};
use support::Result;

pub(crate) const RULES: &[Rule] = &[rule("TFLiteLogistic", logistic), rule("TFLiteTanh", tanh)];

/// 65536 × logistic(k / 24), raised by half the largest error of an interpolation up to the next
/// entry.
fn table() -> Vec<i32> {
    let entry = |k: i32| {
        let y = 1.0 / (1.0 + libm::exp(-f64::from(k) / 24.0));
        let curvature = y * (1.0 - y) * (1.0 - 2.0 * y) / (24.0 * 24.0);
        (65536.0 * (y - curvature / 16.0)).round() as i32
    };
    (0..255).map(entry).chain([65535]).collect()
}

/// The scale of the operand times 3 × 4096 as a factor, divided by 2^(second result). Scales of
/// 2^-12, times 2^shift for one of `shifts`, are exact.
fn factor(from: &Quantization, shifts: &[i32]) -> [i32; 2] {
    let scale = from.scale() as f32;
    let log = wide(scale, libm::log) * (1.0 / wide(2.0, libm::log));
    let shift = log.round() as i32 + 12;
    if (log - log.round()).abs() < 1e-3 && shifts.contains(&shift) {
        return [3 << shift, 0];
    }
    let (mut factor, mut shift) = (f64::from(scale) * 4096.0 * 3.0, 0);
    while factor <= 32767.0 / 2.0 && shift <= 30 {
        (factor, shift) = (factor * 2.0, shift + 1);
    }
    [factor as i32, shift]
}

/// The scaled operand.
fn scaled(x: Expression<'_>, [factor, shift]: [i32; 2]) -> Expression<'_> {
    let half = if shift > 0 { 1 << (shift - 1) } else { 0 };
    let product = x.convert(PrimitiveType::S32) * f64::from(factor) + f64::from(half);
    product.shift_right_arithmetic(f64::from(shift))
}

/// The table at a number with `bits` bits of a fraction, and `most` beyond its end. The result has
/// these bits, too.
fn interpolated(x: Expression<'_>, bits: i32, most: i32) -> Expression<'_> {
    let entries = table();
    let slopes: Vec<i32> = entries.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let vector = |entries: &[i32]| x.function().literal(Literal::from_elements(&[255], entries));
    let index = x.shift_right_arithmetic(f64::from(bits));
    let inside = index.min(254.0);
    let base = looked_up(vector(&entries[..255]), inside) << f64::from(bits);
    let slope = looked_up(vector(&slopes), inside);
    let fraction = x & f64::from((1 << bits) - 1);
    index.ge(255.0).select(x.splat(f64::from(most)), base + slope * fraction)
}

fn logistic(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, _) = operand(cx)?;
    if from.element_type != PrimitiveType::S16 {
        return real(cx, |x| 1.0 / (1.0 + wide(-x, libm::exp)));
    }
    let factor = factor(&from, &[0]);
    cx.composite_one(&[x], |_, operands| {
        let x = scaled(operands[0], factor);
        let y = interpolated(x.abs(), 9, 0x7fff << 10);
        let half = 512.0;
        let y = x.ge(0.0).select(y + half, 2f64.powi(25) - y + (half - 1.0));
        y.shift_right_arithmetic(10.0).convert(PrimitiveType::S16)
    })
}

fn tanh(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, _) = operand(cx)?;
    if from.element_type != PrimitiveType::S16 {
        return real(cx, |x| wide(x, libm::tanh));
    }
    let factor = factor(&from, &[0, 1]);
    cx.composite_one(&[x], |_, operands| {
        let x = scaled(operands[0], factor);
        let y = interpolated(x.abs(), 8, 0xffff << 8);
        let (middle, half) = (2f64.powi(23), 128.0);
        let y = x.ge(0.0).select(y - middle + half, -y + (middle + half - 1.0));
        y.shift_right_arithmetic(8.0).convert(PrimitiveType::S16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries of `sigmoid_table_uint16` in TensorFlow Lite's `common.h`.
    #[test]
    fn the_table_is_that_of_the_reference() {
        let table = table();
        assert_eq!(table.len(), 256);
        for (k, entry) in
            [(0, 32768), (1, 33451), (4, 35493), (35, 53169), (62, 60935), (174, 65489), (255, 65535)]
        {
            assert_eq!(table[k], entry, "entry {k}");
        }
    }
}
