//! The operation of a reduction that may run in any order.

use crate::context::KernelContext;
use crate::element::{Element, register_type};
use crate::elemental;
use hlo::{ComputationId, Op};
use nest::{FunctionBuilder, ScalarType, Type, ValueId};
use shape::PrimitiveType;
use support::{Error, Result};

/// One associative and commutative opcode on elements of one type.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation<'a> {
    op: &'a Op,
    /// The type of the accumulators. Narrow floats accumulate in `F32` and round at the end.
    accumulator_type: PrimitiveType,
}

impl<'a> Operation<'a> {
    /// Returns the operation that a computation applies to its two parameters, or to each part of
    /// complex ones.
    pub(crate) fn of(cx: &KernelContext<'a>, to_apply: ComputationId, element_type: PrimitiveType) -> Self {
        let computation = &cx.module()[to_apply];
        let part = element_type.real_part();
        let is_narrow = part.is_floating_point() && part.byte_size() < 4;
        let accumulator_type = if is_narrow { PrimitiveType::F32 } else { part };
        Self { op: computation[computation.root()].op(), accumulator_type }
    }

    /// True if results are rounded, so that blocks make long reductions more accurate.
    pub(crate) fn rounds(&self) -> bool {
        matches!(self.op, Op::Add {}) && self.accumulator_type.is_floating_point()
    }

    /// Combines two accumulators, or an accumulator and an element.
    pub(crate) fn combine(&self, cx: &mut KernelContext<'_>, x: ValueId, y: ValueId) -> Result<ValueId> {
        let types = [self.accumulator_type; 2];
        let elements = [Element::Real(x), Element::Real(y)];
        let target = cx.target();
        elemental::emit(cx, target, self.op, &types, self.accumulator_type, &elements).map(Element::real)
    }

    /// Returns the neutral element in `lanes` lanes.
    pub(crate) fn neutral(&self, b: &mut FunctionBuilder, lanes: u32) -> Result<ValueId> {
        let ty = Type::vector(register_type(self.accumulator_type), lanes);
        if ty.scalar.is_float() {
            return Ok(b.float(
                ty,
                match self.op {
                    // Adding +0 would turn -0 into +0.
                    Op::Add {} => -0.0,
                    Op::Multiply {} => 1.0,
                    Op::Maximum {} => f64::NEG_INFINITY,
                    Op::Minimum {} => f64::INFINITY,
                    _ => return Err(self.unknown()),
                },
            ));
        }
        let is_signed = self.accumulator_type.is_signed_integer();
        let width = self.accumulator_type.bit_width();
        let greatest = if is_signed { (1i64 << (width - 1)).wrapping_sub(1) } else { -1 };
        let value = match self.op {
            Op::Add {} | Op::Or {} | Op::Xor {} => 0,
            Op::Multiply {} => 1,
            Op::And {} => -1,
            Op::Maximum {} => {
                if is_signed {
                    !greatest
                } else {
                    0
                }
            }
            Op::Minimum {} => greatest,
            _ => return Err(self.unknown()),
        };
        let is_bool = ty.scalar == ScalarType::Bool;
        let value = if is_bool { value & 1 } else { value };
        let is_sub_byte = !is_signed && width < 8 && !is_bool;
        Ok(b.integer(ty, if is_sub_byte { value & ((1 << width) - 1) } else { value }))
    }

    fn unknown(&self) -> Error {
        Error::internal(format!(
            "expected a reduction that may run in any order, got opcode {}",
            self.op.opcode().name()
        ))
    }
}
