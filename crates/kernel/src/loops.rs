//! Loop nests over a result. Each element is computed from the operands; vectors run along the
//! innermost loop.

use crate::context::tasks::Span;
use crate::context::{KernelContext, Square};
use crate::index::{Index, Position};
use hlo::InstructionId;
use hlo::analysis::Extent;
use plan::{Loop, LoopPlan};
use support::Result;

/// Maximum number of instructions in a body that is unrolled over a short loop.
const UNROLL_INSTRUCTIONS: usize = 12;
/// Maximum number of vectors in a short loop.
const UNROLL_VECTORS: i64 = 4;

/// Writes every element of the result.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &LoopPlan) -> Result<()> {
    let root = cx.fusion().root;
    emit_at(cx, plan, root, &[])
}

/// Writes every element of an instruction of the body into the result, at an offset in each
/// dimension. Empty `starts` mean no offset.
pub(crate) fn emit_at(
    cx: &mut KernelContext<'_>,
    plan: &LoopPlan,
    id: InstructionId,
    starts: &[Index],
) -> Result<()> {
    let shape = cx.shape(id)?.clone();
    if shape.element_count() == 0 {
        return Ok(());
    }
    let needed = KernelContext::loop_extents(&plan.loops, &shape.sizes(), &cx.needed(id));
    let mut element = |cx: &mut KernelContext<'_>, indices: &mut [Index]| {
        let position = Position::Multi(indices.to_vec());
        let value = cx.element(id, &position)?;
        let result = cx.results()[0].clone();
        if starts.is_empty() {
            return cx.store_at(&result, &position, value);
        }
        let moved = indices.iter().zip(starts).map(|(index, start)| index.plus(start)).collect();
        cx.store_at(&result, &Position::Multi(moved), value)
    };
    for_each(cx, plan, shape.rank(), &needed, &mut element)
}

/// Runs `body` for every index of a nest over `rank` dimensions: in vectors if the plan has several
/// lanes, and as tasks if it has several. `needed` is how many indices of each loop are needed, if
/// not all are.
pub(crate) fn for_each(
    cx: &mut KernelContext<'_>,
    plan: &LoopPlan,
    rank: usize,
    needed: &[Option<Extent>],
    body: &mut Body<'_>,
) -> Result<()> {
    let (order, steps) = (plan.order(), plan.steps());
    let steps: Vec<i64> = order.iter().map(|&number| steps[number]).collect();
    let cuts: Vec<i64> = order.iter().map(|&number| plan.cuts[number]).collect();
    cx.for_tasks(|cx, task| {
        let mut spans = cx.spans(&task, &steps, &cuts)?;
        for (span, &number) in spans.iter_mut().zip(&order) {
            let needed = needed.get(number).copied().flatten();
            *span = cx.limited(*span, needed, plan.step(number))?;
        }
        let loops: Vec<TaskLoop> = order
            .iter()
            .zip(spans)
            .map(|(&number, span)| TaskLoop { full: plan.loops[number], span })
            .collect();
        let mut indices = vec![Index::default(); rank];
        nest(cx, plan, &loops, &mut indices, body)
    })
}

/// A loop, and a task's part of it.
#[derive(Clone, Copy)]
pub(crate) struct TaskLoop {
    pub(crate) full: Loop,
    pub(crate) span: Span,
}

fn nest(
    cx: &mut KernelContext<'_>,
    plan: &LoopPlan,
    loops: &[TaskLoop],
    indices: &mut [Index],
    element: &mut Body<'_>,
) -> Result<()> {
    match loops {
        [] => element(cx, indices),
        [innermost] => vectors(cx, plan, *innermost, indices, element),
        [across, innermost] if plan.transposed.is_some() => {
            squares(cx, plan, [*across, *innermost], indices, element)
        }
        [outer, inner @ ..] => cx.for_span(outer.span, 1, |cx, index| {
            indices[outer.full.dimension] = index;
            nest(cx, plan, inner, indices, element)
        }),
    }
}

/// Emits squares of two loops. Operands that are contiguous along the outer loop are read in that
/// direction and transposed.
fn squares(
    cx: &mut KernelContext<'_>,
    plan: &LoopPlan,
    loops: [TaskLoop; 2],
    indices: &mut [Index],
    element: &mut Body<'_>,
) -> Result<()> {
    let [TaskLoop { full: across, span }, innermost] = loops;
    let rows = i64::from(plan.lanes);
    let full = across.extent / rows * rows;
    cx.for_each_block(span, rows, |cx, first| {
        vectors(cx, plan, innermost, indices, &mut |cx, indices| {
            for row in 0..rows {
                indices[across.dimension] = Index::scalar(first).plus_constant(row);
                cx.with_square(Square { first, row }, |cx| element(cx, indices))?;
            }
            Ok(())
        })
    })?;
    if full == across.extent {
        return Ok(());
    }
    cx.if_last(span, |cx| {
        cx.for_range(full, across.extent, 1, |cx, index| {
            indices[across.dimension] = index;
            vectors(cx, plan, innermost, indices, element)
        })
    })
}

/// Emits the body of a nest for the given indices.
pub(crate) type Body<'f> = dyn FnMut(&mut KernelContext<'_>, &mut [Index]) -> Result<()> + 'f;

/// Emits full vectors, then the rest. The rest is a last vector that overlaps the one before. If
/// the kernel works in place, both read their operands before they store anything: recomputing an
/// element would read what is already overwritten.
fn vectors(
    cx: &mut KernelContext<'_>,
    plan: &LoopPlan,
    innermost: TaskLoop,
    indices: &mut [Index],
    body: &mut Body<'_>,
) -> Result<()> {
    let TaskLoop { full: innermost, span } = innermost;
    let lanes = i64::from(plan.lanes);
    let full = innermost.extent / lanes * lanes;
    let overlaps = 0 < full && full < innermost.extent;
    let in_pair = overlaps && cx.is_in_place() && cx.target().gpu.is_none();
    let is_short = matches!(span, Span::All(_))
        && plan.transposed.is_none()
        && full / lanes <= UNROLL_VECTORS
        && cx.fusion().instructions().len() <= UNROLL_INSTRUCTIONS;
    let mut elements = |cx: &mut KernelContext<'_>, lanes: u32, index: Index| {
        indices[innermost.dimension] = index.plus(&Index::lanes(i64::from(lanes > 1)));
        cx.with_lanes(lanes, |cx| body(cx, indices))
    };
    // The vectors before the pair.
    let steps = full / lanes - i64::from(in_pair);
    if is_short {
        for step in 0..steps {
            elements(cx, plan.lanes, Index::constant(step * lanes))?;
        }
    } else {
        cx.for_part(span, 0, steps, lanes, |cx, index| elements(cx, plan.lanes, index))?;
    }
    if full == innermost.extent {
        return Ok(());
    }
    let last = Index::constant(innermost.extent - lanes);
    if overlaps && !cx.is_in_place() {
        return cx.if_last(span, |cx| elements(cx, plan.lanes, last));
    }
    cx.if_last(span, |cx| {
        if in_pair {
            let begin = cx.statements_so_far();
            elements(cx, plan.lanes, Index::constant(full - lanes))?;
            if cx.is_straight_since(begin) {
                elements(cx, plan.lanes, last)?;
                cx.delay_stores_since(begin);
                return Ok(());
            }
        }
        cx.for_range(full, innermost.extent, 1, |cx, index| elements(cx, 1, index))
    })
}
