//! Windowed reductions: chooses how to walk each dimension of the result.

use crate::fusion::Fusion;
use crate::kernel_plan::KernelPlan;
use crate::loops;
use hlo::{Op, Window, WindowDimension, is_associative};
use shape::PrimitiveType;
use support::{Error, Result};
use target::Target;

/// Plan of a windowed reduction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReduceWindowPlan {
    /// For each dimension, the method by which results find the elements in their windows.
    pub dimensions: Vec<WindowWalk>,
    /// Number of neighbors along the innermost dimension that are computed at once.
    pub lanes: u32,
    /// Number of vectors of such neighbors that are computed side by side.
    pub vectors: u32,
    /// The dimension that is divided into tasks, if there are several.
    pub task_dimension: Option<usize>,
    /// True if the computation is one operation whose order is free, on real numbers or on the
    /// parts of complex ones.
    pub is_operation: bool,
}

/// Method of walking the windows along one dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowWalk {
    /// Neighboring results have the same taps, as far as these are known: the interior is one
    /// segment, the borders are others.
    Segments(Vec<WindowSegment>),
    /// The first and last tap are computed for each result.
    Bounded,
    /// Each tap is tested, because the base is dilated.
    Masked,
    /// Every window starts at the first element or ends at the last one, so a running total
    /// suffices.
    Running {
        /// True if the total runs from the last result to the first.
        is_backward: bool,
    },
}

/// Adjacent results with the same taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSegment {
    /// The first result.
    pub begin: i64,
    /// One past the last.
    pub end: i64,
    /// The taps within the base that all windows of the segment hold: the first, and one past the
    /// last. If `None`, they are computed for each result.
    pub taps: Option<(i64, i64)>,
}

/// Upper bound of the number of segments. Beyond it, the taps of the borders are computed for each
/// result.
const MAX_SEGMENTS: usize = 8;
/// Fewer results than this do not count as an interior.
const MIN_INTERIOR: i64 = 4;
/// Minimum number of taps for which a running total pays off.
const MIN_RUNNING_TAPS: i64 = 8;
/// Number of taps that justify a task.
const TASK_WORK: i64 = 1 << 15;
/// Upper bound of the tasks of one kernel.
const MAX_TASKS: i64 = 1 << 10;
/// Number of vectors along the innermost dimension that are computed side by side.
const VECTORS: u32 = 4;

/// Plans a body whose root is a windowed reduction.
pub(crate) fn plan(fusion: &Fusion<'_>, target: &Target) -> Result<KernelPlan<ReduceWindowPlan>> {
    let Op::ReduceWindow { window, to_apply } = fusion.root_op() else {
        return Err(Error::internal("expected a windowed reduction as the root"));
    };
    for id in fusion.instructions().into_iter().filter(|&id| id != fusion.root) {
        loops::check_fusible(fusion.body[id].op())?;
    }
    if window.dimensions.iter().any(|d| d.window_reversal) {
        return Err(Error::unsupported("reversed windows"));
    }
    let input = fusion.body[fusion.body[fusion.root].operands()[0]].shape().expect_array().sizes();
    let leaves = fusion.shape().leaves();
    let (_, result) = leaves.first().ok_or_else(|| Error::internal("windowed reduction without a result"))?;
    let counts = result.sizes();
    let callee = &fusion.module[*to_apply];
    // A complex sum sums both parts independently.
    let has_parts = result.element_type.is_complex() && !matches!(callee[callee.root()].op(), Op::Add {});
    let is_operation = leaves.len() == 1 && !has_parts && is_associative(callee);
    let mut dimensions = walks(window, &input, &counts, is_operation);
    let tasks = tasks(window, &counts, &mut dimensions);
    let lanes = match dimensions.last() {
        Some(WindowWalk::Segments(_) | WindowWalk::Masked) => {
            loops::largest_fitting(loops::lanes(fusion, target), counts.last().copied().unwrap_or(1))
        }
        // Bits of truth values are expensive to move from lane to lane.
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

/// Chooses the walk of each dimension. At most one dimension keeps a running total, and the product
/// of the numbers of segments is bounded.
fn walks(window: &Window, input: &[i64], counts: &[i64], is_operation: bool) -> Vec<WindowWalk> {
    let mut walks = vec![WindowWalk::Bounded; counts.len()];
    let (mut has_running, mut segment_product) = (false, 1);
    for d in (0..counts.len()).rev() {
        let (w, size, count) = (&window.dimensions[d], input[d], counts[d]);
        // The running dimension's elements are combined last, so windows along other dimensions
        // require an operation with free order.
        let is_alone = window.dimensions.iter().enumerate().all(|(other, w)| other == d || w.size == 1);
        let is_running = |backward: bool| w.size >= MIN_RUNNING_TAPS && w.runs(size, count, backward);
        let segments = segments(w, size, count, MAX_SEGMENTS / segment_product);
        walks[d] = if !has_running && (is_operation || is_alone) && is_running(false) {
            has_running = true;
            WindowWalk::Running { is_backward: false }
        } else if !has_running && is_operation && is_running(true) {
            has_running = true;
            WindowWalk::Running { is_backward: true }
        } else if let Some(segments) = segments {
            segment_product *= segments.len().max(1);
            WindowWalk::Segments(segments)
        } else if w.base_dilation == 1 {
            WindowWalk::Bounded
        } else {
            WindowWalk::Masked
        };
    }
    walks
}

/// Divides the results along one dimension into segments with equal taps; if these are more than
/// `most`, into the interior with all taps and the borders. `None` if no result has all taps or if
/// the base is dilated.
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
        // Both ends of the taps move monotonically from result to result, so equal taps are
        // adjacent.
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

/// The results whose windows hold all taps, and the borders before and after them; `None` if they
/// are few.
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

/// The taps of a result's window that fall within an undilated base: the first, and one past the
/// last.
fn taps_within(w: &WindowDimension, size: i64, result: i64) -> (i64, i64) {
    let start = i128::from(result) * i128::from(w.stride) - i128::from(w.padding_low);
    let dilation = i128::from(w.window_dilation);
    // The first tap at or after an element.
    let first_at = |element: i128| {
        let distance = element - start;
        (distance + dilation - 1).div_euclid(dilation).clamp(0, i128::from(w.size)) as i64
    };
    (first_at(0), first_at(size.into()))
}

/// The dimension that is divided into tasks, and their number, if the work justifies several. The
/// walk of that dimension must not depend on the division.
fn tasks(window: &Window, counts: &[i64], walks: &mut [WindowWalk]) -> Option<(usize, i64)> {
    let taps = |d: usize| match walks[d] {
        WindowWalk::Running { .. } => 1,
        _ => window.dimensions[d].size,
    };
    let work = (0..counts.len()).fold(1i64, |work, d| work.saturating_mul(counts[d]).saturating_mul(taps(d)));
    let task_limit = (work / TASK_WORK).min(MAX_TASKS);
    if task_limit < 2 || counts.contains(&0) {
        return None;
    }
    let fits = |&d: &usize| !matches!(walks[d], WindowWalk::Running { .. }) && counts[d] > 1;
    let outer = 0..counts.len().saturating_sub(1);
    let first = outer.clone().filter(fits).find(|&d| counts[d] >= task_limit);
    let dimension =
        first.or_else(|| outer.filter(fits).max_by_key(|&d| (counts[d], std::cmp::Reverse(d))))?;
    if matches!(&walks[dimension], WindowWalk::Segments(segments) if segments.len() > 1) {
        walks[dimension] = WindowWalk::Bounded;
    }
    let tasks = task_limit.min(counts[dimension]);
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
        let taps_of = |w: WindowDimension, size, count| {
            let list = segments(&w, size, count, MAX_SEGMENTS)?;
            list.iter().map(|s| Some((s.begin, s.end, s.taps?.0, s.taps?.1))).collect::<Option<Vec<_>>>()
        };
        // Without padding, everything is interior.
        assert_eq!(taps_of(window(2, 2, 0, 1), 8, 4), Some(vec![(0, 4, 0, 2)]));
        // 3x3 with padding 1 and stride 1.
        assert_eq!(taps_of(window(3, 1, 1, 1), 5, 5), Some(vec![(0, 1, 1, 3), (1, 4, 0, 3), (4, 5, 0, 2)]));
        // Stride 2 and an even base: only the last result misses a tap.
        assert_eq!(taps_of(window(3, 2, 0, 1), 6, 3), Some(vec![(0, 2, 0, 3), (2, 3, 0, 2)]));
        // A dilated window: taps at offsets 0, 2, and 4 from its start.
        assert_eq!(taps_of(window(3, 1, 2, 2), 6, 6), Some(vec![(0, 2, 1, 3), (2, 4, 0, 3), (4, 6, 0, 2)]));
        // A window that lies in the padding holds no elements.
        assert_eq!(taps_of(window(1, 1, 2, 1), 1, 3), Some(vec![(0, 2, 1, 1), (2, 3, 0, 1)]));
        // No two windows of a cumulative sum have the same taps.
        assert_eq!(taps_of(window(100, 1, 99, 1), 100, 100), None);
    }

    #[test]
    fn borders_of_long_windows_are_computed() {
        let segment = |begin, end, taps| WindowSegment { begin, end, taps };
        assert_eq!(
            segments(&window(11, 1, 5, 1), 96, 96, MAX_SEGMENTS),
            Some(vec![segment(0, 5, None), segment(5, 91, Some((0, 11))), segment(91, 96, None)])
        );
        // The first window with all taps has index 5 and starts at 10 - 9; the last one has index
        // 54 and ends at 108.
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
