//! Sums that a loop's body only adds to, taken apart into their terms.

use crate::while_loop::Loop;
use hlo::analysis::state_element;
use hlo::{Computation, DotDimensionNumbers, InstructionId, Module, Op, Opcode};
use shape::PrimitiveType;
use std::collections::BTreeSet;

/// An element of the state to which each iteration adds terms, and that nothing else in the loop reads.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) element: usize,
    pub(super) terms: Vec<Term>,
}

/// What one iteration adds.
#[derive(Debug)]
pub(super) struct Term {
    /// The term in the body.
    pub(super) id: InstructionId,
    /// What is done to the product or sum, last first: reshapes and transposes.
    pub(super) moves: Vec<InstructionId>,
    pub(super) kind: TermKind,
}

#[derive(Debug)]
pub(super) enum TermKind {
    /// A product that sums over some dimensions.
    Dot { operands: [InstructionId; 2], numbers: DotDimensionNumbers },
    /// The sum of an operand over some dimensions, none perhaps.
    Sum { operand: InstructionId, dimensions: Vec<usize> },
    /// Anything that is added in the loop, as before.
    Stays,
}

impl Term {
    /// What has to be known of all iterations.
    pub(super) fn operands(&self) -> Vec<InstructionId> {
        match &self.kind {
            TermKind::Dot { operands, .. } => operands.to_vec(),
            TermKind::Sum { operand, .. } => vec![*operand],
            TermKind::Stays => Vec::new(),
        }
    }
}

/// Additions that one sum is taken apart into.
const MAX_TERMS: usize = 64;

/// The accumulators of a loop that have a term which might be sunk.
pub(super) fn accumulators(module: &Module, found: Loop) -> Vec<Accumulator> {
    let elements = 0..found.element_count(module);
    elements.filter_map(|element| accumulator(module, found, element)).collect()
}

fn accumulator(module: &Module, found: Loop, element: usize) -> Option<Accumulator> {
    let shape = found.array(module, element)?;
    let can_be_reordered = matches!(shape.element_type, PrimitiveType::F32 | PrimitiveType::F64)
        || shape.element_type.is_integer();
    if !can_be_reordered || !shape.is_static() || shape.element_count() == 0 {
        return None;
    }
    let body = &module[found.body];
    let next = found.next(module, element);
    let condition = &module[found.condition];
    if Loop::reads(condition, condition.parameters()[0], element)
        .iter()
        .any(|&read| !condition[read].users().is_empty())
    {
        return None;
    }
    let reads = Loop::reads(body, body.parameters()[0], element);
    let used: Vec<InstructionId> = reads.into_iter().filter(|&read| !body[read].users().is_empty()).collect();
    let &[sum] = &used[..] else { return None };
    let is_returned_once =
        body[next].users() == [body.root()] && uses(body, body.root(), next) == 1 && body.root() != next;
    if !is_returned_once || body[sum].users().len() != 1 {
        return None;
    }
    let leaves = leaves(body, next)?;
    if leaves.iter().filter(|&&leaf| state_element(body, leaf) == Some(element)).count() != 1 {
        return None;
    }
    let mut terms: Vec<Term> =
        leaves.into_iter().filter(|&leaf| leaf != sum).map(|leaf| term(module, body, leaf)).collect();
    // The same term twice is added twice; kept simple, it stays.
    let mut seen = BTreeSet::new();
    let doubles: BTreeSet<InstructionId> =
        terms.iter().map(|term| term.id).filter(|&id| !seen.insert(id)).collect();
    for term in terms.iter_mut().filter(|term| doubles.contains(&term.id)) {
        term.kind = TermKind::Stays;
    }
    let is_hopeful = terms.iter().any(|term| !matches!(term.kind, TermKind::Stays));
    is_hopeful.then_some(Accumulator { element, terms })
}

fn uses(body: &Computation, user: InstructionId, operand: InstructionId) -> usize {
    body[user].operands().iter().filter(|&&o| o == operand).count()
}

/// What a tree of additions adds, where nothing else reads what is between.
fn leaves(body: &Computation, root: InstructionId) -> Option<Vec<InstructionId>> {
    if !matches!(body[root].op(), Op::Add {}) {
        return None;
    }
    let mut leaves = Vec::new();
    let mut pending = vec![root];
    while let Some(id) = pending.pop() {
        let is_inner = matches!(body[id].op(), Op::Add {})
            && (id == root || (body[id].users().len() == 1 && uses(body, body[id].users()[0], id) == 1));
        if is_inner && leaves.len() + pending.len() < MAX_TERMS {
            pending.extend(body[id].operands().iter().rev());
        } else {
            leaves.push(id);
        }
    }
    Some(leaves)
}

fn term(module: &Module, body: &Computation, id: InstructionId) -> Term {
    let mut moves = Vec::new();
    let mut at = id;
    while matches!(body[at].op(), Op::Reshape {} | Op::Transpose { .. } | Op::Copy {}) {
        moves.push(at);
        at = body[at].operands()[0];
    }
    let kind = match body[at].op() {
        Op::Dot { dot_dimension_numbers: numbers } => {
            let same_type = body[at].operands().iter().all(|&operand| {
                body[operand].shape().as_array().map(|s| s.element_type)
                    == body[at].shape().as_array().map(|s| s.element_type)
            });
            let operands = [body[at].operands()[0], body[at].operands()[1]];
            let is_plain = numbers.lhs_batch_dims.is_empty();
            if same_type && is_plain {
                TermKind::Dot { operands, numbers: numbers.clone() }
            } else {
                TermKind::Stays
            }
        }
        Op::Reduce { dimensions, to_apply } if is_sum(module, *to_apply) && starts_at_zero(body, at) => {
            TermKind::Sum { operand: body[at].operands()[0], dimensions: dimensions.clone() }
        }
        _ => TermKind::Sum { operand: at, dimensions: Vec::new() },
    };
    Term { id, moves, kind }
}

fn is_sum(module: &Module, to_apply: hlo::ComputationId) -> bool {
    let callee = &module[to_apply];
    let root = &callee[callee.root()];
    root.opcode() == Opcode::Add && root.operands() == callee.parameters() && callee.parameters().len() == 2
}

fn starts_at_zero(body: &Computation, reduce: InstructionId) -> bool {
    let &[_, initial] = body[reduce].operands() else { return false };
    super::is_zero(body, initial)
}
