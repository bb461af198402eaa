//! Unary and binary functions that instructions apply to each element, regardless of the number
//! type.

use hlo::Op;

/// A unary function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Abs,
    Acos,
    Acosh,
    Asin,
    Asinh,
    Atanh,
    Cbrt,
    Ceil,
    Copy,
    Cos,
    Cosh,
    CountLeadingZeros,
    Erf,
    Exp,
    Expm1,
    Floor,
    Imag,
    IsFinite,
    Log,
    Log1p,
    Logistic,
    Negate,
    Not,
    PopulationCount,
    Real,
    RoundNearestAfz,
    RoundNearestEven,
    Rsqrt,
    Sign,
    Sin,
    Sinh,
    Sqrt,
    Tan,
    Tanh,
}

impl Unary {
    /// Returns the function of an opcode, or `None` for opcodes that are not unary functions.
    pub(crate) fn of(op: &Op) -> Option<Self> {
        Some(match op {
            Op::Abs {} => Self::Abs,
            Op::Acos {} => Self::Acos,
            Op::Acosh {} => Self::Acosh,
            Op::Asin {} => Self::Asin,
            Op::Asinh {} => Self::Asinh,
            Op::Atanh {} => Self::Atanh,
            Op::Cbrt {} => Self::Cbrt,
            Op::Ceil {} => Self::Ceil,
            Op::Copy {} => Self::Copy,
            Op::Cos {} => Self::Cos,
            Op::Cosh {} => Self::Cosh,
            Op::CountLeadingZeros {} => Self::CountLeadingZeros,
            Op::Erf {} => Self::Erf,
            Op::Exp {} => Self::Exp,
            Op::Expm1 {} => Self::Expm1,
            Op::Floor {} => Self::Floor,
            Op::Imag {} => Self::Imag,
            Op::IsFinite {} => Self::IsFinite,
            Op::Log {} => Self::Log,
            Op::Log1p {} => Self::Log1p,
            Op::Logistic {} => Self::Logistic,
            Op::Negate {} => Self::Negate,
            Op::Not {} => Self::Not,
            Op::PopulationCount {} => Self::PopulationCount,
            Op::Real {} => Self::Real,
            Op::RoundNearestAfz {} => Self::RoundNearestAfz,
            Op::RoundNearestEven {} => Self::RoundNearestEven,
            Op::Rsqrt {} => Self::Rsqrt,
            Op::Sign {} => Self::Sign,
            Op::Sin {} => Self::Sin,
            Op::Sinh {} => Self::Sinh,
            Op::Sqrt {} => Self::Sqrt,
            Op::Tan {} => Self::Tan,
            Op::Tanh {} => Self::Tanh,
            _ => return None,
        })
    }
}

/// A binary function of operands with the same type, which is also the result's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    And,
    Atan2,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Or,
    Power,
    Remainder,
    ShiftLeft,
    ShiftRightArithmetic,
    ShiftRightLogical,
    Subtract,
    Xor,
}

impl Binary {
    /// Returns the function of an opcode, or `None` for opcodes that are not binary functions.
    pub(crate) fn of(op: &Op) -> Option<Self> {
        Some(match op {
            Op::Add {} => Self::Add,
            Op::And {} => Self::And,
            Op::Atan2 {} => Self::Atan2,
            Op::Divide {} => Self::Divide,
            Op::Maximum {} => Self::Maximum,
            Op::Minimum {} => Self::Minimum,
            Op::Multiply {} => Self::Multiply,
            Op::Or {} => Self::Or,
            Op::Power {} => Self::Power,
            Op::Remainder {} => Self::Remainder,
            Op::ShiftLeft {} => Self::ShiftLeft,
            Op::ShiftRightArithmetic {} => Self::ShiftRightArithmetic,
            Op::ShiftRightLogical {} => Self::ShiftRightLogical,
            Op::Subtract {} => Self::Subtract,
            Op::Xor {} => Self::Xor,
            _ => return None,
        })
    }
}
