//! How far a result may be from the recorded one.

/// How far a floating-point value may be off: `|got - want| <= absolute + relative * |want|`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Whatever the value.
    pub absolute: f64,
    /// Times the wanted value.
    pub relative: f64,
}

impl Tolerance {
    /// Equal values only.
    pub const EXACT: Self = Self { absolute: 0.0, relative: 0.0 };
}
