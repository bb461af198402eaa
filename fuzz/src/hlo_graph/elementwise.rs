//! Elementwise functions: arithmetic, comparisons, conversions.

use super::Writer;
use PrimitiveType::*;
use hlo::{ComparisonDirection, ComparisonType, ComputationBuilder, InstructionId, Op};
use shape::{ArrayShape, PrimitiveType, Shape};

/// Functions of one floating-point number.
const FLOAT: &[Op] = &[
    Op::Abs {},
    Op::Acos {},
    Op::Acosh {},
    Op::Asin {},
    Op::Asinh {},
    Op::Atanh {},
    Op::Cbrt {},
    Op::Ceil {},
    Op::Copy {},
    Op::Cos {},
    Op::Cosh {},
    Op::Erf {},
    Op::Exp {},
    Op::Expm1 {},
    Op::Floor {},
    Op::IsFinite {},
    Op::Log {},
    Op::Log1p {},
    Op::Logistic {},
    Op::Negate {},
    Op::Negate {},
    Op::RoundNearestAfz {},
    Op::RoundNearestEven {},
    Op::Rsqrt {},
    Op::Sign {},
    Op::Sin {},
    Op::Sinh {},
    Op::Sqrt {},
    Op::Tan {},
    Op::Tanh {},
];

/// Functions of one complex number.
pub const COMPLEX: &[Op] = &[
    Op::Abs {},
    Op::Acos {},
    Op::Acosh {},
    Op::Asin {},
    Op::Asinh {},
    Op::Atanh {},
    Op::Cos {},
    Op::Cosh {},
    Op::Exp {},
    Op::Expm1 {},
    Op::Imag {},
    Op::Log {},
    Op::Log1p {},
    Op::Logistic {},
    Op::Negate {},
    Op::Real {},
    Op::Rsqrt {},
    Op::Sign {},
    Op::Sin {},
    Op::Sinh {},
    Op::Sqrt {},
    Op::Tan {},
    Op::Tanh {},
];

const INTEGER: &[Op] =
    &[Op::Abs {}, Op::CountLeadingZeros {}, Op::Negate {}, Op::Not {}, Op::PopulationCount {}, Op::Sign {}];

impl Writer<'_> {
    pub(super) fn unary(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let element_type = array.element_type;
        if element_type.is_floating_point() && self.draw.once_in(10) {
            let (exponent_bits, mantissa_bits) =
                self.draw.choose(&[(5, 10), (8, 7), (5, 2), (4, 3), (8, 23)]);
            return self.add(Op::ReducePrecision { exponent_bits, mantissa_bits }, &[x]);
        }
        let op = match element_type {
            Pred => Op::Not {},
            t if t.is_complex() => self.draw.pick(COMPLEX),
            t if t.is_integer() => self.draw.pick(INTEGER),
            _ => self.draw.pick(FLOAT),
        };
        self.add(op, &[x])
    }

    /// Returns a comparison. The total order depends on the sign of a NaN, which is unspecified for
    /// computed values, so it is used only if the operands are exact.
    pub(super) fn comparison(&mut self, element_type: PrimitiveType, are_exact: bool) -> Op {
        use ComparisonDirection::*;
        let direction = if element_type.is_complex() {
            self.draw.choose(&[Eq, Ne])
        } else {
            self.draw.choose(&[Eq, Ne, Ge, Gt, Le, Lt])
        };
        let is_total = are_exact && element_type.is_floating_point() && self.draw.once_in(4);
        let comparison_type = if is_total { ComparisonType::TotalOrder } else { ComparisonType::Default };
        Op::Compare { direction, comparison_type }
    }

    fn binary_op(&mut self, element_type: PrimitiveType) -> Op {
        let numbers = [
            Op::Add {},
            Op::Add {},
            Op::Subtract {},
            Op::Multiply {},
            Op::Multiply {},
            Op::Divide {},
            Op::Power {},
            Op::Maximum {},
            Op::Minimum {},
            Op::Remainder {},
        ];
        let bits = [
            Op::And {},
            Op::Or {},
            Op::Xor {},
            Op::ShiftLeft {},
            Op::ShiftRightArithmetic {},
            Op::ShiftRightLogical {},
        ];
        match element_type {
            Pred => self.draw.pick(&[Op::And {}, Op::Or {}, Op::Xor {}, Op::Maximum {}, Op::Minimum {}]),
            t if t.is_integer() && self.draw.once_in(3) => self.draw.pick(&bits),
            t if t.is_complex() && self.draw.once_in(12) => Op::Atan2 {},
            t if t.is_complex() => self.draw.pick(&numbers[..7]),
            t if t.is_floating_point() && self.draw.once_in(12) => Op::Atan2 {},
            F32 | F64 if self.draw.once_in(12) => Op::Complex {},
            _ => self.draw.pick(&numbers),
        }
    }

    pub(super) fn binary(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let y = self.like(array);
        let operands = if self.draw.once_in(2) { [x, y] } else { [y, x] };
        let op = if self.draw.once_in(7) {
            self.comparison(array.element_type, self.all_exact(&operands))
        } else {
            self.binary_op(array.element_type)
        };
        self.add(op, &operands)
    }

    pub(super) fn ternary(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let is_ordered = !array.element_type.is_complex() && array.element_type != Pred;
        if is_ordered && self.draw.once_in(3) {
            let bound =
                if self.draw.once_in(2) { ArrayShape::new(array.element_type, &[]) } else { array.clone() };
            let (low, high) = (self.like(&bound), self.like(&bound));
            return self.add(Op::Clamp {}, &[low, x, high]);
        }
        let of_predicate =
            if self.draw.once_in(5) { ArrayShape::new(Pred, &[]) } else { with_type(array, Pred) };
        let (predicate, y) = (self.like(&of_predicate), self.like(array));
        let operands = if self.draw.once_in(2) { [predicate, x, y] } else { [predicate, y, x] };
        self.add(Op::Select {}, &operands)
    }

    pub(super) fn convert(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let element_type = self.draw.choose(&PrimitiveType::ALL);
        let to = with_type(array, element_type);
        match self.draw.below(6) {
            0 => self.bitcast_convert(x, array),
            _ => self.add_shaped(to, Op::Convert {}, &[x]),
        }
    }

    /// Adds a bitcast to a type of the same width, or of another width with one dimension more or
    /// less. Takes only exact values: an ulp may be any number in another type.
    fn bitcast_convert(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        if !self.is_exact(x) {
            return None;
        }
        let from = array.element_type.bit_width();
        let fits = |t: &PrimitiveType| t.bit_width() >= 8 && *t != Pred && !t.is_complex();
        let types: Vec<PrimitiveType> = PrimitiveType::ALL.into_iter().filter(fits).collect();
        let element_type = self.draw.choose(&types);
        let to = element_type.bit_width();
        if from < 8 || array.element_type.is_complex() {
            return None;
        }
        let mut sizes = array.sizes();
        if from > to {
            sizes.push(i64::from(from / to));
        } else if from < to {
            sizes.pop();
        }
        self.add_shaped(ArrayShape::new(element_type, &sizes), Op::BitcastConvert {}, &[x])
    }

    /// Adds a function of scalars given as a computation.
    pub(super) fn map(&mut self, x: InstructionId, array: &ArrayShape) -> Option<InstructionId> {
        let y = self.like(array);
        let mut builder = ComputationBuilder::new("mapped");
        let scalar = Shape::scalar(array.element_type);
        let a = builder.parameter("a", scalar.clone());
        let b = builder.parameter("b", scalar);
        let first = self.binary_op(array.element_type);
        let first = builder.op(self.module, first, &[a, b]).ok()?;
        let second = self.binary_op(array.element_type);
        let second = builder.op(self.module, second, &[first, a]).ok()?;
        let to_apply = self.module.add_computation(builder.finish(second));
        self.add(Op::Map { dimensions: (0..array.rank()).collect(), to_apply }, &[x, y])
    }
}

pub(super) fn with_type(array: &ArrayShape, element_type: PrimitiveType) -> ArrayShape {
    ArrayShape::new(element_type, &array.sizes())
}
