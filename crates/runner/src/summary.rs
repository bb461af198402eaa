//! Formats an array in a few lines.

use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::fmt::Write;

/// Larger arrays show only the first and last elements of each dimension.
const MANY: i64 = 64;
/// Number of elements shown at each end.
const EDGE: i64 = 3;
/// Maximum line length, unless a single number is longer.
const WIDTH: usize = 96;

/// Statistics of an array of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// The minimum, ignoring NaN.
    pub min: f64,
    /// The maximum, ignoring NaN.
    pub max: f64,
    /// The mean of the finite elements.
    pub mean: f64,
    /// Row-major position of the maximum (the first of equals), or of the first NaN if there is
    /// one.
    pub argmax: usize,
    /// Number of NaNs.
    pub nans: usize,
    /// Number of infinities.
    pub infinities: usize,
}

/// Computes statistics of the elements. Returns `None` for empty arrays and arrays of booleans or
/// complex numbers.
pub fn statistics(literal: &Literal) -> Option<Statistics> {
    let element_type = literal.array_shape().element_type;
    if element_type.is_complex() || element_type == PrimitiveType::Pred {
        return None;
    }
    let (mut min, mut max, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
    let (mut finite, mut nans, mut infinities) = (0usize, 0, 0);
    let (mut argmax, mut first_nan) = (None, None);
    for (position, scalar) in literal.scalars().enumerate() {
        let value = scalar.as_f64()?;
        if value.is_nan() {
            first_nan.get_or_insert(position);
            nans += 1;
            continue;
        }
        if argmax.is_none() || value > max {
            argmax = Some(position);
        }
        min = min.min(value);
        max = max.max(value);
        if value.is_finite() {
            sum += value;
            finite += 1;
        } else {
            infinities += 1;
        }
    }
    let argmax = first_nan.or(argmax)?;
    if argmax == first_nan.unwrap_or(usize::MAX) && min > max {
        (min, max) = (f64::NAN, f64::NAN);
    }
    Some(Statistics { min, max, mean: sum / finite as f64, argmax, nans, infinities })
}

/// Formats type, shape, statistics, and elements, omitting the middle of long dimensions.
pub fn describe(literal: &Literal) -> String {
    let shape = literal.array_shape();
    let mut out = format!("{shape}");
    if let Some(s) = statistics(literal) {
        let decimal = |v: f64| number(Scalar::Float(v), PrimitiveType::F32);
        let _ = write!(
            out,
            "  min {}  max {}  mean {}  argmax {}",
            decimal(s.min),
            decimal(s.max),
            decimal(s.mean),
            s.argmax
        );
        if s.nans > 0 {
            let _ = write!(out, "  {} NaN", s.nans);
        }
        if s.infinities > 0 {
            let _ = write!(out, "  {} infinite", s.infinities);
        }
    }
    out.push('\n');
    for line in elements(literal).lines() {
        let _ = writeln!(out, "  {line}");
    }
    out
}

/// Formats the elements, nested in brackets.
fn elements(literal: &Literal) -> String {
    let shape = literal.array_shape();
    let shortened = shape.element_count() > MANY;
    let mut writer = Writer { literal, shape, shortened, out: String::new(), column: 0 };
    writer.dimension(0, 0);
    writer.out
}

struct Writer<'a> {
    literal: &'a Literal,
    shape: &'a ArrayShape,
    shortened: bool,
    out: String,
    column: usize,
}

impl Writer<'_> {
    /// Writes the elements along a dimension, starting at a position in units of that dimension.
    fn dimension(&mut self, dimension: usize, position: i64) {
        if dimension == self.shape.rank() {
            let text = number(self.literal.scalar_at(position as usize), self.shape.element_type);
            return self.push(&text);
        }
        let size = self.shape.size(dimension);
        self.push("[");
        let innermost = dimension + 1 == self.shape.rank();
        let skips = self.shortened && size > 2 * EDGE;
        let mut first = true;
        for i in 0..size {
            if skips && i == EDGE {
                self.separate(innermost, dimension);
                self.push("...");
            }
            if skips && (EDGE..size - EDGE).contains(&i) {
                continue;
            }
            if !first {
                self.separate(innermost, dimension);
            }
            first = false;
            self.dimension(dimension + 1, position * size + i);
        }
        self.push("]");
    }

    fn separate(&mut self, innermost: bool, dimension: usize) {
        self.push(",");
        if innermost && self.column < WIDTH - 12 {
            self.push(" ");
        } else {
            self.out.push('\n');
            self.column = 0;
            self.push(&" ".repeat(dimension + 1));
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }
}

/// Formats one element with enough digits to distinguish it from its neighbors, but at most seven.
pub fn number(scalar: Scalar, element_type: PrimitiveType) -> String {
    match scalar {
        Scalar::Pred(value) => value.to_string(),
        Scalar::Signed(value) => value.to_string(),
        Scalar::Unsigned(value) => value.to_string(),
        Scalar::Float(value) => float(value, element_type),
        Scalar::Complex(re, im) => {
            let part = element_type.real_part();
            let sign = if im.is_sign_negative() { "" } else { "+" };
            format!("{}{sign}{}i", float(re, part), float(im, part))
        }
    }
}

fn float(value: f64, element_type: PrimitiveType) -> String {
    if !value.is_finite() || value == 0.0 {
        return format!("{value}");
    }
    let digits = match element_type {
        PrimitiveType::F64 => 9,
        PrimitiveType::F32 => 7,
        PrimitiveType::F16 => 4,
        _ => 3,
    };
    let exponent = value.abs().log10().floor() as i32;
    if (-4..digits).contains(&exponent) {
        let text = format!("{value:.*}", (digits - 1 - exponent).max(0) as usize);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    } else {
        let text = format!("{value:.*e}", digits as usize - 1);
        match text.split_once('e') {
            Some((mantissa, exponent)) if mantissa.contains('.') => {
                format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
            }
            _ => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_arrays_are_shown_whole() {
        let array = Literal::from_elements(&[2, 3], &[1f32, -0.5, 0.1, 1e-9, 2.5e10, f32::NAN]);
        assert_eq!(
            describe(&array),
            "f32[2,3]  min -0.5  max 2.5e10  mean 5e9  argmax 5  1 NaN\n  [[1, -0.5, 0.1],\n   [1e-9, 2.5e10, NaN]]\n"
        );
        assert_eq!(describe(&Literal::scalar(7i64)), "s64[]  min 7  max 7  mean 7  argmax 0\n  7\n");
        assert_eq!(describe(&Literal::from_elements(&[2], &[true, false])), "pred[2]\n  [true, false]\n");
        assert_eq!(describe(&Literal::from_elements::<f32>(&[0, 2], &[])), "f32[0,2]\n  []\n");
    }

    #[test]
    fn large_arrays_show_their_edges() {
        let values: Vec<i32> = (0..2000).collect();
        let text = describe(&Literal::from_elements(&[2, 1000], &values));
        assert!(
            text.contains("[[0, 1, 2, ..., 997, 998, 999],\n   [1000, 1001, 1002, ..., 1997, 1998, 1999]]"),
            "{text}"
        );
        assert!(text.starts_with("s32[2,1000]  min 0  max 1999  mean 999.5  argmax 1999\n"), "{text}");
    }

    #[test]
    fn statistics_skip_nan_and_infinities() {
        let inf = f32::INFINITY;
        let s = statistics(&Literal::from_elements(&[4], &[1f32, 3.0, inf, 3.0])).unwrap();
        assert_eq!((s.min, s.max, s.argmax, s.infinities), (1.0, f64::INFINITY, 2, 1));
        assert!((s.mean - 7.0 / 3.0).abs() < 1e-9);
        let s = statistics(&Literal::from_elements(&[2], &[f32::NAN; 2])).unwrap();
        assert!(s.min.is_nan() && s.nans == 2 && s.argmax == 0);
        assert_eq!(statistics(&Literal::from_elements::<f32>(&[0], &[])), None);
    }

    #[test]
    fn numbers_have_the_digits_of_their_type() {
        let show = |v: f64, t| number(Scalar::Float(v), t);
        assert_eq!(show(f64::from(0.1f32), PrimitiveType::F32), "0.1");
        assert_eq!(show(1.0 / 3.0, PrimitiveType::F32), "0.3333333");
        assert_eq!(show(1.0 / 3.0, PrimitiveType::Bf16), "0.333");
        assert_eq!(show(123456789.0, PrimitiveType::F32), "1.234568e8");
        assert_eq!(show(-0.0, PrimitiveType::F32), "-0");
        assert_eq!(number(Scalar::Complex(1.0, -2.0), PrimitiveType::C64), "1-2i");
    }
}
