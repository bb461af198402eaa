//! Which row of a timeline an execution is drawn in.

use tf::proto::{DeviceStepStats, NodeExecStats};

/// The lane of each of a device's executions, in their order: the first whose last bar has ended before this one begins, so
/// that bars never overlap. Lanes are not threads: who was faster does not change the picture.
pub(crate) fn lanes(device: &DeviceStepStats) -> Vec<usize> {
    let mut ends: Vec<i64> = vec![0];
    let lane = |stats: &NodeExecStats| {
        let free = ends.iter().position(|&end| stats.all_start_micros > end);
        let lane = free.unwrap_or(ends.len());
        if lane == ends.len() {
            ends.push(0);
        }
        ends[lane] = end_micros(stats);
        lane
    };
    device.node_stats.iter().map(lane).collect()
}

/// When an execution ended, in microseconds since the epoch.
pub(crate) fn end_micros(stats: &NodeExecStats) -> i64 {
    stats.all_start_micros.saturating_add(stats.all_end_rel_micros)
}
