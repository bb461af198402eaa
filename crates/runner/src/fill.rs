//! Generates reproducible arrays for arguments without a value.

use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::Result;

/// A source of random numbers: SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates an independent source for the array with this number.
    pub fn fork(&self, number: usize) -> Self {
        let mut source = Self(self.0 ^ (number as u64).wrapping_mul(0xd1b5_4a32_d192_ed03));
        Self(source.bits())
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns the next number, uniformly distributed over [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number below `limit`, which must be positive.
    fn below(&mut self, limit: u64) -> u64 {
        self.bits() % limit
    }
}

/// Contents of a generated array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Floating point: uniform over [-1, 1). Integers: 0 to 9. Booleans: either value.
    Random,
    /// Like `Random`, but never negative.
    Positive,
    /// All zeros.
    Zeros,
    /// All ones.
    Ones,
    /// Floating point: uniform over (-1, 0]. Signed integers: -9 to 0.
    Negative,
    /// Magnitudes near the square root of the largest number, with both signs: sums do not
    /// overflow, products may.
    Large,
    /// Subnormal numbers.
    Tiny,
    /// Like `Random`, but one in eight is -0, an infinity, NaN, or the largest or smallest number.
    Special,
}

impl Fill {
    /// The patterns that are useful for testing code.
    pub const ALL: [Self; 7] =
        [Self::Random, Self::Zeros, Self::Ones, Self::Negative, Self::Large, Self::Tiny, Self::Special];

    /// Returns the pattern's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Positive => "positive",
            Self::Zeros => "zeros",
            Self::Ones => "ones",
            Self::Negative => "negative",
            Self::Large => "large",
            Self::Tiny => "tiny",
            Self::Special => "special",
        }
    }

    /// Returns an array of this shape, or an error if memory is insufficient.
    pub fn array(self, shape: &ArrayShape, random: &mut Random) -> Result<Literal> {
        self.array_below(shape, None, random)
    }

    /// Works like [`Fill::array`], but random integers are 0 to `limit - 1`, so that they are valid
    /// indices or labels.
    pub fn array_below(self, shape: &ArrayShape, limit: Option<i64>, random: &mut Random) -> Result<Literal> {
        // Running the code needs a copy of the array.
        let bytes = shape.byte_size().saturating_mul(2);
        support::check_memory(bytes, format_args!("an argument {shape}"))?;
        let shape = ArrayShape::new(shape.element_type, &shape.sizes());
        let count = shape.element_count();
        let element_type = shape.element_type;
        let scalars = (0..count).map(|_| match limit {
            Some(limit) if self == Self::Random && element_type.is_integer() => {
                // Narrow types hold fewer values.
                let values = 1u64 << (element_type.bit_width() - 1).min(62);
                let number = random.below(values.min(limit.max(1) as u64));
                if element_type.is_signed_integer() {
                    Scalar::Signed(number as i64)
                } else {
                    Scalar::Unsigned(number)
                }
            }
            _ => self.scalar(element_type, random),
        });
        Ok(Literal::from_scalars(shape.clone(), scalars))
    }

    fn scalar(self, element_type: PrimitiveType, random: &mut Random) -> Scalar {
        if element_type == PrimitiveType::Pred {
            return Scalar::Pred(match self {
                Self::Zeros => false,
                Self::Ones => true,
                _ => random.below(2) == 1,
            });
        }
        if element_type.is_complex() {
            let part = element_type.real_part();
            return Scalar::Complex(self.float(part, random), self.float(part, random));
        }
        if element_type.is_floating_point() {
            return Scalar::Float(self.float(element_type, random));
        }
        let small = match self {
            Self::Zeros => 0,
            Self::Ones => 1,
            // Two bits cannot hold a 9; wrapping is fine.
            _ => random.below(10) as i64,
        };
        match (element_type.is_signed_integer(), self) {
            (true, Self::Negative) => Scalar::Signed(-small),
            (true, _) => Scalar::Signed(small),
            (false, _) => Scalar::Unsigned(small as u64),
        }
    }

    fn float(self, element_type: PrimitiveType, random: &mut Random) -> f64 {
        let (largest, smallest_normal, smallest) = extremes(element_type);
        let signed = |random: &mut Random| 2.0 * random.uniform() - 1.0;
        match self {
            Self::Random => signed(random),
            Self::Positive => random.uniform(),
            Self::Zeros => 0.0,
            Self::Ones => 1.0,
            Self::Negative => -random.uniform(),
            Self::Large => largest.sqrt() * signed(random),
            Self::Tiny => smallest_normal * signed(random),
            Self::Special => match random.below(64) {
                0 | 1 => -0.0,
                2 => f64::INFINITY,
                3 => f64::NEG_INFINITY,
                4 => f64::NAN,
                5 => largest,
                6 => -largest,
                7 => smallest,
                _ => signed(random),
            },
        }
    }
}

/// Returns the largest number, the smallest normal one, and the smallest positive one.
pub(crate) fn extremes(element_type: PrimitiveType) -> (f64, f64, f64) {
    match element_type.real_part().float_format() {
        Some(format) => (format.largest(), format.least_normal(), format.least()),
        None => (f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_fills_every_type_with_numbers_of_its_kind() {
        for element_type in PrimitiveType::ALL {
            for fill in Fill::ALL {
                let shape = ArrayShape::new(element_type, &[5, 40]);
                let literal = fill.array(&shape, &mut Random::new(1)).unwrap();
                assert_eq!(literal.array_shape(), &shape);
                assert_eq!(
                    literal,
                    fill.array(&shape, &mut Random::new(1)).unwrap(),
                    "the same seed yields the same array"
                );
            }
        }
    }

    #[test]
    fn what_does_not_fit_into_memory_is_an_error() {
        let shape = ArrayShape::new(PrimitiveType::F32, &[1 << 60]);
        let error = Fill::Random.array(&shape, &mut Random::new(1)).unwrap_err();
        assert!(error.message().contains("f32[1152921504606846976]"), "{error}");
    }

    #[test]
    fn the_patterns_are_what_they_are_called() {
        let shape = ArrayShape::new(PrimitiveType::F32, &[1000]);
        let values = |fill: Fill| fill.array(&shape, &mut Random::new(7)).unwrap().to_vec::<f32>().unwrap();
        assert!(values(Fill::Random).iter().all(|v| (-1.0..1.0).contains(v)));
        let mean: f32 = values(Fill::Random).iter().sum::<f32>() / 1000.0;
        assert!(mean.abs() < 0.1, "{mean}");
        assert!(values(Fill::Negative).iter().all(|v| (-1.0..=0.0).contains(v)));
        assert!(values(Fill::Large).iter().any(|v| v.abs() > 1e18));
        assert!(values(Fill::Large).iter().all(|v| v.abs() < 2e19));
        assert!(values(Fill::Tiny).iter().all(|v| v.abs() <= f32::MIN_POSITIVE));
        assert!(values(Fill::Tiny).iter().any(|v| v.is_subnormal()));
        let special = values(Fill::Special);
        assert!(special.iter().any(|v| v.is_nan()) && special.contains(&f32::NEG_INFINITY));
        assert!(special.iter().filter(|v| v.abs() < 1.0).count() > 800);
    }
}
