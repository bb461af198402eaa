use crate::context::KernelContext;
use crate::ir::FunctionBuilder;
use support::*;
pub(crate) fn emit(_: &mut FunctionBuilder, _: &mut KernelContext<'_>) -> Result<()> {
    Err(Error::unsupported("x"))
}
