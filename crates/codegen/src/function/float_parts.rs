//! Exponents and mantissas of floats, powers of two, and estimates of reciprocals. They use AVX-512
//! instructions, which LLVM exposes only as processor-specific intrinsics.

use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, VectorValue};
use nest::{ScalarType, Type, UnaryOp, ValueId};
use support::{Error, Result};

use super::FunctionTranslator;
use crate::llvm::Built;

/// True if an operation is one of these.
pub(crate) fn is_part(op: UnaryOp) -> bool {
    name_of(op).is_some()
}

/// Returns the middle part of an intrinsic's name.
fn name_of(op: UnaryOp) -> Option<&'static str> {
    match op {
        UnaryOp::Exponent => Some("mask.getexp"),
        UnaryOp::Mantissa => Some("mask.getmant"),
        UnaryOp::ReciprocalEstimate => Some("rcp14"),
        UnaryOp::ReciprocalRootEstimate => Some("rsqrt14"),
        _ => None,
    }
}

/// The interval [0.75, 1.5), and NaN for negative numbers.
const MANTISSA_FORM: u64 = 0b1111;
/// The current rounding mode, to nearest.
const CURRENT_DIRECTION: u64 = 4;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits an operation with one float operand.
    pub(crate) fn float_part(&self, ty: Type, op: UnaryOp, a: ValueId) -> Result<BasicValueEnum<'c>> {
        let name = name_of(op).ok_or_else(|| Error::internal("unexpected operation: not a float part"))?;
        let i32 = self.module.context.i32_type();
        self.in_registers(ty, &[a], |operands, register| {
            let mut arguments: Vec<BasicMetadataValueEnum<'c>> = vec![operands[0].into()];
            if op == UnaryOp::Mantissa {
                arguments.push(i32.const_int(MANTISSA_FORM, false).into());
            }
            arguments.push(operands[0].into());
            arguments.push(register.all_lanes(self));
            if register.bits() == 512 && matches!(op, UnaryOp::Exponent | UnaryOp::Mantissa) {
                arguments.push(i32.const_int(CURRENT_DIRECTION, false).into());
            }
            self.call(&register.intrinsic(name), &[], &arguments)
        })
    }

    /// Emits `a * 2^floor(b)`.
    pub(crate) fn scale(&self, ty: Type, a: ValueId, b: ValueId) -> Result<BasicValueEnum<'c>> {
        let i32 = self.module.context.i32_type();
        self.in_registers(ty, &[a, b], |operands, register| {
            let mut arguments: Vec<BasicMetadataValueEnum<'c>> =
                vec![operands[0].into(), operands[1].into(), operands[0].into(), register.all_lanes(self)];
            if register.bits() == 512 {
                arguments.push(i32.const_int(CURRENT_DIRECTION, false).into());
            }
            self.call(&register.intrinsic("mask.scalef"), &[], &arguments)
        })
    }

    /// Applies an operation on whole registers to values with any number of lanes.
    fn in_registers(
        &self,
        ty: Type,
        operands: &[ValueId],
        operation: impl Fn(&[VectorValue<'c>], Register) -> Result<BasicValueEnum<'c>>,
    ) -> Result<BasicValueEnum<'c>> {
        let most = 64 / ty.scalar.byte_size() as u32;
        let least = most / 4;
        let vectors = operands
            .iter()
            .map(|&id| match self.value(id)? {
                BasicValueEnum::VectorValue(vector) => Ok(vector),
                scalar => self.as_vector(scalar, least),
            })
            .collect::<Result<Vec<_>>>()?;
        let of_part = |first: u32, lanes: u32| {
            let register = Register { scalar: ty.scalar, lanes: lanes.next_power_of_two().max(least) };
            let parts = vectors
                .iter()
                .map(|&vector| self.lanes_of(vector, first, register.lanes))
                .collect::<Result<Vec<_>>>()?;
            match operation(&parts, register)? {
                BasicValueEnum::VectorValue(result) => Ok(result),
                _ => Err(Error::internal("expected a vector from a vector intrinsic")),
            }
        };
        if ty.lanes == 1 {
            return self.extract(of_part(0, 1)?, 0);
        }
        let mut whole: Option<(VectorValue<'c>, u32)> = None;
        for first in (0..ty.lanes).step_by(most as usize) {
            let lanes = most.min(ty.lanes - first);
            let part = of_part(first, lanes)?;
            whole = Some(match whole {
                None => (part, lanes),
                Some((before, count)) => (self.joined(before, count, part, lanes)?, count + lanes),
            });
        }
        let (whole, count) = whole.ok_or_else(|| Error::internal("unexpected vector without lanes"))?;
        Ok(self.lanes_of(whole, 0, count)?.into())
    }

    /// Returns `lanes` lanes of a vector starting at `first`. Lanes beyond the last one repeat it.
    fn lanes_of(&self, vector: VectorValue<'c>, first: u32, lanes: u32) -> Result<VectorValue<'c>> {
        let size = vector.get_type().get_size();
        if first == 0 && lanes == size {
            return Ok(vector);
        }
        let picked: Vec<u32> = (first..first + lanes).map(|lane| lane.min(size - 1)).collect();
        self.picked(vector, vector, &picked)
    }

    /// Concatenates the leading lanes of two vectors.
    fn joined(
        &self,
        a: VectorValue<'c>,
        of_a: u32,
        b: VectorValue<'c>,
        of_b: u32,
    ) -> Result<VectorValue<'c>> {
        // A shuffle requires vectors of equal size.
        let size = a.get_type().get_size().max(b.get_type().get_size());
        let (a, b) = (self.lanes_of(a, 0, size)?, self.lanes_of(b, 0, size)?);
        let picked: Vec<u32> = (0..of_a).chain(size..size + of_b).collect();
        self.picked(a, b, &picked)
    }

    fn picked(&self, a: VectorValue<'c>, b: VectorValue<'c>, lanes: &[u32]) -> Result<VectorValue<'c>> {
        let i32 = self.module.context.i32_type();
        let lanes: Vec<_> = lanes.iter().map(|&lane| i32.const_int(u64::from(lane), false)).collect();
        let mask = inkwell::types::VectorType::const_vector(&lanes);
        self.builder.build_shuffle_vector(a, b, mask, "").built()
    }
}

/// A vector register of the processor.
#[derive(Clone, Copy)]
struct Register {
    scalar: ScalarType,
    lanes: u32,
}

impl Register {
    fn bits(self) -> u32 {
        8 * self.scalar.byte_size() as u32 * self.lanes
    }

    /// Returns the intrinsic's name for this register size.
    fn intrinsic(self, name: &str) -> String {
        let kind = if self.scalar == ScalarType::F32 { "ps" } else { "pd" };
        format!("llvm.x86.avx512.{name}.{kind}.{}", self.bits())
    }

    /// Returns a mask of all lanes.
    fn all_lanes<'c>(self, translator: &FunctionTranslator<'_, 'c>) -> BasicMetadataValueEnum<'c> {
        let context = translator.module.context;
        let ty = if self.lanes > 8 { context.i16_type() } else { context.i8_type() };
        ty.const_all_ones().into()
    }
}
