//! Tolerance of a result.

/// Tolerance of a floating-point value: `|got - want| <= absolute + relative * |want|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Independent of the value.
    pub absolute: f64,
    /// Factor of the expected value.
    pub relative: f64,
}

impl Tolerance {
    /// Accepts only equal values.
    pub const EXACT: Self = Self { absolute: 0.0, relative: 0.0 };
}
