//! Where the elements that a contraction makes are stored: what follows it may renumber them, transpose them, or write them
//! into a slice of a larger array.

use crate::context::KernelContext;
use crate::index::{Index, Position};
use crate::movement::concatenate::Copy;
use hlo::{InstructionId, Op};
use plan::{Position as Place, RowSlice};
use support::{Error, Result};

/// Where in what the kernel computes an element of an instruction of the body goes. Reshapes keep its number, transposes
/// exchange its indices; what else follows works element by element.
pub(crate) fn of_element(
    cx: &mut KernelContext<'_>,
    instruction: InstructionId,
    position: &Position,
) -> Result<Position> {
    let (body, computed) = (cx.fusion().body, cx.fusion().computed());
    let (mut id, mut position) = (instruction, position.clone());
    while id != computed {
        let user = body[id].users().first().copied();
        let user = user.ok_or_else(|| Error::internal("what follows a contraction leads to the root"))?;
        let sizes = cx.shape(id)?.sizes();
        match body[user].op() {
            Op::Reshape {} | Op::Bitcast {} if sizes != cx.shape(user)?.sizes() => {
                position = Position::Linear(position.linear(&sizes));
            }
            Op::Transpose { dimensions } => {
                let indices = cx.indices(&position, &sizes)?;
                position = Position::Multi(dimensions.iter().map(|&d| indices[d].clone()).collect());
            }
            _ => {}
        }
        id = user;
    }
    Ok(position)
}

/// Where in the result an element of what the kernel computes is.
pub(crate) fn in_result(cx: &mut KernelContext<'_>, position: Position) -> Result<Position> {
    let Some(RowSlice { rows, whole, run, offset }) = slice(cx)? else { return Ok(position) };
    let number = position.linear(&cx.shape(cx.fusion().computed())?.sizes());
    let (row, within) = if rows == 1 { (Index::default(), number) } else { cx.div_rem(&number, run)? };
    Ok(Position::Linear(row.times(whole).plus(&within).plus_constant(offset)))
}

/// The slice of the result that the kernel computes; nothing if that is all of it.
fn slice(cx: &KernelContext<'_>) -> Result<Option<RowSlice>> {
    if cx.fusion().computed() == cx.fusion().root {
        return Ok(None);
    }
    let slice = cx.fusion().row_slice();
    slice
        .map(Some)
        .ok_or_else(|| Error::internal("a contraction writes slices of one dimension at known places"))
}

/// Copies what a slice update leaves as it is, unless the array is taken over. What is computed may be written before or
/// after.
pub(crate) fn copy_around(cx: &mut KernelContext<'_>) -> Result<()> {
    let Some(RowSlice { rows, whole, run, offset }) = slice(cx)? else { return Ok(()) };
    let Place::Operand(number) = cx.fusion().position(cx.fusion().body[cx.fusion().root].operands()[0])
    else {
        return Err(Error::internal("a slice update of an array in memory"));
    };
    let (from, result) = (cx.operand(number)?.pointer, cx.results()[0].clone());
    if cx.is_same_memory(from, result.pointer) {
        return Ok(());
    }
    let size = result.shape.element_type.byte_size() as i64;
    let piece = |offset: i64, elements: i64| Copy {
        from,
        from_offset: offset * size,
        from_stride: whole * size,
        to: result.pointer,
        offset: offset * size,
        bytes: elements * size,
        stride: whole * size,
    };
    let pieces = [piece(0, offset), piece(offset + run, whole - offset - run)];
    let pieces: Vec<Copy> = pieces.into_iter().filter(|piece| piece.bytes > 0).collect();
    crate::movement::concatenate::copy(cx, &pieces, rows)
}
