//! The graph of one computation: root, parameters, operands, users, and cycles.

use super::Errors;
use crate::computation::Computation;
use crate::ids::InstructionId;
use crate::opcode::{Op, Opcode};
use support::{Id as _, IdVec};

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
    let uses = Uses::of(computation, errors);
    for (id, instruction) in computation.instructions() {
        let mut listed = instruction.users().to_vec();
        listed.sort_unstable();
        listed.dedup();
        if uses.of_operand(id) != listed {
            errors.instruction(computation, id, "has a list of users that differs from its actual users");
        }
    }
    if errors.list.len() == before {
        verify_acyclic(computation, errors);
    }
    errors.list.len() == before
}

/// The users of each instruction, each once and in the order of their ids: one list for all.
struct Uses {
    users: Vec<InstructionId>,
    /// Begin and end of an instruction's users in the list.
    ranges: IdVec<InstructionId, (usize, usize)>,
}

impl Uses {
    /// Finds all uses. Reports operands that were removed.
    fn of(computation: &Computation, errors: &mut Errors) -> Self {
        let mut ranges: IdVec<InstructionId, (usize, usize)> = IdVec::filled((0, 0), computation.id_count());
        for (id, instruction) in computation.instructions() {
            for &operand in instruction.operands() {
                if computation.get(operand).is_some() {
                    ranges[operand].1 += 1;
                } else {
                    errors.instruction(computation, id, format_args!("operand {operand} was removed"));
                }
            }
        }
        let mut total = 0;
        for (start, end) in ranges.values_mut() {
            (total, *start, *end) = (total + *end, total, total);
        }
        let mut users = vec![InstructionId::from_index(0); total];
        for (id, instruction) in computation.instructions() {
            for &operand in instruction.operands() {
                if computation.get(operand).is_none() {
                    continue;
                }
                let (start, end) = &mut ranges[operand];
                // An operand that an instruction uses twice has it as a user once.
                if users[*start..*end].last() != Some(&id) {
                    users[*end] = id;
                    *end += 1;
                }
            }
        }
        Self { users, ranges }
    }

    fn of_operand(&self, id: InstructionId) -> &[InstructionId] {
        let (start, end) = self.ranges[id];
        &self.users[start..end]
    }
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
        waiting[id] = distinct_count(instruction.operands());
        if waiting[id] == 0 {
            ready.push(id);
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

/// Number of different ids.
fn distinct_count(ids: &[InstructionId]) -> usize {
    if ids.len() <= 4 {
        return (0..ids.len()).filter(|&k| !ids[..k].contains(&ids[k])).count();
    }
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    ids.len()
}
