//! Concatenations and slice updates, with a thread for each unit of memory.

use super::thread;
use crate::context::KernelContext;
use crate::context::parameters::Memory;
use crate::index::{Facts, Index};
use crate::loops;
use crate::movement::update::{number_of, starts};
use nest::{Predicate, ScalarType, Type, ValueId};
use plan::{CopyPlan, GroupGrid, MAX_CONCATENATED, UpdatePlan};
use support::Result;

/// The type of a unit.
fn unit_type(bytes: i64) -> Type {
    match bytes {
        1 => Type::scalar(ScalarType::I8),
        2 => Type::scalar(ScalarType::I16),
        4 => Type::scalar(ScalarType::I32),
        8 => Type::vector(ScalarType::I32, 2),
        _ => Type::vector(ScalarType::I32, 4),
    }
}

/// Runs `body` for the running thread's unit, if it has one.
pub(super) fn for_unit(
    cx: &mut KernelContext<'_>,
    grid: GroupGrid,
    units: i64,
    body: impl FnOnce(&mut KernelContext<'_>, &Index) -> Result<()>,
) -> Result<()> {
    let number = thread(cx, grid.threads);
    let end = cx.index(units);
    let is_in = cx.compare(Predicate::Less, number, end);
    cx.when(is_in, |cx| {
        cx.learn(number, Facts::range(0, units - 1));
        body(cx, &Index::scalar(number))
    })
}

/// Copies a unit between memory with these alignments.
fn copy(
    cx: &mut KernelContext<'_>,
    unit: i64,
    from: (ValueId, u32, &Index),
    to: (ValueId, u32, &Index),
) -> Result<()> {
    let (source, destination) = (cx.scalar_value(from.2)?, cx.scalar_value(to.2)?);
    let source = cx.offset(from.0, source, unit);
    let value = cx.load(unit_type(unit), source, from.1.min(unit as u32));
    let destination = cx.offset(to.0, destination, unit);
    cx.store(value, destination, to.1.min(unit as u32));
    Ok(())
}

/// Copies some operands of a concatenation, from number `first` on.
pub(super) fn concatenate(
    cx: &mut KernelContext<'_>,
    plan: &CopyPlan,
    first: usize,
    grid: GroupGrid,
) -> Result<()> {
    let (row_units, units) = plan.step_units(first);
    if units == 0 {
        return Ok(());
    }
    let result = cx.results()[0].clone();
    let stride: i64 = plan.units.iter().sum();
    let before: i64 = plan.units[..first].iter().sum();
    for_unit(cx, grid, units, |cx, number| {
        let (row, column) = cx.div_rem(number, row_units)?;
        let value = cx.scalar_value(&column)?;
        let mut begin = 0;
        for (k, &width) in plan.units.iter().enumerate().skip(first).take(MAX_CONCATENATED) {
            if width == 0 {
                continue;
            }
            let operand = cx.operand(k)?.clone();
            let to = row.times(stride).plus(&column).plus_constant(before);
            let from = row.times(width).plus(&column).plus_constant(-begin);
            let write = |cx: &mut KernelContext<'_>| {
                let from = (operand.pointer, operand.alignment, &from);
                copy(cx, plan.unit, from, (result.pointer, result.alignment, &to))
            };
            if width == row_units {
                write(cx)?;
            } else {
                let (low, high) = (cx.index(begin), cx.index(begin + width));
                let is_from = cx.compare(Predicate::GreaterEqual, value, low);
                let is_to = cx.compare(Predicate::Less, value, high);
                let is_here = cx.and(is_from, is_to);
                cx.when(is_here, write)?;
            }
            begin += width;
        }
        Ok(())
    })
}

/// Copies the operand of a slice update, or writes the update.
pub(super) fn update(
    cx: &mut KernelContext<'_>,
    plan: &UpdatePlan,
    step: usize,
    grid: GroupGrid,
) -> Result<()> {
    let operands = cx.fusion().body[cx.fusion().root].operands();
    if step > 0 {
        let starts = starts(cx)?;
        return loops::emit_at(cx, &plan.nest, operands[1], &starts);
    }
    let memory = cx.operand(number_of(cx, operands[0])?)?.clone();
    let result = cx.results()[0].clone();
    copy_all(cx, &memory, &result, plan.bytes, grid)
}

/// Copies an array, unless both have the same memory.
pub(super) fn copy_all(
    cx: &mut KernelContext<'_>,
    from: &Memory,
    to: &Memory,
    (bytes, unit): (i64, i64),
    grid: GroupGrid,
) -> Result<()> {
    if cx.is_same_memory(from.pointer, to.pointer) {
        return Ok(());
    }
    for_unit(cx, grid, bytes / unit, |cx, number| {
        copy(cx, unit, (from.pointer, from.alignment, number), (to.pointer, to.alignment, number))
    })
}
