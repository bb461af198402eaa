//! Rows on a device: a team of threads for each row.

use crate::collapse::Loop;
use crate::device::GroupGrid;
use crate::device::reduce;
use crate::device::teams::Teams;
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::reduction::rows::{self, RowsPlan};
use crate::tasks::is_transcendental;
use std::fmt;
use support::Result;
use target::{Gpu, Target};

/// Upper bound of the elements of a row that a thread keeps in registers.
const MAX_KEPT: i64 = 64;

/// Upper bound of the operations of a row in straight-line code.
const MAX_OPERATIONS: i64 = 4096;

/// Plan of rows walked by teams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamRowsPlan {
    /// The walks along a row. Nothing is stored in scratch between them.
    pub rows: RowsPlan,
    /// A team for each row.
    pub teams: Teams,
    /// Elements per load.
    pub lanes: u32,
    /// Loads of a thread for a whole row that stays in registers from walk to walk, or 0 if each
    /// walk loads the row again.
    pub kept: i64,
    /// Loads per iteration of a walk that loads the row again.
    pub unroll: i64,
}

impl TeamRowsPlan {
    /// Number of elements of a row.
    pub fn length(&self) -> i64 {
        extent(&self.rows.columns)
    }

    /// The grid.
    pub(crate) fn grid(&self) -> GroupGrid {
        self.teams.grid(1)
    }
}

impl fmt::Display for TeamRowsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let walks = self.rows.sweeps.len();
        write!(f, "rows by teams: {}, {walks} walks, {} lanes", self.teams, self.lanes)?;
        if self.kept > 0 { write!(f, ", {} loads in registers", self.kept) } else { Ok(()) }
    }
}

fn extent(loops: &[Loop]) -> i64 {
    loops.iter().fold(1i64, |n, l| n.saturating_mul(l.extent))
}

/// Plans a fusion of kind `Rows`.
pub(crate) fn plan(
    fusion: &Fusion<'_>,
    gpu: Gpu,
    target: &Target,
) -> Result<Option<KernelPlan<TeamRowsPlan>>> {
    let plan = rows::plan(fusion, target)?;
    let may_overwrite = plan.may_overwrite;
    let mut rows = plan.strategy;
    let (count, length) = (extent(&rows.rows), extent(&rows.columns));
    if length <= 1 || count.checked_mul(length).is_none_or(|n| n > 1 << 40) {
        return Ok(None);
    }
    let values = rows.sweeps.iter().map(|sweep| sweep.stored.len()).sum::<usize>() as i64 + 1;
    for sweep in &mut rows.sweeps {
        sweep.loaded.clear();
        sweep.stored.clear();
    }
    let lanes = reduce::lanes(fusion, rows.columns.last().map_or(1, |l| l.extent));
    let units = length / lanes;
    let mut teams = Teams::of_rows(count, units, i64::from(gpu.processors));
    let each = |ops: i64, is_costly: bool| if is_costly { 30 * ops } else { ops };
    let operations: i64 =
        fusion.instructions().into_iter().map(|id| each(1, is_transcendental(fusion.body[id].op()))).sum();
    let fits = |teams: &Teams| {
        let elements = (units + teams.size - 1) / teams.size * lanes;
        elements * values <= MAX_KEPT && elements * operations <= MAX_OPERATIONS
    };
    // Larger teams keep longer rows in registers.
    let mut larger = teams;
    while !fits(&larger) && larger.size < 1024 {
        larger.size *= 2;
        larger.per_group = (larger.per_group / 2).max(1);
    }
    if fits(&larger) {
        teams = larger;
    }
    let loads = (units + teams.size - 1) / teams.size;
    let kept = if fits(&teams) { loads } else { 0 };
    let unroll = if operations > 64 { 1 } else { loads.clamp(1, 4 / lanes.min(4)) };
    rows.in_registers = kept > 0;
    let plan = TeamRowsPlan { rows, teams, lanes: lanes as u32, kept, unroll };
    Ok(Some(KernelPlan { may_overwrite, ..KernelPlan::new(plan) }))
}
