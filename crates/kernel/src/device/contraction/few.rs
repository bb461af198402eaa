//! Products with a few rows: the threads of a workgroup share the summands of some columns, and add
//! up their sums in workgroup memory.

use super::operand::along;
use super::{Coordinates, Operand, Place, finish, thread, when_below};
use crate::context::KernelContext;
use crate::contraction::tile::{multiply_add, scalar_type, zero};
use crate::element::Element;
use crate::index::Index;
use nest::{Predicate, Type, ValueId};
use plan::{ContractionPlan, FewRows, Role};
use support::Result;

/// Steps of the loop over the summands that are unrolled, so that their loads overlap.
const UNROLL: i64 = 4;

/// Emits the kernel.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ContractionPlan, few: &FewRows) -> Result<()> {
    let view = plan.view_of_few(few);
    let numbers = [plan.lhs_operand, plan.rhs_operand];
    let [lhs, rhs] = if few.is_swapped { [numbers[1], numbers[0]] } else { numbers };
    let lhs = Operand::new(cx, &view.lhs, &view, lhs, plan.accumulator)?;
    let rhs = Operand::new(cx, &view.rhs, &view, rhs, plan.accumulator)?;
    let extent = |role| view.extent(role);
    let (batches, rows, columns) = (extent(Role::Batch), extent(Role::Row), extent(Role::Column));
    let groups = plan.column_groups(few);
    let threads = few.columns * few.slices;
    let (local, group) = thread(cx, threads, groups * batches * plan.splits);
    let (rest, group) = cx.div_rem(&group, groups)?;
    let (split, batch) = cx.div_rem(&rest, batches)?;
    let (slice, within) = if few.along_columns {
        cx.div_rem(&local, few.columns)?
    } else {
        let (within, slice) = cx.div_rem(&local, few.slices)?;
        (slice, within)
    };
    let column = group.times(few.columns).plus(&within).times(few.column_run);
    let mut at: Coordinates = Default::default();
    at[Role::Batch as usize] = along(cx, &view.axes[Role::Batch as usize], &batch)?;
    at[Role::Column as usize] = along(cx, &view.axes[Role::Column as usize], &column)?;
    let is_column = cx.contains(&column, 0, columns)?;
    let scalar = Type::scalar(scalar_type(plan.accumulator)?);
    let per_row = few.column_run as usize;
    let initial: Vec<ValueId> = (0..rows as usize * per_row).map(|_| zero(cx, scalar)).collect();
    let each = few.slices * few.run;
    let steps = (plan.part + each - 1) / each;
    let unroll = UNROLL.min(steps);
    let sums = cx.for_range_carrying(0, steps, unroll, &initial, |cx, step, sums| {
        let mut sums = sums.to_vec();
        for k in 0..unroll {
            let within = step.plus_constant(k).times(few.slices).plus(&slice).times(few.run);
            let summand = split.times(plan.part).plus(&within);
            let is_of_part = cx.contains(&within, 0, plan.part)?;
            let is_summand = cx.contains(&summand, 0, extent(Role::Summand))?;
            let mut at = at.clone();
            at[Role::Summand as usize] = along(cx, &view.axes[Role::Summand as usize], &summand)?;
            let mut spot = rhs.spot(cx, &at)?;
            for condition in [is_column, is_of_part, is_summand] {
                spot.inside = spot.inside.and(cx, condition);
            }
            let weights = rhs.load(cx, &spot, (few.run * few.column_run) as u32)?.real();
            for row in 0..rows {
                at[Role::Row as usize] = along(cx, &view.axes[Role::Row as usize], &Index::constant(row))?;
                let whole = lhs.run(Role::Summand, few.run) == few.run;
                for r in 0..few.run {
                    let left = if whole && r > 0 {
                        continue;
                    } else if whole {
                        Index::default()
                    } else {
                        Index::constant(r)
                    };
                    at[Role::Summand as usize] =
                        along(cx, &view.axes[Role::Summand as usize], &summand.plus(&left))?;
                    let mut spot = lhs.spot(cx, &at)?;
                    for condition in [is_of_part, is_summand] {
                        spot.inside = spot.inside.and(cx, condition);
                    }
                    let lanes = if whole { few.run } else { 1 };
                    let values = lhs.load(cx, &spot, lanes as u32)?.real();
                    for lane in 0..lanes {
                        let x = cx.extract(values, lane as u32);
                        for c in 0..per_row {
                            let y = cx.extract(weights, (r + lane) as u32 + c as u32);
                            let sum = &mut sums[row as usize * per_row + c];
                            *sum = multiply_add(cx, x, y, *sum);
                        }
                    }
                }
            }
        }
        Ok(sums)
    })?;
    let sums = add_slices(cx, few, scalar, &slice, &within, sums)?;
    let first = cx.contains(&slice, 0, 1)?;
    let store = |cx: &mut KernelContext<'_>| {
        for c in 0..few.column_run {
            when_below(cx, &column.plus_constant(c), columns, 1, |cx, column| {
                for row in 0..rows {
                    let value = sums(cx, row * few.column_run + c);
                    let row = Index::constant(row);
                    let place =
                        Place { split: split.clone(), batch: batch.clone(), row, column: column.clone() };
                    let place = if few.is_swapped { place.swapped() } else { place };
                    finish(cx, plan, &place, 1, Element::Real(value))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    };
    match first {
        crate::context::addressing::Containment::When(condition) => cx.when(condition, store),
        _ => store(cx),
    }
}

/// Adds up the sums of the slices pairwise, in a fixed order. Returns the access to the sums for
/// the threads of the first slice.
fn add_slices(
    cx: &mut KernelContext<'_>,
    few: &FewRows,
    scalar: Type,
    slice: &Index,
    within: &Index,
    sums: Vec<ValueId>,
) -> Result<impl Fn(&mut KernelContext<'_>, i64) -> ValueId + use<>> {
    let size = scalar.scalar.byte_size() as i64;
    let own = few.columns * few.slices * size;
    let mut shared = None;
    if few.slices > 1 {
        let memory = cx.workgroup_memory((own * sums.len() as i64) as u64, 16);
        let place = slice.times(few.columns).plus(within);
        let place = cx.scalar_value(&place)?;
        let first = cx.offset(memory, place, size);
        for (number, &sum) in sums.iter().enumerate() {
            let pointer = cx.offset_bytes(first, number as i64 * own);
            cx.store(sum, pointer, size as u32);
        }
        let slice = cx.scalar_value(slice)?;
        let mut half = few.slices / 2;
        while half > 0 {
            cx.barrier();
            let end = cx.index(half);
            let is_in = cx.compare(Predicate::Less, slice, end);
            cx.when(is_in, |cx| {
                for number in 0..sums.len() as i64 {
                    let pointer = cx.offset_bytes(first, number * own);
                    let other = cx.offset_bytes(pointer, half * few.columns * size);
                    let (a, b) = (cx.load(scalar, pointer, size as u32), cx.load(scalar, other, size as u32));
                    let sum = cx.add(a, b);
                    cx.store(sum, pointer, size as u32);
                }
                Ok(())
            })?;
            half /= 2;
        }
        shared = Some(first);
    }
    Ok(move |cx: &mut KernelContext<'_>, number: i64| match shared {
        None => sums[number as usize],
        Some(first) => {
            let pointer = cx.offset_bytes(first, number * own);
            cx.load(scalar, pointer, size as u32)
        }
    })
}
