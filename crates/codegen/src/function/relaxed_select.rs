//! Selections between floats for WebAssembly with relaxed SIMD, by an intrinsic.
//!
//! LLVM 22 replaces a comparison and a selection between its operands by `relaxed_min` or
//! `relaxed_max`, which may return either operand if one is NaN or both are zeros. The selection
//! says which one. The intrinsic has no such replacement.

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValueEnum, VectorValue};
use support::{Error, Result};

use super::FunctionTranslator;
use crate::llvm::Built;

/// Size of a register in bytes.
const REGISTER: u32 = 16;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Returns the lanes of `a` where the condition holds, and of `b` elsewhere. The lanes are
    /// floats of 32 or 64 bits.
    pub(super) fn relaxed_select(
        &self,
        condition: VectorValue<'c>,
        a: VectorValue<'c>,
        b: VectorValue<'c>,
    ) -> Result<VectorValue<'c>> {
        let element = a.get_type().get_element_type();
        let own = a.get_type().get_size();
        let lanes = REGISTER / if element == self.module.context.f64_type().into() { 8 } else { 4 };
        let builder = &self.builder;
        if own == lanes {
            let context = self.module.context;
            let integer = if lanes == 2 { context.i64_type() } else { context.i32_type() };
            let integers = integer.vec_type(lanes);
            let bits = |value: VectorValue<'c>| builder.build_bit_cast(value, integers, "").built();
            let mask = builder.build_int_s_extend(condition, integers, "").built()?;
            let operands = [bits(a)?.into(), bits(b)?.into(), mask.into()];
            let chosen = self.call("llvm.wasm.bitselect", &[integers.into()], &operands)?;
            return vector(builder.build_bit_cast(chosen, a.get_type(), "").built()?);
        }
        let whole = own.next_power_of_two().max(lanes);
        if own < whole {
            let [condition, a, b] = [condition, a, b].map(|value| self.lanes_from(value, 0, whole));
            return self.lanes_from(self.relaxed_select(condition?, a?, b?)?, 0, own);
        }
        let half = |first: u32| {
            let [condition, a, b] = [condition, a, b].map(|value| self.lanes_from(value, first, own / 2));
            self.relaxed_select(condition?, a?, b?)
        };
        let mask = self.lane_numbers(0..own, own);
        builder.build_shuffle_vector(half(0)?, half(own / 2)?, mask, "").built()
    }

    /// True if values of a type are selected by [`Self::relaxed_select`] on this target.
    pub(super) fn is_select_relaxed(&self, ty: BasicTypeEnum<'c>) -> bool {
        let context = self.module.context;
        let floats = [context.f32_type().into(), context.f64_type().into()];
        let BasicTypeEnum::VectorType(ty) = ty else { return false };
        self.module.target.has_relaxed_simd() && floats.contains(&ty.get_element_type())
    }

    /// Lanes of a vector from a first one. Those beyond its end have any value.
    fn lanes_from(&self, vector: VectorValue<'c>, first: u32, lanes: u32) -> Result<VectorValue<'c>> {
        let mask = self.lane_numbers(first..first + lanes, vector.get_type().get_size());
        self.builder.build_shuffle_vector(vector, vector.get_type().get_poison(), mask, "").built()
    }

    /// Numbers of lanes as a constant, without those from `end`.
    fn lane_numbers(&self, lanes: std::ops::Range<u32>, end: u32) -> VectorValue<'c> {
        let i32 = self.module.context.i32_type();
        let number = |lane| if lane < end { i32.const_int(u64::from(lane), false) } else { i32.get_poison() };
        VectorType::const_vector(&lanes.map(number).collect::<Vec<_>>())
    }
}

fn vector(value: BasicValueEnum<'_>) -> Result<VectorValue<'_>> {
    match value {
        BasicValueEnum::VectorValue(value) => Ok(value),
        _ => Err(Error::internal("expected a vector from a selection between vectors")),
    }
}
