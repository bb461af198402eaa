//! Products of a workgroup's threads, with scalars or with matrix units.

use super::super::operand::Operand;
use super::super::pipeline::Stage;
use super::super::tiles::{Block, Tiling, vector};
use super::super::{matrix, tiles};
use crate::context::KernelContext;
use crate::contraction::tile::{scalar_type, zero};
use crate::index::Index;
use nest::{BinaryOp, ConvertOp, ScalarType, Type, ValueId};
use plan::{ContractionPlan, GroupTile, MatrixTile, Role};
use shape::PrimitiveType;
use support::Result;

/// Products of tiles in workgroup memory, as computed by the threads of a workgroup.
pub(super) trait Products: Sized {
    type Tile: Copy;
    type Loads<'p>: Stage;

    /// The part of a thread.
    fn new(
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        tile: Self::Tile,
        local: &Index,
    ) -> Result<Self>;

    /// Returns the loads of an operand's tile.
    fn loads<'p>(
        cx: &mut KernelContext<'_>,
        plan: &'p ContractionPlan,
        tile: Self::Tile,
        tiling: &Tiling,
        operand: (Operand<'p>, Role),
        shared: ValueId,
    ) -> Result<Self::Loads<'p>>;

    /// Summands of a step, and bytes of a buffer with them for some rows or columns.
    fn buffer(tile: Self::Tile, extent: i64, size: i64) -> (i64, i64);

    /// Sums of no products.
    fn initial(&self, cx: &mut KernelContext<'_>, plan: &ContractionPlan) -> Result<Vec<ValueId>>;

    /// Adds the products of two buffers to sums.
    fn products(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: [ValueId; 2],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>>;

    /// Combines each sum with the factor of its row.
    fn with_factors(
        &self,
        cx: &mut KernelContext<'_>,
        sums: &[ValueId],
        factors: ValueId,
        op: BinaryOp,
    ) -> Result<Vec<ValueId>>;

    /// Returns the sums as blocks.
    fn blocks(&self, cx: &mut KernelContext<'_>, sums: &[ValueId]) -> Vec<Block>;

    /// Stores a thread's weights of a row, from a key on, as the left operand of the second
    /// product. `scores` is the tile of scores with its rows.
    fn store_weights(
        cx: &mut KernelContext<'_>,
        tile: Self::Tile,
        scores: ValueId,
        place: [&Index; 2],
        weights: &[ValueId],
    ) -> Result<()>;

    /// Passes the sums to the epilogue.
    fn finish(
        &self,
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        tiling: &Tiling,
        sums: &[ValueId],
    ) -> Result<()>;
}

impl Products for tiles::Threads {
    type Tile = GroupTile;
    type Loads<'p> = tiles::Loads<'p>;

    fn new(
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        tile: GroupTile,
        local: &Index,
    ) -> Result<Self> {
        Self::new(cx, &tile, local, Type::scalar(scalar_type(plan.accumulator)?))
    }

    fn loads<'p>(
        cx: &mut KernelContext<'_>,
        plan: &'p ContractionPlan,
        tile: GroupTile,
        tiling: &Tiling,
        operand: (Operand<'p>, Role),
        shared: ValueId,
    ) -> Result<Self::Loads<'p>> {
        tiles::Loads::new(cx, plan, &tile, tiling, operand, shared)
    }

    fn buffer(tile: GroupTile, extent: i64, size: i64) -> (i64, i64) {
        (tile.depth, tile.buffer_bytes(extent, size))
    }

    fn initial(&self, cx: &mut KernelContext<'_>, plan: &ContractionPlan) -> Result<Vec<ValueId>> {
        let nothing = zero(cx, Type::scalar(scalar_type(plan.accumulator)?));
        Ok(vec![nothing; self.sums()])
    }

    fn products(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: [ValueId; 2],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        self.products(cx, buffers, sums)
    }

    fn with_factors(
        &self,
        cx: &mut KernelContext<'_>,
        sums: &[ValueId],
        factors: ValueId,
        op: BinaryOp,
    ) -> Result<Vec<ValueId>> {
        self.with_factors(cx, sums, factors, op)
    }

    fn blocks(&self, _: &mut KernelContext<'_>, sums: &[ValueId]) -> Vec<Block> {
        self.blocks(sums)
    }

    /// The weights replace the scores.
    fn store_weights(
        cx: &mut KernelContext<'_>,
        tile: GroupTile,
        scores: ValueId,
        [row, key]: [&Index; 2],
        weights: &[ValueId],
    ) -> Result<()> {
        let size = cx.ty(weights[0]).scalar.byte_size() as i64;
        let across = tile.rows + GroupTile::PADDING;
        let at = cx.scalar_value(&key.times(across).plus(row))?;
        let first = cx.offset(scores, at, size);
        for (k, &weight) in weights.iter().enumerate() {
            let pointer = cx.offset_bytes(first, k as i64 * across * size);
            cx.store(weight, pointer, size as u32);
        }
        Ok(())
    }

    fn finish(
        &self,
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        tiling: &Tiling,
        sums: &[ValueId],
    ) -> Result<()> {
        self.finish(cx, plan, tiling, sums)
    }
}

impl Products for matrix::Threads {
    type Tile = MatrixTile;
    type Loads<'p> = matrix::Loads<'p>;

    fn new(cx: &mut KernelContext<'_>, _: &ContractionPlan, tile: MatrixTile, local: &Index) -> Result<Self> {
        Self::new(cx, &tile, local)
    }

    fn loads<'p>(
        cx: &mut KernelContext<'_>,
        plan: &'p ContractionPlan,
        tile: MatrixTile,
        tiling: &Tiling,
        operand: (Operand<'p>, Role),
        shared: ValueId,
    ) -> Result<Self::Loads<'p>> {
        matrix::Loads::new(cx, plan, &tile, tiling, operand, shared)
    }

    fn buffer(tile: MatrixTile, extent: i64, _: i64) -> (i64, i64) {
        (tile.depth(), extent * MatrixTile::ROW_BYTES)
    }

    fn initial(&self, cx: &mut KernelContext<'_>, plan: &ContractionPlan) -> Result<Vec<ValueId>> {
        self.initial(cx, plan)
    }

    fn products(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: [ValueId; 2],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        self.products(cx, buffers, sums)
    }

    fn with_factors(
        &self,
        cx: &mut KernelContext<'_>,
        sums: &[ValueId],
        factors: ValueId,
        op: BinaryOp,
    ) -> Result<Vec<ValueId>> {
        self.with_factors(cx, sums, factors, op)
    }

    fn blocks(&self, cx: &mut KernelContext<'_>, sums: &[ValueId]) -> Vec<Block> {
        self.blocks(cx, sums)
    }

    /// The weights are narrower than the scores that they replace. All threads have read theirs.
    fn store_weights(
        cx: &mut KernelContext<'_>,
        tile: MatrixTile,
        scores: ValueId,
        [row, key]: [&Index; 2],
        weights: &[ValueId],
    ) -> Result<()> {
        let size = tile.element_type.byte_size() as i64;
        let (together, step_bytes) = (16 / size, tile.rows * MatrixTile::ROW_BYTES);
        let (step, within) = cx.div_rem(key, tile.depth())?;
        let at = step.times(step_bytes).plus(&row.times(MatrixTile::ROW_BYTES)).plus(&within.times(size));
        let at = cx.scalar_value(&at)?;
        let first = cx.offset(scores, at, 1);
        for (k, weights) in weights.chunks(together as usize).enumerate() {
            let values = vector(cx, weights);
            let bits = match tile.element_type {
                PrimitiveType::F32 => matrix::rounded(cx, values),
                narrow => narrowed(cx, narrow, values),
            };
            // The thread's first key is the first of a step, or all its keys are in one.
            let (steps, within) = (k as i64 * together / tile.depth(), k as i64 * together % tile.depth());
            let pointer = cx.offset_bytes(first, steps * step_bytes + within * size);
            cx.store(bits, pointer, (size * weights.len() as i64) as u32);
        }
        Ok(())
    }

    fn finish(
        &self,
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        tiling: &Tiling,
        sums: &[ValueId],
    ) -> Result<()> {
        self.finish(cx, plan, tiling, sums)
    }
}

/// Rounds numbers from 0 to 1 to `f16` or `bf16`. NaNs become arbitrary numbers; the sum of such a
/// row, with which its elements are scaled, is NaN as well.
fn narrowed(cx: &mut KernelContext<'_>, element_type: PrimitiveType, values: ValueId) -> ValueId {
    let ty = cx.ty(values);
    let (values, dropped) = if element_type == PrimitiveType::Bf16 {
        (values, 16)
    } else {
        // The exponent's bias becomes that of `f16`, and subnormals become subnormals.
        let power = cx.float(ty, 2f64.powi(15 - 127));
        (cx.mul(values, power), 13)
    };
    let bits = cx.bitcast(values, ty.with_scalar(ScalarType::I32));
    let ty = cx.ty(bits);
    let [by, one, half] = [dropped, 1, (1 << (dropped - 1)) - 1].map(|number| cx.integer(ty, number));
    let shifted = cx.binary(BinaryOp::ShiftRightLogical, bits, by);
    let odd = cx.and(shifted, one);
    let sum = cx.add(bits, half);
    let sum = cx.add(sum, odd);
    let rounded = cx.binary(BinaryOp::ShiftRightLogical, sum, by);
    cx.convert(ConvertOp::Truncate, rounded, ScalarType::I16)
}
