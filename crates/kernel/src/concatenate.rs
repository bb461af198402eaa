//! Concatenation: each operand's rows copied to their place.

use crate::context::KernelContext;
use crate::ir::FunctionBuilder;
use hlo::Op;
use support::{Error, Result};

/// Copies operand after operand; a row is all that lies together: the dimensions from the concatenated one on.
pub(crate) fn emit(b: &mut FunctionBuilder, cx: &mut KernelContext<'_>) -> Result<()> {
    let Op::Concatenate { dimension } = cx.fusion.root_op() else {
        return Err(Error::internal("the root is a concatenation"));
    };
    let result = cx.results[0].clone();
    let size = result.shape.element_type.byte_size() as i64;
    let sizes = result.shape.sizes();
    let rows: i64 = sizes[..*dimension].iter().product();
    let row_bytes = |sizes: &[i64]| sizes[*dimension..].iter().product::<i64>() * size;
    let stride = row_bytes(&sizes);
    let mut offset = 0;
    for &operand in cx.fusion.body[cx.fusion.root].operands() {
        let plan::Position::Operand(number) = cx.fusion.position(operand) else {
            return Err(Error::internal("a concatenation's operand is outside of the kernel"));
        };
        let memory = cx.operand(number)?.clone();
        let bytes = row_bytes(&memory.shape.sizes());
        if bytes > 0 {
            cx.for_range(b, 0, rows, 1, |cx, b, row| {
                let (to, from) = (row.times(stride).plus_constant(offset), row.times(bytes));
                let (to, from) = (cx.scalar_value(b, &to)?, cx.scalar_value(b, &from)?);
                let (to, from) = (b.offset(result.pointer, to, 1), b.offset(memory.pointer, from, 1));
                let bytes = b.index(bytes);
                b.copy_bytes(to, from, bytes);
                Ok(())
            })?;
        }
        offset += bytes;
    }
    Ok(())
}
