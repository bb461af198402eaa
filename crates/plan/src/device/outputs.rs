//! Several results on a device: a thread for each element, or a team of threads for each column of
//! reductions. Arrays that slice updates replace in part are copied first.

use crate::collapse::Loop;
use crate::device::GroupGrid;
use crate::device::movement::{unit, units_grid};
use crate::device::reduce::{combining_teams, parts};
use crate::device::teams::Teams;
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::multi_output::{self, MultiOutputPlan};
use std::fmt;
use support::Result;
use target::{Gpu, Target};

/// Number of elements beyond which threads stride over them.
const MAX_TASKS: i64 = 1 << 24;

/// Plan of several results on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputsPlan {
    /// The plan of the body.
    pub body: MultiOutputPlan,
    /// The arrays that are copied before, each in a step: bytes, and bytes of a unit.
    pub copies: Vec<(i64, i64)>,
    /// The teams of the reductions, if there are any.
    pub columns: Option<ColumnsPlan>,
    tasks: i64,
}

/// Reductions over columns by teams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnsPlan {
    /// The loops over kept dimensions, outermost first. Their combined index is the team's number.
    pub kept: Vec<Loop>,
    /// The loops over reduced dimensions, outermost first.
    pub reduced: Vec<Loop>,
    /// The teams of the first step.
    pub teams: Teams,
    /// Elements that a thread reads before it combines any of them.
    pub unroll: i64,
    /// Number of parts of each column, and elements of a part.
    pub parts: (i64, i64),
    /// The teams that combine the parts.
    pub second: Teams,
}

impl ColumnsPlan {
    /// Number of elements of a column.
    pub fn length(&self) -> i64 {
        self.reduced.iter().map(|l| l.extent).product()
    }
}

impl OutputsPlan {
    /// Number of steps: copies, the body, and the combination of parts.
    pub(crate) fn steps(&self) -> usize {
        let combines = self.columns.as_ref().is_some_and(|columns| columns.parts.0 > 1);
        self.copies.len() + 1 + usize::from(combines)
    }

    pub(crate) fn grid(&self, step: usize) -> GroupGrid {
        if let Some((bytes, unit)) = self.copies.get(step) {
            return units_grid(bytes / unit);
        }
        match &self.columns {
            Some(columns) if step > self.copies.len() => columns.second.grid(1),
            Some(columns) => columns.teams.grid(columns.parts.0),
            None if self.tasks <= 1 => GroupGrid { groups: 1, threads: 1 },
            None => units_grid(self.tasks.min(MAX_TASKS)),
        }
    }
}

impl fmt::Display for OutputsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.body.fmt(f)?;
        let Some(columns) = &self.columns else { return Ok(()) };
        write!(f, ", by teams: {}, {} parts", columns.teams, columns.parts.0)
    }
}

/// Plans a body with several results. Returns `None` if the strategy of a processor does as well: a
/// thread for each element or for each of many short columns.
pub(crate) fn plan(
    fusion: &Fusion<'_>,
    gpu: Gpu,
    target: &Target,
) -> Result<Option<KernelPlan<OutputsPlan>>> {
    let plan = multi_output::plan(fusion, target)?;
    let mut leaves_may_overwrite = plan.leaves_may_overwrite;
    let mut body = plan.strategy;
    if body.sizes.contains(&0) || (body.updates.is_empty() && !body.reduces()) {
        return Ok(None);
    }
    let leaves = fusion.shape().leaves();
    let copy = |&(leaf, _): &(usize, usize)| {
        let bytes = leaves.get(leaf).map_or(0, |(_, shape)| shape.byte_size() as i64);
        (bytes, unit([bytes]))
    };
    let copies: Vec<(i64, i64)> = body.updates.iter().map(copy).collect();
    if !body.reduces() {
        body.nest.cuts = body.nest.loops.iter().map(|l| l.extent).collect();
        let tasks = body.nest.cuts.iter().product();
        let plan = OutputsPlan { body, copies, columns: None, tasks };
        return Ok(Some(KernelPlan { tasks, leaves_may_overwrite, ..KernelPlan::new(plan) }));
    }
    let (reduced, kept): (Vec<Loop>, Vec<Loop>) =
        body.nest.loops.iter().partition(|l| body.is_reduced[l.dimension]);
    let extent = |loops: &[Loop]| loops.iter().fold(1i64, |n, l| n.saturating_mul(l.extent));
    let (count, length) = (extent(&kept), extent(&reduced));
    if length <= 1 || count.checked_mul(length).is_none_or(|n| n > 1 << 40) {
        return Ok(None);
    }
    let teams = Teams::of_columns(count, length);
    let unroll = (length / teams.size).clamp(1, 4);
    let parts = parts(&teams, length, teams.size * unroll, i64::from(gpu.processors));
    if length % (teams.size * unroll) != 0 || parts.0 * parts.1 != length || count % teams.per_group != 0 {
        // Threads without work of their own read other threads' elements.
        leaves_may_overwrite.clear();
    }
    let second = combining_teams(count, parts.0);
    // No accumulator takes more than 8 bytes; each begins at a multiple of 16.
    let reductions = leaves.len() as i64;
    let scratch_bytes = if parts.0 > 1 { ((8 * count * parts.0 + 16) * reductions) as u64 } else { 0 };
    let columns = Some(ColumnsPlan { kept, reduced, teams, unroll, parts, second });
    let plan = OutputsPlan { body, copies, columns, tasks: 1 };
    Ok(Some(KernelPlan { scratch_bytes, leaves_may_overwrite, ..KernelPlan::new(plan) }))
}
