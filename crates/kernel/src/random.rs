use crate::context::KernelContext;
use crate::ir::FunctionBuilder;
use support::*;
pub(crate) fn emit_bits(_: &mut FunctionBuilder, _: &mut KernelContext<'_>) -> Result<()> {
    Err(Error::unsupported("x"))
}
pub(crate) fn emit_state(_: &mut FunctionBuilder, _: &mut KernelContext<'_>) -> Result<()> {
    Err(Error::unsupported("x"))
}
