//! Conversion of vectors of floats to integers, with the limits of the type for numbers beyond them
//! and 0 for NaN.
//!
//! On x86, LLVM 22 splits such a conversion into scalar ones: one lane after another is
//! extracted, converted, and inserted. There, this file emits it as arithmetic on whole vectors.

use inkwell::FloatPredicate;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, VectorValue};
use support::Result;
use target::Architecture;

use super::FunctionTranslator;
use crate::llvm::Built;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Converts floats to integers of the type `ty`.
    pub(crate) fn float_to_integer(
        &self,
        is_signed: bool,
        a: BasicValueEnum<'c>,
        ty: BasicTypeEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let is_x86 =
            matches!(self.module.target.triple.architecture, Architecture::X86 | Architecture::X86_64);
        if let (BasicValueEnum::VectorValue(a), BasicTypeEnum::VectorType(ty), true) = (a, ty, is_x86)
            && let Some(limits) = Limits::of(is_signed, a.get_type(), ty, self.module.target.has_float_parts)
        {
            return self.float_to_integer_in_lanes(&limits, a, ty);
        }
        self.saturated(if is_signed { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" }, a, ty)
    }

    fn float_to_integer_in_lanes(
        &self,
        limits: &Limits,
        a: VectorValue<'c>,
        ty: VectorType<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let builder = &self.builder;
        let lanes = ty.get_size();
        let splat = |number: f64| {
            let scalar = a.get_type().get_element_type().into_float_type().const_float(number);
            VectorType::const_vector(&vec![scalar; lanes as usize])
        };
        let vector = |value: BasicValueEnum<'c>| value.into_vector_value();
        // The operands are in the order of the instructions for maxima and minima.
        let (low, high) = (splat(limits.low), splat(limits.high));
        let is_above = builder.build_float_compare(FloatPredicate::OGT, a, low, "").built()?;
        let raised = vector(builder.build_select(is_above, a, low, "").built()?);
        let is_below = builder.build_float_compare(FloatPredicate::OLT, raised, high, "").built()?;
        let inside = vector(builder.build_select(is_below, raised, high, "").built()?);
        let context = self.module.context;
        let integer = if limits.bits > 32 { context.i64_type() } else { context.i32_type() };
        let mut integers = if limits.bits.is_multiple_of(32) {
            builder.build_float_to_unsigned_int(inside, integer.vec_type(lanes), "").built()?
        } else {
            builder.build_float_to_signed_int(inside, integer.vec_type(lanes), "").built()?
        };
        if limits.is_rounded {
            let most = integer.const_int(u64::MAX >> (64 - limits.bits), false);
            let most = VectorType::const_vector(&vec![most; lanes as usize]);
            let end = splat(2f64.powi(limits.bits as i32));
            let is_beyond = builder.build_float_compare(FloatPredicate::OGE, a, end, "").built()?;
            integers = vector(builder.build_select(is_beyond, most, integers, "").built()?);
        }
        let is_nan = builder.build_float_compare(FloatPredicate::UNO, a, a, "").built()?;
        let zero = integer.vec_type(lanes).const_zero();
        let integers = vector(builder.build_select(is_nan, zero, integers, "").built()?);
        if ty == integers.get_type() {
            return Ok(integers.into());
        }
        Ok(builder.build_int_truncate(integers, ty, "").built()?.into())
    }
}

/// The least and the largest float that convert to an integer type.
struct Limits {
    low: f64,
    high: f64,
    /// Bits of the largest integer.
    bits: u32,
    /// True if the largest integer is not a float.
    is_rounded: bool,
}

impl Limits {
    /// Returns `None` if LLVM splits the conversion to a type of this width anyway. AVX-512 has
    /// instructions for all, and those for `i32` serve narrower integers.
    fn of(is_signed: bool, from: VectorType<'_>, to: VectorType<'_>, has_all: bool) -> Option<Self> {
        let BasicTypeEnum::FloatType(float) = from.get_element_type() else { return None };
        let BasicTypeEnum::IntType(integer) = to.get_element_type() else { return None };
        let mantissa = match float.get_bit_width() {
            32 => 24,
            64 => 53,
            _ => return None,
        };
        let bits = integer.get_bit_width() - u32::from(is_signed);
        if !(1..=if has_all { 64 } else { 31 }).contains(&bits) {
            return None;
        }
        let end = 2f64.powi(bits as i32);
        let is_rounded = bits > mantissa;
        let step = if is_rounded { 2f64.powi((bits - mantissa) as i32) } else { 1.0 };
        Some(Self { low: if is_signed { -end } else { 0.0 }, high: end - step, bits, is_rounded })
    }
}
