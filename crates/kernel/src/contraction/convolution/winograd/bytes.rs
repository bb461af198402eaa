//! Patches of bytes, whose frequencies have 16 bits: see the plan.

use super::{Factors, KernelRow, Nest, transform};
use crate::context::KernelContext;
use crate::contraction::tile::{Columns, after_header, column_of_panels};
use crate::index::Index;
use nest::{BinaryOp, FunctionBuilder, GroupKind, ScalarType, Type, ValueId};
use plan::{DensePlan, GROUP_BYTES};
use shape::PrimitiveType;
use support::{Error, Result};
use target::Target;

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
                        let pairs = half.load(b, pointer, part.lanes, true);
                        Ok(if self.winograd.has_halves() { split(b, pairs) } else { pairs })
                    },
                    &mut |b, row, column, value| {
                        self.store_weights(b, (target, kernel), part, [row, column], value)
                    },
                )?;
            }
            Ok(())
        })
    }

    /// Number of pairs that [`Self::accumulate_by_lane`] multiplies at a time: those of a vector,
    /// or of half of one where registers are few.
    pub(super) fn steps_by_lane(&self, target: &Target) -> i64 {
        let is_even = self.winograd.summands(self.dims) % 4 == 0;
        if is_even && target.vector_registers >= 32 { 4 } else { 2 }
    }

    /// Adds the products of `steps` pairs, of which `index` is the first, patch by patch. The pairs
    /// of a patch are one vector, whose lanes are factors.
    pub(super) fn accumulate_by_lane(
        &self,
        b: &mut FunctionBuilder,
        factors: Factors,
        index: ValueId,
        steps: i64,
        parts: &[Columns],
        sums: &mut [ValueId],
    ) {
        let panels = self.winograd.panels;
        let row = b.offset(factors.kernel, index, panels.row_bytes());
        let source = b.offset(factors.patches, index, self.size());
        let shorts = Type::vector(ScalarType::I16, 2 * steps as u32);
        let patches: Vec<ValueId> = (0..i64::from(self.winograd.tile.rows))
            .map(|patch| {
                let pointer = b.offset_bytes(source, patch * self.winograd.scratch.input_row);
                b.load(shorts, pointer, self.size() as u32)
            })
            .collect();
        for step in 0..steps {
            let columns: Vec<ValueId> = parts
                .iter()
                .map(|part| {
                    let at = step * panels.row_bytes() + panels.offset(part.offset);
                    let pointer = b.offset_bytes(row, at);
                    b.load(Type::vector(ScalarType::I16, 2 * part.lanes), pointer, self.alignment(*part))
                })
                .collect();
            // The first factors of all pairs, and then the second ones, so that instructions that
            // follow each other add to different sums.
            for factor in 0..2 {
                for (patch, &pairs) in patches.iter().enumerate() {
                    for (k, (part, &column)) in parts.iter().zip(&columns).enumerate() {
                        let sum = &mut sums[patch * parts.len() + k];
                        let lane = 2 * step as u32 + factor;
                        let pair = b.shuffle(pairs, pairs, vec![lane; part.lanes as usize]);
                        let half = (factor * part.lanes..(factor + 1) * part.lanes).collect();
                        let half = b.shuffle(column, column, half);
                        *sum = b.group_multiply_add(GroupKind::Short, pair, half, *sum);
                    }
                }
            }
        }
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

/// The first numbers of all pairs, and then the second ones.
fn split(b: &mut FunctionBuilder, pairs: ValueId) -> ValueId {
    let count = b.ty(pairs).lanes / 2;
    let lanes = (0..2 * count).map(|lane| lane % count * 2 + lane / count).collect();
    b.shuffle(pairs, pairs, lanes)
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
