//! Real numbers that an array of integers stands for. The arithmetic of quantized operators is not
//! here.

use std::fmt;

/// An array of integers as real numbers: real = scale × (stored - zero point).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantization {
    /// Distance between the real numbers of consecutive integers; positive and finite.
    pub scale: f32,
    /// The integer that stands for zero.
    pub zero_point: i32,
}

impl Quantization {
    /// Returns the quantization, or `None` if the scale is not a positive number or the zero point
    /// does not fit 32 bits.
    pub fn new(scale: f32, zero_point: i64) -> Option<Self> {
        let zero_point = i32::try_from(zero_point).ok()?;
        (scale.is_finite() && scale > 0.0).then_some(Self { scale, zero_point })
    }
}

impl fmt::Display for Quantization {
    /// `scale 0.5 zero point -3`; the scale has as many digits as identify it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "scale {:?} zero point {}", self.scale, self.zero_point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_positive_and_zero_points_fit() {
        let quantization = Quantization::new(0.25, -128).expect("valid");
        assert_eq!(quantization.to_string(), "scale 0.25 zero point -128");
        for scale in [0.0, -1.0, f32::INFINITY, f32::NAN] {
            assert_eq!(Quantization::new(scale, 0), None);
        }
        assert_eq!(Quantization::new(1.0, 1 << 31), None);
    }
}
