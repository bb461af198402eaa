//! Determines the order of execution.

use crate::Leaf;
use crate::order::Order;
use crate::values::{Values, called};
use hlo::custom_call::custom_call;
use hlo::{AliasKind, Computation, ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// The order in which each computation's instructions run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// Sequences by computation that control flow reaches.
    pub sequences: BTreeMap<ComputationId, Vec<InstructionId>>,
    /// Loops of short kernels that do not depend on each other, by computation. The loops of a
    /// group are neighbors in the sequence, and their temporaries are apart, so that they can run
    /// at the same time. Each group has at least two.
    pub loop_groups: BTreeMap<ComputationId, Vec<Vec<InstructionId>>>,
}

/// Minimum duration in nanoseconds of a kernel that all workers should share. A loop that has none
/// can run beside another loop.
const LONG_KERNEL_NANOSECONDS: u64 = 5000;

/// Orders the instructions: operands first, otherwise in the graph's own order. Wherever data flow
/// allows, an instruction that overwrites a value comes after the other readers of that value. Such
/// instructions are those that reuse the memory of an in-out parameter or of a loop's state,
/// in-place updates, and loops whose initial state is that value. If a computation has several
/// loops of short kernels, they run as late as possible, so that independent ones meet.
pub fn schedule(module: &Module, plan: &ModulePlan) -> Schedule {
    let values = Values::new(module, plan);
    let mut schedule = Schedule::default();
    // Values that computations read from outside themselves; callees come first.
    let mut outer_reads: BTreeMap<ComputationId, BTreeSet<Leaf>> = BTreeMap::new();
    for &id in values.order().iter().rev() {
        let readers = Readers::new(&values, module, id, &outer_reads);
        let (sequence, groups) = sequence(&values, module, id, &readers, plan.is_for_device);
        schedule.sequences.insert(id, sequence);
        if !groups.is_empty() {
            schedule.loop_groups.insert(id, groups);
        }
        outer_reads.insert(id, readers.outer);
    }
    schedule
}

/// Readers of each value in a computation. A control-flow instruction reads the values that the
/// computations it runs read.
struct Readers {
    by_leaf: BTreeMap<Leaf, Vec<InstructionId>>,
    /// Values that are read but not defined here.
    outer: BTreeSet<Leaf>,
}

impl Readers {
    fn new(
        values: &Values<'_>,
        module: &Module,
        id: ComputationId,
        outer_reads: &BTreeMap<ComputationId, BTreeSet<Leaf>>,
    ) -> Self {
        let computation = &module[id];
        let mut readers = Self { by_leaf: BTreeMap::new(), outer: BTreeSet::new() };
        for instruction in computation.post_order() {
            if values.is_alias(id, instruction) {
                continue;
            }
            let mut read: BTreeSet<Leaf> = values.reads(id, instruction).into_iter().collect();
            for callee in called(computation[instruction].op()) {
                read.extend(outer_reads.get(&callee).into_iter().flatten().cloned());
            }
            for leaf in read {
                if leaf.0 != id {
                    readers.outer.insert(leaf.clone());
                }
                readers.by_leaf.entry(leaf).or_default().push(instruction);
            }
        }
        let roots = values.root_leaves(id).into_iter().map(|(_, definition)| definition);
        readers.outer.extend(roots.filter(|definition| definition.0 != id));
        // A loop handles its own state.
        if let Some(caller) = values.caller(id)
            && caller.branch.is_none()
        {
            readers.outer.retain(|leaf| (leaf.0, leaf.1) != (caller.computation, caller.instruction));
        }
        readers
    }
}

fn sequence(
    values: &Values<'_>,
    module: &Module,
    id: ComputationId,
    readers: &Readers,
    is_for_device: bool,
) -> (Vec<InstructionId>, Vec<Vec<InstructionId>>) {
    let computation = &module[id];
    let nodes = computation.post_order();
    let numbers: BTreeMap<InstructionId, usize> = nodes.iter().enumerate().map(|(n, &id)| (id, n)).collect();
    let mut order = Order::new(nodes.len());
    for (number, &instruction) in nodes.iter().enumerate() {
        let operands: BTreeSet<usize> =
            computation[instruction].operands().iter().map(|operand| numbers[operand]).collect();
        operands.into_iter().for_each(|operand| order.put_before(operand, number));
    }
    let is_short = |number: &usize| is_loop_of_short_kernels(values, module, id, nodes[*number]);
    let mut short_loops: BTreeSet<usize> = (0..nodes.len()).filter(is_short).collect();
    if short_loops.len() < 2 || is_for_device {
        short_loops.clear();
    }
    // Loops that start from one value may run at the same time: all but one of them copy it.
    let are_short = |a: usize, b: usize| short_loops.contains(&a) && short_loops.contains(&b);
    for (writer, old) in overwrites(values, module, id, &nodes) {
        let writer = numbers[&writer];
        for reader in readers.by_leaf.get(&old).into_iter().flatten().map(|reader| numbers[reader]) {
            if !are_short(reader, writer) {
                order.put_before(reader, writer);
            }
        }
    }
    let (sequence, groups) = list_schedule(computation, &nodes, &order, &short_loops);
    let is_source = |instruction: InstructionId| {
        let is_fill = matches!(computation[instruction].op(), Op::Fusion { .. })
            && computation[instruction].operands().is_empty();
        is_fill || values.plan(id, instruction).strategy == Strategy::Undefined
    };
    (sink_sources(computation, sequence, is_source), groups)
}

/// True for a loop whose kernels are all too short to be shared by many workers.
fn is_loop_of_short_kernels(
    values: &Values<'_>,
    module: &Module,
    id: ComputationId,
    instruction: InstructionId,
) -> bool {
    let Op::While { condition, body } = module[id][instruction].op() else { return false };
    let mut stack = vec![*condition, *body];
    while let Some(inner) = stack.pop() {
        for instruction in module[inner].post_order() {
            let op = module[inner][instruction].op();
            let nanoseconds = values.plan(inner, instruction).work.nanoseconds();
            // Custom calls may leave the entry, and they may depend on the order of execution.
            if nanoseconds >= LONG_KERNEL_NANOSECONDS || custom_call(op).is_some() {
                return false;
            }
            stack.extend(called(op));
        }
    }
    true
}

/// Moves instructions that only request or fill memory to immediately before their first user, so
/// that the memory serves others until then.
fn sink_sources(
    computation: &Computation,
    sequence: Vec<InstructionId>,
    is_source: impl Fn(InstructionId) -> bool,
) -> Vec<InstructionId> {
    let mut late = Vec::with_capacity(sequence.len());
    let mut placed = BTreeSet::new();
    for &instruction in sequence.iter().filter(|&&instruction| !is_source(instruction)) {
        let operands = computation[instruction].operands().iter().copied();
        late.extend(operands.filter(|&operand| is_source(operand) && placed.insert(operand)));
        late.push(instruction);
    }
    late.extend(sequence.into_iter().filter(|&i| is_source(i) && !placed.contains(&i)));
    late
}

/// Pairs of an instruction and a value whose memory its result should reuse.
fn overwrites(
    values: &Values<'_>,
    module: &Module,
    id: ComputationId,
    nodes: &[InstructionId],
) -> Vec<(InstructionId, Leaf)> {
    let mut overwrites = Vec::new();
    for (index, definition) in values.root_leaves(id) {
        if definition.0 == id
            && !values.is_alias(id, definition.1)
            && let Some(old) = in_place_target(values, module, id, &index)
            && old != definition
        {
            overwrites.push((definition.1, old));
        }
    }
    for &instruction in nodes {
        let first = |k: usize| {
            let operand = module[id][instruction].operands()[k];
            values.leaves(id, operand).into_iter().map(|leaf| values.definition(leaf))
        };
        match (&values.plan(id, instruction).strategy, module[id][instruction].op()) {
            (Strategy::DynamicUpdateSlice(_) | Strategy::Scatter, _) => {
                let updated = values.plan(id, instruction).may_overwrite.first();
                overwrites.extend(updated.into_iter().flat_map(|&k| first(k)).map(|old| (instruction, old)));
            }
            (Strategy::MultiOutput(plan), _) => {
                let updated = plan.updates.iter().flat_map(|&(_, operand)| first(operand));
                overwrites.extend(updated.map(|old| (instruction, old)));
            }
            (_, Op::While { .. }) => {
                let state = values.leaves(id, instruction).into_iter().zip(first(0));
                let changing = state.filter(|(leaf, _)| !values.is_forwarded(leaf));
                overwrites.extend(changing.map(|(_, old)| (instruction, old)));
            }
            _ => {}
        }
    }
    overwrites
}

/// The value whose memory a root leaf should reuse: that of an in-out parameter or of a while
/// loop's state.
pub(crate) fn in_place_target(
    values: &Values<'_>,
    module: &Module,
    id: ComputationId,
    index: &[usize],
) -> Option<Leaf> {
    if id == module.entry() {
        let alias = module.alias_of(index).filter(|alias| alias.kind == AliasKind::Must)?;
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

/// A topological order that stays as close to `nodes` as the edges allow, except that `late` nodes
/// come as late as possible. Also returns the groups of late nodes that were ready at the same
/// time.
fn list_schedule(
    computation: &Computation,
    nodes: &[InstructionId],
    order: &Order,
    late: &BTreeSet<usize>,
) -> (Vec<InstructionId>, Vec<Vec<InstructionId>>) {
    let mut waiting: Vec<usize> = (0..nodes.len()).map(|node| order.before(node).len()).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..nodes.len()).filter(|&node| waiting[node] == 0).map(Reverse).collect();
    let (mut sequence, mut groups) = (Vec::with_capacity(nodes.len()), Vec::new());
    let mut late_and_ready = BTreeSet::new();
    loop {
        let next = match ready.pop() {
            Some(Reverse(node)) if late.contains(&node) => {
                late_and_ready.insert(node);
                continue;
            }
            Some(Reverse(node)) => BTreeSet::from([node]),
            None => std::mem::take(&mut late_and_ready),
        };
        if next.is_empty() {
            break;
        }
        if next.len() > 1 {
            groups.push(next.iter().map(|&node| nodes[node]).collect());
        }
        for node in next {
            sequence.push(nodes[node]);
            for &follower in order.after(node) {
                waiting[follower] -= 1;
                if waiting[follower] == 0 {
                    ready.push(Reverse(follower));
                }
            }
        }
    }
    assert_eq!(sequence.len(), nodes.len(), "{} has a cycle", computation.name());
    (sequence, groups)
}
