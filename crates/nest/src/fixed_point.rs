//! Recognition of products of fixed-point numbers in 64-bit arithmetic: `(a * b + 2^30) >> 31`, of
//! which the lower half is used.

use crate::language::*;
use std::collections::BTreeMap;

/// Parts of products among the values of a function.
#[derive(Debug, Default)]
pub(crate) struct Products {
    parts: BTreeMap<ValueId, Part>,
}

/// A value of 64 bits in terms of values of 32 bits.
#[derive(Clone, Copy, Debug)]
enum Part {
    Factor(Factor),
    Product(Factor, Factor),
    /// A product plus half of the last unit.
    Sum(Factor, Factor),
    /// A product, rounded.
    Rounded(Factor, Factor),
}

/// A factor of 32 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Factor {
    Value(ValueId),
    Constant(i32),
}

/// Bits after the point.
const FRACTION: i64 = 31;

impl Products {
    /// Records a definition.
    pub(crate) fn learn(
        &mut self,
        id: ValueId,
        expression: &Expression,
        ty: impl Fn(ValueId) -> Type,
        constant: impl Fn(ValueId) -> Option<Constant>,
    ) {
        if ty(id).scalar != ScalarType::I64 {
            return;
        }
        let is = |id: &ValueId, value: i64| constant(*id) == Some(Constant::Integer(value));
        let part = |id: &ValueId| match constant(*id) {
            Some(Constant::Integer(value)) => Some(Part::Factor(Factor::Constant(value.try_into().ok()?))),
            _ => self.parts.get(id).copied(),
        };
        let half = 1 << (FRACTION - 1);
        let new = match expression {
            Expression::Convert(ConvertOp::SignExtend, a) if ty(*a).scalar == ScalarType::I32 => {
                Part::Factor(Factor::Value(*a))
            }
            Expression::Binary(BinaryOp::Multiply, a, b) => match (part(a), part(b)) {
                (Some(Part::Factor(a)), Some(Part::Factor(b))) => Part::Product(a, b),
                _ => return,
            },
            Expression::Binary(BinaryOp::Add, a, b) => match (part(a), part(b)) {
                (Some(Part::Product(x, y)), _) if is(b, half) => Part::Sum(x, y),
                (_, Some(Part::Product(x, y))) if is(a, half) => Part::Sum(x, y),
                _ => return,
            },
            Expression::Binary(BinaryOp::ShiftRightArithmetic, a, b) => match part(a) {
                Some(Part::Sum(x, y)) if is(b, FRACTION) => Part::Rounded(x, y),
                _ => return,
            },
            _ => return,
        };
        self.parts.insert(id, new);
    }

    /// Returns the factors of a value whose lower half is their product.
    pub(crate) fn of(&self, id: ValueId) -> Option<[Factor; 2]> {
        match self.parts.get(&id) {
            Some(&Part::Rounded(a, b)) => Some([a, b]),
            _ => None,
        }
    }
}
