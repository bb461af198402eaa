//! State elements that a loop's body keeps, or changes by a constant.

use super::compared::{self, Compared};
use super::interval::{Interval, Range};
use super::range::Ranges;
use crate::{Computation, InstructionId, Module, Op};
use shape::PrimitiveType;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the induction variables of a loop's body and their steps: scalar integer state elements
/// to which each iteration adds the same nonzero constant. The body takes the state as one tuple.
pub fn induction_variables(module: &Module, body: &Computation) -> BTreeMap<usize, i64> {
    let steps =
        variables(module, body, &|_| None).into_iter().filter(|(_, linear)| linear.wraps_like_element());
    steps.filter_map(|(k, linear)| Some((k, linear.offset.try_into().ok()?))).collect()
}

/// Returns the state elements that a loop's body passes through unchanged.
pub fn invariant_elements(module: &Module, body: &Computation) -> BTreeSet<usize> {
    invariants(module, body, 0)
}

/// `multiplier * state[element] + offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Affine {
    /// Index of the state element, a scalar integer.
    pub element: usize,
    /// A nonzero factor.
    pub multiplier: i64,
    /// A constant.
    pub offset: i64,
}

/// Expresses a scalar integer as a linear function of one state element. The computation takes the
/// state as one tuple. No arithmetic wraps for any state within the ranges that `state` returns for
/// its elements.
pub fn affine(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    state: &dyn Fn(usize) -> Range,
) -> Option<Affine> {
    let linear = linear(module, computation, id, &|_| None)?;
    let start = Interval::from_range(state(linear.element), linear.path[0].all);
    let fits = |step: &Step| Some(step.all.contains(start.scaled(step.multiplier, step.offset)?));
    if !linear.path.iter().all(|step| fits(step) == Some(true)) {
        return None;
    }
    let Linear { element, multiplier, offset, .. } = linear;
    Some(Affine { element, multiplier: multiplier.try_into().ok()?, offset: offset.try_into().ok()? })
}

/// Maximum number of instructions that the analysis visits between a value and the state.
const MAX_STEPS: usize = 256;
/// Maximum nesting depth of loops that the analysis looks through.
const MAX_DEPTH: usize = 8;

/// `multiplier * state[element] + offset`, if no arithmetic wraps or rounds.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub(super) element: usize,
    pub(super) multiplier: i128,
    pub(super) offset: i128,
    /// The value after each step, with the range of its type; the first entry is the element
    /// itself.
    pub(super) path: Vec<Step>,
}

impl Linear {
    /// True if the function holds modulo the element's type even if arithmetic wraps, because no
    /// step is narrower than the element.
    pub(super) fn wraps_like_element(&self) -> bool {
        self.path.iter().all(|step| step.wraps && step.all.width() >= self.path[0].all.width())
    }
}

/// A condition: `multiplier * state[element] + offset` must fit into `all`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) multiplier: i128,
    pub(super) offset: i128,
    pub(super) all: Interval,
    /// True if values beyond `all` wrap. Floats are whole numbers within `all` only.
    pub(super) wraps: bool,
}

/// Returns the next value of each induction variable. `constant` returns the values of invariant
/// elements that are constants.
pub(super) fn variables(
    module: &Module,
    body: &Computation,
    constant: &dyn Fn(usize) -> Option<i64>,
) -> BTreeMap<usize, Linear> {
    let Some(root) = body.root_if_set() else { return BTreeMap::new() };
    if !matches!(body[root].op(), Op::Tuple {}) {
        return BTreeMap::new();
    }
    let invariant = invariant_elements(module, body);
    let constant = |k: usize| constant(k).filter(|_| invariant.contains(&k));
    let next = |(k, &id): (usize, &InstructionId)| {
        let linear = linear(module, body, id, &constant)?;
        let moves = linear.element == k && linear.multiplier == 1 && linear.offset != 0;
        moves.then_some((k, linear))
    };
    body[root].operands().iter().enumerate().filter_map(next).collect()
}

fn invariants(module: &Module, body: &Computation, depth: usize) -> BTreeSet<usize> {
    let Some(root) = body.root_if_set() else { return BTreeSet::new() };
    let count = body[root].shape().as_tuple().map_or(0, <[_]>::len);
    match body[root].op() {
        Op::Parameter { .. } => (0..count).collect(),
        Op::Tuple {} => {
            let stays = |&(k, &id): &(usize, &InstructionId)| {
                state_element(body, source(module, body, id, depth)) == Some(k)
            };
            body[root].operands().iter().enumerate().filter(stays).map(|(k, _)| k).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// Returns the index of the state element that an instruction extracts from the computation's
/// parameter.
pub fn state_element(computation: &Computation, id: InstructionId) -> Option<usize> {
    let Op::GetTupleElement { index } = *computation[id].op() else { return None };
    let tuple = computation[id].operands()[0];
    matches!(computation[tuple].op(), Op::Parameter { number: 0 }).then_some(index)
}

/// Follows a value to its source, through copies, tuples, and loops that keep it.
fn source(module: &Module, computation: &Computation, mut id: InstructionId, depth: usize) -> InstructionId {
    for _ in 0..MAX_STEPS {
        let Some(next) = one_step(module, computation, id, depth) else { break };
        id = next;
    }
    id
}

fn one_step(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    depth: usize,
) -> Option<InstructionId> {
    let operand = *computation[id].operands().first()?;
    match *computation[id].op() {
        Op::Copy {} => Some(operand),
        Op::Reshape {} => (computation[operand].shape() == computation[id].shape()).then_some(operand),
        Op::GetTupleElement { index } => match computation[operand].op() {
            Op::Tuple {} => computation[operand].operands().get(index).copied(),
            Op::While { body, .. } if depth < MAX_DEPTH => {
                let start = computation[operand].operands()[0];
                let is_invariant = invariants(module, module.get(*body)?, depth + 1).contains(&index);
                let is_tuple = matches!(computation[start].op(), Op::Tuple {});
                (is_invariant && is_tuple).then(|| computation[start].operands().get(index).copied())?
            }
            _ => None,
        },
        _ => None,
    }
}

/// Expresses a scalar integer as a linear function of one state element.
pub(super) fn linear(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    constant: &dyn Fn(usize) -> Option<i64>,
) -> Option<Linear> {
    let mut at = id;
    // The operations from the value back to the state; the last one comes first.
    let mut steps = Vec::new();
    let element = loop {
        at = source(module, computation, at, 0);
        if let Some(element) = state_element(computation, at) {
            break element;
        }
        let (next, multiplier, offset) = affine_step(module, computation, at, constant)?;
        steps.push((at, multiplier, offset));
        at = next;
        if steps.len() > MAX_STEPS {
            return None;
        }
    };
    let mut linear = Linear { element, multiplier: 1, offset: 0, path: Vec::new() };
    let (all, wraps) = values(computation, at).filter(|(_, wraps)| *wraps)?;
    linear.path.push(Step { multiplier: 1, offset: 0, all, wraps });
    for (at, multiplier, offset) in steps.into_iter().rev() {
        linear.multiplier = linear.multiplier.checked_mul(multiplier)?;
        linear.offset = linear.offset.checked_mul(multiplier)?.checked_add(offset)?;
        let (all, wraps) = values(computation, at)?;
        linear.path.push(Step { multiplier: linear.multiplier, offset: linear.offset, all, wraps });
    }
    // The product of two such numbers fits.
    let is_small = |value: i128| value.unsigned_abs() < 1 << 62;
    (is_small(linear.multiplier) && is_small(linear.offset) && linear.multiplier != 0).then_some(linear)
}

/// Returns the range of a scalar integer's type, and true: other values wrap. For a float, the
/// range within which its type has all whole numbers, and false.
fn values(computation: &Computation, id: InstructionId) -> Option<(Interval, bool)> {
    let shape = computation[id].shape().as_array()?;
    let element_type = shape.element_type;
    let is_one = shape.is_static() && shape.element_count() == 1;
    if !is_one {
        return None;
    }
    match compared::whole_numbers(element_type) {
        Some(all) => Some((all, false)),
        None if element_type.is_integer() => Some((Interval::of_type(element_type)?, true)),
        None => None,
    }
}

/// Returns `(x, m, b)` if an instruction computes `m * x + b`.
fn affine_step(
    module: &Module,
    computation: &Computation,
    id: InstructionId,
    constant: &dyn Fn(usize) -> Option<i64>,
) -> Option<(InstructionId, i128, i128)> {
    let element_type = computation[id].shape().as_array()?.element_type;
    let of_leaf = |id: InstructionId| {
        let element = state_element(computation, id)?;
        constant(element).map(Range::exactly)
    };
    let constant_value = |id: InstructionId| {
        let id = match compared::whole(computation, id) {
            Some(Compared::Number(number)) => return Some(number),
            Some(Compared::Value(id)) => id,
            None => id,
        };
        let ranges = Ranges { module: Some(module), computation, of_leaf: &of_leaf, depth: 0 };
        Some(reinterpret_as_signed(element_type, ranges.interval(id)?.value()?))
    };
    let operands = computation[id].operands();
    match (computation[id].op(), operands) {
        (Op::Convert {} | Op::Reshape {} | Op::Copy {}, &[x]) => Some((x, 1, 0)),
        (Op::Negate {}, &[x]) => Some((x, -1, 0)),
        (Op::Add {}, &[x, y]) => match constant_value(y) {
            Some(b) => Some((x, 1, b)),
            None => Some((y, 1, constant_value(x)?)),
        },
        (Op::Subtract {}, &[x, y]) => match constant_value(y) {
            Some(b) => Some((x, 1, -b)),
            None => Some((y, -1, constant_value(x)?)),
        },
        (Op::Multiply {}, &[x, y]) => match constant_value(y) {
            Some(m) => Some((x, m, 0)),
            None => Some((y, constant_value(x)?, 0)),
        },
        _ => None,
    }
}

/// Adding the largest unsigned number subtracts 1. The resulting value is checked against its type
/// in any case, so this function only selects the interpretation that can be valid.
fn reinterpret_as_signed(element_type: PrimitiveType, value: i128) -> i128 {
    let is_upper_half = element_type.is_unsigned_integer() && value >> (element_type.bit_width() - 1) != 0;
    if is_upper_half { value - (1i128 << element_type.bit_width()) } else { value }
}
