//! Reductions of one element after another, in order: any number of arrays, any computation.

use super::blocks::{Carried, nest_in_blocks};
use super::operation::Operation;
use super::{Reduction, nest_parts};
use crate::context::KernelContext;
use crate::element::Element;
use crate::index::Position;
use crate::movement::update::flatten;
use nest::ValueId;
use shape::PrimitiveType;
use support::{Error, Result};

pub(super) fn emit(cx: &mut KernelContext<'_>, reduction: &Reduction<'_>) -> Result<()> {
    let mut initial = Vec::with_capacity(reduction.initial.len());
    for &id in reduction.initial {
        initial.push(cx.element(id, &Position::scalar())?);
    }
    let start = flatten(&initial);
    // Reductions other than sums of one array keep their order.
    let is_sum = cx.results().len() == 1
        && matches!(cx.results()[0].shape.element_type, PrimitiveType::F32 | PrimitiveType::F64)
        && hlo::is_associative(&cx.module()[reduction.to_apply]);
    let sum = Operation::of(cx, reduction.to_apply, cx.results()[0].shape.element_type);
    let operations: &[Operation<'_>] = if is_sum { &[sum] } else { &[] };
    let carried = Carried { operations, lanes: 1, inside: 1 };
    let mut indices = reduction.origin();
    nest_parts(cx, &reduction.kept, &mut indices, &mut |cx, indices| {
        let reduced = &reduction.reduced;
        let totals = nest_in_blocks(cx, reduced, indices, &carried, &start, &mut |cx, indices, totals| {
            let mut arguments = unflatten(&initial, totals);
            for k in 0..reduction.inputs.len() {
                let input = reduction.input(cx, k, indices)?;
                arguments.push(cx.widen(input, 1)?);
            }
            let next = cx.apply(reduction.to_apply, &arguments)?;
            if next.len() != initial.len() {
                return Err(Error::internal(
                    "expected as many values from the computation of a reduction as it has accumulators",
                ));
            }
            Ok(flatten(&next))
        })?;
        let position = reduction.result_position(indices);
        for (k, total) in unflatten(&initial, &totals).into_iter().enumerate() {
            let result = cx.results()[k].clone();
            cx.store_at(&result, &position, total)?;
        }
        Ok(())
    })
}

/// Groups values into elements that are real or complex like those of a list.
fn unflatten(like: &[Element], values: &[ValueId]) -> Vec<Element> {
    let mut rest = values;
    let mut elements = Vec::with_capacity(like.len());
    for element in like {
        let (own, more) = rest.split_at(element.values().len());
        elements.push(Element::from_values(own));
        rest = more;
    }
    elements
}
