//! Translation of what only kernels of a device have: the guard, thread numbers, workgroup memory,
//! and barriers.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};
use inkwell::{FloatPredicate, IntPredicate};
use nest::{MatrixKind, ThreadIndex, ValueId};
use support::{Error, Id, Result};

use super::FunctionTranslator;
use crate::llvm::Built;

/// `CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE` of OpenCL.
const ALL_FENCES: u64 = 3;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Begins a kernel: converts the addresses, and returns if the guard is 0.
    pub(crate) fn begin_kernel(&mut self) -> Result<()> {
        let context = self.module.context;
        let generic = context.ptr_type(self.module.generic_space());
        let parameters: Vec<_> = self.function.get_param_iter().collect();
        let Some(BasicValueEnum::PointerValue(guard)) = parameters.first().copied() else {
            return Err(Error::internal("expected the guard as the first parameter of a kernel"));
        };
        let (test, leave, body) = (self.new_block(), self.new_block(), self.new_block());
        let is_null = self.builder.build_is_null(guard, "").built()?;
        self.builder.build_conditional_branch(is_null, body, test).built()?;
        self.builder.position_at_end(test);
        let flag = self.builder.build_load(context.i32_type(), guard, "").built()?.into_int_value();
        let zero = context.i32_type().const_zero();
        let is_off = self.builder.build_int_compare(IntPredicate::EQ, flag, zero, "").built()?;
        self.builder.build_conditional_branch(is_off, leave, body).built()?;
        self.builder.position_at_end(leave);
        self.builder.build_return(None).built()?;
        self.builder.position_at_end(body);
        for (parameter, value) in self.source.parameters.iter().zip(parameters) {
            let address =
                self.builder.build_address_space_cast(value.into_pointer_value(), generic, "").built()?;
            self.values[parameter.value.index()] = Some(address.into());
        }
        Ok(())
    }

    pub(crate) fn thread_index(&self, index: ThreadIndex) -> Result<BasicValueEnum<'c>> {
        let (i32, i64) = (self.module.context.i32_type(), self.module.context.i64_type());
        if self.module.is_spirv() {
            let name = match index {
                ThreadIndex::Local => "_Z12get_local_idj",
                ThreadIndex::Workgroup => "_Z12get_group_idj",
            };
            let function = self.module.device_function(name, i64.fn_type(&[i32.into()], false));
            let call = self.builder.build_call(function, &[i32.const_zero().into()], "").built()?;
            call.set_call_convention(function.get_call_conventions());
            let value = call.try_as_basic_value().basic();
            return value.ok_or_else(|| Error::internal("a thread's number is no value"));
        }
        // LLVM would keep a number that it knows to be the same in a register from its first use to
        // its last. Reading it again is cheaper.
        let text = match index {
            ThreadIndex::Local => "mov.u32 $0, %tid.x;",
            ThreadIndex::Workgroup => "mov.u32 $0, %ctaid.x;",
        };
        let ty = i32.fn_type(&[], false);
        let read = self.module.context.create_inline_asm(
            ty,
            text.to_owned(),
            "=r".to_owned(),
            true,
            false,
            None,
            false,
        );
        let call = self.builder.build_indirect_call(ty, read, &[], "").built()?;
        let number = call.try_as_basic_value().basic();
        let number = number.ok_or_else(|| Error::internal("a thread's number is no value"))?;
        Ok(self.builder.build_int_z_extend(number.into_int_value(), i64, "").built()?.into())
    }

    pub(crate) fn barrier(&self) -> Result<()> {
        let (i32, void) = (self.module.context.i32_type(), self.module.context.void_type());
        if self.module.is_spirv() {
            let function = self.module.device_function("_Z7barrierj", void.fn_type(&[i32.into()], false));
            let call =
                self.builder.build_call(function, &[i32.const_int(ALL_FENCES, false).into()], "").built()?;
            call.set_call_convention(function.get_call_conventions());
            return Ok(());
        }
        let barrier = self.module.intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", &[])?;
        self.builder.build_call(barrier, &[i32.const_zero().into()], "").built()?;
        Ok(())
    }

    /// Emits a product of matrices of a warp, whose intrinsics take and return one element or word
    /// at a time.
    pub(crate) fn matrix_multiply_add(
        &self,
        kind: MatrixKind,
        a: ValueId,
        b: ValueId,
        c: ValueId,
    ) -> Result<BasicValueEnum<'c>> {
        let name = match kind {
            MatrixKind::F16 => "llvm.nvvm.mma.m16n8k16.row.col.f32.f32",
            MatrixKind::Bf16 => "llvm.nvvm.mma.m16n8k16.row.col.bf16",
            MatrixKind::S8 => "llvm.nvvm.mma.m16n8k32.row.col.s8",
            MatrixKind::Tf32 => "llvm.nvvm.mma.m16n8k8.row.col.tf32",
        };
        let halves = self.module.context.f16_type().vec_type(2);
        let mut operands: Vec<BasicMetadataValueEnum<'c>> = Vec::with_capacity(10);
        for (value, words) in [(a, 4), (b, 2), (c, 4)] {
            let vector = self.vector(value)?;
            for word in 0..words {
                let mut lane = self.extract(vector, word)?;
                if kind == MatrixKind::F16 && value != c {
                    lane = self.builder.build_bit_cast(lane, halves, "").built()?;
                }
                operands.push(lane.into());
            }
        }
        let BasicValueEnum::StructValue(sums) = self.call(name, &[], &operands)? else {
            return Err(Error::internal("expected four sums of a product of matrices"));
        };
        let mut vector = self.vector(c)?;
        for word in 0..4 {
            let sum = self.builder.build_extract_value(sums, word, "").built()?;
            vector = self.builder.build_insert_element(vector, sum, self.lane_number(word), "").built()?;
        }
        Ok(vector.into())
    }

    pub(crate) fn workgroup_memory(&self, bytes: u64, alignment: u32) -> Result<BasicValueEnum<'c>> {
        let bytes = u32::try_from(bytes).map_err(|_| Error::internal("4 GiB of workgroup memory"))?;
        let memory = self.module.workgroup_memory(bytes, alignment).as_pointer_value();
        let generic = self.module.context.ptr_type(self.module.generic_space());
        Ok(self.builder.build_address_space_cast(memory, generic, "").built()?.into())
    }

    /// Converts floats to integers with an intrinsic of LLVM that saturates. OpenCL's conversion,
    /// which SPIR-V uses, does not define the result for NaN; it is 0.
    pub(crate) fn saturated(
        &self,
        name: &str,
        a: BasicValueEnum<'c>,
        ty: BasicTypeEnum<'c>,
    ) -> Result<BasicValueEnum<'c>> {
        let value = self.call(name, &[ty, a.get_type()], &[a.into()])?;
        if !self.module.is_spirv() {
            return Ok(value);
        }
        let zero = ty.const_zero();
        match a {
            BasicValueEnum::FloatValue(a) => {
                let is_nan = self.builder.build_float_compare(FloatPredicate::UNO, a, a, "").built()?;
                self.builder.build_select(is_nan, zero, value, "").built()
            }
            BasicValueEnum::VectorValue(a) => {
                let is_nan = self.builder.build_float_compare(FloatPredicate::UNO, a, a, "").built()?;
                self.builder.build_select(is_nan, zero, value, "").built()
            }
            _ => Err(Error::internal("expected floats to convert to integers")),
        }
    }
}
