//! Attention: two products with a softmax or other work on rows in between, as one kernel that
//! stores neither the scores nor the weights.
//!
//! A task computes a block of rows of one product at a time. Their scores go to the worker's
//! scratch, are walked there row by row, and are the left operand of the second product. Keys and
//! values are read repeatedly by both products. They are packed into scratch if the plan of a
//! single product would pack them too, for all rows at once.

use crate::contraction::dot::{self, DotLoops, DotPlan, Extent};
use crate::fusion::{Fusion, Position};
use crate::kernel_plan::KernelPlan;
use crate::packing::Packing;
use crate::reduction::rows::{self, RowsPlan};
use crate::tasks::{self, Work};
use hlo::{CACHE_LINE, InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};
use target::Target;

/// Plan of attention.
#[derive(Clone, Debug, PartialEq)]
pub struct AttentionPlan {
    /// The first product and its epilogue. Its result is in scratch.
    pub scores: DotPlan,
    /// The walks along its rows. Values that they keep are in scratch, too.
    pub softmax: RowsPlan,
    /// The second product, whose left operand is the result of the walks, and its epilogue.
    pub values: DotPlan,
    /// The body's instruction whose rows are walked.
    pub scores_root: InstructionId,
    /// The result of the walks. It replaces the scores in memory.
    pub softmax_root: InstructionId,
    /// The same value in the shape that the second product reads.
    pub weights: InstructionId,
    /// Index of the scores as an operand, after those of the fusion; the weights have the next
    /// index.
    pub handed: usize,
    /// Number of blocks of rows into which each product is divided.
    pub blocks: i64,
    /// Number of parts into which the loops over products and over blocks are divided, for tasks.
    pub cuts: [i64; 2],
    /// Distance of two rows of the scores, in elements.
    pub row: i64,
    /// Offset of the scores in the worker's scratch, in bytes; the keys' panels precede them.
    pub scores_offset: u64,
    /// Offset of the values' panels.
    pub values_offset: u64,
}

/// Number of rows that use the part of keys and values in the first-level cache before it is read
/// again.
const BLOCK_ROWS: i64 = 48;

/// Number of tasks that keeps a few workers busy.
const ENOUGH_TASKS: i64 = 8;

/// One kernel does not pay off if it has fewer tasks than this while its parts have more.
const FEW_TASKS: i64 = 8;

/// Upper bound of the scratch bytes per worker.
const MAX_SCRATCH: u64 = 8 << 20;

/// Plans a body of two dots. Fails if the body does not compute attention, or if one kernel does
/// not pay off.
pub fn plan(
    fusion: &Fusion<'_>,
    scores: InstructionId,
    values: InstructionId,
    target: &Target,
) -> Result<KernelPlan<AttentionPlan>> {
    let parts = Parts::of(fusion, scores, values)?;
    let handed = fusion.caller[fusion.instruction].operands().len();
    let first = fusion.part(parts.scores_root, None);
    let between = fusion.part(parts.softmax_root, Some((parts.scores_root, handed)));
    let last = fusion.part(fusion.root, Some((parts.weights, handed + 1)));
    check_walks(&between, parts.scores_root)?;
    let mut scores = dot::plan_part(&first, scores, target)?;
    let mut values = dot::plan_part(&last, values, target)?;
    let walked = rows::plan(&between, target)?;
    let mut softmax = walked.strategy;
    let array = |id: InstructionId| fusion.body[id].shape().expect_array();
    check_products(&scores, &values, &softmax, handed)?;
    let element_type = array(parts.scores_root).element_type;
    let types = [array(parts.softmax_root).element_type, scores.accumulator, values.accumulator];
    let is_float = matches!(element_type, PrimitiveType::F32 | PrimitiveType::F64);
    if !is_float || types.iter().any(|&ty| ty != element_type) {
        return Err(unsupported("on types other than f32 and f64"));
    }
    // Blocks of rows are whole tiles of both products.
    let (m, n, batch) = (scores.shape.m, scores.shape.n, scores.shape.batch);
    let mut tiles = 1;
    if let (Some(first), Some(second)) = (scores.tiled(), values.tiled()) {
        let rows = first.tile.rows.min(second.tile.rows);
        dot::limit_rows(&mut scores, rows, target);
        dot::limit_rows(&mut values, rows, target);
        tiles = (m + scores.tile_rows() - 1) / scores.tile_rows();
    }
    let size = element_type.byte_size() as i64;
    // Only rows in the last dimension can be padded.
    let is_last =
        [parts.scores_root, parts.softmax_root].iter().all(|&id| array(id).sizes().last() == Some(&n));
    let row = if parts.renumbers || !is_last { n } else { padded(n, size) };
    let blocks = blocks(batch, tiles, scores.tile_rows());
    let cuts = tasks::cut(Work::of_kernel(fusion).tasks(target), &[batch, blocks]);
    let tasks = tasks::count(&cuts);
    if batch.saturating_mul(blocks) < Work::of_kernel(fusion).tasks(target).min(FEW_TASKS) {
        return Err(unsupported("with fewer tasks than its separate products"));
    }
    let most_rows = if blocks > 1 { (tiles + blocks - 1) / blocks * scores.tile_rows() } else { m };
    let block = [most_rows, row, size].iter().fold(1i64, |all, &count| all.saturating_mul(count));
    let keys = if scores.keeps_panels() { scores.rhs_scratch_bytes() } else { 0 };
    let panels = if values.keeps_panels() { values.rhs_scratch_bytes() } else { 0 };
    let scores_offset = keys.saturating_add(panels);
    let kept_offset = scores_offset.saturating_add(block.unsigned_abs()).next_multiple_of(64);
    let bytes = kept_offset.saturating_add(walked.worker_scratch_bytes);
    if bytes > MAX_SCRATCH {
        return Err(unsupported("with more scratch memory than 8 MiB per worker"));
    }
    for sweep in &mut softmax.sweeps {
        sweep.stored.iter_mut().chain(&mut sweep.loaded).for_each(|value| value.offset += kept_offset);
    }
    let plan = AttentionPlan {
        scores,
        softmax,
        values,
        scores_root: parts.scores_root,
        softmax_root: parts.softmax_root,
        weights: parts.weights,
        handed,
        blocks,
        cuts: [cuts[0], cuts[1]],
        row,
        scores_offset,
        values_offset: keys,
    };
    Ok(KernelPlan { tasks, worker_scratch_bytes: bytes, ..KernelPlan::new(plan) })
}

/// Number of blocks into which the tiles of a product's rows are divided.
fn blocks(batch: i64, tiles: i64, tile_rows: i64) -> i64 {
    let together = (BLOCK_ROWS / tile_rows.max(1)).max(1);
    let of_size = (tiles + together - 1) / together;
    let batch = batch.max(1);
    let for_tasks = (ENOUGH_TASKS + batch - 1) / batch;
    of_size.max(for_tasks.min(tiles)).max(1)
}

/// Elements of a row rounded up to whole cache lines.
fn padded(n: i64, size: i64) -> i64 {
    let together = (CACHE_LINE / size.max(1)).max(1);
    n.saturating_add(together - 1) / together * together
}

/// The boundaries between the parts of a body.
struct Parts {
    scores_root: InstructionId,
    softmax_root: InstructionId,
    weights: InstructionId,
    /// True if a reshape lies between the products. Rows are then as in memory.
    renumbers: bool,
}

impl Parts {
    fn of(fusion: &Fusion<'_>, first: InstructionId, second: InstructionId) -> Result<Self> {
        let body = fusion.body;
        let &[weights, values] = body[second].operands() else {
            return Err(Error::internal("expected a dot with two operands"));
        };
        let is_inside = |id: InstructionId| fusion.position(id) == Position::Inside;
        if is_inside(values) || !is_inside(weights) {
            return Err(unsupported("with values that the same kernel computes"));
        }
        let mut renumbers = false;
        let mut softmax_root = weights;
        while let Op::Reshape {} | Op::Bitcast {} = body[softmax_root].op() {
            softmax_root = body[softmax_root].operands()[0];
            renumbers = true;
        }
        // Elementwise work on single scores belongs to the first product.
        let mut scores_root = first;
        while let &[user] = body[scores_root].users() {
            let op = body[user].op();
            let is_reshape = matches!(op, Op::Reshape {} | Op::Bitcast {});
            if user == softmax_root || !(is_reshape || op.is_elementwise()) {
                break;
            }
            renumbers |= is_reshape;
            scores_root = user;
        }
        Ok(Self { scores_root, softmax_root, weights, renumbers })
    }
}

/// Fails unless all instructions between the products either read a score only at the element that
/// replaces it, or reduce a row.
fn check_walks(between: &Fusion<'_>, scores: InstructionId) -> Result<()> {
    let body = between.body;
    let whole = body[scores].shape().expect_array().sizes();
    for id in between.instructions() {
        let op = body[id].op();
        let elementwise = op.is_elementwise();
        let moves = matches!(op, Op::Reshape {} | Op::Bitcast {} | Op::Broadcast { .. });
        let makes = matches!(op, Op::Constant { .. } | Op::Iota { .. } | Op::Reduce { .. });
        if !elementwise && !moves && !makes {
            return Err(unsupported("with an unsupported operation between its products"));
        }
        let is_whole =
            |id: &InstructionId| body[*id].shape().as_array().is_some_and(|shape| shape.sizes() == whole);
        let reads_scores = body[id].operands().contains(&scores);
        if reads_scores && moves || elementwise && reads_scores && !is_whole(&id) {
            return Err(unsupported("with scores that are read out of order"));
        }
    }
    Ok(())
}

/// Fails unless the products match: each walked row is a row of both.
fn check_products(scores: &DotPlan, values: &DotPlan, softmax: &RowsPlan, handed: usize) -> Result<()> {
    let (shape, other) = (scores.shape, values.shape);
    let is_same = |extents: &[Extent], size: i64, stride: i64| match *extents {
        [] => size == 1,
        [extent] => extent == Extent { size, stride },
        _ => false,
    };
    let dims = &values.dims;
    let n = shape.n;
    let is_joined = values.lhs_operand == handed + 1
        && (shape.batch, shape.m, n) == (other.batch, other.m, other.k)
        && is_same(&dims.lhs_batch, shape.batch, shape.m.saturating_mul(n))
        && is_same(&dims.rows, shape.m, n)
        && is_same(&dims.lhs_k, n, 1);
    let rows = softmax.rows.iter().fold(1i64, |all, l| all.saturating_mul(l.extent));
    let in_order = softmax.rows.is_sorted_by_key(|l| l.dimension);
    let columns: Vec<i64> = softmax.columns.iter().map(|l| l.extent).collect();
    let is_walked = in_order
        && rows == shape.batch.saturating_mul(shape.m)
        && columns == [n]
        && softmax.row_results.is_empty();
    let fits = |plan: &DotPlan| {
        let is_ready = plan.rhs_packing() == Packing::None || plan.keeps_panels();
        let is_complex = matches!(plan.loops, DotLoops::Complex { .. });
        plan.lhs_packing == Packing::None && is_ready && !is_complex
    };
    if is_joined && is_walked && fits(scores) && fits(values) && shape.m > 0 && shape.batch > 0 {
        return Ok(());
    }
    Err(unsupported("with products that do not match"))
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("one kernel for attention {what}"))
}

impl std::fmt::Display for AttentionPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let m = self.scores.shape.m;
        write!(
            f,
            "attention, {m} rows in {} blocks; {}; {}; {}",
            self.blocks, self.scores, self.softmax, self.values
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_cut_into_blocks_that_share_the_cache() {
        let table = [
            // (products, tiles per product, rows per tile), blocks
            ((1, 1, 1), 1),
            ((12, 1, 4), 1),
            // 128 rows of 12 heads, of 2 heads, and of one.
            ((12, 22, 6), 3),
            ((2, 22, 6), 4),
            ((1, 22, 6), 8),
            ((3, 33, 6), 5),
            // With few rows, a block is at least one tile.
            ((1, 3, 6), 3),
            ((64, 171, 6), 22),
        ];
        for ((batch, tiles, rows), expected) in table {
            assert_eq!(
                blocks(batch, tiles, rows),
                expected,
                "{batch} products of {tiles} tiles of {rows} rows"
            );
        }
    }

    #[test]
    fn rows_begin_at_cache_lines() {
        assert_eq!([padded(197, 4), padded(128, 4), padded(1, 4), padded(197, 8)], [208, 128, 16, 200]);
    }
}
