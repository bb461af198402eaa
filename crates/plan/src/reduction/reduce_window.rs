//! Windowed reductions: how each dimension of the result is walked.

use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::loops;
use hlo::{Op, Window, WindowDimension, is_associative};
use shape::PrimitiveType;
use support::{Error, Result};
use target::Target;

/// How a windowed reduction looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceWindowPlan {
    /// For each dimension, how results find the elements that their windows hold.
    pub dimensions: Vec<WindowWalk>,
    /// Neighbours along the innermost dimension that are computed at once.
    pub lanes: u32,
    /// Vectors of such neighbours that are computed side by side.
    pub vectors: u32,
    /// The dimension that is cut into tasks, if there are several.
    pub task_dimension: Option<usize>,
    /// Whether the computation is one operation whose order is free, on real numbers or on parts of complex ones.
    pub is_operation: bool,
}

/// How the windows along one dimension are walked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowWalk {
    /// Neighbouring results hold the same taps, as far as these are known: the interior is one segment, the borders are
    /// others.
    Segments(Vec<WindowSegment>),
    /// The first and last tap are computed for each result.
    Bounded,
    /// Each tap is looked at, because the base is dilated.
    Masked,
    /// Every window starts at the first element (or ends at the last one), so a running total does.
    Running {
        /// From the last result to the first.
        is_backward: bool,
    },
}

/// Neighbouring results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSegment {
    /// The first result.
    pub begin: i64,
    /// One past the last.
    pub end: i64,
    /// The taps within the base that all their windows hold: the first, and one past the last. If there are none, they are
    /// computed for each result.
    pub taps: Option<(i64, i64)>,
}

/// Where there were more segments than these, the taps of the borders are computed instead.
const MAX_SEGMENTS: usize = 8;
/// An interior of fewer results is none.
const MIN_INTERIOR: i64 = 4;
/// A running total pays for windows of so many taps.
const MIN_RUNNING_TAPS: i64 = 8;
/// Taps that are worth a task.
const TASK_WORK: i64 = 1 << 15;
/// The most tasks of one kernel.
const MAX_TASKS: i64 = 1 << 10;
/// Vectors of the innermost dimension side by side.
const VECTORS: u32 = 4;

/// Plans a body whose root is a windowed reduction.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<ReduceWindowPlan>> {
    let Op::ReduceWindow { window, to_apply } = fusion.root_op() else {
        return Err(Error::internal("the root is a windowed reduction"));
    };
    for id in fusion.instructions().into_iter().filter(|&id| id != fusion.root) {
        loops::check_fusible(fusion.body[id].op())?;
    }
    if window.dimensions.iter().any(|d| d.window_reversal) {
        return Err(Error::unsupported("windows that are read backwards"));
    }
    let input = fusion.body[fusion.body[fusion.root].operands()[0]].shape().expect_array().sizes();
    let leaves = fusion.shape().leaves();
    let (_, result) = leaves.first().ok_or_else(|| Error::internal("a windowed reduction has a result"))?;
    let counts = result.sizes();
    let callee = &fusion.module[*to_apply];
    // Complex sums are sums of both parts.
    let has_parts = result.element_type.is_complex() && !matches!(callee[callee.root()].op(), Op::Add {});
    let is_operation = leaves.len() == 1 && !has_parts && is_associative(callee);
    let mut dimensions = walks(window, &input, &counts, is_operation);
    let tasks = tasks(window, &counts, &mut dimensions);
    let lanes = match dimensions.last() {
        Some(WindowWalk::Segments(_) | WindowWalk::Masked) => {
            loops::largest_fitting(loops::lanes(fusion, target), counts.last().copied().unwrap_or(1))
        }
        // Bits of truth values do not move well from lane to lane.
        Some(WindowWalk::Running { .. }) if is_operation && result.element_type != PrimitiveType::Pred => {
            loops::largest_fitting(loops::lanes(fusion, target), counts.last().copied().unwrap_or(1))
        }
        _ => 1,
    };
    let vectors = match counts.last() {
        Some(&count) if lanes > 1 => (count / i64::from(lanes)).clamp(1, i64::from(VECTORS)) as u32,
        _ => 1,
    };
    let task_dimension = tasks.map(|(dimension, _)| dimension);
    let plan = ReduceWindowPlan { dimensions, lanes, vectors, task_dimension, is_operation };
    let tasks = tasks.map_or(1, |(_, tasks)| tasks);
    Ok(KernelPlan { tasks, ..KernelPlan::new(plan) })
}

/// The walk of each dimension. One dimension at most keeps a running total, and the numbers of segments multiply to a
/// bounded number of them.
fn walks(window: &Window, input: &[i64], counts: &[i64], is_operation: bool) -> Vec<WindowWalk> {
    let mut walks = vec![WindowWalk::Bounded; counts.len()];
    let (mut has_running, mut pieces) = (false, 1);
    for d in (0..counts.len()).rev() {
        let (w, size, count) = (&window.dimensions[d], input[d], counts[d]);
        // The running dimension's elements are combined last, so other windows beside it need an order that is free.
        let is_alone = window.dimensions.iter().enumerate().all(|(other, w)| other == d || w.size == 1);
        let is_running = |backward: bool| w.size >= MIN_RUNNING_TAPS && w.runs(size, count, backward);
        let segments = segments(w, size, count, MAX_SEGMENTS / pieces);
        walks[d] = if !has_running && (is_operation || is_alone) && is_running(false) {
            has_running = true;
            WindowWalk::Running { is_backward: false }
        } else if !has_running && is_operation && is_running(true) {
            has_running = true;
            WindowWalk::Running { is_backward: true }
        } else if let Some(segments) = segments {
            pieces *= segments.len().max(1);
            WindowWalk::Segments(segments)
        } else if w.base_dilation == 1 {
            WindowWalk::Bounded
        } else {
            WindowWalk::Masked
        };
    }
    walks
}

/// The results with equal taps along one dimension; if they are more than `most` segments, those with all taps and the
/// borders. `None` if there are none with all taps, or if the base is dilated.
fn segments(w: &WindowDimension, size: i64, count: i64, most: usize) -> Option<Vec<WindowSegment>> {
    if size == 0 {
        return Some(vec![WindowSegment { begin: 0, end: count, taps: Some((0, 0)) }]);
    }
    if w.base_dilation != 1 {
        return None;
    }
    let mut segments: Vec<WindowSegment> = Vec::new();
    let mut begin = 0;
    while begin < count {
        if segments.len() == most {
            return interior(w, size, count).filter(|segments| segments.len() <= most);
        }
        let taps = taps_within(w, size, begin);
        // Both ends of the taps fall from result to result, so equal ones are neighbours.
        let (mut same, mut other) = (begin, count);
        while same + 1 < other {
            let middle = same + (other - same) / 2;
            if taps_within(w, size, middle) == taps { same = middle } else { other = middle }
        }
        segments.push(WindowSegment { begin, end: other, taps: Some(taps) });
        begin = other;
    }
    Some(segments)
}

/// The results whose windows hold all taps, and the borders before and behind them; `None` if they are few.
fn interior(w: &WindowDimension, size: i64, count: i64) -> Option<Vec<WindowSegment>> {
    let (size, low, stride) = (i128::from(size), i128::from(w.padding_low), i128::from(w.stride));
    let reach = (i128::from(w.size) - 1) * i128::from(w.window_dilation);
    let clamped = |result: i128| result.clamp(0, count.into()) as i64;
    let begin = clamped((low + stride - 1).div_euclid(stride));
    let end = clamped((size - 1 + low - reach).div_euclid(stride) + 1);
    if end - begin < MIN_INTERIOR {
        return None;
    }
    let all = [(0, begin, None), (begin, end, Some((0, w.size))), (end, count, None)];
    let segments = all.into_iter().map(|(begin, end, taps)| WindowSegment { begin, end, taps });
    Some(segments.filter(|segment| segment.begin < segment.end).collect())
}

/// The taps of a result's window that are within a base that is not dilated: the first, and one past the last.
fn taps_within(w: &WindowDimension, size: i64, result: i64) -> (i64, i64) {
    let start = i128::from(result) * i128::from(w.stride) - i128::from(w.padding_low);
    let dilation = i128::from(w.window_dilation);
    // The first tap at or behind an element.
    let first_at = |element: i128| {
        let distance = element - start;
        (distance + dilation - 1).div_euclid(dilation).clamp(0, i128::from(w.size)) as i64
    };
    (first_at(0), first_at(size.into()))
}

/// The dimension that is cut into tasks and their number, if there is work for several. Its walk must not depend on where
/// it is cut.
fn tasks(window: &Window, counts: &[i64], walks: &mut [WindowWalk]) -> Option<(usize, i64)> {
    let taps = |d: usize| match walks[d] {
        WindowWalk::Running { .. } => 1,
        _ => window.dimensions[d].size,
    };
    let work = (0..counts.len()).fold(1i64, |work, d| work.saturating_mul(counts[d]).saturating_mul(taps(d)));
    let wanted = (work / TASK_WORK).min(MAX_TASKS);
    if wanted < 2 || counts.contains(&0) {
        return None;
    }
    let fits = |&d: &usize| !matches!(walks[d], WindowWalk::Running { .. }) && counts[d] > 1;
    let outer = 0..counts.len().saturating_sub(1);
    let first = outer.clone().filter(fits).find(|&d| counts[d] >= wanted);
    let dimension =
        first.or_else(|| outer.filter(fits).max_by_key(|&d| (counts[d], std::cmp::Reverse(d))))?;
    if matches!(&walks[dimension], WindowWalk::Segments(segments) if segments.len() > 1) {
        walks[dimension] = WindowWalk::Bounded;
    }
    let tasks = wanted.min(counts[dimension]);
    (tasks > 1).then_some((dimension, tasks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(size: i64, stride: i64, low: i64, window_dilation: i64) -> WindowDimension {
        WindowDimension { stride, padding_low: low, window_dilation, ..WindowDimension::of_size(size) }
    }

    #[test]
    fn borders_and_interior_are_segments() {
        let of = |w: WindowDimension, size, count| {
            let list = segments(&w, size, count, MAX_SEGMENTS)?;
            list.iter().map(|s| Some((s.begin, s.end, s.taps?.0, s.taps?.1))).collect::<Option<Vec<_>>>()
        };
        // Without padding all is interior.
        assert_eq!(of(window(2, 2, 0, 1), 8, 4), Some(vec![(0, 4, 0, 2)]));
        // 3x3 with padding 1 and stride 1.
        assert_eq!(of(window(3, 1, 1, 1), 5, 5), Some(vec![(0, 1, 1, 3), (1, 4, 0, 3), (4, 5, 0, 2)]));
        // Stride 2 and an even base: only the end lacks taps.
        assert_eq!(of(window(3, 2, 0, 1), 6, 3), Some(vec![(0, 2, 0, 3), (2, 3, 0, 2)]));
        // A dilated window: taps 0, 2 and 4 elements behind its start.
        assert_eq!(of(window(3, 1, 2, 2), 6, 6), Some(vec![(0, 2, 1, 3), (2, 4, 0, 3), (4, 6, 0, 2)]));
        // A window that lies in the padding holds nothing.
        assert_eq!(of(window(1, 1, 2, 1), 1, 3), Some(vec![(0, 2, 1, 1), (2, 3, 0, 1)]));
        // Each window of a cumulative sum is another one.
        assert_eq!(of(window(100, 1, 99, 1), 100, 100), None);
    }

    #[test]
    fn borders_of_long_windows_are_computed() {
        let segment = |begin, end, taps| WindowSegment { begin, end, taps };
        assert_eq!(
            segments(&window(11, 1, 5, 1), 96, 96, MAX_SEGMENTS),
            Some(vec![segment(0, 5, None), segment(5, 91, Some((0, 11))), segment(91, 96, None)])
        );
        // The first window with all taps is number 5, at 10 - 9; the last one is number 54, at 99.
        assert_eq!(
            segments(&window(10, 2, 9, 1), 109, 60, 4),
            Some(vec![segment(0, 5, None), segment(5, 55, Some((0, 10))), segment(55, 60, None)])
        );
    }

    #[test]
    fn a_dilated_base_has_no_segments() {
        let w = WindowDimension { base_dilation: 2, ..window(2, 1, 0, 1) };
        assert_eq!(segments(&w, 3, 4, MAX_SEGMENTS), None);
    }
}
