//! The graph of one computation: root, parameters, operands, users, and cycles.

use super::Errors;
use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::opcode::{Op, Opcode};
use support::IdVec;

/// Checks the graph; returns true if its instructions can be checked individually.
pub(super) fn verify(computation: &Computation, errors: &mut Errors) -> bool {
    let before = errors.list.len();
    match computation.root_if_set() {
        None => errors.computation(computation, "the computation has no root"),
        Some(root) if computation.get(root).is_none() => {
            errors.computation(computation, "the root was removed");
        }
        Some(_) => {}
    }
    verify_parameters(computation, errors);
    // Pairs of operand and user, each once.
    let mut uses: Vec<(InstructionId, InstructionId)> = Vec::new();
    let mut listed: Vec<(InstructionId, InstructionId)> = Vec::new();
    for (id, instruction) in computation.instructions() {
        for &operand in instruction.operands() {
            uses.push((operand, id));
            if computation.get(operand).is_none() {
                errors.instruction(computation, id, format_args!("operand {operand} was removed"));
            }
        }
        listed.extend(instruction.users().iter().map(|&user| (id, user)));
    }
    for pairs in [&mut uses, &mut listed] {
        pairs.sort_unstable();
        pairs.dedup();
    }
    let (mut uses, mut listed) = (&uses[..], &listed[..]);
    for (id, _) in computation.opcodes() {
        if users_of(id, &mut uses) != users_of(id, &mut listed) {
            errors.instruction(computation, id, "has a list of users that differs from its actual users");
        }
    }
    if errors.list.len() == before {
        verify_acyclic(computation, errors);
    }
    errors.list.len() == before
}

/// Takes the users of an instruction from the front of a sorted list of operands and users, after
/// those of instructions with smaller ids.
fn users_of<'u>(
    id: InstructionId,
    pairs: &mut &'u [(InstructionId, InstructionId)],
) -> &'u [(InstructionId, InstructionId)] {
    let before = pairs.iter().take_while(|(operand, _)| *operand < id).count();
    let (users, rest) =
        pairs[before..].split_at(pairs[before..].iter().take_while(|(operand, _)| *operand == id).count());
    *pairs = rest;
    users
}

fn verify_parameters(computation: &Computation, errors: &mut Errors) {
    for (number, &id) in computation.parameters().iter().enumerate() {
        match computation.get(id).map(|instruction| instruction.op()) {
            Some(Op::Parameter { number: n }) if *n == number => {}
            Some(_) => {
                errors.instruction(computation, id, format_args!("is not parameter {number}"));
            }
            None => errors.computation(computation, format_args!("parameter {number} was removed")),
        }
    }
    let count = computation.opcodes().filter(|&(_, opcode)| opcode == Opcode::Parameter).count();
    if count != computation.parameters().len() {
        let listed_count = computation.parameters().len();
        let message = format_args!("there are {count} parameters, but {listed_count} are listed");
        errors.computation(computation, message);
    }
}

/// Repeatedly removes instructions whose operands have all been removed. The remaining ones are
/// part of a cycle or depend on one.
fn verify_acyclic(computation: &Computation, errors: &mut Errors) {
    // Numbers of operands that are still there.
    let mut waiting: IdVec<InstructionId, usize> = IdVec::filled(0, computation.id_count());
    let mut ready = Vec::new();
    for (id, instruction) in computation.instructions() {
        let mut operands = instruction.operands().to_vec();
        operands.sort_unstable();
        operands.dedup();
        if operands.is_empty() {
            ready.push(id);
        } else {
            waiting[id] = operands.len();
        }
    }
    while let Some(id) = ready.pop() {
        for user in computation[id].users() {
            waiting[*user] -= 1;
            if waiting[*user] == 0 {
                ready.push(*user);
            }
        }
    }
    for (id, _) in waiting.iter().filter(|&(_, &count)| count > 0) {
        errors.instruction(computation, id, "depends on itself");
    }
}
