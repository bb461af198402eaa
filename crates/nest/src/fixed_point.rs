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

#[cfg(test)]
mod tests {
    use crate::{BinaryOp, ConvertOp, FunctionBuilder, Linkage, PointerFacts, ScalarType, Type, ValueId};

    /// The lower half of `(x * y + half) >> distance` as the builder writes it.
    fn lower_half(half: i64, distance: i64) -> String {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let vector = Type::vector(ScalarType::I32, 4);
        let factors = ["x", "y"].map(|name| b.parameter(name, vector, PointerFacts::default()));
        let [x, y] = factors.map(|value: ValueId| b.convert(ConvertOp::SignExtend, value, ScalarType::I64));
        let product = b.mul(x, y);
        let sum = b.add_constant(product, half);
        let bits = b.integer(b.ty(sum), distance);
        let quotient = b.binary(BinaryOp::ShiftRightArithmetic, sum, bits);
        let _ = b.convert(ConvertOp::Truncate, quotient, ScalarType::I32);
        format!("{:?}", b.finish())
    }

    #[test]
    fn only_rounded_products_of_fixed_point_numbers_are_recognized() {
        let is_recognized = |half, distance| lower_half(half, distance).contains("MultiplyFixed");
        assert!(is_recognized(1 << 30, 31));
        for (half, distance) in [(1 << 29, 31), (1 << 30, 30), (1 << 30, 33)] {
            assert!(!is_recognized(half, distance), "{half} {distance}");
        }
    }
}
