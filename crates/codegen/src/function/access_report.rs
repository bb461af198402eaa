//! Reports to ThreadSanitizer of accesses that LLVM's pass omits.

use inkwell::values::{BasicValueEnum, IntValue, PointerValue};
use nest::Type;
use support::Result;

use super::FunctionTranslator;
use crate::Sanitizer;
use crate::llvm::Built;

impl<'c> FunctionTranslator<'_, 'c> {
    /// Reports an access to ThreadSanitizer that LLVM's pass omits: one whose size has no report
    /// function, or a masked one.
    pub(crate) fn report_access(
        &self,
        ty: Type,
        pointer: PointerValue<'c>,
        mask: Option<BasicValueEnum<'c>>,
        is_write: bool,
    ) -> Result<()> {
        if self.module.sanitize != Some(Sanitizer::Thread) {
            return Ok(());
        }
        let lane_bytes = ty.scalar.byte_size() as u64;
        let bytes = lane_bytes * u64::from(ty.lanes);
        let size = |bytes: u64| self.module.size_type().const_int(bytes, false);
        let Some(mask) = mask else {
            let is_left_out = ![1, 2, 4, 8, 16].contains(&bytes);
            return if is_left_out { self.report_range(pointer, size(bytes), is_write) } else { Ok(()) };
        };
        for lane in 0..ty.lanes {
            let chosen = match mask {
                BasicValueEnum::VectorValue(vector) => self.extract(vector, lane)?,
                scalar => scalar,
            };
            let (all, none) = (size(lane_bytes), size(0));
            let length =
                self.builder.build_select(chosen.into_int_value(), all, none, "").built()?.into_int_value();
            let offset = self.module.context.i64_type().const_int(u64::from(lane) * lane_bytes, false);
            self.report_range(self.plus(&self.builder, pointer, offset, true)?, length, is_write)?;
        }
        Ok(())
    }

    fn report_range(&self, pointer: PointerValue<'c>, bytes: IntValue<'c>, is_write: bool) -> Result<()> {
        let name = if is_write { "__tsan_write_range" } else { "__tsan_read_range" };
        let parameters = [pointer.get_type().into(), self.module.size_type().into()];
        let ty = self.module.context.void_type().fn_type(&parameters, false);
        let function = self.module.library_function(name, ty);
        self.builder.build_call(function, &[pointer.into(), bytes.into()], "").built()?;
        Ok(())
    }
}
