//! Windowed reductions: loops over the results around loops over the taps of each window.
//!
//! The plan decides how taps outside the base are skipped: the range of valid taps is known for
//! each segment of a dimension, computed for each result, or checked for each tap. Nothing outside
//! the base is read. Vectors run along the innermost dimension.

mod block;
mod prefix;
pub(crate) mod running;

use crate::context::KernelContext;
use crate::element::Element;
use crate::index::{Index, Position};
use crate::reduction::reduce::operation::Operation;
use hlo::analysis::Extent;
use hlo::{ComputationId, InstructionId, Op, Window};
use nest::ValueId;
use plan::{ReduceWindowPlan, WindowSegment, WindowWalk};
use support::{Error, Result};

/// Emitter for a windowed reduction.
struct Windows<'a> {
    plan: &'a ReduceWindowPlan,
    window: &'a Window,
    /// The arrays.
    inputs: &'a [InstructionId],
    /// Initial values, one per array.
    initial: Vec<Element>,
    reducer: Reducer<'a>,
    /// Sizes of the arrays.
    sizes: Vec<i64>,
    /// Sizes of the results.
    counts: Vec<i64>,
    /// Numbers of results that are needed, unless all are.
    needed: Vec<Option<Extent>>,
}

/// Combines two elements.
enum Reducer<'a> {
    /// One operation on one array, accumulated in at least 32 bits. For complex numbers it is a sum
    /// of each part.
    Operation(Operation<'a>),
    /// Any computation.
    Computation(ComputationId),
}

/// The taps of one dimension.
#[derive(Clone, Debug)]
enum Taps {
    /// Constant limits: the first tap, and one past the last.
    Known(i64, i64),
    /// Limits computed at run time.
    Computed(ValueId, ValueId),
    /// All taps, each checked.
    Masked,
}

/// Current position of the walk.
#[derive(Clone, Debug)]
struct Place {
    /// Index of the result in each dimension.
    result: Vec<Index>,
    /// Taps of its window in each dimension.
    taps: Vec<Taps>,
}

/// Writes the result of a windowed reduction.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &ReduceWindowPlan) -> Result<()> {
    let Some((windows, mut place)) = start(cx, plan)? else { return Ok(()) };
    // The running dimension is the innermost loop, regardless of its place in memory.
    let order: Vec<usize> = (0..windows.counts.len()).filter(|&d| !windows.is_running(d)).collect();
    cx.for_tasks(|cx, task| windows.nest(cx, &order, &task, &mut place))
}

/// Like [`emit`], with a task for each result. No dimension has a running total or several
/// segments.
pub(crate) fn emit_each(cx: &mut KernelContext<'_>, plan: &ReduceWindowPlan) -> Result<()> {
    let Some((windows, mut place)) = start(cx, plan)? else { return Ok(()) };
    cx.for_tasks(|cx, task| {
        let indices = cx.indices(&Position::Linear(task), &windows.counts)?;
        let innermost = indices.last().cloned().unwrap_or_default();
        for (d, index) in indices.into_iter().enumerate() {
            let taps = windows.segments(d).first().and_then(|segment| segment.taps);
            windows.enter(cx, d, index, taps, &mut place)?;
        }
        windows.block(cx, &innermost, 1, 1, &mut place)
    })
}

/// Returns the emitter and the first place, or `None` if there are no results.
fn start<'p, 'a: 'p>(
    cx: &mut KernelContext<'a>,
    plan: &'p ReduceWindowPlan,
) -> Result<Option<(Windows<'p>, Place)>> {
    let Op::ReduceWindow { window, to_apply } = cx.fusion().root_op() else {
        return Err(Error::internal("expected a windowed reduction as the root"));
    };
    let counts = cx.results()[0].shape.sizes();
    if counts.contains(&0) {
        return Ok(None);
    }
    let body = cx.fusion().body;
    let (inputs, initial) = body[cx.fusion().root].operands().split_at(cx.results().len());
    let initial: Vec<Element> =
        initial.iter().map(|&id| cx.element(id, &Position::scalar())).collect::<Result<_>>()?;
    let reducer = if plan.is_operation {
        Reducer::Operation(Operation::of(cx, *to_apply, cx.results()[0].shape.element_type))
    } else {
        Reducer::Computation(*to_apply)
    };
    let sizes = cx.shape(inputs[0])?.sizes();
    let mut needed = cx.needed(cx.fusion().root);
    needed.resize(counts.len(), None);
    let windows = Windows { plan, window, inputs, initial, reducer, sizes, counts, needed };
    let rank = windows.counts.len();
    let place = Place { result: vec![Index::default(); rank], taps: vec![Taps::Known(0, 1); rank] };
    Ok(Some((windows, place)))
}

impl Windows<'_> {
    fn is_running(&self, dimension: usize) -> bool {
        matches!(self.plan.dimensions[dimension], WindowWalk::Running { .. })
    }

    /// Emits the loops over some dimensions of the result, the outermost first.
    fn nest(
        &self,
        cx: &mut KernelContext<'_>,
        dimensions: &[usize],
        task: &Index,
        place: &mut Place,
    ) -> Result<()> {
        let Some((&d, inner)) = dimensions.split_first() else {
            return self.block(cx, &Index::default(), 1, 1, place);
        };
        if d + 1 == self.counts.len() {
            return self.innermost(cx, place);
        }
        if self.plan.task_dimension == Some(d) {
            // A dimension that is cut into tasks has one segment.
            let taps = self.segments(d).first().and_then(|segment| segment.taps);
            let part = cx.scalar_value(task)?;
            let span = cx.span(part, cx.plan().tasks, self.counts[d]);
            let span = cx.limited(span, self.needed[d], 1)?;
            return cx.for_span(span, 1, |cx, index| {
                self.enter(cx, d, index, taps, place)?;
                self.nest(cx, inner, task, place)
            });
        }
        for segment in self.segments(d) {
            let taps = segment.taps;
            cx.for_needed_indices((segment.begin, segment.end, self.needed[d]), |cx, index| {
                self.enter(cx, d, index, taps, place)?;
                self.nest(cx, inner, task, place)
            })?;
        }
        Ok(())
    }

    /// Returns the segments of a dimension, or a single one if its taps are not constant.
    fn segments(&self, dimension: usize) -> Vec<WindowSegment> {
        match &self.plan.dimensions[dimension] {
            WindowWalk::Segments(segments) => segments.clone(),
            _ => vec![WindowSegment { begin: 0, end: self.counts[dimension], taps: None }],
        }
    }

    /// Moves to a result along a dimension. Its taps are given, or determined here.
    fn enter(
        &self,
        cx: &mut KernelContext<'_>,
        dimension: usize,
        index: Index,
        known: Option<(i64, i64)>,
        place: &mut Place,
    ) -> Result<()> {
        place.taps[dimension] = match known {
            Some((first, end)) => Taps::Known(first, end),
            None if self.plan.dimensions[dimension] == WindowWalk::Masked => Taps::Masked,
            None => self.computed_taps(cx, dimension, &index)?,
        };
        place.result[dimension] = index;
        Ok(())
    }

    /// Returns the taps of one result's window that are within the base.
    fn computed_taps(&self, cx: &mut KernelContext<'_>, dimension: usize, index: &Index) -> Result<Taps> {
        let w = &self.window.dimensions[dimension];
        let start = index.times(w.stride).plus_constant(-w.padding_low);
        // Number of the first tap at or after an element: the distance divided by the dilation,
        // rounded up.
        let mut first_at = |element: i64| -> Result<ValueId> {
            let distance = start.times(-1).plus_constant(element);
            let reach = (w.size - 1).saturating_mul(w.window_dilation).saturating_add(1);
            let distance = cx.clamp(&distance, 0, reach)?;
            let rounded = distance.plus_constant(w.window_dilation - 1);
            let (tap, _) = cx.div_rem(&rounded, w.window_dilation)?;
            cx.scalar_value(&tap)
        };
        Ok(Taps::Computed(first_at(0)?, first_at(self.sizes[dimension])?))
    }

    /// Emits results along the innermost dimension, in vectors where their taps are the same.
    fn innermost(&self, cx: &mut KernelContext<'_>, place: &mut Place) -> Result<()> {
        let d = self.counts.len() - 1;
        for segment in self.segments(d) {
            if segment.taps.is_none() && self.plan.dimensions[d] != WindowWalk::Masked {
                cx.for_needed_indices((segment.begin, segment.end, self.needed[d]), |cx, index| {
                    self.enter(cx, d, index.clone(), None, place)?;
                    self.block(cx, &index, 1, 1, place)
                })?;
                continue;
            }
            self.enter(cx, d, Index::default(), segment.taps, place)?;
            self.vectors(cx, segment.begin, segment.end, place)?;
        }
        Ok(())
    }

    /// Emits blocks of several vectors, single vectors, and a last vector that overlaps the one
    /// before.
    fn vectors(&self, cx: &mut KernelContext<'_>, begin: i64, end: i64, place: &mut Place) -> Result<()> {
        let mut lanes = self.plan.lanes;
        while lanes > 1 && i64::from(lanes) > end - begin {
            lanes /= 2;
        }
        let width = i64::from(lanes);
        let block = width * i64::from(self.plan.vectors);
        let blocks = begin + (end - begin) / block * block;
        let needed = self.needed[self.counts.len() - 1];
        cx.for_needed((begin, blocks, needed), block, &[], |cx, index, _| {
            self.block(cx, &index, lanes, self.plan.vectors, place).map(|()| Vec::new())
        })?;
        let rest = ((end - blocks) / width) as u32;
        if rest > 0 {
            self.block(cx, &Index::constant(blocks), lanes, rest, place)?;
        }
        if blocks + i64::from(rest) * width < end {
            self.block(cx, &Index::constant(end - width), lanes, 1, place)
        } else {
            Ok(())
        }
    }
}
