//! Transposes on a device: square tiles pass through workgroup memory, so that both reads and
//! writes run along memory.

use crate::collapse::{self, Loop};
use crate::device::GroupGrid;
use crate::fusion::{Fusion, Position};
use crate::in_place::overwritable;
use crate::kernel_plan::KernelPlan;
use crate::loops::check_fusible;
use hlo::{InstructionId, Op};
use std::collections::BTreeSet;
use std::fmt;
use support::Result;
use target::Gpu;

/// Elements along each side of a tile.
pub const TILE: i64 = 32;

/// Threads of a workgroup: a row of the tile for each warp.
pub const TILE_ROWS: i64 = 8;

/// Shorter sides do not fill a tile.
const MIN_SIDE: i64 = 16;

/// Plan of a loop nest over a result whose operands are transposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransposePlan {
    /// The loops that are not along a side of a tile, outermost first.
    pub outer: Vec<Loop>,
    /// The loop along which the transposed values are contiguous in memory.
    pub across: Loop,
    /// The innermost loop.
    pub innermost: Loop,
    /// The transposed values that pass through workgroup memory.
    pub values: Vec<InstructionId>,
}

impl TransposePlan {
    /// Number of tiles along both sides.
    pub const fn tiles(&self) -> (i64, i64) {
        ((self.across.extent + TILE - 1) / TILE, (self.innermost.extent + TILE - 1) / TILE)
    }

    pub(crate) fn grid(&self) -> GroupGrid {
        let (across, innermost) = self.tiles();
        let outer: i64 = self.outer.iter().map(|l| l.extent).product();
        GroupGrid { groups: (outer * across * innermost) as u64, threads: (TILE * TILE_ROWS) as u32 }
    }
}

impl fmt::Display for TransposePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (across, innermost) = (self.across.extent, self.innermost.extent);
        write!(f, "{} transposed in tiles of {across} x {innermost}", self.values.len())
    }
}

/// Plans a loop nest whose operands are transposed. Returns `None` for others.
pub(crate) fn plan(fusion: &Fusion<'_>, gpu: Gpu) -> Result<Option<KernelPlan<TransposePlan>>> {
    let Some(result) = fusion.shape().as_array() else { return Ok(None) };
    let transposes = transposes(fusion);
    if transposes.is_empty() || result.element_count() < TILE * TILE {
        return Ok(None);
    }
    for id in fusion.instructions() {
        check_fusible(fusion.body[id].op())?;
    }
    let sizes = result.sizes();
    let nest = collapse::nest(fusion, &[fusion.root], &sizes, &vec![false; sizes.len()])?;
    let Some((&innermost, others)) = nest.loops.split_last() else { return Ok(None) };
    // The loop across which most values are transposed.
    let values_of = |across: &Loop| -> Vec<InstructionId> {
        let along = |id: &&InstructionId| along(fusion, **id, &sizes) == Some(across.dimension);
        transposes.iter().filter(along).copied().collect()
    };
    let fits = |l: &&Loop| l.extent >= MIN_SIDE && innermost.extent >= MIN_SIDE;
    let candidates = nest.across.iter().filter(fits).map(|&across| (across, values_of(&across)));
    let Some((across, values)) = candidates.max_by_key(|(_, values)| values.len()) else { return Ok(None) };
    let bytes: u64 = values
        .iter()
        .map(|&id| fusion.body[id].shape().byte_size() / result.element_count() as u64)
        .map(|bytes| bytes.max(4) * (TILE * (TILE + 1)) as u64)
        .sum();
    if values.is_empty() || bytes > gpu.workgroup_bytes {
        return Ok(None);
    }
    let outer = others.iter().filter(|l| **l != across).copied().collect();
    let may_overwrite = overwritable(fusion);
    let plan = TransposePlan { outer, across, innermost, values };
    Ok(Some(KernelPlan { may_overwrite, ..KernelPlan::new(plan) }))
}

/// The transposes whose elements are used at the result's own positions only.
fn transposes(fusion: &Fusion<'_>) -> Vec<InstructionId> {
    let sizes = |id: InstructionId| fusion.body[id].shape().as_array().map(|s| s.sizes());
    let whole = sizes(fusion.root);
    let (mut pending, mut seen) = (vec![fusion.root], BTreeSet::new());
    let mut found = Vec::new();
    while let Some(id) = pending.pop() {
        if !seen.insert(id) || fusion.position(id) != Position::Inside || sizes(id) != whole {
            continue;
        }
        match fusion.body[id].op() {
            Op::Transpose { .. } => found.push(id),
            op if op.is_elementwise() => pending.extend(fusion.body[id].operands()),
            _ => {}
        }
    }
    // A transpose that something else uses, too, has elements at other positions.
    let is_inside = |id: InstructionId| seen.contains(&id);
    let is_used_here = |id: &InstructionId| {
        *id == fusion.root || fusion.body[*id].users().iter().all(|&user| is_inside(user))
    };
    found.retain(is_used_here);
    found.sort_unstable();
    found
}

/// The dimension of the result along which a transpose's operand is contiguous.
fn along(fusion: &Fusion<'_>, transpose: InstructionId, sizes: &[i64]) -> Option<usize> {
    let Op::Transpose { dimensions } = fusion.body[transpose].op() else { return None };
    (0..dimensions.len()).filter(|&d| sizes[d] != 1).max_by_key(|&d| dimensions[d])
}
