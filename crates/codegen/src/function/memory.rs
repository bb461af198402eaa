//! Translation of addresses, loads, and stores to LLVM instructions.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValueEnum, IntValue, PointerValue, VectorValue};
use nest::{Type, ValueId};
use support::{Error, Result};

use inkwell::attributes::AttributeLoc;

use super::FunctionTranslator;
use crate::llvm::Built;
use crate::module::vector_of;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Loads the value `id`.
    pub(crate) fn load(
        &self,
        id: ValueId,
        pointer: ValueId,
        alignment: u32,
        mask: Option<ValueId>,
    ) -> Result<BasicValueEnum<'c>> {
        let pointer = self.pointer(pointer)?;
        let lanes = mask.map(|mask| self.value(mask)).transpose()?;
        self.report_access(self.source.values[id], pointer, lanes, false)?;
        let Some(mask) = mask else {
            let value = self.builder.build_load(self.ty(id), pointer, "").built()?;
            self.align(value, alignment)?;
            return Ok(value);
        };
        let ty = self.source.values[id];
        let vector = self.vector_type(ty)?;
        let zeros = match vector {
            BasicTypeEnum::VectorType(v) => v.const_zero(),
            _ => return Err(Error::internal("expected a vector type of a masked load")),
        };
        let intrinsic = self.module.intrinsic("llvm.masked.load", &[vector, pointer.get_type().into()])?;
        let operands = [pointer.into(), self.mask(mask)?.into(), zeros.into()];
        let call = self.builder.build_call(intrinsic, &operands, "").built()?;
        call.set_alignment_attribute(AttributeLoc::Param(0), alignment);
        match call.try_as_basic_value().basic() {
            Some(BasicValueEnum::VectorValue(v)) if ty.lanes == 1 => self.extract(v, 0),
            Some(value) => Ok(value),
            None => Err(Error::internal("a masked load returned no value")),
        }
    }

    /// Stores a value.
    pub(crate) fn store(
        &self,
        value: ValueId,
        pointer: ValueId,
        alignment: u32,
        mask: Option<ValueId>,
    ) -> Result<()> {
        let (stored, pointer) = (self.value(value)?, self.pointer(pointer)?);
        let lanes = mask.map(|mask| self.value(mask)).transpose()?;
        self.report_access(self.source.values[value], pointer, lanes, true)?;
        let Some(mask) = mask else {
            let store = self.builder.build_store(pointer, stored).built()?;
            return store.set_alignment(alignment).map_err(|e| Error::internal(format!("store: {e}")));
        };
        let vector = self.vector_type(self.source.values[value])?;
        let stored = match stored {
            BasicValueEnum::VectorValue(v) => v,
            scalar => self.as_vector(scalar, 1)?,
        };
        let intrinsic = self.module.intrinsic("llvm.masked.store", &[vector, pointer.get_type().into()])?;
        let operands = [stored.into(), pointer.into(), self.mask(mask)?.into()];
        let call = self.builder.build_call(intrinsic, &operands, "").built()?;
        call.set_alignment_attribute(AttributeLoc::Param(1), alignment);
        Ok(())
    }

    /// Returns the type as a vector type, with one lane for a scalar.
    fn vector_type(&self, ty: Type) -> Result<BasicTypeEnum<'c>> {
        Ok(vector_of(self.module.ty(Type::scalar(ty.scalar)), ty.lanes))
    }

    fn mask(&self, mask: ValueId) -> Result<VectorValue<'c>> {
        match self.value(mask)? {
            BasicValueEnum::VectorValue(v) => Ok(v),
            scalar => self.as_vector(scalar, 1),
        }
    }

    fn align(&self, loaded: BasicValueEnum<'c>, alignment: u32) -> Result<()> {
        let instruction = match loaded {
            BasicValueEnum::VectorValue(v) => v.as_instruction(),
            BasicValueEnum::IntValue(v) => v.as_instruction(),
            BasicValueEnum::FloatValue(v) => v.as_instruction(),
            BasicValueEnum::PointerValue(v) => v.as_instruction(),
            _ => None,
        };
        let instruction =
            instruction.ok_or_else(|| Error::internal("LLVM returned a load that is not an instruction"))?;
        instruction.set_alignment(alignment).map_err(|e| Error::internal(format!("load: {e}")))
    }

    /// Copies bytes between regions that do not overlap.
    pub(crate) fn copy_bytes(
        &self,
        to: PointerValue<'c>,
        from: PointerValue<'c>,
        bytes: IntValue<'c>,
    ) -> Result<()> {
        if !self.module.calls_memory_functions_by_name(bytes) {
            self.builder.build_memcpy(to, 1, from, 1, bytes).built()?;
            return Ok(());
        }
        let address = to.get_type();
        let size = self.module.size_type();
        let ty = address.fn_type(&[address.into(), address.into(), size.into()], false);
        let bytes = self.builder.build_int_cast(bytes, size, "").built()?;
        let memcpy = self.module.memory_function("memcpy", ty)?;
        self.builder.build_call(memcpy, &[to.into(), from.into(), bytes.into()], "").built()?;
        Ok(())
    }

    /// Fills bytes.
    pub(crate) fn fill_bytes(
        &self,
        to: PointerValue<'c>,
        byte: IntValue<'c>,
        bytes: IntValue<'c>,
    ) -> Result<()> {
        if !self.module.calls_memory_functions_by_name(bytes) {
            self.builder.build_memset(to, 1, byte, bytes).built()?;
            return Ok(());
        }
        let (address, int, size) = (to.get_type(), self.module.context.i32_type(), self.module.size_type());
        let ty = address.fn_type(&[address.into(), int.into(), size.into()], false);
        let byte = self.builder.build_int_z_extend(byte, int, "").built()?;
        let bytes = self.builder.build_int_cast(bytes, size, "").built()?;
        let memset = self.module.memory_function("memset", ty)?;
        self.builder.build_call(memset, &[to.into(), byte.into(), bytes.into()], "").built()?;
        Ok(())
    }

    /// Prefetches the cache line of an address.
    pub(crate) fn prefetch(&self, pointer: ValueId, cache: u32) -> Result<()> {
        const READ: u64 = 0;
        const DATA: u64 = 1;
        /// LLVM's locality argument for the first cache; the second cache is one less.
        const NEAREST: u64 = 3;
        let pointer = self.pointer(pointer)?;
        let int = |value: u64| self.module.context.i32_type().const_int(value, false).into();
        let intrinsic = self.module.intrinsic("llvm.prefetch", &[pointer.get_type().into()])?;
        let locality = NEAREST.saturating_sub(u64::from(cache).saturating_sub(1));
        let operands = [pointer.into(), int(READ), int(locality), int(DATA)];
        self.builder.build_call(intrinsic, &operands, "").built()?;
        Ok(())
    }
}
