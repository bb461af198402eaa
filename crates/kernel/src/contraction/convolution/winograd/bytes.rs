//! Patches of bytes, whose frequencies have 16 bits: see the plan.

use super::{KernelRow, Nest, transform};
use crate::context::KernelContext;
use crate::contraction::tile::{Columns, after_header, column_of_panels};
use crate::index::Index;
use nest::{BinaryOp, FunctionBuilder, ScalarType, Type, ValueId};
use plan::{DensePlan, GROUP_BYTES};
use shape::PrimitiveType;
use support::{Error, Result};

/// The bytes of a group that are in the same half of the summands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    /// The first and the third one.
    Even,
    /// The second and the fourth one.
    Odd,
}

impl Nest<'_> {
    /// Transforms some groups of channels of a patch.
    pub(super) fn groups(
        &self,
        cx: &mut KernelContext<'_>,
        pixels: &[ValueId],
        target: ValueId,
        group: ValueId,
        lanes: u32,
    ) -> Result<()> {
        let target = cx.offset(target, group, GROUP_BYTES);
        let is_signed = self.input_type == PrimitiveType::S8;
        for half in [Half::Even, Half::Odd] {
            let target = cx.offset_bytes(target, half.first(self.dims.inputs) * GROUP_BYTES);
            self.frequencies(cx, pixels, target, &mut |b, pixel| {
                let pointer = b.offset(pixel, group, GROUP_BYTES);
                Ok(half.load(b, pointer, lanes, is_signed))
            })?;
        }
        Ok(())
    }

    /// Transforms columns of the packed panels of a direct sum, of which `column` is the first.
    pub(super) fn transform_bytes(
        &self,
        cx: &mut KernelContext<'_>,
        direct: &DensePlan,
        column: &Index,
        kernel: KernelRow,
        parts: &[Columns],
    ) -> Result<()> {
        let packed = self.packed.ok_or_else(|| Error::internal("missing panels of bytes"))?;
        let source = column_of_panels(cx, direct.panels, packed, column)?;
        let source = after_header(cx, direct.panels, source);
        let (from, to) = (direct.panels.row_bytes(), self.winograd.panels.row_bytes());
        let halves = |part: &Columns| [Half::Even, Half::Odd].map(|half| (*part, half));
        let pieces: Vec<(Columns, Half)> = parts.iter().flat_map(halves).collect();
        cx.for_range(0, direct.inputs, 1, |cx, group| {
            let group = cx.scalar_value(&group)?;
            let source = cx.offset(source, group, from);
            let target = cx.offset(kernel.pointer, group, to);
            for &(part, half) in &pieces {
                let target = cx.offset_bytes(target, half.first(self.dims.inputs) * to);
                transform::kernel(
                    cx,
                    self.winograd.transform,
                    &mut |b, row, column| {
                        let tap = row as i64 * self.winograd.transform.window() + column as i64;
                        let offset = tap * direct.inputs * from + direct.panels.offset(part.offset);
                        let pointer = b.offset_bytes(source, offset);
                        Ok(half.load(b, pointer, part.lanes, true))
                    },
                    &mut |b, row, column, value| {
                        self.store_weights(b, (target, kernel), part, [row, column], value)
                    },
                )?;
            }
            Ok(())
        })
    }

    /// Divides the outputs of a transform by their factor, which is exact.
    pub(super) fn unscaled(&self, b: &mut FunctionBuilder, values: Vec<Vec<ValueId>>) -> Vec<Vec<ValueId>> {
        let scale = self.winograd.transform.scale;
        if scale == 1 {
            return values;
        }
        let mut divide = |value: ValueId| {
            let bits = b.integer(b.ty(value), i64::from(scale.ilog2()));
            b.binary(BinaryOp::ShiftRightArithmetic, value, bits)
        };
        values.into_iter().map(|row| row.into_iter().map(&mut divide).collect()).collect()
    }
}

impl Half {
    /// Number of the half's first summand.
    fn first(self, inputs: i64) -> i64 {
        if self == Self::Even { 0 } else { inputs / GROUP_BYTES }
    }

    /// Loads the half's bytes of some groups, as numbers of 16 bits.
    fn load(self, b: &mut FunctionBuilder, pointer: ValueId, groups: u32, is_signed: bool) -> ValueId {
        let ty = Type::vector(ScalarType::I16, 2 * groups);
        let bytes = b.load(ty, pointer, 1);
        let right = if is_signed { BinaryOp::ShiftRightArithmetic } else { BinaryOp::ShiftRightLogical };
        let bits = b.integer(ty, 8);
        let upper = match self {
            Self::Even => b.binary(BinaryOp::ShiftLeft, bytes, bits),
            Self::Odd => bytes,
        };
        b.binary(right, upper, bits)
    }
}
