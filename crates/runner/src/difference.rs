//! Difference of numbers from references, summed up over arrays and runs.

/// Squares and largest numbers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Difference {
    /// Sum of the squared differences.
    squared_difference: f64,
    /// Sum of the squares of the finite references.
    squared_reference: f64,
    /// Largest absolute difference.
    pub(crate) largest: f64,
    /// Largest magnitude of a reference.
    pub(crate) magnitude: f64,
}

impl Difference {
    /// Includes a number and its reference. Equal infinities and two NaNs do not differ; a NaN and
    /// a number differ infinitely.
    pub(crate) fn include(&mut self, actual: f64, reference: f64) {
        let is_same = actual == reference || actual.is_nan() && reference.is_nan();
        let difference = if is_same { 0.0 } else { (actual - reference).abs() };
        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
        self.squared_difference += difference * difference;
        if reference.is_finite() {
            self.squared_reference += reference * reference;
        }
        self.largest = self.largest.max(difference);
        self.magnitude = self.magnitude.max(reference.abs());
    }

    /// Root of the mean squared difference over that of the mean squared finite reference.
    pub(crate) fn relative(&self) -> f64 {
        if self.squared_difference == 0.0 {
            return 0.0;
        }
        let ratio = self.squared_difference / self.squared_reference;
        if ratio.is_nan() { f64::INFINITY } else { ratio.sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(f64, f64)]) -> Difference {
        let mut difference = Difference::default();
        pairs.iter().for_each(|&(actual, reference)| difference.include(actual, reference));
        difference
    }

    #[test]
    fn equal_numbers_do_not_differ_even_if_they_are_not_finite() {
        let same = of(&[(f64::NEG_INFINITY, f64::NEG_INFINITY), (f64::NAN, f64::NAN), (2.0, 2.0)]);
        assert_eq!((same.relative(), same.largest), (0.0, 0.0));
        let finite = of(&[(f64::INFINITY, f64::INFINITY), (3.5, 3.0), (4.0, 4.0)]);
        assert_eq!((finite.relative(), finite.largest), (0.1, 0.5));
    }

    #[test]
    fn other_numbers_that_are_not_finite_differ_infinitely() {
        for (actual, reference) in
            [(f64::NAN, 1.0), (1.0, f64::NAN), (f64::INFINITY, f64::NEG_INFINITY), (f64::INFINITY, 1.0)]
        {
            let difference = of(&[(actual, reference), (1.0, 1.5)]);
            assert_eq!((difference.relative(), difference.largest), (f64::INFINITY, f64::INFINITY));
        }
    }
}
