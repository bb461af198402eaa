//! Quantized arrays as generated code sees them: literals, and the integers that conversions from
//! floats may return.

use hlo::Interface;
use shape::{ArrayShape, PrimitiveType, Quantization};

/// Path of the runtime header with the conversions.
pub(crate) const HEADER: &str = "tfcompile/quantization.h";

/// A quantized array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quantized {
    scale: f32,
    /// The integer that stands for zero.
    pub(crate) zero_point: i32,
    /// The smallest and the largest integer, if the code converts from and to floats.
    pub(crate) range: Option<(i32, i32)>,
}

impl Quantized {
    /// Returns the array of this shape, if it is quantized.
    pub(crate) fn new(shape: &ArrayShape, quantization: Option<Quantization>) -> Option<Self> {
        let Quantization { scale, zero_point } = quantization?;
        let range = range(shape.element_type).filter(|(low, high)| (*low..=*high).contains(&zero_point));
        Some(Self { scale, zero_point, range })
    }

    /// The scale as a number of Rust; with the suffix `f`, a float of C and C++.
    pub(crate) fn scale(&self) -> String {
        format!("{:?}", self.scale)
    }
}

/// Returns the smallest and the largest integer of a type of at most 16 bits. Floats represent the
/// differences of its integers exactly.
fn range(element_type: PrimitiveType) -> Option<(i32, i32)> {
    match element_type {
        PrimitiveType::S8 => Some((i8::MIN.into(), i8::MAX.into())),
        PrimitiveType::U8 => Some((0, u8::MAX.into())),
        PrimitiveType::S16 => Some((i16::MIN.into(), i16::MAX.into())),
        PrimitiveType::U16 => Some((0, u16::MAX.into())),
        _ => None,
    }
}

/// True if the code converts an argument or result from or to floats.
pub(crate) fn converts(interface: &Interface) -> bool {
    let arguments = interface.arguments().iter().map(|a| Quantized::new(&a.shape, a.quantization));
    let results = interface.results().iter().map(|r| Quantized::new(&r.shape, r.quantization));
    arguments.chain(results).flatten().any(|quantized| quantized.range.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_need_small_integers_and_a_zero_point_among_them() {
        let range = |element_type, zero_point| {
            let quantization = Some(Quantization { scale: 0.1, zero_point });
            Quantized::new(&ArrayShape::new(element_type, &[2]), quantization).and_then(|q| q.range)
        };
        assert_eq!(range(PrimitiveType::S8, -128), Some((-128, 127)));
        assert_eq!(range(PrimitiveType::U8, -1), None);
        assert_eq!(range(PrimitiveType::U16, 65535), Some((0, 65535)));
        assert_eq!(range(PrimitiveType::S32, 0), None);
    }

    #[test]
    fn scales_are_literals_of_all_languages() {
        let scale = |scale| Quantized { scale, zero_point: 0, range: None }.scale();
        assert_eq!([scale(1.0), scale(0.003_921_569), scale(1e-30)], ["1.0", "0.003921569", "1e-30"]);
    }
}
