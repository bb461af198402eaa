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
            && let Some(limits) = Limits::of(is_signed, a.get_type(), ty)
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
        let i32 = self.module.context.i32_type();
        let mut integers = builder.build_float_to_signed_int(inside, i32.vec_type(lanes), "").built()?;
        if limits.is_rounded {
            let most = i32.const_int(i32::MAX as u64, false);
            let most = VectorType::const_vector(&vec![most; lanes as usize]);
            let end = splat(f64::from(i32::MAX) + 1.0);
            let is_beyond = builder.build_float_compare(FloatPredicate::OGE, a, end, "").built()?;
            integers = vector(builder.build_select(is_beyond, most, integers, "").built()?);
        }
        let is_nan = builder.build_float_compare(FloatPredicate::UNO, a, a, "").built()?;
        let zero = i32.vec_type(lanes).const_zero();
        let integers = vector(builder.build_select(is_nan, zero, integers, "").built()?);
        if ty == integers.get_type() {
            return Ok(integers.into());
        }
        Ok(builder.build_int_truncate(integers, ty, "").built()?.into())
    }
}

/// The least and the largest float that convert to an integer type through `i32`.
struct Limits {
    low: f64,
    high: f64,
    /// True if the largest integer is not a float.
    is_rounded: bool,
}

impl Limits {
    /// Returns `None` if integers of the type do not fit `i32`.
    fn of(is_signed: bool, from: VectorType<'_>, to: VectorType<'_>) -> Option<Self> {
        let BasicTypeEnum::FloatType(float) = from.get_element_type() else { return None };
        let BasicTypeEnum::IntType(integer) = to.get_element_type() else { return None };
        let mantissa = match float.get_bit_width() {
            32 => 24,
            64 => 53,
            _ => return None,
        };
        let bits = integer.get_bit_width() - u32::from(is_signed);
        if !(1..=31).contains(&bits) {
            return None;
        }
        let end = 2f64.powi(bits as i32);
        let is_rounded = bits > mantissa;
        let step = if is_rounded { 2f64.powi((bits - mantissa) as i32) } else { 1.0 };
        Some(Self { low: if is_signed { -end } else { 0.0 }, high: end - step, is_rounded })
    }
}
