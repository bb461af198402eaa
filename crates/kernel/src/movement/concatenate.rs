//! Concatenation: copies the rows of each operand to their place in the result.

use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::context::tasks::Span;
use crate::index::Index;
use hlo::Op;
use hlo::analysis::Extent;
use nest::{Predicate, ValueId};
use std::ops::Range;
use support::{Error, Result};

/// Copies a part of the operands, one after another. A row consists of the dimensions from the
/// concatenated one on, which are contiguous.
pub(crate) fn emit(cx: &mut KernelContext<'_>, part: &Range<usize>) -> Result<()> {
    let Op::Concatenate { dimension } = cx.fusion().root_op() else {
        return Err(Error::internal("expected a concatenation as the root"));
    };
    let result = cx.results()[0].clone();
    let size = result.shape.element_type.byte_size() as i64;
    let sizes = result.shape.sizes();
    let row_bytes = |sizes: &[i64]| sizes[*dimension..].iter().product::<i64>() * size;
    let stride = row_bytes(&sizes);
    let inner_bytes = sizes[*dimension + 1..].iter().product::<i64>() * size;
    let needed = cx.needed(cx.fusion().root);
    let along = needed[*dimension].filter(|&extent| !cx.covers(extent, sizes[*dimension]));
    let along = along.map(|extent| cx.extent(extent, sizes[*dimension])).transpose()?;
    let along = along.map(|count| cx.mul_constant(count, inner_bytes));
    let mut copies = Vec::new();
    let mut offset = 0;
    for (position, &operand) in cx.fusion().body[cx.fusion().root].operands().iter().enumerate() {
        let bytes = cx.shape(operand)?.size(*dimension) * inner_bytes;
        if part.contains(&position) && bytes > 0 {
            copies.push(Copy {
                from: cx.operand(position)?.pointer,
                from_offset: 0,
                from_stride: bytes,
                to: result.pointer,
                offset,
                bytes,
                needed: along.map(|end| {
                    let (rest, none) = (cx.add_constant(end, -offset), cx.index(0));
                    let (rest, most) = (greater(cx, rest, none), cx.index(bytes));
                    lesser(cx, rest, most)
                }),
                stride,
            });
        }
        offset += bytes;
    }
    copy(cx, &copies, (&sizes[..*dimension], &needed[..*dimension]))
}

/// Copies some bytes of each row, for all operands at once. Rows have indices in dimensions of some
/// sizes, of which the first ones are needed.
pub(crate) fn copy(
    cx: &mut KernelContext<'_>,
    copies: &[Copy],
    (sizes, needed): (&[i64], &[Option<Extent>]),
) -> Result<()> {
    let rows: i64 = sizes.iter().product();
    if copies.is_empty() || rows == 0 {
        return Ok(());
    }
    let tasks = cx.plan().tasks;
    cx.for_tasks(|cx, task| {
        if rows >= tasks {
            let span = cx.spans(&task, &[rows], &[tasks])?[0];
            return copies.iter().try_for_each(|copy| {
                let rows = &mut |cx: &mut KernelContext<'_>, span| {
                    cx.for_span(span, 1, |cx, row| copy.whole(cx, &row))
                };
                cx.for_needed_parts(span, sizes, needed, rows)
            });
        }
        for (number, copy) in copies.iter().enumerate() {
            let all = Span::All(rows);
            cx.for_needed_parts(all, sizes, needed, &mut |cx, span| {
                copy.part(cx, &task, number as i64, span)
            })?;
        }
        Ok(())
    })
}

/// With few long rows, operands with fewer bytes per row are copied by one task.
const MIN_PART_BYTES: i64 = 32 << 10;

/// An operand and its place in the result's rows.
pub(crate) struct Copy {
    pub(crate) from: ValueId,
    /// Offset in bytes from the start of the operand's row.
    pub(crate) from_offset: i64,
    /// Distance in bytes between rows of the operand.
    pub(crate) from_stride: i64,
    pub(crate) to: ValueId,
    /// Offset in bytes from the start of the result's row.
    pub(crate) offset: i64,
    /// Number of bytes per row.
    pub(crate) bytes: i64,
    /// Number of these that are needed, if it depends on the run.
    pub(crate) needed: Option<ValueId>,
    /// Size of the result's row in bytes.
    pub(crate) stride: i64,
}

impl Copy {
    /// Returns the addresses of a row's first byte in the result and in the operand.
    fn row(&self, cx: &mut KernelContext<'_>, row: &Index) -> Result<(ValueId, ValueId)> {
        let to = row.times(self.stride).plus_constant(self.offset);
        let from = row.times(self.from_stride).plus_constant(self.from_offset);
        let (to, from) = (cx.scalar_value(&to)?, cx.scalar_value(&from)?);
        Ok((cx.offset(self.to, to, 1), cx.offset(self.from, from, 1)))
    }

    fn whole(&self, cx: &mut KernelContext<'_>, row: &Index) -> Result<()> {
        let (to, from) = self.row(cx, row)?;
        let bytes = self.needed.unwrap_or_else(|| cx.index(self.bytes));
        cx.copy_bytes(to, from, bytes);
        Ok(())
    }

    /// Copies a task's part of each row. If the rows are short, a single task copies all of them.
    fn part(&self, cx: &mut KernelContext<'_>, task: &Index, number: i64, rows: Span) -> Result<()> {
        let tasks = cx.plan().tasks;
        let task = cx.scalar_value(task)?;
        if self.bytes <= MIN_PART_BYTES {
            let owner = cx.index(number % tasks);
            let is_mine = cx.compare(Predicate::Equal, task, owner);
            return cx.when(is_mine, |cx| cx.for_span(rows, 1, |cx, row| self.whole(cx, &row)));
        }
        let chunk = ((self.bytes / tasks).max(MIN_PART_BYTES / 2) / 64 + 1) * 64;
        let (begin, bytes) = cx.bytes_of_part(task, chunk, self.bytes);
        let bytes = match self.needed {
            Some(needed) => {
                let (rest, none) = (cx.sub(needed, begin), cx.index(0));
                let rest = greater(cx, rest, none);
                lesser(cx, rest, bytes)
            }
            None => bytes,
        };
        cx.for_span(rows, 1, |cx, row| {
            let (to, from) = self.row(cx, &row)?;
            let (to, from) = (cx.offset(to, begin, 1), cx.offset(from, begin, 1));
            cx.copy_bytes(to, from, bytes);
            Ok(())
        })
    }
}
