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
use nest::{Predicate, ScalarType, Type, ValueId};
use plan::{TeamReducePlan, Teams};
use support::{Error, Result};

/// The elements that a team reduces.
pub(super) struct Elements<'a, 'f> {
    pub(super) teams: Teams,
    /// Number of elements.
    pub(super) length: i64,
    pub(super) lanes: u32,
    pub(super) unroll: i64,
    /// Number of parts, and elements of a part.
    pub(super) parts: (i64, i64),
    /// The workgroup's part.
    pub(super) part: Index,
    pub(super) reducer: &'f Reducer<'a>,
    pub(super) element: &'f mut ElementOf<'f>,
}

/// Returns the elements with a number, one for each accumulator, given a condition for them to
/// count.
pub(super) type ElementOf<'f> =
    dyn FnMut(&mut KernelContext<'_>, &Index, Option<ValueId>) -> Result<Vec<ValueId>> + 'f;

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
        let mut element = |cx: &mut KernelContext<'_>, number: &Index, _: Option<ValueId>| {
            input(cx, plan, inputs, &mut indices, number)
        };
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
        let mut element =
            |cx: &mut KernelContext<'_>, part: &Index, _: Option<ValueId>| partial.load(cx, part, &number);
        let elements = Elements::of_partial(teams, plan.parts, &reducer, &mut element);
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

impl<'a, 'f> Elements<'a, 'f> {
    /// The accumulators of `parts` parts.
    pub(super) fn of_partial(
        teams: Teams,
        parts: i64,
        reducer: &'f Reducer<'a>,
        element: &'f mut ElementOf<'f>,
    ) -> Self {
        let (parts, part) = ((1, parts), Index::default());
        Self { teams, length: parts.1, lanes: 1, unroll: 1, parts, part, reducer, element }
    }

    /// Returns the thread's accumulators.
    pub(super) fn accumulate(self, cx: &mut KernelContext<'_>, team: &Team) -> Result<Vec<ValueId>> {
        match self.reducer {
            Reducer::Operations(operations) => self.in_any_order(cx, team, operations),
            Reducer::Sum | Reducer::Computation(..) => self.in_order(cx, team),
        }
    }

    fn in_any_order(
        self,
        cx: &mut KernelContext<'_>,
        team: &Team,
        operations: &[Operation<'a>],
    ) -> Result<Vec<ValueId>> {
        let lanes = self.lanes;
        let across = self.teams.size * i64::from(lanes);
        let round = across * self.unroll;
        let (parts, part) = self.parts;
        let mut neutral = Vec::with_capacity(operations.len());
        for operation in operations {
            neutral.push(operation.neutral(cx, lanes)?);
        }
        let start = neutral.repeat(self.unroll as usize);
        let repeated = operations.repeat(self.unroll as usize);
        let carried = Carried { operations: &repeated, lanes, inside: 1 };
        let first = self.part.times(part).plus(&team.rank.times(i64::from(lanes)));
        let (element, reducer, length) = (self.element, self.reducer, self.length);
        let mut add = |cx: &mut KernelContext<'_>, sums: &[ValueId], number: &Index| match cx
            .contains(number, 0, length)?
        {
            Containment::Never => Ok(sums.to_vec()),
            Containment::Always => {
                let values = element(cx, number, None)?;
                reducer.combine(cx, sums, &values)
            }
            Containment::When(is_in) => {
                let inside = team::within(cx, number, length, lanes)?;
                let values = element(cx, &inside, Some(is_in))?;
                let next = reducer.combine(cx, sums, &values)?;
                Ok(next.into_iter().zip(sums).map(|(next, &sum)| cx.select(is_in, next, sum)).collect())
            }
        };
        let width = operations.len();
        // Parts are whole rounds, of which the last part may lack some.
        let whole = if parts > 1 { part } else { part / round * round };
        let mut sums =
            range_in_blocks(cx, (whole, None), round, &carried, &start, &mut |cx, index, sums| {
                let mut next = Vec::with_capacity(sums.len());
                for (k, sums) in sums.chunks(width).enumerate() {
                    next.extend(add(cx, sums, &first.plus(&index).plus_constant(k as i64 * across))?);
                }
                Ok(next)
            })?;
        for (k, sums) in sums.chunks_mut(width).enumerate() {
            let begin = whole + k as i64 * across;
            if begin < part {
                let next = add(cx, sums, &first.plus_constant(begin))?;
                sums.copy_from_slice(&next);
            }
        }
        let lists = sums.chunks(width).map(<[ValueId]>::to_vec).collect();
        let sums = team::tree(cx, lists, reducer)?;
        operations.iter().zip(sums).map(|(operation, sum)| across_lanes(cx, operation, sum, lanes)).collect()
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
        let start = element(cx, &first, None)?;
        let sums = cx.for_range_carrying(1, each, 1, &start, |cx, index, sums| {
            let next = element(cx, &first.plus(&index), None)?;
            reducer.combine(cx, sums, &next)
        })?;
        let Some(is_longer) = is_longer else { return Ok(sums) };
        let last = cx.clamp(&first.plus_constant(each), 0, self.length - 1)?;
        let value = element(cx, &last, Some(is_longer))?;
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
    if cx.ty(sum).scalar == ScalarType::Bool {
        // Truth values of a device are no bits that could be shuffled.
        let mut total = cx.extract(sum, 0);
        for lane in 1..lanes {
            let next = cx.extract(sum, lane);
            total = operation.combine(cx, total, next)?;
        }
        return Ok(total);
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
pub(super) struct Partial<'a> {
    pub(super) types: &'a [Type],
    /// Number of teams.
    pub(super) count: i64,
    pub(super) parts: i64,
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

    pub(super) fn store(
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

    pub(super) fn load(
        &self,
        cx: &mut KernelContext<'_>,
        part: &Index,
        team: &Index,
    ) -> Result<Vec<ValueId>> {
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
