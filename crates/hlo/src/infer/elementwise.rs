//! Elementwise opcodes: their valid element types, and the agreement of their operands.

use super::{Inference, either_dynamic, with_type};
use crate::attributes::{ComparisonDirection, ComparisonType};
use crate::opcode::Op;
use shape::{ArrayShape, Dimension, PrimitiveType, Shape};
use support::Result;

/// A set of element types, with an adjective for messages.
struct Types(&'static str, fn(PrimitiveType) -> bool);

const FLOAT: Types = Types("floating-point", PrimitiveType::is_floating_point);
const FLOAT_OR_COMPLEX: Types =
    Types("floating-point or complex", |t| t.is_floating_point() || t.is_complex());
const INTEGER: Types = Types("integer", PrimitiveType::is_integer);
const INTEGER_OR_PRED: Types = Types("integer or pred", |t| t.is_integer() || t == PrimitiveType::Pred);
const NUMBER: Types = Types("numeric", |t| t != PrimitiveType::Pred);
const REAL_NUMBER: Types = Types("real", |t| t != PrimitiveType::Pred && !t.is_complex());
const SIGNED: Types = Types("signed", |t| t != PrimitiveType::Pred && !t.is_unsigned_integer());
const NOT_COMPLEX: Types = Types("non-complex", |t| !t.is_complex());
const ANY: Types = Types("any", |_| true);

impl Inference<'_> {
    fn check_type(&self, types: &Types, array: &ArrayShape) -> Result<()> {
        let Types(words, contains) = types;
        let element_type = array.element_type;
        self.check(contains(element_type), format_args!("expected {words} elements, got {element_type}"))
    }

    /// Checks that arrays agree in element type and sizes; a result dimension is dynamic if it is
    /// in any array.
    fn check_same(&self, arrays: &[&ArrayShape]) -> Result<Vec<Dimension>> {
        let first = arrays[0];
        let mut dimensions = first.dimensions.clone();
        for array in &arrays[1..] {
            self.check(
                array.element_type == first.element_type,
                "the operands must have the same element type",
            )?;
            self.check(array.sizes() == first.sizes(), "the operands must have the same dimensions")?;
            for (dimension, other) in dimensions.iter_mut().zip(&array.dimensions) {
                *dimension = either_dynamic(*dimension, *other);
            }
        }
        Ok(dimensions)
    }

    pub(super) fn unary(&self) -> Result<Shape> {
        if matches!(self.op, Op::Copy {}) {
            return Ok(self.operand(0)?.clone());
        }
        let operand = self.array(0)?;
        self.check_type(unary_types(self.op), operand)?;
        let element_type = operand.element_type;
        Ok(match self.op {
            Op::IsFinite {} => with_type(operand, PrimitiveType::Pred),
            Op::Abs {} | Op::Real {} | Op::Imag {} => with_type(operand, element_type.real_part()),
            _ => with_type(operand, element_type),
        })
    }

    pub(super) fn binary(&self) -> Result<Shape> {
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        let dimensions = self.check_same(&[lhs, rhs])?;
        self.check_type(binary_types(self.op), lhs)?;
        let element_type = match self.op {
            Op::Complex {} => self.complex_of(lhs.element_type)?,
            _ => lhs.element_type,
        };
        Ok(super::array_of(element_type, dimensions))
    }

    fn complex_of(&self, part: PrimitiveType) -> Result<PrimitiveType> {
        match part {
            PrimitiveType::F32 => Ok(PrimitiveType::C64),
            PrimitiveType::F64 => Ok(PrimitiveType::C128),
            _ => Err(self.error("the parts of a complex number must be f32 or f64")),
        }
    }

    pub(super) fn compare(&self, direction: ComparisonDirection, order: ComparisonType) -> Result<Shape> {
        let (lhs, rhs) = (self.array(0)?, self.array(1)?);
        let dimensions = self.check_same(&[lhs, rhs])?;
        if !matches!(direction, ComparisonDirection::Eq | ComparisonDirection::Ne) {
            self.check_type(&NOT_COMPLEX, lhs)?;
        }
        if order == ComparisonType::TotalOrder {
            self.check_type(&FLOAT, lhs)?;
        }
        Ok(super::array_of(PrimitiveType::Pred, dimensions))
    }

    pub(super) fn select(&self) -> Result<Shape> {
        let (pred, on_true, on_false) = (self.array(0)?, self.array(1)?, self.array(2)?);
        self.check(pred.element_type == PrimitiveType::Pred, "the first operand must be pred")?;
        let mut dimensions = self.check_same(&[on_true, on_false])?;
        if pred.rank() > 0 {
            self.check(
                pred.sizes() == on_true.sizes(),
                "the predicate must be a scalar or have the same dimensions as the operands",
            )?;
            for (dimension, other) in dimensions.iter_mut().zip(&pred.dimensions) {
                *dimension = either_dynamic(*dimension, *other);
            }
        }
        Ok(super::array_of(on_true.element_type, dimensions))
    }

    pub(super) fn clamp(&self) -> Result<Shape> {
        let (min, operand, max) = (self.array(0)?, self.array(1)?, self.array(2)?);
        self.check_type(&NOT_COMPLEX, operand)?;
        for bound in [min, max] {
            self.check(
                bound.element_type == operand.element_type,
                "the operands must have the same element type",
            )?;
            self.check(
                bound.rank() == 0 || bound.sizes() == operand.sizes(),
                "a bound must be a scalar or have the dimensions of the clamped operand",
            )?;
        }
        Ok(with_type(operand, operand.element_type))
    }

    pub(super) fn convert(&self) -> Result<Shape> {
        let operand = self.array(0)?;
        let element_type = self.declared_array()?.element_type;
        let drops_imaginary = operand.element_type.is_complex() && !element_type.is_complex();
        self.check(!drops_imaginary, format_args!("cannot convert complex elements to {element_type}"))?;
        Ok(with_type(operand, element_type))
    }

    pub(super) fn bitcast_convert(&self) -> Result<Shape> {
        let operand = self.array(0)?;
        let (from, to) = (operand.element_type, self.declared_array()?.element_type);
        self.check(
            from.is_complex() == to.is_complex() || from == to,
            "cannot convert between real and complex elements",
        )?;
        let (wide, narrow) = (from.bit_width().max(to.bit_width()), from.bit_width().min(to.bit_width()));
        self.check(
            wide % narrow == 0,
            format_args!("the wider of {from} and {to} must be a multiple of the narrower"),
        )?;
        let ratio = i64::from(wide / narrow);
        let mut dimensions = operand.dimensions.clone();
        if from.bit_width() > to.bit_width() {
            dimensions.push(ratio.into());
        } else if from.bit_width() < to.bit_width() {
            self.check(
                dimensions.last() == Some(&ratio.into()),
                format_args!("the last dimension must have size {ratio} to convert {from} to {to}"),
            )?;
            dimensions.pop();
        }
        Ok(super::array_of(to, dimensions))
    }

    pub(super) fn stochastic_convert(&self) -> Result<Shape> {
        let (operand, random) = (self.array(0)?, self.array(1)?);
        self.check_type(&FLOAT, operand)?;
        self.check(
            random.element_type.is_unsigned_integer()
                && random.element_type.bit_width() == operand.element_type.bit_width(),
            "the random bits must be unsigned integers as wide as the operand",
        )?;
        self.check(random.sizes() == operand.sizes(), "the operands must have the same dimensions")?;
        Ok(with_type(operand, self.declared_array()?.element_type))
    }

    pub(super) fn reduce_precision(&self, exponent_bits: u32) -> Result<Shape> {
        let operand = self.array(0)?;
        self.check_type(&FLOAT, operand)?;
        self.check(exponent_bits >= 1, "expected at least one exponent bit")?;
        Ok(with_type(operand, operand.element_type))
    }
}

fn unary_types(op: &Op) -> &'static Types {
    match op {
        Op::Cbrt {}
        | Op::Ceil {}
        | Op::Erf {}
        | Op::Floor {}
        | Op::IsFinite {}
        | Op::RoundNearestAfz {}
        | Op::RoundNearestEven {} => &FLOAT,
        Op::CountLeadingZeros {} | Op::PopulationCount {} => &INTEGER,
        Op::Not {} => &INTEGER_OR_PRED,
        Op::Negate {} => &NUMBER,
        Op::Abs {} | Op::Sign {} => &SIGNED,
        Op::Copy {} => &ANY,
        _ => &FLOAT_OR_COMPLEX,
    }
}

fn binary_types(op: &Op) -> &'static Types {
    match op {
        Op::And {} | Op::Or {} | Op::Xor {} => &INTEGER_OR_PRED,
        Op::ShiftLeft {} | Op::ShiftRightArithmetic {} | Op::ShiftRightLogical {} => &INTEGER,
        Op::Subtract {} | Op::Divide {} | Op::Power {} => &NUMBER,
        Op::Remainder {} => &REAL_NUMBER,
        Op::Maximum {} | Op::Minimum {} => &NOT_COMPLEX,
        Op::Atan2 {} => &FLOAT_OR_COMPLEX,
        Op::Complex {} => &FLOAT,
        _ => &ANY,
    }
}
