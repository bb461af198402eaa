//! Contractions.

use crate::context::KernelContext;
use crate::ir::FunctionBuilder;
use plan::DotPlan;
use support::{Error, Result};

/// Writes the result of a contraction and of what follows it.
pub(crate) fn emit(b: &mut FunctionBuilder, cx: &mut KernelContext<'_>, plan: &DotPlan) -> Result<()> {
    let _ = (b, cx, plan);
    Err(Error::unsupported("opcode dot"))
}
