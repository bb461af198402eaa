//! Operators of one and two values, comparisons, and conversions.

/// Operations on one value. Integers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Floating-point negation. Flips the sign bit, even of NaN.
    Negate,
    /// Floating-point magnitude. Clears the sign bit.
    Abs,
    /// Correctly rounded square root.
    Sqrt,
    /// Largest integral value that is not greater. Only for targets with `has_rounding`; the
    /// lowering emits arithmetic elsewhere.
    Floor,
    /// Smallest integral value that is not less. See `Floor`.
    Ceil,
    /// Nearest integral value toward zero. See `Floor`.
    Truncate,
    /// Nearest integral value, with ties to even. See `Floor`.
    RoundEven,
    /// `floor(log2 |a|)` of a float, including subnormals. Minus infinity for zeros, and infinity
    /// for infinities. This and the next three operations require targets with `has_float_parts`;
    /// the lowering emits arithmetic elsewhere.
    Exponent,
    /// A float's magnitude, scaled by a power of two into [0.75, 1.5). NaN for negative floats; 1
    /// for zeros and infinity.
    Mantissa,
    /// `1 / a` with a relative error of at most `2^-14`, and with the limits for zeros and
    /// infinities. Subnormal results may be flushed to zero.
    ReciprocalEstimate,
    /// `1 / sqrt(a)`. See `ReciprocalEstimate`.
    ReciprocalRootEstimate,
    /// Bitwise complement of an integer or a `Bool`.
    Not,
    /// Number of leading zero bits of an integer. The width for 0.
    CountLeadingZeros,
    /// Number of set bits of an integer.
    PopulationCount,
}

/// Operations on two values of the same type, which is also the type of the result. Integers wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Sum of floats or integers.
    Add,
    /// Difference of floats or integers.
    Subtract,
    /// Product of floats or integers.
    Multiply,
    /// `a * b / 2^31` for `I32`, rounded to the nearest integer, halves up: the product of
    /// fixed-point numbers. The least number times itself wraps around.
    MultiplyFixed,
    /// Quotient of floats.
    Divide,
    /// `a * 2^floor(b)` for floats, rounded once. Only for targets with `has_float_parts`.
    Scale,
    /// Signed quotient. Zero divisors and overflow are undefined; the lowering guards them.
    DivideSigned,
    /// Unsigned quotient. See `DivideSigned`.
    DivideUnsigned,
    /// Signed remainder, with the sign of the dividend. See `DivideSigned`.
    RemainderSigned,
    /// Unsigned remainder. See `DivideSigned`.
    RemainderUnsigned,
    /// Bitwise and. Also for `Bool`.
    And,
    /// Bitwise or. Also for `Bool`.
    Or,
    /// Bitwise exclusive or. Also for `Bool`.
    Xor,
    /// Shift left. Counts of at least the width are undefined.
    ShiftLeft,
    /// Shift right, filling with zeros. See `ShiftLeft`.
    ShiftRightLogical,
    /// Shift right, filling with the sign. See `ShiftLeft`.
    ShiftRightArithmetic,
}

/// Comparisons. The result is `Bool` with the same number of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Predicate {
    /// Equal. False for NaN.
    Equal,
    /// Not equal. True for NaN.
    NotEqual,
    /// Signed or floating-point less. False for NaN.
    Less,
    /// Signed or floating-point less or equal. False for NaN.
    LessEqual,
    /// Signed or floating-point greater. False for NaN.
    Greater,
    /// Signed or floating-point greater or equal. False for NaN.
    GreaterEqual,
    /// Unsigned less.
    Below,
    /// Unsigned less or equal.
    BelowEqual,
    /// Unsigned greater.
    Above,
    /// Unsigned greater or equal.
    AboveEqual,
}

/// Conversions to the type of the result. The number of lanes does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvertOp {
    /// To a wider integer, sign extended. Also from `Bool`, whose true becomes -1.
    SignExtend,
    /// To a wider integer, zero extended. Also from `Bool`.
    ZeroExtend,
    /// To a narrower integer, without the high bits. Conversion to `Bool` keeps the lowest bit.
    Truncate,
    /// Signed integer to the nearest float.
    SignedToFloat,
    /// Unsigned integer to the nearest float.
    UnsignedToFloat,
    /// Float to signed integer, truncated toward zero and saturating. NaN becomes 0.
    FloatToSigned,
    /// Float to unsigned integer, truncated toward zero and saturating. NaN becomes 0.
    FloatToUnsigned,
    /// `F32` to `F64`, or the bits of an `f16` in `I16` to `F32`.
    FloatExtend,
    /// `F64` to the nearest `F32`, or `F32` to the bits of the nearest `f16`, in `I16`.
    FloatTruncate,
    /// The same bits as another type of the same total size. The number of lanes may change.
    Bitcast,
}
