//! Running totals by teams. Each thread reduces a part of neighbors, the team computes the total
//! before each part, and each thread then computes the results of its part.

use super::team::{self, Reducer, Team};
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::element::{Element, normalize};
use crate::index::{Facts, Index, Position};
use crate::reduction::reduce::operation::Operation;
use hlo::{InstructionId, Op};
use nest::{Predicate, Type, ValueId};
use plan::ScanPlan;
use support::{Error, Result};

/// Emitter for the running totals of a team.
struct Scan<'a> {
    plan: &'a ScanPlan,
    inputs: &'a [InstructionId],
    /// Initial values, one per array, and their parts.
    start: Vec<Element>,
    initial: Vec<ValueId>,
    reducer: Reducer<'a>,
    indices: Vec<Index>,
    has_work: Option<ValueId>,
}

/// Writes the results of a windowed reduction.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ScanPlan) -> Result<()> {
    let Op::ReduceWindow { to_apply, .. } = cx.fusion().root_op() else {
        return Err(Error::internal("expected a windowed reduction as the root"));
    };
    let body = cx.fusion().body;
    let (inputs, initial) = body[cx.fusion().root].operands().split_at(cx.results().len());
    let mut start = Vec::with_capacity(initial.len());
    for &id in initial {
        start.push(cx.element(id, &Position::scalar())?);
    }
    let operation = Operation::of(cx, *to_apply, cx.results()[0].shape.element_type);
    let reducer = if plan.is_operation && operation.rounds() {
        Reducer::Sum
    } else if plan.is_operation {
        Reducer::Operations(vec![operation])
    } else {
        Reducer::Computation(*to_apply, start.clone())
    };
    let mut initial: Vec<ValueId> = start.iter().flat_map(|element| element.values()).collect();
    with_error(cx, &reducer, &mut initial);
    let types: Vec<Type> = initial.iter().map(|&v| cx.ty(v)).collect();
    let mut team = Team::new(cx, plan.teams)?;
    team.reserve(cx, std::slice::from_ref(&types))?;
    let group = team::group(cx, plan.teams.groups());
    let (number, has_work) = team.number(cx, &group)?;
    let mut indices = vec![Index::default(); cx.results()[0].shape.rank()];
    team::place(cx, &plan.others, &number, &mut indices)?;
    let mut scan = Scan { plan, inputs, start, initial, reducer, indices, has_work };
    scan.run(cx, &mut team)
}

impl Scan<'_> {
    fn run(&mut self, cx: &mut KernelContext<'_>, team: &mut Team) -> Result<()> {
        let (size, members) = (self.plan.size, self.plan.teams.size);
        let (each, more) = (size / members, size % members);
        let rank = cx.scalar_value(&team.rank)?;
        let mut first = team.rank.times(each);
        let mut is_longer = None;
        if more > 0 {
            let limit = cx.index(more);
            let condition = cx.compare(Predicate::Less, rank, limit);
            let before = cx.select(condition, rank, limit);
            cx.learn(before, Facts::range(0, more));
            first = first.plus(&Index::scalar(before));
            is_longer = Some(condition);
        }
        let mut before = self.initial.clone();
        if members > 1 {
            let one = self.element(cx, &first)?;
            let mut sums = cx.for_range_carrying(1, each, 1, &one, |cx, index, sums| {
                let next = self.element(cx, &first.plus(&index))?;
                self.reducer.combine(cx, sums, &next)
            })?;
            if let Some(is_longer) = is_longer {
                let last = cx.clamp(&first.plus_constant(each), 0, size - 1)?;
                let next = self.element(cx, &last)?;
                let next = self.reducer.combine(cx, &sums, &next)?;
                sums =
                    next.into_iter().zip(sums).map(|(next, sum)| cx.select(is_longer, next, sum)).collect();
            }
            let of_parts = team.before(cx, sums, &self.reducer)?;
            let after = self.reducer.combine(cx, &self.initial, &of_parts)?;
            let zero = cx.index(0);
            let is_first = cx.compare(Predicate::Equal, rank, zero);
            let pairs = self.initial.iter().zip(after);
            before = pairs.map(|(&initial, after)| cx.select(is_first, initial, after)).collect();
        }
        let one = self.element(cx, &first)?;
        self.write(cx, &first, &before, &one, None)?;
        let sums = cx.for_range_carrying(1, each, 1, &one, |cx, index, sums| {
            let number = first.plus(&index);
            let next = self.element(cx, &number)?;
            let sums = self.reducer.combine(cx, sums, &next)?;
            self.write(cx, &number, &before, &sums, None)?;
            Ok(sums)
        })?;
        let mut total = sums;
        if let Some(is_longer) = is_longer {
            let last = cx.clamp(&first.plus_constant(each), 0, size - 1)?;
            let next = self.element(cx, &last)?;
            let next = self.reducer.combine(cx, &total, &next)?;
            self.write(cx, &last, &before, &next, Some(is_longer))?;
            total = next.into_iter().zip(total).map(|(next, sum)| cx.select(is_longer, next, sum)).collect();
        }
        self.write_rest(cx, rank, &before, &total)
    }

    /// Writes the results whose windows are empty, and those whose windows contain all elements and
    /// that are not written with the last element.
    fn write_rest(
        &mut self,
        cx: &mut KernelContext<'_>,
        rank: ValueId,
        before: &[ValueId],
        total: &[ValueId],
    ) -> Result<()> {
        let ScanPlan { held, count, size, .. } = *self.plan;
        let empty = held.saturating_neg().saturating_add(1).clamp(0, count);
        let full = size.saturating_sub(held).saturating_add(1).clamp(empty, count);
        for (begin, end, member) in [(0, empty, 0), (full, count, self.plan.teams.size - 1)] {
            if begin >= end {
                continue;
            }
            let member = cx.index(member);
            let is_member = cx.compare(Predicate::Equal, rank, member);
            let writes = team::all(cx, &[Some(is_member), self.has_work]);
            let values = if begin == 0 && empty > 0 && end == empty {
                self.initial.clone()
            } else {
                self.reducer.combine(cx, before, total)?
            };
            team::when(cx, writes, |cx| {
                cx.for_range(begin, end, 1, |cx, number| self.store(cx, &number, &values))
            })?;
        }
        Ok(())
    }

    /// Returns the elements with a number in the order in which the total runs.
    fn element(&mut self, cx: &mut KernelContext<'_>, number: &Index) -> Result<Vec<ValueId>> {
        self.indices[self.plan.dimension] = if self.plan.is_backward {
            number.times(-1).plus_constant(self.plan.size - 1)
        } else {
            number.clone()
        };
        let mut values = Vec::with_capacity(self.inputs.len());
        for &id in self.inputs {
            let element = cx.element(id, &Position::Multi(self.indices.clone()))?;
            values.extend(cx.widen(element, 1)?.values());
        }
        with_error(cx, &self.reducer, &mut values);
        Ok(values)
    }

    /// Writes the result whose window ends with an element, if there is one.
    fn write(
        &mut self,
        cx: &mut KernelContext<'_>,
        last: &Index,
        before: &[ValueId],
        sums: &[ValueId],
        condition: Option<ValueId>,
    ) -> Result<()> {
        let ScanPlan { held, count, .. } = *self.plan;
        let number = last.plus_constant(1i64.saturating_sub(held));
        let is_in = match cx.contains(&number, 0, count)? {
            Containment::Never => return Ok(()),
            Containment::Always => None,
            Containment::When(is_in) => Some(is_in),
        };
        let values = self.reducer.combine(cx, before, sums)?;
        let writes = team::all(cx, &[is_in, condition, self.has_work]);
        team::when(cx, writes, |cx| self.store(cx, &number, &values))
    }

    fn store(&mut self, cx: &mut KernelContext<'_>, number: &Index, values: &[ValueId]) -> Result<()> {
        let mut indices = self.indices.clone();
        indices[self.plan.dimension] = if self.plan.is_backward {
            number.times(-1).plus_constant(self.plan.count - 1)
        } else {
            number.clone()
        };
        let position = Position::Multi(indices);
        let values = match self.reducer {
            Reducer::Sum => &[cx.add(values[0], values[1])],
            _ => values,
        };
        for (k, element) in team::elements(&self.start, values).into_iter().enumerate() {
            let result = cx.results()[k].clone();
            let element = if self.plan.is_operation {
                element.map(|value| normalize(cx, result.shape.element_type, value))
            } else {
                element
            };
            cx.store_at(&result, &position, element)?;
        }
        Ok(())
    }
}

/// Adds an error of 0 to a sum that rounds.
fn with_error(cx: &mut KernelContext<'_>, reducer: &Reducer<'_>, values: &mut Vec<ValueId>) {
    if let Reducer::Sum = reducer {
        let ty = cx.ty(values[0]);
        values.push(cx.float(ty, 0.0));
    }
}
