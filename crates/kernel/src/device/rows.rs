//! Rows walked by teams of threads. Rows that fit into the registers of their team are loaded once.

use super::reduce::across_lanes;
use super::team::{self, Reducer, Team};
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::element::{Element, normalize};
use crate::index::{Index, Position};
use crate::reduction::reduce::operation::Operation;
use hlo::{InstructionId, Op};
use nest::ValueId;
use plan::{Sweep, TeamRowsPlan};
use support::{Error, Result};

/// Writes the results.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &TeamRowsPlan) -> Result<()> {
    let results = match cx.fusion().root_op() {
        Op::Tuple {} => cx.fusion().body[cx.fusion().root].operands().to_vec(),
        _ => vec![cx.fusion().root],
    };
    let mut lists = Vec::with_capacity(plan.rows.sweeps.len());
    for sweep in &plan.rows.sweeps {
        let mut types = Vec::with_capacity(sweep.reductions.len());
        for operation in operations(cx, sweep)? {
            let neutral = operation.neutral(cx, 1)?;
            types.push(cx.ty(neutral));
        }
        lists.push(types);
    }
    let mut team = Team::new(cx, plan.teams)?;
    team.reserve(cx, &lists)?;
    let group = team::group(cx, plan.teams.groups());
    let (number, has_work) = team.number(cx, &group)?;
    let mut indices = vec![Index::default(); plan.rows.sizes.len()];
    team::place(cx, &plan.rows.rows, &number, &mut indices)?;
    let mut row = Row { plan, results: &results, indices, team, has_work };
    row.walks(cx, &plan.rows.sweeps)
}

/// The operations of a walk's reductions.
fn operations<'a>(cx: &KernelContext<'a>, sweep: &Sweep) -> Result<Vec<Operation<'a>>> {
    let mut operations = Vec::with_capacity(sweep.reductions.len());
    for &id in &sweep.reductions {
        let Op::Reduce { to_apply, .. } = cx.fusion().body[id].op() else {
            return Err(Error::internal("expected a reduction among those of a walk"));
        };
        operations.push(Operation::of(cx, *to_apply, cx.shape(id)?.element_type));
    }
    Ok(operations)
}

/// Emitter for a team's row.
struct Row<'p> {
    plan: &'p TeamRowsPlan,
    results: &'p [InstructionId],
    indices: Vec<Index>,
    team: Team,
    has_work: Option<ValueId>,
}

impl Row<'_> {
    /// Emits the remaining walks. The results of each walk's reductions replace their instructions
    /// in the later walks.
    fn walks(&mut self, cx: &mut KernelContext<'_>, sweeps: &[Sweep]) -> Result<()> {
        let Some((sweep, later)) = sweeps.split_first() else { return self.row_results(cx) };
        let reduced = self.walk(cx, sweep)?;
        cx.with_provided(reduced, |cx| self.walks(cx, later))
    }

    /// Writes the results with one element per row.
    fn row_results(&self, cx: &mut KernelContext<'_>) -> Result<()> {
        if self.plan.rows.row_results.is_empty() {
            return Ok(());
        }
        let is_first = self.team.is_first(cx)?;
        let writes = team::all(cx, &[is_first, self.has_work]);
        team::when(cx, writes, |cx| {
            for &number in &self.plan.rows.row_results {
                let result = cx.results()[number].clone();
                let follows = self.plan.rows.row_dimensions(&result.shape.sizes());
                let at = follows.iter().map(|d| d.map_or_else(Index::default, |d| self.indices[d].clone()));
                let position = Position::Multi(at.collect());
                let element = cx.element(self.results[number], &position)?;
                cx.store_at(&result, &position, element)?;
            }
            Ok(())
        })
    }

    /// Emits one walk. Returns the results of its reductions.
    fn walk(&mut self, cx: &mut KernelContext<'_>, sweep: &Sweep) -> Result<Vec<(InstructionId, Element)>> {
        let operations = operations(cx, sweep)?;
        let (lanes, length) = (i64::from(self.plan.lanes), self.plan.length());
        let across = self.plan.teams.size * lanes;
        let mut start = Vec::with_capacity(operations.len());
        for operation in &operations {
            start.push(operation.neutral(cx, self.plan.lanes)?);
        }
        let first = self.team.rank.times(lanes);
        let sums = if self.plan.kept > 0 {
            let mut sums = start;
            for k in 0..self.plan.kept {
                let number = first.plus_constant(k * across);
                sums = self.load(cx, sweep, &operations, &number, &sums)?;
            }
            sums
        } else {
            let unroll = self.plan.unroll;
            let whole = length / (across * unroll) * (across * unroll);
            let mut sums = cx.for_range_carrying(0, whole, across * unroll, &start, |cx, index, sums| {
                let mut sums = sums.to_vec();
                for k in 0..unroll {
                    let number = first.plus(&index).plus_constant(k * across);
                    sums = self.load(cx, sweep, &operations, &number, &sums)?;
                }
                Ok(sums)
            })?;
            for begin in (whole..length).step_by(across as usize) {
                sums = self.load(cx, sweep, &operations, &first.plus_constant(begin), &sums)?;
            }
            sums
        };
        let mut scalars = Vec::with_capacity(sums.len());
        for (operation, sum) in operations.iter().zip(sums) {
            scalars.push(across_lanes(cx, operation, sum, self.plan.lanes)?);
        }
        for column in &self.plan.rows.columns {
            self.indices[column.dimension] = Index::default();
        }
        let reducer = Reducer::Operations(operations.clone());
        let totals = self.team.reduce(cx, scalars, &reducer)?;
        let mut reduced = Vec::with_capacity(totals.len());
        for ((&id, operation), total) in sweep.reductions.iter().zip(&operations).zip(totals) {
            let initial = cx.fusion().body[id].operands()[1];
            let initial = cx.element(initial, &Position::scalar())?.real();
            let value = operation.combine(cx, initial, total)?;
            let element_type = cx.shape(id)?.element_type;
            let value = normalize(cx, element_type, value);
            reduced.push((id, Element::Real(value)));
        }
        Ok(reduced)
    }

    /// Emits one load of a walk: accumulates its elements, and writes those of results.
    fn load(
        &mut self,
        cx: &mut KernelContext<'_>,
        sweep: &Sweep,
        operations: &[Operation<'_>],
        number: &Index,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let (lanes, length) = (self.plan.lanes, self.plan.length());
        let (number, is_in) = match cx.contains(number, 0, length)? {
            Containment::Never => return Ok(sums.to_vec()),
            Containment::Always => (number.clone(), None),
            Containment::When(is_in) => (team::within(cx, number, length, lanes)?, Some(is_in)),
        };
        cx.with_lanes(lanes, |cx| {
            let number = number.plus(&Index::lanes(i64::from(lanes > 1)));
            team::place(cx, &self.plan.rows.columns, &number, &mut self.indices)?;
            let position = Position::Multi(self.indices.clone());
            let mut next = Vec::with_capacity(sums.len());
            for ((&id, operation), &sum) in sweep.reductions.iter().zip(operations).zip(sums) {
                let input = cx.fusion().body[id].operands()[0];
                let element = cx.element(input, &position)?;
                let value = cx.widen(element, lanes)?.real();
                let combined = operation.combine(cx, sum, value)?;
                next.push(match is_in {
                    None => combined,
                    Some(is_in) => cx.select(is_in, combined, sum),
                });
            }
            let mut written = Vec::with_capacity(sweep.results.len());
            for &k in &sweep.results {
                written.push((k, cx.element(self.results[k], &position)?));
            }
            let writes = team::all(cx, &[is_in, self.has_work]);
            team::when(cx, writes, |cx| {
                for (k, element) in written {
                    let result = cx.results()[k].clone();
                    cx.store_at(&result, &position, element)?;
                }
                Ok(())
            })?;
            Ok(next)
        })
    }
}
