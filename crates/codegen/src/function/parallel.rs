//! Parallel calls: the work runs through the frame's `parallel_for`, or by one direct call without
//! it.
//!
//! `parallel_for` calls a thunk with C's calling convention, which reads the callee's arguments
//! from a record on the entry's stack. All parallel calls of the entry share one record because
//! each ends before the next begins, so the stack does not grow with their number.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::module::Linkage;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use nest::stack::part_symbol;
use nest::{FrameLayout, FunctionId, Statement, ValueId};
use support::{Error, Result};

use super::FunctionTranslator;
use crate::llvm::Built;
use crate::module::ModuleTranslator;

/// Size and alignment in bytes of each argument in the record, for any type.
const ARGUMENT_BYTES: u64 = 8;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Emits a parallel call. Afterward, the builder is in a new block.
    pub(crate) fn parallel(&mut self, function: FunctionId, count: i64, arguments: &[ValueId]) -> Result<()> {
        let callee = self.module.callee(function)?;
        let arguments = self.all(arguments.iter().copied())?;
        let parallel_for = self.frame_field(FrameLayout::parallel_for)?;
        let is_serial = self.builder.build_is_null(parallel_for, "").built()?;
        let (serial, shared, next) = (self.new_block(), self.new_block(), self.new_block());
        self.builder.build_conditional_branch(is_serial, serial, shared).built()?;

        self.builder.position_at_end(serial);
        let i64 = self.module.context.i64_type();
        let (zero, end) = (i64.const_zero(), i64.const_int(count as u64, true));
        let mut direct: Vec<BasicMetadataValueEnum<'c>> = arguments.iter().map(|&a| a.into()).collect();
        direct.extend([zero, end, zero].map(BasicMetadataValueEnum::from));
        self.builder.build_call(callee, &direct, "").built()?;
        self.builder.build_unconditional_branch(next).built()?;

        self.builder.position_at_end(shared);
        let record = self.argument_record()?;
        self.write_record(record, &arguments)?;
        let types: Vec<BasicTypeEnum<'c>> = arguments.iter().map(BasicValueEnum::get_type).collect();
        let thunk = self.module.thunk(function, &types)?;
        let context = self.frame_field(FrameLayout::context)?;
        let operands =
            [context.into(), end.into(), thunk.as_global_value().as_pointer_value().into(), record.into()];
        let ptr = self.module.context.ptr_type(AddressSpace::default());
        let ty =
            self.module.context.i32_type().fn_type(&[ptr.into(), i64.into(), ptr.into(), ptr.into()], false);
        let call = self.builder.build_indirect_call(ty, parallel_for, &operands, "").built()?;
        let Some(BasicValueEnum::IntValue(status)) = call.try_as_basic_value().basic() else {
            return Err(Error::internal("expected an integer from parallel_for"));
        };
        let fine = self.module.context.i32_type().const_zero();
        let is_fine = self.builder.build_int_compare(IntPredicate::EQ, status, fine, "").built()?;
        let failed = self.new_block();
        self.builder.build_conditional_branch(is_fine, next, failed).built()?;
        self.builder.position_at_end(failed);
        self.builder.build_return(Some(&status)).built()?;

        self.builder.position_at_end(next);
        Ok(())
    }

    /// Reads an address from the frame, which is the function's only parameter.
    fn frame_field(&self, field: impl FnOnce(FrameLayout) -> i64) -> Result<PointerValue<'c>> {
        let layout = FrameLayout::new(self.module.target.pointer_bytes);
        let frame = match self.source.parameters.as_slice() {
            [frame] => self.pointer(frame.value)?,
            _ => return Err(Error::internal("unexpected parallel call outside of the entry")),
        };
        let place = self.module.constant_offset(&self.builder, frame, field(layout) as u64)?;
        let ptr = self.module.context.ptr_type(AddressSpace::default());
        Ok(self.builder.build_load(ptr, place, "").built()?.into_pointer_value())
    }

    /// Returns the record on the stack, which is large enough for every parallel call of the
    /// function.
    fn argument_record(&mut self) -> Result<PointerValue<'c>> {
        if let Some(record) = self.argument_record {
            return Ok(record);
        }
        let arguments = self.source.body.walk().filter_map(|statement| match statement {
            Statement::Parallel { arguments, .. } => Some(arguments.len()),
            _ => None,
        });
        let bytes = arguments.max().unwrap_or(0) as u64 * ARGUMENT_BYTES;
        let record = self.stack_slot(bytes.max(ARGUMENT_BYTES), ARGUMENT_BYTES as u32)?.into_pointer_value();
        self.argument_record = Some(record);
        Ok(record)
    }

    fn write_record(&self, record: PointerValue<'c>, arguments: &[BasicValueEnum<'c>]) -> Result<()> {
        for (k, &argument) in arguments.iter().enumerate() {
            let place = self.module.constant_offset(&self.builder, record, k as u64 * ARGUMENT_BYTES)?;
            self.builder.build_store(place, argument).built()?;
        }
        Ok(())
    }
}

impl<'c> ModuleTranslator<'c> {
    /// Emits the body that `parallel_for` calls: `int32_t(void* record, int64_t begin, int64_t end,
    /// int64_t worker)`.
    fn thunk(&self, function: FunctionId, arguments: &[BasicTypeEnum<'c>]) -> Result<FunctionValue<'c>> {
        let callee = self.callee(function)?;
        let name = part_symbol(&callee.get_name().to_string_lossy());
        if let Some(thunk) = self.module.get_function(&name) {
            return Ok(thunk);
        }
        let (i64, i32) = (self.context.i64_type(), self.context.i32_type());
        let ptr = self.context.ptr_type(AddressSpace::default());
        let ty = i32.fn_type(&[ptr.into(), i64.into(), i64.into(), i64.into()], false);
        let thunk = self.module.add_function(&name, ty, Some(Linkage::Internal));
        self.add_machine_attributes(thunk);
        let nounwind = Attribute::get_named_enum_kind_id("nounwind");
        thunk.add_attribute(AttributeLoc::Function, self.context.create_enum_attribute(nounwind, 0));
        self.extend_status(thunk);
        let builder = self.context.create_builder();
        builder.position_at_end(self.context.append_basic_block(thunk, ""));
        let parameters = thunk.get_params();
        let (record, part) = match parameters.split_first() {
            Some((BasicValueEnum::PointerValue(record), part)) => (*record, part),
            _ => return Err(Error::internal("expected the record as the thunk's first parameter")),
        };
        let mut operands: Vec<BasicMetadataValueEnum<'c>> = Vec::with_capacity(arguments.len() + part.len());
        for (k, &ty) in arguments.iter().enumerate() {
            let place = self.constant_offset(&builder, record, k as u64 * ARGUMENT_BYTES)?;
            operands.push(builder.build_load(ty, place, "").built()?.into());
        }
        operands.extend(part.iter().map(|&value| BasicMetadataValueEnum::from(value)));
        builder.build_call(callee, &operands, "").built()?;
        builder.build_return(Some(&i32.const_zero())).built()?;
        Ok(thunk)
    }
}
