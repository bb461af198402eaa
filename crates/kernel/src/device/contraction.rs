//! Contractions of a device: the kernels that [`plan::ContractionPlan`] describes.

mod around;
pub(super) mod attention;
mod direct;
mod few;
mod matrix;
mod operand;
mod pipeline;
mod sums;
mod tiles;

use crate::context::KernelContext;
use crate::contraction::tile::{self, scalar_type};
use crate::element::Element;
use crate::index::{Facts, Index, Position};
use nest::{Predicate, Type, ValueId};
use operand::{Coordinates, Operand};
use plan::{ContractionPlan, Method, Role, Step};
use support::{Error, Result};

/// Emits a step of a contraction.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ContractionPlan, step: usize) -> Result<()> {
    match (plan.step(step), &plan.method) {
        (Step::CopyAround, _) => around::emit(cx),
        (Step::Sums, _) => sums::emit(cx, plan),
        (Step::Products, Method::Tiles(tile)) => tiles::emit(cx, plan, tile),
        (Step::Products, Method::Matrix(tile)) => matrix::emit(cx, plan, tile),
        (Step::Products, Method::Few(few)) => few::emit(cx, plan, few),
        (Step::Products, Method::Direct) => direct::emit(cx, plan),
    }
}

/// An element of the product of matrices, or the first of several neighboring columns.
#[derive(Clone, Debug)]
struct Place {
    /// The part of the summands.
    split: Index,
    batch: Index,
    row: Index,
    column: Index,
}

impl Place {
    /// The number of the element in the result of the contraction.
    fn in_result(&self, plan: &ContractionPlan) -> Index {
        let [batch, row, column] = plan.view.result;
        self.batch.times(batch).plus(&self.row.times(row)).plus(&self.column.times(column))
    }

    /// The number of the element in the product.
    fn in_product(&self, plan: &ContractionPlan) -> Index {
        let (rows, columns) = (plan.view.extent(Role::Row), plan.view.extent(Role::Column));
        self.batch.times(rows).plus(&self.row).times(columns).plus(&self.column)
    }

    /// Exchanges row and column.
    fn swapped(self) -> Self {
        Self { row: self.column, column: self.row, ..self }
    }
}

/// Upper bound of the neighboring columns, a power of two, that can be stored together.
fn columns_together(plan: &ContractionPlan, most: i64) -> i64 {
    let [batch, row, column] = plan.view.result;
    let fits = |lanes: &i64| {
        column == 1
            && [batch, row, plan.view.extent(Role::Column)].iter().all(|distance| distance % lanes == 0)
    };
    [4, 2].into_iter().filter(|&lanes| lanes <= most).find(fits).unwrap_or(1)
}

/// Passes the sum of some neighboring columns to the epilogue, or keeps a part's sum in scratch.
fn finish(
    cx: &mut KernelContext<'_>,
    plan: &ContractionPlan,
    place: &Place,
    lanes: u32,
    value: Element,
) -> Result<()> {
    let along = Index::lanes(i64::from(lanes > 1));
    if plan.splits == 1 {
        let position = Position::Linear(place.in_result(plan).plus(&along));
        return tile::finish(cx, plan.hero, plan.accumulator, &position, lanes, value);
    }
    let number = place.split.times(plan.elements()).plus(&place.in_product(plan));
    let (address, alignment) = part_address(cx, plan, &number, lanes)?;
    cx.store(value.real(), address, alignment);
    Ok(())
}

/// Returns the address of a part's sum in scratch and its alignment.
fn part_address(
    cx: &mut KernelContext<'_>,
    plan: &ContractionPlan,
    number: &Index,
    lanes: u32,
) -> Result<(ValueId, u32)> {
    let scratch = cx.scratch().ok_or_else(|| Error::internal("missing scratch for the parts of sums"))?;
    let size = scalar_type(plan.accumulator)?.byte_size() as i64;
    let number = cx.scalar_value(number)?;
    Ok((cx.offset(scratch, number, size), (size as u32 * lanes).min(16)))
}

/// Runs `body` if an index is below its limit. Within, the index is known to be.
fn when_below(
    cx: &mut KernelContext<'_>,
    index: &Index,
    limit: i64,
    multiple: i64,
    body: impl FnOnce(&mut KernelContext<'_>, Index) -> Result<()>,
) -> Result<()> {
    use crate::context::addressing::Containment;
    match cx.contains(index, 0, limit)? {
        Containment::Always => body(cx, index.clone()),
        Containment::Never => Ok(()),
        Containment::When(condition) => {
            let value = cx.scalar_value(index)?;
            cx.when(condition, |cx| {
                cx.learn(value, Facts { min: 0, max: limit - multiple, multiple });
                body(cx, Index::scalar(value))
            })
        }
    }
}

/// Same as [`when_below`], but tests every index. The branches keep the work on different rows
/// apart, so that its values are not in registers at the same time.
fn tested_below(
    cx: &mut KernelContext<'_>,
    index: &Index,
    limit: i64,
    body: impl FnOnce(&mut KernelContext<'_>, Index) -> Result<()>,
) -> Result<()> {
    let (value, end) = (cx.scalar_value(index)?, cx.index(limit));
    let is_below = cx.compare(Predicate::Less, value, end);
    cx.when(is_below, |cx| {
        cx.learn(value, Facts::range(0, limit - 1));
        body(cx, Index::scalar(value))
    })
}

/// Returns the numbers of the running thread and its workgroup.
fn thread(cx: &mut KernelContext<'_>, threads: i64, groups: i64) -> (Index, Index) {
    let local = cx.thread(nest::ThreadIndex::Local);
    cx.learn(local, Facts::range(0, threads - 1));
    let group = cx.thread(nest::ThreadIndex::Workgroup);
    cx.learn(group, Facts::range(0, groups - 1));
    (Index::scalar(local), Index::scalar(group))
}

/// Returns the number of the running thread in a grid with a thread for each element.
fn element(cx: &mut KernelContext<'_>, threads: i64, elements: i64) -> Result<Index> {
    let groups = (elements + threads - 1) / threads;
    let (local, group) = thread(cx, threads, groups.max(1));
    let number = cx.scalar_value(&group.times(threads).plus(&local))?;
    cx.learn(number, Facts::range(0, groups.max(1) * threads - 1));
    Ok(Index::scalar(number))
}

/// The additive identity of the sums, in some lanes.
fn zero(cx: &mut KernelContext<'_>, plan: &ContractionPlan, lanes: u32) -> Result<ValueId> {
    let ty = Type::vector(scalar_type(plan.accumulator)?, lanes);
    Ok(tile::zero(cx, ty))
}

/// Returns both operands of a plan, the left one first.
fn operands<'p>(cx: &KernelContext<'_>, plan: &'p ContractionPlan) -> Result<[Operand<'p>; 2]> {
    let view = &plan.view;
    Ok([
        Operand::new(cx, &view.lhs, view, plan.lhs_operand, plan.accumulator)?,
        Operand::new(cx, &view.rhs, view, plan.rhs_operand, plan.accumulator)?,
    ])
}
