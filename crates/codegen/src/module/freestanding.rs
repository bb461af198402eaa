//! Copying and filling memory in objects that may not call the C library: functions within the
//! object.
//!
//! They are local to the object, so a program keeps its library's functions for everything else,
//! and several objects do not conflict. Their code is for the processor of the first version, which
//! every version's machine supports.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Linkage;
use inkwell::types::FunctionType;
use inkwell::values::{BasicValueEnum, FunctionValue, IntValue, PointerValue};
use support::{Error, Result};

use super::ModuleTranslator;
use crate::llvm::Built;

/// Bytes per iteration of the wide loops. The remainder is moved byte by byte.
const WIDE: u32 = 16;

impl<'c> ModuleTranslator<'c> {
    /// Returns `memcpy` or `memset`: the library's, or the object's own if it is freestanding. `ty`
    /// is the C type.
    pub(crate) fn memory_function(&self, name: &str, ty: FunctionType<'c>) -> Result<FunctionValue<'c>> {
        if !self.freestanding {
            return Ok(self.library_function(name, ty));
        }
        let symbol = format!("{}.{name}", self.module.get_name().to_string_lossy());
        if let Some(function) = self.module.get_function(&symbol) {
            return Ok(function);
        }
        let function = self.module.add_function(&symbol, ty, Some(Linkage::Internal));
        self.mark("nounwind", function);
        self.mark("noinline", function);
        Body { module: self, function, builder: self.context.create_builder() }.emit(name)?;
        Ok(function)
    }
}

/// The body of a function `(to, from or byte, bytes) -> to` under construction.
struct Body<'m, 'c> {
    module: &'m ModuleTranslator<'c>,
    function: FunctionValue<'c>,
    builder: Builder<'c>,
}

/// Source of the written bytes.
enum Written<'c> {
    /// The bytes at the same offset from this address.
    From(PointerValue<'c>),
    /// This byte.
    Byte(IntValue<'c>),
}

impl<'c> Body<'_, 'c> {
    fn emit(&self, name: &str) -> Result<()> {
        let parameter = |index| self.function.get_nth_param(index);
        let (to, bytes, written) = match (name, parameter(0), parameter(1), parameter(2)) {
            (
                "memcpy",
                Some(BasicValueEnum::PointerValue(to)),
                Some(BasicValueEnum::PointerValue(from)),
                Some(BasicValueEnum::IntValue(bytes)),
            ) => (to, bytes, Written::From(from)),
            (
                "memset",
                Some(BasicValueEnum::PointerValue(to)),
                Some(BasicValueEnum::IntValue(byte)),
                Some(BasicValueEnum::IntValue(bytes)),
            ) => (to, bytes, Written::Byte(byte)),
            _ => return Err(Error::internal(format!("unexpected parameters of '{name}'"))),
        };
        let start = self.block();
        self.builder.position_at_end(start);
        let size = self.module.size_type();
        let written = match written {
            Written::Byte(byte) => Written::Byte(
                self.builder.build_int_truncate(byte, self.module.context.i8_type(), "").built()?,
            ),
            from => from,
        };
        let wide_end =
            self.builder.build_and(bytes, size.const_int((-i64::from(WIDE)) as u64, true), "").built()?;
        let after_wide = self.loop_over(start, size.const_zero(), wide_end, WIDE, to, &written)?;
        let after_rest = self.loop_over(after_wide, wide_end, bytes, 1, to, &written)?;
        self.builder.position_at_end(after_rest);
        self.builder.build_return(Some(&to)).built()?;
        Ok(())
    }

    fn block(&self) -> BasicBlock<'c> {
        self.module.context.append_basic_block(self.function, "")
    }

    /// Appends a loop that writes `[begin, end)` in steps of `width` bytes to a block. Returns the
    /// block after the loop.
    fn loop_over(
        &self,
        before: BasicBlock<'c>,
        begin: IntValue<'c>,
        end: IntValue<'c>,
        width: u32,
        to: PointerValue<'c>,
        written: &Written<'c>,
    ) -> Result<BasicBlock<'c>> {
        let (head, body, behind) = (self.block(), self.block(), self.block());
        let builder = &self.builder;
        builder.position_at_end(before);
        builder.build_unconditional_branch(head).built()?;
        builder.position_at_end(head);
        let phi = builder.build_phi(self.module.size_type(), "").built()?;
        let offset = phi.as_basic_value().into_int_value();
        let more = builder.build_int_compare(IntPredicate::ULT, offset, end, "").built()?;
        builder.build_conditional_branch(more, body, behind).built()?;
        builder.position_at_end(body);
        self.step(to, written, offset, width)?;
        let step = self.module.size_type().const_int(u64::from(width), false);
        let next = builder.build_int_nuw_add(offset, step, "").built()?;
        phi.add_incoming(&[(&begin, before), (&next, body)]);
        builder.build_unconditional_branch(head).built()?;
        Ok(behind)
    }

    /// Writes `width` bytes at an offset.
    fn step(
        &self,
        to: PointerValue<'c>,
        written: &Written<'c>,
        offset: IntValue<'c>,
        width: u32,
    ) -> Result<()> {
        let byte = self.module.context.i8_type();
        let unaligned = |result: std::result::Result<(), &str>| {
            result.map_err(|e| Error::internal(format!("cannot set the alignment of an access: {e}")))
        };
        let value: BasicValueEnum<'c> = match written {
            Written::From(from) => {
                let from = self.at(*from, offset)?;
                let value = match width {
                    1 => self.builder.build_load(byte, from, "").built()?,
                    _ => self.builder.build_load(byte.vec_type(width), from, "").built()?,
                };
                let instruction = match value {
                    BasicValueEnum::VectorValue(v) => v.as_instruction(),
                    BasicValueEnum::IntValue(v) => v.as_instruction(),
                    _ => None,
                };
                let instruction = instruction
                    .ok_or_else(|| Error::internal("LLVM returned a load that is not an instruction"))?;
                unaligned(instruction.set_alignment(1).map_err(|_| "load"))?;
                value
            }
            Written::Byte(value) if width == 1 => (*value).into(),
            Written::Byte(value) => {
                let mut vector = byte.vec_type(width).get_undef();
                for lane in 0..width {
                    let lane = self.module.context.i32_type().const_int(u64::from(lane), false);
                    vector = self.builder.build_insert_element(vector, *value, lane, "").built()?;
                }
                vector.into()
            }
        };
        let store = self.builder.build_store(self.at(to, offset)?, value).built()?;
        unaligned(store.set_alignment(1).map_err(|_| "store"))
    }

    fn at(&self, pointer: PointerValue<'c>, offset: IntValue<'c>) -> Result<PointerValue<'c>> {
        // SAFETY: a single index into bytes fits the element type for any pointer.
        #[expect(unsafe_code, reason = "inkwell cannot check indices against the element type")]
        let address = unsafe {
            self.builder.build_in_bounds_gep(self.module.context.i8_type(), pointer, &[offset], "")
        };
        address.built()
    }
}
