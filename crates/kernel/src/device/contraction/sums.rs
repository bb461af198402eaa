//! Adds up the sums of the parts of the summands, in order, and passes them to the epilogue.

use super::operand::along;
use super::{Place, element, part_address, when_below};
use crate::context::KernelContext;
use crate::contraction::tile::{self, scalar_type, zero};
use crate::element::Element;
use crate::index::{Index, Position};
use nest::Type;
use plan::{ContractionPlan, Role};
use support::{Error, Result};

/// Emits the kernel, with a thread per element.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ContractionPlan) -> Result<()> {
    let elements = plan.elements();
    let threads = i64::from(plan.grid(plan.steps() - 1).threads);
    let number = element(cx, threads, elements)?;
    when_below(cx, &number, elements, 1, |cx, number| {
        let ty = Type::scalar(scalar_type(plan.accumulator)?);
        let initial = zero(cx, ty);
        let sums = cx.for_range_carrying(0, plan.splits, 1, &[initial], |cx, split, sums| {
            let (address, alignment) = part_address(cx, plan, &split.times(elements).plus(&number), 1)?;
            let part = cx.load(ty, address, alignment);
            Ok(vec![cx.add(sums[0], part)])
        })?;
        let extents = [Role::Batch, Role::Row, Role::Column].map(|role| plan.view.extent(role));
        let [batch, row, column] = along(cx, &extents, &number)?
            .try_into()
            .map_err(|_| Error::internal("expected three indices of an element"))?;
        let place = Place { split: Index::default(), batch, row, column };
        let position = Position::Linear(place.in_result(plan));
        tile::finish(cx, plan.hero, plan.accumulator, &position, 1, Element::Real(sums[0]))
    })
}
