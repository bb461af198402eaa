//! The order of execution.

use crate::values::Values;
use hlo::{AliasKind, Computation, ComputationId, InstructionId, Module, Op};
use plan::ModulePlan;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The order in which each computation's instructions run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// By computation that control flow reaches.
    pub sequences: BTreeMap<ComputationId, Vec<InstructionId>>,
}

/// Orders the instructions: operands first, in the graph's own order, but a value that takes over the memory of an
/// in-out parameter (or of a loop's state) after the other readers of the old value wherever data flow allows.
pub fn schedule(module: &Module, plan: &ModulePlan) -> Schedule {
    let values = Values::new(module, plan);
    let mut schedule = Schedule::default();
    for &id in plan.computations.keys() {
        schedule.sequences.insert(id, sequence(&values, module, id));
    }
    schedule
}

fn sequence(values: &Values<'_>, module: &Module, id: ComputationId) -> Vec<InstructionId> {
    let computation = &module[id];
    let order = computation.post_order();
    let mut edges: BTreeMap<InstructionId, BTreeSet<InstructionId>> = BTreeMap::new();
    for &instruction in &order {
        edges.insert(instruction, computation[instruction].operands().iter().copied().collect());
    }
    for (writer, old) in in_place_writes(values, module, id) {
        for &reader in &order {
            let reads = !values.is_alias(id, reader) && reads_value(values, id, reader, &old);
            if reads && reader != writer && !depends(&edges, reader, writer) {
                edges.entry(writer).or_default().insert(reader);
            }
        }
    }
    list_schedule(computation, &order, &edges)
}

/// Pairs of the instruction that makes a root value and the old value whose memory it should take over.
pub(crate) fn in_place_writes(
    values: &Values<'_>,
    module: &Module,
    id: ComputationId,
) -> Vec<(InstructionId, crate::Leaf)> {
    let mut writes = Vec::new();
    for (index, definition) in values.root_leaves(id) {
        if definition.0 != id {
            continue;
        }
        if let Some(old) = in_place_target(values, module, id, &index)
            && old != definition
        {
            writes.push((definition.1, old));
        }
    }
    writes
}

/// The value whose memory a root leaf is to take over: an in-out parameter's, or a while's state.
pub(crate) fn in_place_target(
    values: &Values<'_>,
    module: &Module,
    id: ComputationId,
    index: &[usize],
) -> Option<crate::Leaf> {
    if id == module.entry() {
        let alias = module
            .input_output_alias()
            .iter()
            .find(|alias| alias.output_index == index && alias.kind == AliasKind::Must)?;
        let parameter = module[id].parameters()[alias.parameter_number];
        return Some((id, parameter, alias.parameter_index.clone()));
    }
    let caller = values.caller(id)?;
    let is_body = match module[caller.computation][caller.instruction].op() {
        Op::While { body, .. } => *body == id,
        _ => false,
    };
    is_body.then(|| (caller.computation, caller.instruction, index.to_vec()))
}

/// Whether an instruction, or anything that control flow runs inside of it, reads a value.
pub(crate) fn reads_value(
    values: &Values<'_>,
    computation: ComputationId,
    instruction: InstructionId,
    value: &crate::Leaf,
) -> bool {
    if values.reads(computation, instruction).contains(value) {
        return true;
    }
    let called = match values.computation(computation)[instruction].op() {
        Op::Conditional { branch_computations } => branch_computations.clone(),
        Op::While { condition, body } => vec![*condition, *body],
        _ => return false,
    };
    called.into_iter().any(|callee| {
        values.root_leaves(callee).iter().any(|(_, definition)| definition == value)
            || values
                .computation(callee)
                .post_order()
                .into_iter()
                .any(|inner| !values.is_alias(callee, inner) && reads_value(values, callee, inner, value))
    })
}

/// Whether `from` needs `to`, directly or not.
fn depends(
    edges: &BTreeMap<InstructionId, BTreeSet<InstructionId>>,
    from: InstructionId,
    to: InstructionId,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut stack = vec![from];
    while let Some(id) = stack.pop() {
        if id == to {
            return true;
        }
        if seen.insert(id) {
            stack.extend(edges.get(&id).into_iter().flatten());
        }
    }
    false
}

/// Topological order that stays as close to `order` as the edges allow.
fn list_schedule(
    computation: &Computation,
    order: &[InstructionId],
    edges: &BTreeMap<InstructionId, BTreeSet<InstructionId>>,
) -> Vec<InstructionId> {
    let rank: BTreeMap<InstructionId, usize> = order.iter().enumerate().map(|(i, &id)| (id, i)).collect();
    let mut waiting: BTreeMap<InstructionId, usize> = BTreeMap::new();
    let mut followers: BTreeMap<InstructionId, Vec<InstructionId>> = BTreeMap::new();
    let mut ready = BinaryHeap::new();
    for &id in order {
        let needed = &edges[&id];
        waiting.insert(id, needed.len());
        needed.iter().for_each(|&n| followers.entry(n).or_default().push(id));
        if needed.is_empty() {
            ready.push(std::cmp::Reverse(rank[&id]));
        }
    }
    let mut sequence = Vec::with_capacity(order.len());
    while let Some(std::cmp::Reverse(next)) = ready.pop() {
        let id = order[next];
        sequence.push(id);
        for &follower in followers.get(&id).into_iter().flatten() {
            let count = waiting.get_mut(&follower).expect("a follower is in the order");
            *count -= 1;
            if *count == 0 {
                ready.push(std::cmp::Reverse(rank[&follower]));
            }
        }
    }
    assert_eq!(sequence.len(), order.len(), "{} has a cycle", computation.name());
    sequence
}
