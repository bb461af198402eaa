//! The transform of a kernel at run time.

use super::super::load;
use super::{KernelRow, Nest, transform};
use crate::context::KernelContext;
use crate::contraction::tile::{Columns, Reading, last_columns};
use crate::index::Index;
use nest::{FunctionBuilder, ValueId};
use support::Result;

impl Nest<'_> {
    /// Transforms the kernel's columns of a register tile at run time. The first one, `from`,
    /// becomes the column `to` of the transformed kernel.
    pub(super) fn transform_parts(
        &self,
        cx: &mut KernelContext<'_>,
        from: &Index,
        to: &Index,
        parts: &[Columns],
    ) -> Result<()> {
        let kernel = self.kernel_row(cx, to)?;
        match &self.winograd.bytes {
            Some(direct) => self.transform_bytes(cx, direct, from, kernel, parts),
            None => self.transform_floats(cx, from, kernel, parts),
        }
    }

    /// Transforms columns of a kernel of floats.
    fn transform_floats(
        &self,
        cx: &mut KernelContext<'_>,
        column: &Index,
        kernel: KernelRow,
        parts: &[Columns],
    ) -> Result<()> {
        let memory = cx.operand(self.plan.kernel_operand)?.clone();
        let from = memory.shape.element_type;
        let size = from.byte_size() as i64;
        let (inputs, outputs) = (self.dims.inputs, self.dims.outputs);
        // The operand has no padding.
        let narrow = |part: &Columns| {
            let pieces = last_columns(i64::from(part.valid), part.lanes, Reading::Narrowing);
            let offset = part.offset;
            pieces.into_iter().map(move |piece| Columns { offset: offset + piece.offset, ..piece })
        };
        let pieces: Vec<Columns> = parts.iter().flat_map(narrow).collect();
        let column = cx.scalar_value(column)?;
        let source = cx.offset(memory.pointer, column, size);
        cx.for_range(0, inputs, 1, |cx, input| {
            let input = cx.scalar_value(&input)?;
            let source = cx.offset(source, input, outputs * size);
            let target = cx.offset(kernel.pointer, input, self.winograd.panels.row_bytes());
            for piece in &pieces {
                transform::kernel(
                    cx,
                    self.winograd.transform,
                    &mut |b, row, column| {
                        let tap = row as i64 * self.winograd.transform.window() + column as i64;
                        let pointer = b.offset_bytes(source, (tap * inputs * outputs + piece.offset) * size);
                        Ok(load(b, self.plan, from, pointer, piece.lanes)?.real())
                    },
                    &mut |b, row, column, value| {
                        self.store_weights(b, (target, kernel), *piece, [row, column], value)
                    },
                )?;
            }
            Ok(())
        })
    }

    /// Stores weights at a row and a column of frequencies, given the address of the columns at the
    /// first one.
    pub(super) fn store_weights(
        &self,
        b: &mut FunctionBuilder,
        (target, kernel): (ValueId, KernelRow),
        part: Columns,
        [row, column]: [usize; 2],
        value: ValueId,
    ) -> Result<()> {
        let number = row as i64 * self.winograd.transform.size() + column as i64;
        let offset = number * kernel.frequency + self.winograd.panels.offset(part.offset);
        let pointer = b.offset_bytes(target, offset);
        b.store(value, pointer, self.size() as u32);
        Ok(())
    }
}
