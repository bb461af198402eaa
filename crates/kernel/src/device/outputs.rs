//! Several results by threads or teams.

use super::movement;
use super::reduce::{Elements, Partial};
use super::team::{self, Reducer, Team};
use crate::context::KernelContext;
use crate::element::{Element, normalize};
use crate::index::{Index, Position};
use crate::multi_output::{self, Placed};
use crate::reduction::reduce::operation::Operation;
use nest::{Type, ValueId};
use plan::{ColumnsPlan, GroupGrid, OutputsPlan};
use support::Result;

/// Emits a step: a copy of an array that is replaced in part, the body, or the combination of
/// parts.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &OutputsPlan,
    step: usize,
    grid: GroupGrid,
) -> Result<()> {
    if let Some(&(leaf, number)) = plan.body.updates.get(step) {
        let (operand, result) = (cx.operand(number)?.clone(), cx.results()[leaf].clone());
        return movement::copy_all(cx, &operand, &result, plan.copies[step], grid);
    }
    let outputs = plan::outputs(&cx.fusion())?;
    let mut placed = Vec::with_capacity(outputs.len());
    for output in &outputs {
        placed.push(Placed::new(cx, output)?);
    }
    match &plan.columns {
        None => multi_output::emit_elements(cx, &plan.body, &placed),
        Some(columns) => {
            let is_second = step > plan.body.updates.len();
            emit_columns(cx, columns, plan.body.sizes.len(), &placed, is_second)
        }
    }
}

fn emit_columns(
    cx: &mut KernelContext<'_>,
    plan: &ColumnsPlan,
    rank: usize,
    outputs: &[Placed],
    is_second: bool,
) -> Result<()> {
    let (mut operations, mut initial, mut types) = (Vec::new(), Vec::new(), Vec::<Type>::new());
    for output in outputs {
        let Some(reduction) = output.reduction else { continue };
        let element_type = cx.results()[output.leaf].shape.element_type;
        operations.push(Operation::of(cx, reduction.to_apply, element_type));
        let value = cx.element(reduction.initial, &Position::scalar())?.real();
        types.push(cx.ty(value));
        initial.push(value);
    }
    let reducer = Reducer::Operations(operations);
    let teams = if is_second { plan.second } else { plan.teams };
    let mut team = Team::new(cx, teams)?;
    team.reserve(cx, std::slice::from_ref(&types))?;
    let (all, length) = plan.parts;
    let parts = if is_second { 1 } else { all };
    let group = team::group(cx, teams.groups() * parts);
    let (group, part) = cx.div_rem(&group, parts)?;
    let (number, has_work) = team.number(cx, &group)?;
    let mut indices = vec![Index::default(); rank];
    team::place(cx, &plan.kept, &number, &mut indices)?;
    let kept = indices.clone();
    let partial = Partial { types: &types, count: teams.count, parts: all };
    let total = if is_second {
        let mut element =
            |cx: &mut KernelContext<'_>, part: &Index, _: Option<ValueId>| partial.load(cx, part, &number);
        let elements = Elements::of_partial(teams, all, &reducer, &mut element);
        elements.accumulate(cx, &team)?
    } else {
        let mut element = |cx: &mut KernelContext<'_>, number: &Index, is_in: Option<ValueId>| {
            team::place(cx, &plan.reduced, number, &mut indices)?;
            let (mut reduced, mut stored) = (Vec::new(), Vec::new());
            for output in outputs {
                let element = output.element(cx, &indices)?;
                if output.reduction.is_some() {
                    reduced.push(cx.widen(element, 1)?.real());
                } else {
                    stored.push((output, element));
                }
            }
            if !stored.is_empty() {
                let writes = team::all(cx, &[is_in, has_work]);
                team::when(cx, writes, |cx| {
                    stored.iter().try_for_each(|(output, element)| output.store(cx, &indices, *element))
                })?;
            }
            Ok(reduced)
        };
        let elements = Elements {
            teams,
            length: plan.length(),
            lanes: 1,
            unroll: plan.unroll,
            parts: (all, length),
            part: part.clone(),
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
        let reduced = outputs.iter().filter(|output| output.reduction.is_some());
        for (output, value) in reduced.zip(total) {
            let result = cx.results()[output.leaf].clone();
            let value = normalize(cx, result.shape.element_type, value);
            let position = output.column(cx, &kept)?;
            cx.store_at(&result, &position, Element::Real(value))?;
        }
        Ok(())
    })
}
