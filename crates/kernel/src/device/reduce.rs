//! Reductions by teams of threads.
//!
//! Each thread accumulates some of the team's elements; the team then combines the accumulators. If
//! the order is free, neighboring threads read neighboring elements. Otherwise each thread reads a
//! range of neighbors, and the ranges are combined in order.

use super::team::{self, Reducer, Team};
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::element::{Element, normalize};
use crate::index::{Facts, Index, Position};
use crate::reduction::reduce::blocks::{Carried, range_in_blocks};
use crate::reduction::reduce::operation::Operation;
use hlo::{InstructionId, Op};
use nest::{Predicate, Type, ValueId};
use plan::{TeamReducePlan, Teams};
use support::{Error, Result};

/// The elements that a team reduces.
struct Elements<'a, 'f> {
    teams: Teams,
    /// Number of elements.
    length: i64,
    lanes: u32,
    unroll: i64,
    /// Number of parts, and elements of a part.
    parts: (i64, i64),
    /// The workgroup's part.
    part: Index,
    reducer: &'f Reducer<'a>,
    /// Returns the elements with a number: one for each accumulator.
    element: &'f mut dyn FnMut(&mut KernelContext<'_>, &Index) -> Result<Vec<ValueId>>,
}

/// Writes the result of a reduction, or the results of its parts.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &TeamReducePlan, step: usize) -> Result<()> {
    let Op::Reduce { dimensions, to_apply } = cx.fusion().root_op() else {
        return Err(Error::internal("expected a reduction as the root"));
    };
    let body = cx.fusion().body;
    let (inputs, initial) = body[cx.fusion().root].operands().split_at(cx.results().len());
    let mut start = Vec::with_capacity(initial.len());
    for &id in initial {
        start.push(cx.element(id, &Position::scalar())?);
    }
    let element_type = cx.results()[0].shape.element_type;
    let operation = Operation::of(cx, *to_apply, element_type);
    let reducer = if plan.is_operation {
        Reducer::Operations(vec![operation])
    } else {
        Reducer::Computation(*to_apply, start.clone())
    };
    let initial: Vec<ValueId> = start.iter().flat_map(|element| element.values()).collect();
    let types: Vec<Type> = initial.iter().map(|&v| cx.ty(v)).collect();
    let sizes = cx.shape(inputs[0])?.sizes();
    let kept: Vec<usize> = (0..sizes.len()).filter(|d| !dimensions.contains(d)).collect();
    let mut indices = vec![Index::default(); sizes.len()];
    let teams = if step == 0 { plan.teams } else { plan.second };
    let mut team = Team::new(cx, teams)?;
    team.reserve(cx, std::slice::from_ref(&types))?;
    let parts = if step == 0 { plan.parts } else { 1 };
    let group = team::group(cx, teams.groups() * parts);
    let (group, part) = cx.div_rem(&group, parts)?;
    let (number, has_work) = team.number(cx, &group)?;
    team::place(cx, &plan.kept, &number, &mut indices)?;
    let at = Position::Multi(kept.iter().map(|&d| indices[d].clone()).collect());
    let partial = Partial { types: &types, count: teams.count, parts: plan.parts };
    let total = if step == 0 {
        let mut element =
            |cx: &mut KernelContext<'_>, number: &Index| input(cx, plan, inputs, &mut indices, number);
        let elements = Elements {
            teams,
            length: plan.length(),
            lanes: plan.lanes,
            unroll: i64::from(plan.unroll),
            parts: (plan.parts, plan.part),
            part: part.clone(),
            reducer: &reducer,
            element: &mut element,
        };
        elements.accumulate(cx, &team)?
    } else {
        let mut element = |cx: &mut KernelContext<'_>, part: &Index| partial.load(cx, part, &number);
        let elements = Elements {
            teams,
            length: plan.parts,
            lanes: 1,
            unroll: 1,
            parts: (1, plan.parts),
            part: Index::default(),
            reducer: &reducer,
            element: &mut element,
        };
        elements.accumulate(cx, &team)?
    };
    let total = team.reduce(cx, total, &reducer)?;
    let is_first = team.is_first(cx)?;
    let writes = team::all(cx, &[is_first, has_work]);
    if parts > 1 {
        return team::when(cx, writes, |cx| partial.store(cx, &part, &number, &total));
    }
    let total = reducer.combine(cx, &initial, &total)?;
    team::when(cx, writes, |cx| {
        for (k, element) in team::elements(&start, &total).into_iter().enumerate() {
            let result = cx.results()[k].clone();
            let element = match element {
                Element::Real(value) if plan.is_operation => {
                    Element::Real(normalize(cx, result.shape.element_type, value))
                }
                other => other,
            };
            cx.store_at(&result, &at, element)?;
        }
        Ok(())
    })
}

/// Returns the arrays' elements with a number among those that are reduced.
fn input(
    cx: &mut KernelContext<'_>,
    plan: &TeamReducePlan,
    inputs: &[InstructionId],
    indices: &mut [Index],
    number: &Index,
) -> Result<Vec<ValueId>> {
    cx.with_lanes(plan.lanes, |cx| {
        let number = number.plus(&Index::lanes(i64::from(plan.lanes > 1)));
        team::place(cx, &plan.reduced, &number, indices)?;
        let mut values = Vec::with_capacity(inputs.len());
        for &id in inputs {
            let element = cx.element(id, &Position::Multi(indices.to_vec()))?;
            values.extend(cx.widen(element, plan.lanes)?.values());
        }
        Ok(values)
    })
}

impl Elements<'_, '_> {
    /// Returns the thread's accumulators.
    fn accumulate(self, cx: &mut KernelContext<'_>, team: &Team) -> Result<Vec<ValueId>> {
        match self.reducer {
            Reducer::Operations(operations) => self.in_any_order(cx, team, &operations[0].clone()),
            Reducer::Computation(..) => self.in_order(cx, team),
        }
    }

    fn in_any_order(
        self,
        cx: &mut KernelContext<'_>,
        team: &Team,
        operation: &Operation<'_>,
    ) -> Result<Vec<ValueId>> {
        let lanes = self.lanes;
        let across = self.teams.size * i64::from(lanes);
        let round = across * self.unroll;
        let (parts, part) = self.parts;
        let neutral = operation.neutral(cx, lanes)?;
        let start = vec![neutral; self.unroll as usize];
        let operations = vec![*operation; self.unroll as usize];
        let carried = Carried { operations: &operations, lanes, inside: 1 };
        let first = self.part.times(part).plus(&team.rank.times(i64::from(lanes)));
        let element = self.element;
        let length = self.length;
        let mut add = |cx: &mut KernelContext<'_>, sum: ValueId, number: &Index| -> Result<ValueId> {
            match cx.contains(number, 0, length)? {
                Containment::Never => Ok(sum),
                Containment::Always => {
                    let value = element(cx, number)?[0];
                    operation.combine(cx, sum, value)
                }
                Containment::When(is_in) => {
                    let inside = team::within(cx, number, length, lanes)?;
                    let value = element(cx, &inside)?[0];
                    let next = operation.combine(cx, sum, value)?;
                    Ok(cx.select(is_in, next, sum))
                }
            }
        };
        // Parts are whole rounds, of which the last part may lack some.
        let whole = if parts > 1 { part } else { part / round * round };
        let mut sums = range_in_blocks(cx, whole, round, &carried, &start, &mut |cx, index, sums| {
            let mut next = Vec::with_capacity(sums.len());
            for (k, &sum) in sums.iter().enumerate() {
                next.push(add(cx, sum, &first.plus(&index).plus_constant(k as i64 * across))?);
            }
            Ok(next)
        })?;
        for (k, sum) in sums.iter_mut().enumerate() {
            let begin = whole + k as i64 * across;
            if begin < part {
                *sum = add(cx, *sum, &first.plus_constant(begin))?;
            }
        }
        let lists = sums.into_iter().map(|sum| vec![sum]).collect();
        let reducer = Reducer::Operations(vec![*operation]);
        let sum = team::tree(cx, lists, &reducer)?[0];
        Ok(vec![across_lanes(cx, operation, sum, lanes)?])
    }

    /// Each thread reduces neighbors, at least one. The first threads reduce one more.
    fn in_order(self, cx: &mut KernelContext<'_>, team: &Team) -> Result<Vec<ValueId>> {
        let (parts, _) = self.parts;
        let workers = parts * self.teams.size;
        let (each, more) = (self.length / workers, self.length % workers);
        let worker = self.part.times(self.teams.size).plus(&team.rank);
        let mut first = worker.times(each);
        let mut is_longer = None;
        if more > 0 {
            let value = cx.scalar_value(&worker)?;
            let limit = cx.index(more);
            let condition = cx.compare(Predicate::Less, value, limit);
            let before = cx.select(condition, value, limit);
            cx.learn(before, Facts::range(0, more));
            first = first.plus(&Index::scalar(before));
            is_longer = Some(condition);
        }
        let (element, reducer) = (self.element, self.reducer);
        let start = element(cx, &first)?;
        let sums = cx.for_range_carrying(1, each, 1, &start, |cx, index, sums| {
            let next = element(cx, &first.plus(&index))?;
            reducer.combine(cx, sums, &next)
        })?;
        let Some(is_longer) = is_longer else { return Ok(sums) };
        let last = cx.clamp(&first.plus_constant(each), 0, self.length - 1)?;
        let value = element(cx, &last)?;
        let next = reducer.combine(cx, &sums, &value)?;
        Ok(next.into_iter().zip(sums).map(|(next, sum)| cx.select(is_longer, next, sum)).collect())
    }
}

/// Combines the lanes of an accumulator.
pub(super) fn across_lanes(
    cx: &mut KernelContext<'_>,
    operation: &Operation<'_>,
    mut sum: ValueId,
    mut lanes: u32,
) -> Result<ValueId> {
    if lanes == 1 {
        return Ok(sum);
    }
    while lanes > 1 {
        lanes /= 2;
        let low = cx.shuffle(sum, sum, (0..lanes).collect());
        let high = cx.shuffle(sum, sum, (lanes..2 * lanes).collect());
        sum = operation.combine(cx, low, high)?;
    }
    Ok(cx.extract(sum, 0))
}

/// The accumulators of all parts, in scratch.
struct Partial<'a> {
    types: &'a [Type],
    count: i64,
    parts: i64,
}

impl Partial<'_> {
    /// Returns the address of an accumulator of a team's part.
    fn address(
        &self,
        cx: &mut KernelContext<'_>,
        value: usize,
        part: &Index,
        team: &Index,
    ) -> Result<ValueId> {
        let scratch = cx.scratch().ok_or_else(|| Error::internal("a reduction in parts has no scratch"))?;
        let size = |ty: Type| team::memory(ty).scalar.byte_size() as i64;
        let before = self.types[..value].iter();
        let offset: i64 = before.map(|&ty| (size(ty) * self.count * self.parts + 15) / 16 * 16).sum();
        let number = cx.scalar_value(&part.times(self.count).plus(team))?;
        let first = cx.offset_bytes(scratch, offset);
        Ok(cx.offset(first, number, size(self.types[value])))
    }

    fn store(
        &self,
        cx: &mut KernelContext<'_>,
        part: &Index,
        team: &Index,
        values: &[ValueId],
    ) -> Result<()> {
        for (k, &value) in values.iter().enumerate() {
            let address = self.address(cx, k, part, team)?;
            let raw = team::to_memory(cx, value);
            let alignment = cx.ty(raw).scalar.byte_size() as u32;
            cx.store(raw, address, alignment);
        }
        Ok(())
    }

    fn load(&self, cx: &mut KernelContext<'_>, part: &Index, team: &Index) -> Result<Vec<ValueId>> {
        let mut values = Vec::with_capacity(self.types.len());
        for (k, &ty) in self.types.iter().enumerate() {
            let address = self.address(cx, k, part, team)?;
            let stored = team::memory(ty);
            let raw = cx.load(stored, address, stored.scalar.byte_size() as u32);
            values.push(team::from_memory(cx, ty, raw));
        }
        Ok(values)
    }
}
