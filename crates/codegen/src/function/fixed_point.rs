//! Translation of products of fixed-point numbers: `(a * b + 2^30) >> 31` in 64 bits, of which the
//! lower half is the result.

use inkwell::types::{BasicTypeEnum, IntType, VectorType};
use inkwell::values::{BasicValueEnum, InstructionOpcode, VectorValue};
use nest::{ScalarType, Type, ValueId};
use support::Result;
use target::Architecture;

use super::FunctionTranslator;
use crate::llvm::Built;

/// Bits after the point.
const FRACTION: u64 = 31;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits the product of two numbers or vectors of 32 bits.
    pub(crate) fn multiply_fixed(&self, ty: Type, a: ValueId, b: ValueId) -> Result<BasicValueEnum<'c>> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        let is_x86 = self.module.target.triple.architecture == Architecture::X86_64;
        if let (BasicValueEnum::VectorValue(a), BasicValueEnum::VectorValue(b)) = (a, b)
            && is_x86
            && ty.lanes.is_multiple_of(4)
        {
            return self.multiply_in_halves(ty, a, b);
        }
        let wide = self.module.ty(ty.with_scalar(ScalarType::I64));
        let half = self.number(wide, 1 << (FRACTION - 1));
        let extend = |x| self.builder.build_cast(InstructionOpcode::SExt, x, wide, "").built();
        let product = self.operation(InstructionOpcode::Mul, extend(a)?, extend(b)?)?;
        let sum = self.operation(InstructionOpcode::Add, product, half)?;
        let quotient = self.operation(InstructionOpcode::LShr, sum, self.number(wide, FRACTION))?;
        let narrow = self.module.ty(ty);
        self.builder.build_cast(InstructionOpcode::Trunc, quotient, narrow, "").built()
    }

    /// Multiplies even and odd lanes separately, as x86 does. No lane moves: the upper halves of
    /// the 64-bit lanes are the odd ones.
    fn multiply_in_halves(
        &self,
        ty: Type,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let wide: BasicTypeEnum<'c> = self.module.context.i64_type().vec_type(ty.lanes / 2).into();
        let number = |value| self.number(wide, value);
        let cast = |x: VectorValue<'c>| self.builder.build_bit_cast(x, wide, "").built();
        let (a, b) = (cast(a)?, cast(b)?);
        let even = |x| {
            let upper = self.operation(InstructionOpcode::Shl, x, number(32))?;
            self.operation(InstructionOpcode::AShr, upper, number(32))
        };
        let odd = |x| self.operation(InstructionOpcode::AShr, x, number(32));
        let rounded = |x, y| {
            let product = self.operation(InstructionOpcode::Mul, x, y)?;
            self.operation(InstructionOpcode::Add, product, number(1 << (FRACTION - 1)))
        };
        let evens = rounded(even(a)?, even(b)?)?;
        let odds = rounded(odd(a)?, odd(b)?)?;
        let evens = self.operation(InstructionOpcode::LShr, evens, number(FRACTION))?;
        let odds = self.operation(InstructionOpcode::Shl, odds, number(32 - FRACTION))?;
        let lanes = self.module.ty(ty);
        let evens = self.builder.build_bit_cast(evens, lanes, "").built()?.into_vector_value();
        let odds = self.builder.build_bit_cast(odds, lanes, "").built()?.into_vector_value();
        let i32 = self.module.context.i32_type();
        let order: Vec<_> =
            (0..ty.lanes).map(|lane| i32.const_int(u64::from(lane + lane % 2 * ty.lanes), false)).collect();
        Ok(self
            .builder
            .build_shuffle_vector(evens, odds, VectorType::const_vector(&order), "")
            .built()?
            .into())
    }

    fn operation(
        &self,
        opcode: InstructionOpcode,
        a: BasicValueEnum<'c>,
        b: BasicValueEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        self.builder.build_binop(opcode, a, b, "").built()
    }

    /// Returns a number, in every lane of a vector.
    fn number(&self, ty: BasicTypeEnum<'c>, value: u64) -> BasicValueEnum<'c> {
        let of = |ty: IntType<'c>| ty.const_int(value, false);
        match ty {
            BasicTypeEnum::VectorType(vector) => {
                let lane = of(vector.get_element_type().into_int_type());
                VectorType::const_vector(&vec![lane; vector.get_size() as usize]).into()
            }
            scalar => of(scalar.into_int_type()).into(),
        }
    }
}
