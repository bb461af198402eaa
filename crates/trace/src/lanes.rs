//! Assigns executions to rows of a timeline.

use tf::proto::{DeviceStepStats, NodeExecStats};

/// Returns the lane of each execution of a device, in order: the first lane whose last bar has
/// ended before this one begins, so that bars never overlap. Lanes are not threads, so scheduling
/// does not change the picture.
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

/// End time of an execution in microseconds since the epoch.
pub(crate) fn end_micros(stats: &NodeExecStats) -> i64 {
    stats.all_start_micros.saturating_add(stats.all_end_rel_micros)
}
