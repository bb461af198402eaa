//! A thread per element of the result.

use super::operand::along;
use super::{Coordinates, Operand, Place, element, finish, operands, when_below};
use crate::context::KernelContext;
use crate::contraction::tile::{multiply_add, scalar_type, zero};
use crate::element::Element;
use crate::index::Index;
use nest::{Type, UnaryOp, ValueId};
use plan::{ContractionPlan, Role};
use support::Result;

/// Summands that are unrolled.
const MOST_UNROLLED: i64 = 32;

/// Emits the kernel.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ContractionPlan) -> Result<()> {
    let elements = plan.elements();
    let threads = i64::from(plan.grid(plan.steps() - 1).threads);
    let number = element(cx, threads, elements)?;
    let [lhs, rhs] = operands(cx, plan)?;
    when_below(cx, &number, elements, 1, |cx, number| {
        // Neighboring threads compute neighbors in the result.
        let view = &plan.view;
        let (batches, columns) = (view.extent(Role::Batch), view.extent(Role::Column));
        let (rest, column) = cx.div_rem(&number, columns)?;
        let (batch, row) = if view.result[1] > view.result[0] {
            let (row, batch) = cx.div_rem(&rest, batches)?;
            (batch, row)
        } else {
            cx.div_rem(&rest, view.extent(Role::Row))?
        };
        let mut coordinates: Coordinates = Default::default();
        for (role, number) in [(Role::Batch, &batch), (Role::Row, &row), (Role::Column, &column)] {
            coordinates[role as usize] = along(cx, &view.axes[role as usize], number)?;
        }
        let scalar = Type::scalar(scalar_type(plan.accumulator)?);
        let parts = if plan.accumulator.is_complex() { 2 } else { 1 };
        let initial: Vec<ValueId> = (0..parts).map(|_| zero(cx, scalar)).collect();
        let sums = summands(cx, plan, [lhs, rhs], &coordinates, initial)?;
        let place = Place { split: Index::default(), batch, row, column };
        finish(cx, plan, &place, 1, Element::from_values(&sums))
    })
}

/// Emits loops over the axes of the summands that have no coordinate yet.
fn summands(
    cx: &mut KernelContext<'_>,
    plan: &ContractionPlan,
    operands: [Operand<'_>; 2],
    coordinates: &Coordinates,
    sums: Vec<ValueId>,
) -> Result<Vec<ValueId>> {
    let axes = &plan.view.axes[Role::Summand as usize];
    let known = coordinates[Role::Summand as usize].len();
    let with = |index: Index| {
        let mut coordinates = coordinates.clone();
        coordinates[Role::Summand as usize].push(index);
        coordinates
    };
    let Some(&size) = axes.get(known) else { return product(cx, operands, coordinates, &sums) };
    if axes[known..].iter().product::<i64>() <= MOST_UNROLLED {
        let mut sums = sums;
        for k in 0..size {
            sums = summands(cx, plan, operands, &with(Index::constant(k)), sums)?;
        }
        return Ok(sums);
    }
    cx.for_range_carrying(0, size, 1, &sums, |cx, index, sums| {
        summands(cx, plan, operands, &with(index), sums.to_vec())
    })
}

fn product(
    cx: &mut KernelContext<'_>,
    [lhs, rhs]: [Operand<'_>; 2],
    coordinates: &Coordinates,
    sums: &[ValueId],
) -> Result<Vec<ValueId>> {
    let (left, right) = (lhs.spot(cx, coordinates)?, rhs.spot(cx, coordinates)?);
    let (left, right) = (lhs.load(cx, &left, 1)?, rhs.load(cx, &right, 1)?);
    Ok(match (left, right) {
        // (x + y i)(u + v i) = (x u - y v) + (x v + y u) i
        (Element::Complex(x, y), Element::Complex(u, v)) => {
            let minus = cx.unary(UnaryOp::Negate, y);
            let real = cx.multiply_add(x, u, sums[0]);
            let real = cx.multiply_add(minus, v, real);
            let imaginary = cx.multiply_add(x, v, sums[1]);
            vec![real, cx.multiply_add(y, u, imaginary)]
        }
        _ => vec![multiply_add(cx, left.real(), right.real(), sums[0])],
    })
}
