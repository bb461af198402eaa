//! Sorts on a device: a workgroup sorts rows, or a chunk of a long row, in its memory.
//!
//! The network is a bitonic one in which every comparison puts the first item first, so that no
//! comparison with a place beyond the row's end is needed. Each level sorts blocks of twice the
//! size: it compares every item with its mirror image, then with those at distances of a half, a
//! quarter, ... of a block. Distances of a chunk and more are steps of their own, in global memory.
//! If only the first few elements are needed, rounds select those of each chunk instead.

use crate::device::GroupGrid;
use crate::device::movement::units_grid;
use crate::device::teams::power_of_two_from;
use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::sort::{SortItems, SortLayout, SortPlan, Sorted};
use hlo::Op;
use std::fmt;
use target::Gpu;

/// Bytes of workgroup memory for items.
const BYTES: i64 = 32 << 10;

/// Items of a row that is sorted in one piece.
const WHOLE: i64 = 4096;

/// Items of a chunk of a longer row.
const CHUNK: i64 = 2048;

/// Items of a workgroup that sorts several short rows.
const SEVERAL: i64 = 256;

/// Upper bound of the threads of a workgroup.
const THREADS: i64 = 512;

/// Stages of an exchange of keys, for which a thread keeps eight items in registers.
const KEY_STAGES: u32 = 3;

/// The longest row.
const MAX_LENGTH: i64 = 1 << 30;

/// Plan of a sort by workgroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TeamSortPlan {
    /// The numeric keys. Without them, items are places of 32 bits, ordered by the comparison.
    pub keys: Option<SortPlan>,
    /// Products of the sizes before the sorted dimension, of the dimension itself, and of the sizes
    /// after it.
    pub sizes: [i64; 3],
    /// Number of sorted elements of each row that are needed.
    pub count: i64,
    /// Items that a workgroup sorts of each row; a power of two.
    pub chunk: i64,
    /// Rows that a workgroup sorts; a power of two.
    pub rows: i64,
    /// The steps, one kernel each.
    pub steps: Vec<SortStep>,
}

/// A step of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortStep {
    /// Groups sort chunks of rows of this length: those of the operands in round 0, or those that
    /// the previous round selected.
    Sort {
        /// Number of the round.
        round: usize,
        /// Items of each row.
        length: i64,
        /// True if the results are written.
        is_last: bool,
    },
    /// Threads compare items at a distance, or with their mirror images in blocks if the distance
    /// is half a block, and then at half that distance, a quarter, ...
    Exchange {
        /// Logarithm of the size of the sorted blocks.
        level: u32,
        /// Logarithm of the first distance.
        distance: u32,
        /// Number of distances.
        stages: u32,
    },
    /// Groups compare items at all distances within a chunk.
    Merge {
        /// True if the results are written.
        is_last: bool,
    },
}

impl TeamSortPlan {
    /// Number of rows.
    pub fn all_rows(&self) -> i64 {
        self.sizes[0].saturating_mul(self.sizes[2])
    }

    /// Number of words of an item, and bytes of each.
    pub fn words(&self) -> (i64, i64) {
        let items = self.keys.as_ref().map(|keys| keys.items);
        items.map_or((1, 4), |items| (items.words().into(), i64::from(items.bits()) / 8))
    }

    /// True if rounds select items.
    pub fn selects(&self) -> bool {
        matches!(self.steps.get(1), Some(SortStep::Sort { .. }))
    }

    /// Items of each row in scratch after a round.
    pub fn kept(&self, length: i64) -> i64 {
        if self.selects() { chunks(length, self.chunk) * self.count } else { length }
    }

    /// Bytes of the items in scratch after a round.
    pub fn kept_bytes(&self, length: i64) -> i64 {
        let (words, bytes) = self.words();
        self.kept(length).saturating_mul(self.all_rows()).saturating_mul(words * bytes)
    }

    /// Items of each row that a workgroup sorts, and number of such chunks.
    pub fn chunks(&self, length: i64) -> (i64, i64) {
        let chunk = self.chunk.min(power_of_two(length));
        (chunk, chunks(length, chunk))
    }

    /// Threads of a workgroup that sorts chunks.
    pub fn threads(&self, length: i64) -> i64 {
        (self.chunks(length).0 * self.rows / 2).min(THREADS)
    }

    pub(crate) fn grid(&self, step: usize) -> GroupGrid {
        let length = match self.steps[step] {
            SortStep::Exchange { stages, .. } => {
                let each = power_of_two(self.sizes[1]) >> stages;
                return units_grid(each.saturating_mul(self.all_rows()));
            }
            SortStep::Sort { length, .. } => length,
            SortStep::Merge { .. } => self.sizes[1],
        };
        let rows = (self.all_rows() + self.rows - 1) / self.rows;
        let groups = rows.saturating_mul(self.chunks(length).1).max(1).unsigned_abs();
        GroupGrid { groups, threads: self.threads(length) as u32 }
    }

    fn scratch_bytes(&self) -> u64 {
        match self.steps[..] {
            [_] => 0,
            // The rounds alternate between two regions, and the first one is the largest.
            _ if self.selects() => 2 * self.kept_bytes(self.sizes[1]) as u64,
            _ => self.kept_bytes(self.sizes[1]) as u64,
        }
    }
}

impl fmt::Display for TeamSortPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = 8 * self.words().1;
        match self.keys.as_ref().map(|keys| keys.items) {
            None => f.write_str("sort of places by comparison")?,
            Some(SortItems::Keys(_)) => write!(f, "sort of {bits}-bit keys")?,
            Some(SortItems::Packed(_)) => write!(f, "sort of keys and places in {bits} bits")?,
            Some(SortItems::Pairs) => f.write_str("sort of pairs of 64 bits")?,
        }
        write!(f, " by groups, {} rows of {} each, {} steps", self.rows, self.chunk, self.steps.len())
    }
}

/// The smallest power of two that is at least `n`, and at least 2.
fn power_of_two(n: i64) -> i64 {
    power_of_two_from(n.max(2))
}

fn chunks(length: i64, chunk: i64) -> i64 {
    (length + chunk - 1) / chunk
}

/// Plans a sort or top-k. Returns `None` if nothing is sorted.
pub(crate) fn plan(fusion: &Fusion<'_>, gpu: Gpu) -> Option<KernelPlan<TeamSortPlan>> {
    let Sorted { key, needs_places, sizes } = Sorted::of(fusion.module, fusion.caller, fusion.instruction)?;
    let [outer, length, inner] = sizes;
    let count = match fusion.root_op() {
        Op::TopK { k, .. } => (*k).min(length),
        _ => length,
    };
    // Rows with unordered NaN have no numeric order.
    let key = key.filter(|key| key.is_total);
    let is_top_k = matches!(fusion.root_op(), Op::TopK { .. });
    if outer == 0 || inner == 0 || count <= 0 || length > MAX_LENGTH || (is_top_k && key.is_none()) {
        return None;
    }
    let keys = key.map(|key| SortPlan {
        key,
        items: SortItems::of(key, needs_places, length),
        lanes: 1,
        layout: SortLayout::Along { vectors: 1, chunks: 1 },
        sizes,
    });
    let mut plan = TeamSortPlan { keys, sizes, count, chunk: 0, rows: 1, steps: Vec::new() };
    let (words, bytes) = plan.words();
    let most = BYTES.min(gpu.workgroup_bytes as i64) / (words * bytes);
    let whole = power_of_two(length);
    plan.chunk = if whole <= WHOLE.min(most) { whole } else { CHUNK.min(most) };
    plan.rows = (SEVERAL / plan.chunk).clamp(1, power_of_two_from(plan.all_rows()));
    let stages = if plan.keys.is_some() { KEY_STAGES } else { 1 };
    plan.steps = steps(length, plan.chunk, count, stages);
    let scratch_bytes = plan.scratch_bytes();
    Some(KernelPlan { scratch_bytes, ..KernelPlan::new(plan) })
}

/// The steps of a sort of rows of a length. An exchange has at most `most` stages.
fn steps(length: i64, chunk: i64, count: i64, most: u32) -> Vec<SortStep> {
    let mut steps = Vec::new();
    if count <= chunk / 4 {
        let mut length = length;
        for round in 0.. {
            let is_last = length <= chunk;
            steps.push(SortStep::Sort { round, length, is_last });
            if is_last {
                break;
            }
            length = chunks(length, chunk) * count;
        }
        return steps;
    }
    steps.push(SortStep::Sort { round: 0, length, is_last: length <= chunk });
    let (first, last) = (chunk.ilog2(), power_of_two(length).ilog2());
    for level in first + 1..=last {
        let mut rest = level - first;
        while rest > 0 {
            let stages = rest.min(most);
            steps.push(SortStep::Exchange { level, distance: first + rest - 1, stages });
            rest -= stages;
        }
        steps.push(SortStep::Merge { is_last: level == last });
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rows_take_several_steps() {
        let count = |length, chunk, count| steps(length, chunk, count, 1).len();
        assert_eq!(count(1, 2, 1), 1);
        assert_eq!(count(2048, 2048, 2048), 1);
        // Levels 12 and 13 with 1 and 2 exchanges.
        assert_eq!(count(5000, 2048, 5000), 1 + 2 + 3);
        assert_eq!(count(1 << 20, 2048, 1 << 20), 1 + (2..=10).sum::<usize>());
        let exchanges = |length| {
            let steps = steps(length, 2048, length, 3).into_iter();
            let of = |step| match step {
                SortStep::Exchange { level, distance, stages } => Some((level, distance, stages)),
                SortStep::Sort { .. } | SortStep::Merge { .. } => None,
            };
            steps.filter_map(of).collect::<Vec<_>>()
        };
        assert_eq!(exchanges(1 << 15), [(12, 11, 1), (13, 12, 2), (14, 13, 3), (15, 14, 3), (15, 11, 1)]);
        // 512 chunks, of which 16 items each fill four chunks.
        assert_eq!(count(1 << 20, 2048, 16), 3);
        let lengths = steps(1 << 20, 2048, 16, 1);
        let lengths = lengths.iter().map(|step| match step {
            SortStep::Sort { length, .. } => *length,
            SortStep::Exchange { .. } | SortStep::Merge { .. } => 0,
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [1 << 20, 8192, 64]);
        assert_eq!(
            steps(3, 2, 3, 3)[1..],
            [SortStep::Exchange { level: 2, distance: 1, stages: 1 }, SortStep::Merge { is_last: true }]
        );
    }
}
