//! Splits sums to which a loop's body only adds into their terms.

use crate::while_loop::Loop;
use hlo::analysis::state_element;
use hlo::{Computation, DotDimensionNumbers, InstructionId, Module, Op, Opcode};
use shape::PrimitiveType;
use std::collections::BTreeSet;

/// A state element to which each iteration adds terms, and that nothing else in the loop reads.
#[derive(Debug)]
pub(super) struct Accumulator {
    pub(super) element: usize,
    pub(super) terms: Vec<Term>,
}

/// A term that one iteration adds.
#[derive(Debug)]
pub(super) struct Term {
    /// The term in the body.
    pub(super) id: InstructionId,
    /// Reshapes and transposes applied to the product or sum, last first.
    pub(super) moves: Vec<InstructionId>,
    pub(super) kind: TermKind,
}

#[derive(Debug)]
pub(super) enum TermKind {
    /// A product that sums over some dimensions.
    Dot { operands: [InstructionId; 2], numbers: DotDimensionNumbers },
    /// The sum of an operand over some dimensions, possibly none.
    Sum { operand: InstructionId, dimensions: Vec<usize> },
    /// A term that is still added in the loop.
    Stays,
}

impl Term {
    /// The values needed from all iterations.
    pub(super) fn operands(&self) -> Vec<InstructionId> {
        match &self.kind {
            TermKind::Dot { operands, .. } => operands.to_vec(),
            TermKind::Sum { operand, .. } => vec![*operand],
            TermKind::Stays => Vec::new(),
        }
    }
}

/// Maximum number of terms into which one sum is split.
const MAX_TERMS: usize = 64;

/// The accumulators of a loop with at least one term that might be sunk.
pub(super) fn accumulators(module: &Module, while_loop: Loop) -> Vec<Accumulator> {
    let elements = 0..while_loop.element_count(module);
    elements.filter_map(|element| accumulator(module, while_loop, element)).collect()
}

fn accumulator(module: &Module, while_loop: Loop, element: usize) -> Option<Accumulator> {
    let shape = while_loop.array(module, element)?;
    let can_be_reordered = matches!(shape.element_type, PrimitiveType::F32 | PrimitiveType::F64)
        || shape.element_type.is_integer();
    if !can_be_reordered || !shape.is_static() || shape.element_count() == 0 {
        return None;
    }
    let body = &module[while_loop.body];
    let next = while_loop.next(module, element);
    let condition = &module[while_loop.condition];
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
    // A term that occurs twice is added twice. For simplicity, it stays.
    let mut seen = BTreeSet::new();
    let duplicates: BTreeSet<InstructionId> =
        terms.iter().map(|term| term.id).filter(|&id| !seen.insert(id)).collect();
    for term in terms.iter_mut().filter(|term| duplicates.contains(&term.id)) {
        term.kind = TermKind::Stays;
    }
    let is_hopeful = terms.iter().any(|term| !matches!(term.kind, TermKind::Stays));
    is_hopeful.then_some(Accumulator { element, terms })
}

fn uses(body: &Computation, user: InstructionId, operand: InstructionId) -> usize {
    body[user].operands().iter().filter(|&&o| o == operand).count()
}

/// The terms of a tree of additions whose intermediate sums have no other user.
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
    let mut current = id;
    while matches!(body[current].op(), Op::Reshape {} | Op::Transpose { .. } | Op::Copy {}) {
        moves.push(current);
        current = body[current].operands()[0];
    }
    let kind = match body[current].op() {
        Op::Dot { dot_dimension_numbers: numbers } => {
            let same_type = body[current].operands().iter().all(|&operand| {
                body[operand].shape().as_array().map(|s| s.element_type)
                    == body[current].shape().as_array().map(|s| s.element_type)
            });
            let operands = [body[current].operands()[0], body[current].operands()[1]];
            let is_plain = numbers.lhs_batch_dims.is_empty();
            if same_type && is_plain {
                TermKind::Dot { operands, numbers: numbers.clone() }
            } else {
                TermKind::Stays
            }
        }
        Op::Reduce { dimensions, to_apply } if is_sum(module, *to_apply) && starts_at_zero(body, current) => {
            TermKind::Sum { operand: body[current].operands()[0], dimensions: dimensions.clone() }
        }
        _ => TermKind::Sum { operand: current, dimensions: Vec::new() },
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
