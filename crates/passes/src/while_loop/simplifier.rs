//! Simplifies loops that run never or once, and removes dead state.

use super::scalars::integer;
use super::{Loop, known_scalars, state};
use crate::pass::{Changed, Pass};
use hlo::analysis::{self, state_element};
use hlo::{ComputationId, InstructionId, Module, Op};
use shape::Literal;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Simplifies loops, for every input:
///
/// - A loop that never runs becomes its operand; a loop that runs once becomes its body.
/// - An element that the body passes through is read before the loop instead of after it, and
///   duplicates are merged.
/// - A counter of a loop with a known trip count is a constant after the loop.
/// - Integers in the body whose ranges leave one value become constants.
/// - An element that the loop only writes, with the value of another one in its own shape, is read
///   from that one after a loop that certainly runs.
/// - Elements that neither the condition nor the users after the loop need are removed.
pub struct WhileLoopSimplifier;

impl Pass for WhileLoopSimplifier {
    fn name(&self) -> &'static str {
        "simplify-while-loop"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            changed |= crate::simplify::dce::sweep(module.computation_mut(site.caller));
            if module[site.caller].get(site.id).is_none() {
                continue;
            }
            changed |= Loop::canonicalize(module, site);
            if let Some(while_loop) = Loop::at(module, site) {
                changed |= simplify(module, while_loop);
            }
        }
        Ok(changed.into())
    }
}

fn simplify(module: &mut Module, while_loop: Loop) -> bool {
    let trip_count = while_loop.trip_count(module);
    let runs_known = trip_count.exact.filter(|_| !while_loop.has_effects(module));
    let mut changed = match runs_known {
        Some(0) => {
            replace_by_start(module, while_loop, |_| true);
            return true;
        }
        Some(1) => {
            inline(module, while_loop);
            return true;
        }
        Some(count) => counters_after(module, while_loop, count),
        None => false,
    };
    let invariants = while_loop.invariants(module);
    changed |= replace_by_start(module, while_loop, |k| invariants.contains(&k));
    // Each of these may give the loop a condition and a body of its own.
    changed |= merge_invariants(module, while_loop, &invariants);
    let while_loop = while_loop.current(module);
    changed |= merge_equals(module, while_loop, &invariants);
    let while_loop = while_loop.current(module);
    changed |= known_scalars::replace(module, while_loop);
    changed |= reshape_results(module, while_loop.current(module));
    changed | remove_dead(module, while_loop.current(module))
}

/// Reads elements before the loop instead of after it.
fn replace_by_start(module: &mut Module, while_loop: Loop, is_known: impl Fn(usize) -> bool) -> bool {
    let mut changed = false;
    for element in (0..while_loop.element_count(module)).filter(|&k| is_known(k)) {
        let start = while_loop.start(module, element);
        let caller = module.computation_mut(while_loop.caller);
        for read in Loop::reads(caller, while_loop.id, element) {
            changed |= replace(caller, read, start);
        }
    }
    changed
}

/// Replaces an instruction. Returns true if it was used.
fn replace(computation: &mut hlo::Computation, old: InstructionId, new: InstructionId) -> bool {
    let is_used = !computation[old].users().is_empty() || computation.root() == old;
    computation.replace_all_uses(old, new);
    is_used
}

fn inline(module: &mut Module, while_loop: Loop) {
    let body = module[while_loop.body].clone();
    let start = module[while_loop.caller][while_loop.id].operands()[0];
    module.computation_mut(while_loop.caller).inline(while_loop.id, &body, &[start]);
    crate::simplify::dce::sweep(module.computation_mut(while_loop.caller));
}

/// Replaces counters after the last iteration by constants.
fn counters_after(module: &mut Module, while_loop: Loop, count: u64) -> bool {
    let mut changed = false;
    for (element, step) in analysis::induction_variables(module, &module[while_loop.body]) {
        let value = || {
            let start = while_loop.initial_range(module, element).value()?;
            let moved = i128::from(step).checked_mul(count.into())?.checked_add(start.into())?;
            let scalar = integer(while_loop.array(module, element)?, moved)?;
            Some((scalar, while_loop.array(module, element)?.clone()))
        };
        let Some((scalar, shape)) = value() else { continue };
        let caller = module.computation_mut(while_loop.caller);
        for read in Loop::reads(caller, while_loop.id, element) {
            let literal = Literal::from_scalars(shape.clone(), [scalar]);
            let metadata = caller[read].metadata().clone();
            if caller[read].users().is_empty() && caller.root() != read {
                continue;
            }
            let constant = caller.add("", Op::Constant { literal }, shape.clone().into(), &[], metadata);
            changed |= replace(caller, read, constant);
        }
    }
    changed
}

/// Reads invariants that start as the same instruction from the first of them.
fn merge_invariants(module: &mut Module, while_loop: Loop, invariants: &BTreeSet<usize>) -> bool {
    let mut first: BTreeMap<InstructionId, usize> = BTreeMap::new();
    let mut duplicates = Vec::new();
    for &element in invariants {
        let start = while_loop.start(module, element);
        match first.get(&start) {
            Some(&other) if is_read(module, while_loop, element) => duplicates.push((element, other)),
            Some(_) => {}
            None => {
                first.insert(start, element);
            }
        }
    }
    if duplicates.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    for (element, other) in duplicates {
        replace_reads(module, while_loop, element, other);
    }
    true
}

/// Reads elements that start and change alike from the first of them.
fn merge_equals(module: &mut Module, while_loop: Loop, invariants: &BTreeSet<usize>) -> bool {
    let changing: Vec<usize> =
        (0..while_loop.element_count(module)).filter(|k| !invariants.contains(k)).collect();
    let mut duplicates = Vec::new();
    for (place, &element) in changing.iter().enumerate().take(MAX_CHANGING) {
        let is_duplicate = |&other: &usize| {
            let starts = [element, other].map(|k| while_loop.start(module, k));
            let nexts = [element, other].map(|k| while_loop.next(module, k));
            let (caller, body) = (&module[while_loop.caller], &module[while_loop.body]);
            Comparison { computation: caller, elements: None, remaining: MAX_EQUAL }.is_equal(starts)
                && Comparison { computation: body, elements: Some([element, other]), remaining: MAX_EQUAL }
                    .is_equal(nexts)
        };
        let other = changing[..place].iter().copied().find(is_duplicate);
        duplicates
            .extend(other.filter(|_| is_needed(module, while_loop, element)).map(|other| (element, other)));
    }
    if duplicates.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    for (element, other) in duplicates {
        for id in [while_loop.condition, while_loop.body] {
            let replacement = while_loop.read(module, id, other);
            let computation = module.computation_mut(id);
            for read in Loop::reads(computation, computation.parameters()[0], element) {
                computation.replace_all_uses(read, replacement);
            }
        }
        let replacement = while_loop.after(module, other);
        let caller = module.computation_mut(while_loop.caller);
        for read in Loop::reads(caller, while_loop.id, element) {
            caller.replace_all_uses(read, replacement);
        }
    }
    true
}

/// Reads an element after the loop from another one, if each iteration gives it that one's value in
/// another shape, and nothing in the loop reads it. TensorFlow's recurrent layers keep their last
/// output twice.
fn reshape_results(module: &mut Module, while_loop: Loop) -> bool {
    let body = &module[while_loop.body];
    let nexts = body[body.root()].operands().to_vec();
    let source = |element: usize| {
        let next = &body[nexts[element]];
        let value = matches!(next.op(), Op::Reshape {}).then(|| next.operands()[0])?;
        let other = nexts.iter().position(|&next| next == value)?;
        let is_free = !is_read(module, while_loop, element) && is_needed(module, while_loop, element);
        is_free.then_some((element, other))
    };
    let sources: Vec<(usize, usize)> = (0..nexts.len()).filter_map(source).collect();
    if sources.is_empty() || !runs(module, while_loop) {
        return false;
    }
    for (element, other) in sources {
        let value = while_loop.after(module, other);
        let caller = module.computation_mut(while_loop.caller);
        for read in Loop::reads(caller, while_loop.id, element) {
            let (shape, metadata) = (caller[read].shape().clone(), caller[read].metadata().clone());
            let reshaped = caller.add("", Op::Reshape {}, shape, &[value], metadata);
            caller.replace_all_uses(read, reshaped);
        }
    }
    true
}

/// True if a loop certainly runs at least once.
fn runs(module: &Module, while_loop: Loop) -> bool {
    let condition = &module[while_loop.condition];
    let initial = |id: InstructionId| Some(while_loop.initial_range(module, state_element(condition, id)?));
    analysis::range_in(module, condition, condition.root(), &initial).value() == Some(1)
}

/// Maximum number of elements of a loop to compare with one another.
const MAX_CHANGING: usize = 128;
/// Maximum number of instructions that one comparison examines.
const MAX_EQUAL: usize = 16;

/// A search for a difference between two instructions of a computation.
struct Comparison<'m> {
    computation: &'m hlo::Computation,
    /// Two elements of the state that are assumed to be equal.
    elements: Option<[usize; 2]>,
    /// Maximum number of further instructions to compare.
    remaining: usize,
}

impl Comparison<'_> {
    /// True if two instructions compute the same value.
    fn is_equal(&mut self, [a, b]: [InstructionId; 2]) -> bool {
        if a == b {
            return true;
        }
        let computation = self.computation;
        let read = [a, b].map(|id| state_element(computation, id));
        if self.elements.is_some_and(|elements| read == elements.map(Some)) {
            return true;
        }
        if self.remaining == 0 {
            return false;
        }
        self.remaining -= 1;
        let (x, y) = (&computation[a], &computation[b]);
        let is_pure = !matches!(x.op(), Op::Parameter { .. } | Op::CustomCall { .. })
            && x.op().called_computations().is_empty()
            && !x.has_effect();
        let alike = x.shape() == y.shape() && x.operands().len() == y.operands().len() && x.op() == y.op();
        is_pure && alike && x.operands().iter().zip(y.operands()).all(|(&a, &b)| self.is_equal([a, b]))
    }
}

/// True if anything but an element's own next value reads it, in the loop or after it.
fn is_needed(module: &Module, while_loop: Loop, element: usize) -> bool {
    let next = while_loop.next(module, element);
    let caller = &module[while_loop.caller];
    let is_read_after = Loop::reads(caller, while_loop.id, element)
        .into_iter()
        .any(|read| !caller[read].users().is_empty() || caller.root() == read);
    let body = &module[while_loop.body];
    let users = Loop::reads(body, body.parameters()[0], element).into_iter();
    let mut users = users.flat_map(|read| body[read].users().iter().copied());
    let condition = &module[while_loop.condition];
    let mut reads = Loop::reads(condition, condition.parameters()[0], element).into_iter();
    is_read_after
        || users.any(|user| user != next)
        || reads.any(|read| !condition[read].users().is_empty() || condition.root() == read)
}

/// True if the condition or the body uses an element other than to pass it through.
fn is_read(module: &Module, while_loop: Loop, element: usize) -> bool {
    [while_loop.condition, while_loop.body].into_iter().any(|id| {
        let computation = &module[id];
        let reads = Loop::reads(computation, computation.parameters()[0], element);
        reads.into_iter().any(|read| {
            let users = computation[read].users();
            users.iter().any(|&user| user != computation.root() || id == while_loop.condition)
                || computation.root() == read
        })
    })
}

/// Makes the condition and the body read another element instead. The tuple that the body returns
/// is unchanged.
pub(super) fn replace_reads(module: &mut Module, while_loop: Loop, element: usize, other: usize) {
    for id in [while_loop.condition, while_loop.body] {
        let replacement = while_loop.read(module, id, other);
        replace_reads_with(module, while_loop, id, element, replacement);
    }
}

/// Makes a computation of the loop use an instruction instead of an element; the tuple that it
/// returns still contains the element.
pub(super) fn replace_reads_with(
    module: &mut Module,
    while_loop: Loop,
    id: ComputationId,
    element: usize,
    replacement: InstructionId,
) {
    let computation = module.computation_mut(id);
    let parameter = computation.parameters()[0];
    for read in Loop::reads(computation, parameter, element) {
        computation.replace_all_uses(read, replacement);
    }
    if id == while_loop.body {
        // An invariant remains invariant.
        let element_read = state::take(computation, parameter, element);
        let root = computation.root();
        computation.replace_operand(root, element, element_read);
    }
}

/// Removes the elements without users.
fn remove_dead(module: &mut Module, while_loop: Loop) -> bool {
    let is_live = module[while_loop.caller].post_order().contains(&while_loop.id);
    if !is_live {
        // All values read after the loop were known without it.
        return crate::simplify::dce::sweep(module.computation_mut(while_loop.caller));
    }
    let live = live_elements(module, while_loop);
    let dead: BTreeSet<usize> = (0..while_loop.element_count(module)).filter(|k| !live.contains(k)).collect();
    if dead.is_empty() {
        return false;
    }
    while_loop.exclusive(module).remove_elements(module, &dead);
    true
}

/// Elements that are read after the loop, by the condition, or by an effect, and the elements from
/// which the body computes those.
fn live_elements(module: &Module, while_loop: Loop) -> BTreeSet<usize> {
    let mut live = BTreeSet::new();
    let caller: BTreeSet<InstructionId> = module[while_loop.caller].post_order().into_iter().collect();
    for &read in module[while_loop.caller][while_loop.id].users() {
        if let (true, Op::GetTupleElement { index }) =
            (caller.contains(&read), module[while_loop.caller][read].op())
        {
            live.insert(*index);
        }
    }
    let condition = &module[while_loop.condition];
    for id in condition.post_order() {
        if let Some(element) = state_element(condition, id) {
            live.insert(element);
        }
    }
    let body = &module[while_loop.body];
    let has_effect = |instruction: &hlo::Instruction| {
        instruction.has_effect() || !instruction.op().called_computations().is_empty()
    };
    // An instruction that calls others may have an effect inside. It stays, with its operands, if
    // it is read or has an effect.
    let effects = body.instructions().filter(|(_, i)| has_effect(i) && called_effects(module, i));
    let mut pending: Vec<InstructionId> = effects.map(|(id, _)| id).collect();
    let mut seen = BTreeSet::new();
    let mut done = BTreeSet::new();
    loop {
        while let Some(id) = pending.pop() {
            if !seen.insert(id) {
                continue;
            }
            match state_element(body, id) {
                Some(element) => {
                    live.insert(element);
                }
                None => pending.extend(body[id].operands()),
            }
        }
        let Some(&next) = live.iter().find(|k| !done.contains(*k)) else { break };
        done.insert(next);
        pending.push(while_loop.next(module, next));
    }
    live
}

/// True if an instruction or its callees have an effect.
fn called_effects(module: &Module, instruction: &hlo::Instruction) -> bool {
    let is_effect = |i: &hlo::Instruction| i.has_effect();
    let mut pending = instruction.op().called_computations();
    let mut seen = BTreeSet::new();
    let mut has_effect = is_effect(instruction);
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        for (_, inner) in module[id].instructions() {
            has_effect |= is_effect(inner);
            pending.extend(inner.op().called_computations());
        }
    }
    has_effect
}
