//! Concatenation: each operand's rows copied to their place.

use crate::context::KernelContext;
use crate::ir::FunctionBuilder;
use hlo::Op;
use std::ops::Range;
use support::{Error, Result};

/// Copies operand after operand of a part of the operands; a row is all that lies together: the dimensions from the
/// concatenated one on.
pub(crate) fn emit(b: &mut FunctionBuilder, cx: &mut KernelContext<'_>, part: &Range<usize>) -> Result<()> {
    let Op::Concatenate { dimension } = cx.fusion.root_op() else {
        return Err(Error::internal("the root is a concatenation"));
    };
    let result = cx.results[0].clone();
    let size = result.shape.element_type.byte_size() as i64;
    let sizes = result.shape.sizes();
    let rows: i64 = sizes[..*dimension].iter().product();
    let row_bytes = |sizes: &[i64]| sizes[*dimension..].iter().product::<i64>() * size;
    let stride = row_bytes(&sizes);
    let inner_bytes = sizes[*dimension + 1..].iter().product::<i64>() * size;
    let mut offset = 0;
    for (position, &operand) in cx.fusion.body[cx.fusion.root].operands().iter().enumerate() {
        if !part.contains(&position) {
            offset += cx.shape(operand)?.size(*dimension) * inner_bytes;
            continue;
        }
        let memory = cx.operand(position)?.clone();
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
