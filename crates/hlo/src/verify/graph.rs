//! The graph of one computation: root, parameters, operands, users, and cycles.

use super::Errors;
use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::opcode::Op;
use std::collections::{BTreeMap, BTreeSet};

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
    let mut users: BTreeMap<InstructionId, BTreeSet<InstructionId>> = BTreeMap::new();
    for (id, instruction) in computation.instructions() {
        for &operand in instruction.operands() {
            users.entry(operand).or_default().insert(id);
            if computation.get(operand).is_none() {
                errors.instruction(computation, id, format_args!("operand {operand} was removed"));
            }
        }
    }
    for (id, instruction) in computation.instructions() {
        let users_in_list: BTreeSet<InstructionId> = instruction.users().iter().copied().collect();
        if users_in_list != users.remove(&id).unwrap_or_default() {
            errors.instruction(computation, id, "has a list of users that differs from its actual users");
        }
    }
    if errors.list.len() == before {
        verify_acyclic(computation, errors);
    }
    errors.list.len() == before
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
    let count = computation.instructions().filter(|(_, i)| matches!(i.op(), Op::Parameter { .. })).count();
    if count != computation.parameters().len() {
        let listed_count = computation.parameters().len();
        let message = format_args!("there are {count} parameters, but {listed_count} are listed");
        errors.computation(computation, message);
    }
}

/// Repeatedly removes instructions whose operands have all been removed. The remaining ones are
/// part of a cycle or depend on one.
fn verify_acyclic(computation: &Computation, errors: &mut Errors) {
    let mut waiting: BTreeMap<InstructionId, usize> = BTreeMap::new();
    let mut ready = Vec::new();
    for (id, instruction) in computation.instructions() {
        let mut operands = instruction.operands().to_vec();
        operands.sort_unstable();
        operands.dedup();
        if operands.is_empty() {
            ready.push(id);
        } else {
            waiting.insert(id, operands.len());
        }
    }
    while let Some(id) = ready.pop() {
        for user in computation[id].users() {
            if let Some(count) = waiting.get_mut(user) {
                *count -= 1;
                if *count == 0 {
                    waiting.remove(user);
                    ready.push(*user);
                }
            }
        }
    }
    for id in waiting.into_keys() {
        errors.instruction(computation, id, "depends on itself");
    }
}
