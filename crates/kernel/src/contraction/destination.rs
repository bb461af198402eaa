//! Destinations of a contraction's elements. Later operations in the kernel may renumber them,
//! transpose them, or write them into a slice of a larger array.

use crate::context::KernelContext;
use crate::index::{Index, Position};
use crate::movement::concatenate::Copy;
use hlo::{InstructionId, Op};
use plan::{Position as Place, RowSlice};
use support::{Error, Result};

/// Maps the position of an element of an instruction to its position in the computed array.
/// Reshapes keep its number, and transposes permute its indices. All other operations in between
/// are elementwise.
pub(crate) fn of_element(
    cx: &mut KernelContext<'_>,
    instruction: InstructionId,
    position: &Position,
) -> Result<Position> {
    let (body, computed) = (cx.fusion().body, cx.fusion().computed());
    let (mut id, mut position) = (instruction, position.clone());
    while id != computed {
        let user = body[id].users().first().copied();
        let user = user.ok_or_else(|| Error::internal("found no path from the contraction to the root"))?;
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

/// Maps a position in the computed array to one in the result.
pub(crate) fn in_result(cx: &mut KernelContext<'_>, position: Position) -> Result<Position> {
    let Some(RowSlice { rows, whole, run, offset }) = slice(cx)? else { return Ok(position) };
    let number = position.linear(&cx.shape(cx.fusion().computed())?.sizes());
    let (row, within) = if rows == 1 { (Index::default(), number) } else { cx.div_rem(&number, run)? };
    Ok(Position::Linear(row.times(whole).plus(&within).plus_constant(offset)))
}

/// Returns the slice of the result that the kernel computes, or `None` if it computes all of it.
fn slice(cx: &KernelContext<'_>) -> Result<Option<RowSlice>> {
    if cx.fusion().computed() == cx.fusion().root {
        return Ok(None);
    }
    let slice = cx.fusion().row_slice();
    slice
        .map(Some)
        .ok_or_else(|| Error::internal("expected a slice along one dimension at a constant offset"))
}

/// Copies the elements that a slice update leaves unchanged, unless it is in place. The computed
/// elements may be written before or after.
pub(crate) fn copy_around(cx: &mut KernelContext<'_>) -> Result<()> {
    let Some(RowSlice { rows, whole, run, offset }) = slice(cx)? else { return Ok(()) };
    let Place::Operand(number) = cx.fusion().position(cx.fusion().body[cx.fusion().root].operands()[0])
    else {
        return Err(Error::internal("expected a slice update of an array in memory"));
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
