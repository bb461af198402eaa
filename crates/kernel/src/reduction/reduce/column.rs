//! Reductions that keep the innermost dimension: each lane accumulates its own column, several
//! vectors of columns at a time.

use super::blocks::{Carried, nest_in_blocks};
use super::operation::Operation;
use super::{Reduction, nest_parts};
use crate::context::KernelContext;
use crate::element::{Element, normalize};
use crate::index::{Index, Position};
use crate::loops::TaskLoop;
use nest::ValueId;
use plan::{Loop, ReducePlan};
use support::Result;

/// Emitter for columns.
struct Columns<'a> {
    operation: Operation<'a>,
    reduction: &'a Reduction<'a>,
    innermost: Loop,
    initial: ValueId,
}

pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ReducePlan, reduction: &Reduction<'_>) -> Result<()> {
    let Some((&TaskLoop { full: innermost, span }, outer)) = reduction.kept.split_last() else {
        return super::scalar::emit(cx, reduction);
    };
    let operation = Operation::of(cx, reduction.to_apply, cx.results()[0].shape.element_type);
    let initial = cx.element(reduction.initial[0], &Position::scalar())?.real();
    let columns = Columns { operation, reduction, innermost, initial };
    let lanes = i64::from(plan.lanes);
    let block = plan.column_block(innermost.extent);
    let full = innermost.extent / block * block;
    let vectors = innermost.extent / lanes * lanes;
    let mut indices = reduction.origin();
    nest_parts(cx, outer, &mut indices, &mut |cx, indices| {
        cx.for_span(span, block, |cx, index| columns.block(cx, indices, &index, plan.lanes, block / lanes))?;
        if full == innermost.extent {
            return Ok(());
        }
        cx.if_last(span, |cx| {
            if full < vectors {
                let rest = Index::constant(full);
                columns.block(cx, indices, &rest, plan.lanes, (vectors - full) / lanes)?;
            }
            if vectors >= innermost.extent {
                Ok(())
            } else if vectors > 0 {
                // The last vector overlaps the one before; the overlapping columns are summed
                // again.
                let last = Index::constant(innermost.extent - lanes);
                columns.block(cx, indices, &last, plan.lanes, 1)
            } else {
                cx.for_range(vectors, innermost.extent, 1, |cx, index| {
                    columns.block(cx, indices, &index, 1, 1)
                })
            }
        })
    })
}

impl Columns<'_> {
    /// Sums `vectors` neighboring vectors of columns, starting at `begin`.
    fn block(
        &self,
        cx: &mut KernelContext<'_>,
        indices: &mut Vec<Index>,
        begin: &Index,
        lanes: u32,
        vectors: i64,
    ) -> Result<()> {
        let initial = cx.widen(Element::Real(self.initial), lanes)?.real();
        let column = |k: i64| {
            let stride = Index::lanes(i64::from(lanes > 1));
            begin.plus(&stride).plus_constant(k * i64::from(lanes))
        };
        let start = vec![initial; vectors as usize];
        let dimension = self.innermost.dimension;
        let operations = vec![self.operation; vectors as usize];
        let carried = Carried { operations: &operations, lanes, inside: 1 };
        let reduced = &self.reduction.reduced;
        let sums = nest_in_blocks(cx, reduced, indices, &carried, &start, &mut |cx, indices, sums| {
            let mut next = Vec::with_capacity(sums.len());
            cx.with_lanes(lanes, |cx| {
                for (k, &sum) in sums.iter().enumerate() {
                    indices[dimension] = column(k as i64);
                    let element = self.reduction.input(cx, 0, indices)?;
                    let element = cx.widen(element, lanes)?.real();
                    next.push(self.operation.combine(cx, sum, element)?);
                }
                Ok(next)
            })
        })?;
        let result = cx.results()[0].clone();
        cx.with_lanes(lanes, |cx| {
            for (k, sum) in sums.into_iter().enumerate() {
                indices[dimension] = column(k as i64);
                let value = normalize(cx, result.shape.element_type, sum);
                cx.store_at(&result, &self.reduction.result_position(indices), Element::Real(value))?;
            }
            Ok(())
        })
    }
}
