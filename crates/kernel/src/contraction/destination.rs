//! Destinations of a contraction's elements in the result: the kernel may write them into a slice
//! of a larger array. Moves before that belong to the epilogue.

use crate::context::KernelContext;
use crate::index::{Index, Position};
use crate::movement::concatenate::Copy;
use plan::{Position as Place, RowSlice};
use support::{Error, Result};

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
        needed: None,
        stride: whole * size,
    };
    let pieces = [piece(0, offset), piece(offset + run, whole - offset - run)];
    let pieces: Vec<Copy> = pieces.into_iter().filter(|piece| piece.bytes > 0).collect();
    crate::movement::concatenate::copy(cx, &pieces, (&[rows], &[None]))
}
