//! Bit layouts of floating-point types, one row per type.

use crate::PrimitiveType::{self, *};

/// Bit patterns of a floating-point format that do not represent finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// Infinities and NaNs use the largest exponent, as in IEEE 754.
    Ieee,
    /// No infinity. NaN has all bits except the sign set (names end in `fn`).
    AllOnesNan,
    /// No infinity and no negative zero. The bit pattern of negative zero is the only NaN (names
    /// end in `fnuz`).
    NegativeZeroNan,
    /// All bit patterns are finite numbers.
    AllFinite,
    /// No sign, zero, or fraction: powers of two, and NaN with all bits set (names end in `fnu`).
    PowersOfTwo,
}

/// A binary floating-point format: sign (except for powers of two), exponent, and mantissa, from
/// the highest bit down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    /// Number of exponent bits.
    pub exponent_bits: u32,
    /// Number of bits after the leading one.
    pub mantissa_bits: u32,
    /// Exponent bias, which is subtracted from the stored exponent.
    pub bias: i32,
    /// Bit patterns that do not represent finite numbers.
    pub specials: Specials,
}

const fn format(
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
) -> Option<FloatFormat> {
    Some(FloatFormat { exponent_bits, mantissa_bits, bias, specials })
}

impl PrimitiveType {
    /// Format of a floating-point type. Returns `None` for complex types and non-floats.
    pub const fn float_format(self) -> Option<FloatFormat> {
        use Specials::*;
        match self {
            F64 => format(11, 52, 1023, Ieee),
            F32 => format(8, 23, 127, Ieee),
            Bf16 => format(8, 7, 127, Ieee),
            F16 => format(5, 10, 15, Ieee),
            F8e5m2 => format(5, 2, 15, Ieee),
            F8e4m3 => format(4, 3, 7, Ieee),
            F8e3m4 => format(3, 4, 3, Ieee),
            F8e4m3fn => format(4, 3, 7, AllOnesNan),
            F8e5m2fnuz => format(5, 2, 16, NegativeZeroNan),
            F8e4m3fnuz => format(4, 3, 8, NegativeZeroNan),
            F8e4m3b11fnuz => format(4, 3, 11, NegativeZeroNan),
            F8e8m0fnu => format(8, 0, 127, PowersOfTwo),
            F6e3m2fn => format(3, 2, 3, AllFinite),
            F6e2m3fn => format(2, 3, 1, AllFinite),
            F4e2m1fn => format(2, 1, 1, AllFinite),
            _ => None,
        }
    }
}

impl FloatFormat {
    /// Total number of bits, including the sign.
    pub const fn width(self) -> u32 {
        let sign = if matches!(self.specials, Specials::PowersOfTwo) { 0 } else { 1 };
        sign + self.exponent_bits + self.mantissa_bits
    }

    /// Exponent of the smallest normal number.
    pub const fn least_exponent(self) -> i32 {
        if matches!(self.specials, Specials::PowersOfTwo) { -self.bias } else { 1 - self.bias }
    }

    /// Bit pattern of the largest finite number.
    pub const fn largest_bits(self) -> u64 {
        let magnitudes = 1 << (self.exponent_bits + self.mantissa_bits);
        match self.specials {
            Specials::Ieee => magnitudes - (1 << self.mantissa_bits) - 1,
            Specials::AllOnesNan | Specials::PowersOfTwo => magnitudes - 2,
            Specials::NegativeZeroNan | Specials::AllFinite => magnitudes - 1,
        }
    }

    /// The largest finite number.
    pub const fn largest(self) -> f64 {
        self.value(self.largest_bits())
    }

    /// The smallest positive normal number.
    pub const fn least_normal(self) -> f64 {
        power_of_two(self.least_exponent())
    }

    /// The smallest positive number.
    pub const fn least(self) -> f64 {
        self.value(if matches!(self.specials, Specials::PowersOfTwo) { 0 } else { 1 })
    }

    /// True if the format has infinities.
    pub const fn has_infinity(self) -> bool {
        matches!(self.specials, Specials::Ieee)
    }

    /// Mask of the sign bit, or 0 if the format has none.
    pub const fn sign_bit(self) -> u64 {
        match self.specials {
            Specials::PowersOfTwo => 0,
            _ => 1 << (self.exponent_bits + self.mantissa_bits),
        }
    }

    /// Bit pattern of the NaN that computations produce, with a sign if the format's NaNs have one.
    /// Formats without NaN produce -0, as in XLA.
    pub const fn nan_bits(self, is_negative: bool) -> u64 {
        let sign = if is_negative { self.sign_bit() } else { 0 };
        match self.specials {
            Specials::Ieee => sign | (self.largest_bits() + 1) | 1 << (self.mantissa_bits - 1),
            Specials::AllOnesNan => sign | (self.largest_bits() + 1),
            Specials::NegativeZeroNan => self.sign_bit(),
            Specials::AllFinite => self.sign_bit() & !sign,
            Specials::PowersOfTwo => self.largest_bits() + 1,
        }
    }

    /// Finite number for a bit pattern without its sign.
    const fn value(self, magnitude: u64) -> f64 {
        if matches!(self.specials, Specials::PowersOfTwo) {
            return power_of_two(magnitude as i32 - self.bias);
        }
        let field = (magnitude >> self.mantissa_bits) as i32;
        let (implicit, steps) = if field == 0 { (0, 0) } else { (1 << self.mantissa_bits, field - 1) };
        let significand = (magnitude & ((1 << self.mantissa_bits) - 1)) + implicit;
        // In two steps, because the smallest subnormal `f64` is not a normal power of two.
        significand as f64
            * power_of_two(-(self.mantissa_bits as i32))
            * power_of_two(self.least_exponent() + steps)
    }

    /// Number for a bit pattern. NaNs keep their sign and payload.
    pub fn decode(self, bits: u64) -> f64 {
        let is_negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (u64::MAX >> (64 - self.width())) & !self.sign_bit();
        let sign = u64::from(is_negative) << 63;
        let is_nan = match self.specials {
            Specials::NegativeZeroNan => bits == self.sign_bit(),
            _ => magnitude > self.largest_bits(),
        };
        if is_nan {
            let payload = (magnitude & ((1 << self.mantissa_bits) - 1)) << (52 - self.mantissa_bits);
            return if self.has_infinity() {
                f64::from_bits(sign | f64::INFINITY.to_bits() | payload)
            } else {
                f64::from_bits(sign | f64::NAN.to_bits())
            };
        }
        f64::from_bits(sign | self.value(magnitude).to_bits())
    }

    /// Bit pattern of the nearest number, ties to even. Values beyond the largest number become
    /// infinity, NaN in formats without infinity, or the largest number in formats without either.
    pub fn encode(self, value: f64) -> u64 {
        let is_negative = value.is_sign_negative();
        let nan = self.nan_bits(is_negative);
        if value.is_nan() {
            return nan;
        }
        if self.specials == Specials::PowersOfTwo {
            return self.encode_power(value);
        }
        let sign = if is_negative { self.sign_bit() } else { 0 };
        let magnitude = value.abs();
        // Subnormal `f64` numbers are below the range of every format except `f64` itself.
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).clamp(self.least_exponent(), 1023);
        let units = magnitude / power_of_two(exponent) * power_of_two(self.mantissa_bits as i32);
        let steps = ((exponent - self.least_exponent()) as u64) << self.mantissa_bits;
        let bits = if magnitude.is_infinite() { u64::MAX } else { steps + units.round_ties_even() as u64 };
        if bits > self.largest_bits() {
            return match self.specials {
                Specials::Ieee => sign | (self.largest_bits() + 1),
                Specials::AllFinite => sign | self.largest_bits(),
                _ => nan,
            };
        }
        if bits == 0 && self.specials == Specials::NegativeZeroNan { 0 } else { sign | bits }
    }

    /// Bit pattern of the nearest power of two, ties upward. Nonpositive values have none.
    fn encode_power(self, value: f64) -> u64 {
        if value <= 0.0 || value.is_infinite() {
            return self.nan_bits(false);
        }
        let exponent = (value.to_bits() >> 52) as i32 - 1023;
        let is_upper_half = value.to_bits() >> 51 & 1 == 1;
        let bits = exponent + i32::from(is_upper_half) + self.bias;
        bits.clamp(0, self.largest_bits() as i32 + 1) as u64
    }
}

/// A power of two that is a normal `f64`. Must be fast, because conversions call it for each
/// element.
const fn power_of_two(exponent: i32) -> f64 {
    assert!(-1023 < exponent && exponent < 1024, "a normal number's exponent");
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference values of each format from Python's `ml_dtypes` 0.5: the largest number, the
    /// smallest positive number, and the bit patterns of NaN, -NaN, infinity, 1e30, -1e30, -0, 1.5,
    /// 3, -1, 6.9, and 2^-127 times 1.25.
    #[rustfmt::skip]
    const ROWS: [(PrimitiveType, f64, f64, [u64; 11]); 11] = [
        (F8e4m3, 240.0, 0.001953125, [0x7c, 0xfc, 0x78, 0x78, 0xf8, 0x80, 0x3c, 0x44, 0xb8, 0x4e, 0]),
        (F8e4m3fn, 448.0, 0.001953125, [0x7f, 0xff, 0x7f, 0x7f, 0xff, 0x80, 0x3c, 0x44, 0xb8, 0x4e, 0]),
        (F8e4m3b11fnuz, 30.0, 0.0001220703125, [0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x5c, 0x64, 0xd8, 0x6e, 0]),
        (F8e4m3fnuz, 240.0, 0.0009765625, [0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x44, 0x4c, 0xc0, 0x56, 0]),
        (F8e5m2, 57344.0, 1.52587890625e-5, [0x7e, 0xfe, 0x7c, 0x7c, 0xfc, 0x80, 0x3e, 0x42, 0xbc, 0x47, 0]),
        (F8e5m2fnuz, 57344.0, 7.62939453125e-6, [0x80, 0x80, 0x80, 0x80, 0x80, 0, 0x42, 0x46, 0xc0, 0x4b, 0]),
        (F8e3m4, 15.5, 0.015625, [0x78, 0xf8, 0x70, 0x70, 0xf0, 0x80, 0x38, 0x48, 0xb0, 0x5c, 0]),
        (F8e8m0fnu, 1.7014118346046923e38, 5.877471754111438e-39, [0xff, 0xff, 0xff, 0xe3, 0xff, 0xff, 0x80, 0x81, 0xff, 0x82, 0]),
        (F4e2m1fn, 6.0, 0.5, [0x8, 0x0, 0x7, 0x7, 0xf, 0x8, 0x3, 0x5, 0xa, 0x7, 0]),
        (F6e2m3fn, 7.5, 0.125, [0x20, 0x0, 0x1f, 0x1f, 0x3f, 0x20, 0xc, 0x14, 0x28, 0x1e, 0]),
        (F6e3m2fn, 28.0, 0.0625, [0x20, 0x0, 0x1f, 0x1f, 0x3f, 0x20, 0xe, 0x12, 0x2c, 0x17, 0]),
    ];

    #[test]
    fn formats_are_those_of_ml_dtypes() {
        for (element_type, largest, least, bits) in ROWS {
            let format = element_type.float_format().expect("a float");
            assert_eq!(format.width(), element_type.bit_width(), "{element_type}");
            assert_eq!((format.largest(), format.least()), (largest, least), "{element_type}");
            let tiny = 1.25 * 2f64.powi(-127);
            let values = [f64::NAN, -f64::NAN, f64::INFINITY, 1e30, -1e30, -0.0, 1.5, 3.0, -1.0, 6.9, tiny];
            assert_eq!(values.map(|value| format.encode(value)), bits, "{element_type}");
        }
    }

    #[test]
    fn the_rows_of_wide_types_are_those_of_the_language() {
        for value in [1.5, -0.1, 65504.0, 1e-7, 3e38, f64::INFINITY, 5e-324, -0.0, 1e-310] {
            let f64_format = F64.float_format().expect("a float");
            assert_eq!(f64_format.encode(value), value.to_bits(), "{value}");
            assert_eq!(f64_format.decode(value.to_bits()).to_bits(), value.to_bits(), "{value}");
            let f32_format = F32.float_format().expect("a float");
            assert_eq!(f32_format.encode(value), u64::from((value as f32).to_bits()), "{value}");
            let bits = half::f16::from_f64(value).to_bits();
            assert_eq!(F16.float_format().expect("a float").encode(value), u64::from(bits), "{value}");
            let bits = half::bf16::from_f64(value).to_bits();
            assert_eq!(Bf16.float_format().expect("a float").encode(value), u64::from(bits), "{value}");
        }
    }

    #[test]
    fn every_number_of_a_narrow_type_is_its_own_nearest() {
        for (element_type, ..) in ROWS {
            let format = element_type.float_format().expect("a float");
            let mut numbers = 0;
            for bits in 0..1u64 << format.width() {
                let value = format.decode(bits);
                if !value.is_nan() {
                    numbers += 1;
                    assert_eq!(format.encode(value), bits, "{element_type}: {value}");
                }
            }
            // Number of NaNs according to `ml_dtypes`.
            let nans = match element_type {
                F8e4m3 => 14,
                F8e3m4 => 30,
                F8e5m2 => 6,
                F8e4m3fn => 2,
                F4e2m1fn | F6e2m3fn | F6e3m2fn => 0,
                _ => 1,
            };
            assert_eq!(numbers, (1 << format.width()) - nans, "{element_type}");
        }
    }
}
