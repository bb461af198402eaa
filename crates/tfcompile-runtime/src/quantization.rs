//! Real numbers and the integers of quantized arrays: real = scale × (stored - zero point).

/// Returns the integer from `low` to `high` for a real number, as the operator QUANTIZE of
/// TensorFlow Lite does: `value / scale` is rounded to the nearest integer, halves away from zero.
/// Numbers beyond the range become its nearest end, and NaN becomes the zero point. The zero
/// point is in the range, which has at most 2^16 integers.
#[must_use]
pub fn quantize(value: f32, scale: f32, zero_point: i32, low: i32, high: i32) -> i32 {
    let steps = value / scale;
    if steps >= (high - zero_point) as f32 {
        high
    } else if steps <= (low - zero_point) as f32 {
        low
    } else if steps.is_nan() {
        zero_point
    } else {
        // Adding 0.5 before truncation would round 0.49999997 up. `round` needs the library.
        let whole = steps as i32;
        let rest = steps - whole as f32;
        zero_point + whole + i32::from(rest >= 0.5) - i32::from(rest <= -0.5)
    }
}

/// Returns the real number that an integer stands for.
#[must_use]
pub fn dequantize(stored: i32, scale: f32, zero_point: i32) -> f32 {
    scale * (stored - zero_point) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_away_from_zero_and_ends_are_kept() {
        let to_s8 = |value| quantize(value, 0.5, -3, -128, 127);
        assert_eq!([0.0, 0.24, 0.25, 0.74, 0.75].map(to_s8), [-3, -3, -2, -2, -1]);
        assert_eq!([-0.24, -0.25, -0.75].map(to_s8), [-3, -4, -5]);
        // 64.75 and -62.25 are 129.5 and -124.5 steps, half a step before the ends.
        assert_eq!([64.74, 64.75, 65.0, 1e30, f32::INFINITY].map(to_s8), [126, 127, 127, 127, 127]);
        assert_eq!(
            [-62.24, -62.25, -62.5, -1e30, f32::NEG_INFINITY].map(to_s8),
            [-127, -128, -128, -128, -128]
        );
        assert_eq!(to_s8(f32::NAN), -3);
        assert_eq!(quantize(0.499_999_97, 1.0, 0, -128, 127), 0);
        assert_eq!([-128, -3, 127].map(|stored| dequantize(stored, 0.5, -3)), [-62.5, 0.0, 65.0]);
    }

    #[test]
    fn every_integer_returns_to_itself() {
        for (low, high, zero_point) in
            [(-128, 127, -128), (0, 255, 255), (-32768, 32767, 0), (0, 65535, 1000)]
        {
            for stored in low..=high {
                let value = dequantize(stored, 0.003_921_569, zero_point);
                assert_eq!(quantize(value, 0.003_921_569, zero_point, low, high), stored);
            }
        }
    }
}
