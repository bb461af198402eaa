//! Reductions: loops over the kept dimensions around loops over the reduced ones.

pub(crate) mod blocks;
mod column;
pub(crate) mod operation;
mod row;
mod scalar;

use crate::context::KernelContext;
use crate::element::Element;
use crate::index::{Index, Position};
use crate::loops::TaskLoop;
use hlo::analysis::Extent;
use hlo::{ComputationId, InstructionId, Op};
use nest::ValueId;
use plan::{Loop, ReduceKind, ReducePlan};
use support::{Error, Result};

/// Emitter for a reduction.
struct Reduction<'a> {
    /// The arrays.
    inputs: &'a [InstructionId],
    /// Initial values, one per array.
    initial: &'a [InstructionId],
    /// The computation that combines two elements of each array.
    to_apply: ComputationId,
    /// Loops over kept dimensions, the outermost first, with the task's part of each.
    kept: Vec<TaskLoop>,
    /// Loops over reduced dimensions, the outermost first.
    reduced: Vec<LimitedLoop>,
    /// Sizes of the arrays.
    sizes: Vec<i64>,
    /// True for each reduced dimension.
    is_reduced: Vec<bool>,
}

/// Writes the result of a reduction.
pub(crate) fn emit(cx: &mut KernelContext<'_>, plan: &ReducePlan) -> Result<()> {
    let Op::Reduce { dimensions, to_apply } = cx.fusion().root_op() else {
        return Err(Error::internal("expected a reduction as the root"));
    };
    if cx.results().iter().any(|result| result.shape.element_count() == 0) {
        return Ok(());
    }
    let body = cx.fusion().body;
    let (inputs, initial) = body[cx.fusion().root].operands().split_at(cx.results().len());
    let sizes = cx.shape(inputs[0])?.sizes();
    let is_reduced: Vec<bool> = (0..sizes.len()).map(|d| dimensions.contains(&d)).collect();
    let (reduced, kept): (Vec<usize>, Vec<usize>) =
        (0..plan.loops.len()).partition(|&number| is_reduced[plan.loops[number].dimension]);
    let limits = KernelContext::loop_extents(&plan.loops, &sizes, &cx.significant(cx.fusion().root));
    let reduced = reduced.into_iter().map(|number| (plan.loops[number], limits[number])).collect();
    let steps: Vec<i64> = kept.iter().map(|&number| plan.steps(number)).collect();
    let cuts: Vec<i64> = kept.iter().map(|&number| plan.cuts[number]).collect();
    let mut reduction =
        Reduction { inputs, initial, to_apply: *to_apply, kept: Vec::new(), reduced, sizes, is_reduced };
    if reduction.sizes.contains(&0) {
        return reduction.write_initial(cx);
    }
    let needed = needed(cx, plan, &reduction)?;
    cx.for_tasks(|cx, task| {
        let mut spans = cx.spans(&task, &steps, &cuts)?;
        for (span, &number) in spans.iter_mut().zip(&kept) {
            *span = cx.limited(*span, needed[number], plan.step(number))?;
        }
        reduction.kept = kept
            .iter()
            .zip(spans)
            .map(|(&number, span)| TaskLoop { full: plan.loops[number], span })
            .collect();
        match plan.kind {
            ReduceKind::Row => row::emit(cx, plan, &reduction),
            ReduceKind::Column => column::emit(cx, plan, &reduction),
            ReduceKind::Scalar => scalar::emit(cx, &reduction),
        }
    })
}

/// Returns how many indices of each loop are needed for the elements of the result that are read.
fn needed(
    cx: &KernelContext<'_>,
    plan: &ReducePlan,
    reduction: &Reduction<'_>,
) -> Result<Vec<Option<Extent>>> {
    let root = cx.fusion().root;
    let mut extents = vec![None; reduction.sizes.len()];
    if cx.fusion().body[root].shape().as_array().is_some() {
        let kept = (0..reduction.sizes.len()).filter(|&d| !reduction.is_reduced[d]);
        kept.zip(cx.needed(root)).for_each(|(d, extent)| extents[d] = extent);
    }
    Ok(KernelContext::loop_extents(&plan.loops, &reduction.sizes, &extents))
}

impl Reduction<'_> {
    /// Returns an index of 0 for each dimension of the arrays.
    fn origin(&self) -> Vec<Index> {
        vec![Index::default(); self.sizes.len()]
    }

    /// Returns the position in the result: the indices of the kept dimensions.
    fn result_position(&self, indices: &[Index]) -> Position {
        let kept = indices.iter().zip(&self.is_reduced).filter(|(_, r)| !**r);
        Position::Multi(kept.map(|(index, _)| index.clone()).collect())
    }

    /// Writes the initial value to every result, for reductions of no elements.
    fn write_initial(&self, cx: &mut KernelContext<'_>) -> Result<()> {
        for k in 0..cx.results().len() {
            let value = cx.element(self.initial[k], &Position::scalar())?;
            let result = cx.results()[k].clone();
            cx.for_range(0, result.shape.element_count(), 1, |cx, index| {
                cx.store_at(&result, &Position::Linear(index), value)
            })?;
        }
        Ok(())
    }

    /// Returns the element of an array.
    fn input(&self, cx: &mut KernelContext<'_>, k: usize, indices: &[Index]) -> Result<Element> {
        cx.element(self.inputs[k], &Position::Multi(indices.to_vec()))
    }
}

/// Body of a nest. It maps the carried values to the next ones.
pub(crate) type Body<'f> =
    dyn FnMut(&mut KernelContext<'_>, &mut Vec<Index>, &[ValueId]) -> Result<Vec<ValueId>> + 'f;

/// Body of a nest that carries no values.
pub(crate) type PartBody<'f> = dyn FnMut(&mut KernelContext<'_>, &mut Vec<Index>) -> Result<()> + 'f;

/// Emits a task's part of some loops, the outermost first.
pub(crate) fn nest_parts(
    cx: &mut KernelContext<'_>,
    loops: &[TaskLoop],
    indices: &mut Vec<Index>,
    body: &mut PartBody<'_>,
) -> Result<()> {
    let Some((outer, inner)) = loops.split_first() else { return body(cx, indices) };
    cx.for_span(outer.span, 1, |cx, index| {
        indices[outer.full.dimension] = index;
        nest_parts(cx, inner, indices, body)
    })
}

/// A loop, and the number of its iterations that are needed.
pub(crate) type LimitedLoop = (Loop, Option<Extent>);

/// Emits loops, the outermost first, and carries values through all of them.
pub(crate) fn nest(
    cx: &mut KernelContext<'_>,
    loops: &[LimitedLoop],
    indices: &mut Vec<Index>,
    carried: &[ValueId],
    body: &mut Body<'_>,
) -> Result<Vec<ValueId>> {
    let Some((&(outer, limit), inner)) = loops.split_first() else { return body(cx, indices, carried) };
    cx.for_needed((0, outer.extent, limit), 1, carried, |cx, index, carried| {
        indices[outer.dimension] = index;
        nest(cx, inner, indices, carried, body)
    })
}
