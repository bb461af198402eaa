//! Divides a product's loops into tasks and orders the tasks: adjacent tasks tend to run on the
//! same worker.

use super::{DotLoops, DotPlan, TiledDot};
use crate::contraction::extents::DotShape;
use crate::packing::Packing;
use crate::tasks;

/// Minimum number of rows or columns per task that use an operand which the task packs.
const ROWS_FOR_PACKING: i64 = 256;

/// Number of elements of a stationary operand, which no kernel writes, that a core reads from its
/// second-level cache or prefetches from beyond it, in the time of reading one element that another
/// core has computed.
const ELEMENTS_THAT_STAY: i64 = 3;

/// Consecutive tiles of rows that prefetch parts of one panel.
const TILES_PER_PREFETCH: i64 = 2;

/// With fewer parts of the rows than this, the workers' shares differ too much.
const FEW_PARTS: i64 = 4;

/// Divides the loops into at most `tasks` parts: products first, then the loop that needs the least
/// packing. `rhs_stays` is true for a right operand that no kernel writes: a constant or an
/// argument. `has_open_sizes` is true if a run may need only the first rows, so that parts of rows
/// would differ. `cache` is the size of a core's second-level cache in bytes.
pub(super) fn cut(plan: &mut DotPlan, tasks: i64, rhs_stays: bool, has_open_sizes: bool, cache: u64) {
    let [batch, columns, rows] = plan.steps();
    let DotShape { m, n, .. } = plan.shape;
    let tiled = plan.tiled().filter(|_| !has_open_sizes || columns < FEW_PARTS);
    let row_parts = tiled.and_then(|tiled| row_parts(plan, tiled, rows, rhs_stays, cache));
    let column_parts = plan.tiled().map(|tiled| tiled.column_parts).filter(|&parts| parts > 0);
    if plan.tiled().is_none() && plan.rhs_packing() == Packing::Scratch {
        // All of a product's right operand is packed at once.
        plan.cuts = [tasks::cut(tasks, &[batch])[0], 1, 1];
    } else if plan.lhs_packing == Packing::Scratch {
        let cuts = tasks::cut(tasks, &[batch, rows, columns.min(n / ROWS_FOR_PACKING)]);
        plan.cuts = [cuts[0], cuts[2], cuts[1]];
    } else if let Some(parts) = column_parts {
        let cuts = tasks::cut(tasks, &[batch, columns.min(parts), rows]);
        plan.cuts = [cuts[0], cuts[1], cuts[2]];
    } else if let (Some(parts), DotLoops::Tiled(tiled)) = (row_parts, &mut plan.loops) {
        let cuts = tasks::cut(tasks, &[batch, parts, columns]);
        plan.cuts = [cuts[0], cuts[2], cuts[1]];
        tiled.tasks_by_rows = true;
    } else {
        let is_packed = plan.rhs_packing() == Packing::Scratch;
        let rows = if is_packed { rows.min(m / ROWS_FOR_PACKING) } else { rows };
        let cuts = tasks::cut(tasks, &[batch, columns, rows]);
        plan.cuts = [cuts[0], cuts[1], cuts[2]];
    }
}

/// Number of parts into which the tiles of rows are divided before columns are; `None` if columns
/// come first.
fn row_parts(plan: &DotPlan, tiled: &TiledDot, tiles: i64, rhs_stays: bool, cache: u64) -> Option<i64> {
    let is_cut = tiled.rhs_packing != Packing::Scratch;
    let DotShape { n, k, .. } = plan.shape;
    let element = plan.grouping.map_or(plan.rhs_type.byte_size() as i64, |grouping| grouping.bytes());
    let fits = n.saturating_mul(k).saturating_mul(element) as u64 <= cache;
    let parts = if tiled.prefetches { tiles / TILES_PER_PREFETCH } else { tiles };
    (is_cut && fits && parts >= FEW_PARTS && rows_pay(plan.shape, rhs_stays)).then_some(parts)
}

/// True if parts of rows are better than parts of columns. With parts of rows, successive kernels
/// have the same rows on the same worker, which reads its own results; with parts of columns, it
/// reads other workers' parts of all rows. In return, each worker reads the whole right operand,
/// which must fit its cache, because data from beyond it should be read only once.
fn rows_pay(shape: DotShape, rhs_stays: bool) -> bool {
    let DotShape { m, n, k, .. } = shape;
    let each = if rhs_stays { ELEMENTS_THAT_STAY } else { 1 };
    m.saturating_mul(k.saturating_add(n)).saturating_mul(each) >= n.saturating_mul(k)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_with_their_worker_unless_the_right_operand_is_much_larger() {
        let table = [
            // Layers of a small and a base-size transformer with 128 rows, and the scores of the
            // small one.
            ((128, 128, 128), true, true),
            ((128, 512, 128), true, true),
            ((128, 768, 768), true, true),
            ((128, 3072, 768), true, false),
            ((128, 128, 64), false, true),
            // Gates of a batch of 32, with a stationary kernel and with one that was just computed.
            ((32, 256, 64), true, true),
            ((32, 256, 64), false, false),
            // One row.
            ((1, 512, 512), true, false),
        ];
        for ((m, n, k), rhs_stays, expected) in table {
            let shape = DotShape { batch: 1, m, n, k };
            assert_eq!(rows_pay(shape, rhs_stays), expected, "{m}x{n}x{k}");
        }
    }
}
