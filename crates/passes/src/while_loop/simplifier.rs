//! Loops that run never or once, and state that nobody needs.

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
/// - one that runs never becomes its operand, one that runs once its body;
/// - an element that the body passes through is read before the loop instead of after it, and once if it is there twice;
/// - a counter of a loop whose trip count is known is a constant after it;
/// - integers in the body whose ranges leave one value become that;
/// - elements that neither the condition nor what is read after the loop needs are removed.
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
            if let Some(found) = Loop::at(module, site) {
                changed |= simplify(module, found);
            }
        }
        Ok(changed.into())
    }
}

fn simplify(module: &mut Module, found: Loop) -> bool {
    let trip_count = found.trip_count(module);
    let runs_known = trip_count.exact.filter(|_| !found.has_effects(module));
    let mut changed = match runs_known {
        Some(0) => {
            replace_by_start(module, found, |_| true);
            return true;
        }
        Some(1) => {
            inline(module, found);
            return true;
        }
        Some(count) => counters_after(module, found, count),
        None => false,
    };
    let invariants = found.invariants(module);
    changed |= replace_by_start(module, found, |k| invariants.contains(&k));
    // Each of these may give the loop a condition and a body of its own.
    changed |= merge_invariants(module, found, &invariants);
    let found = found.current(module);
    changed |= merge_equals(module, found, &invariants);
    let found = found.current(module);
    changed |= known_scalars::replace(module, found);
    changed | remove_dead(module, found.current(module))
}

/// Reads elements before the loop instead of after it.
fn replace_by_start(module: &mut Module, found: Loop, is_known: impl Fn(usize) -> bool) -> bool {
    let mut changed = false;
    for element in (0..found.element_count(module)).filter(|&k| is_known(k)) {
        let start = found.start(module, element);
        let caller = module.computation_mut(found.caller);
        for read in Loop::reads(caller, found.id, element) {
            changed |= replace(caller, read, start);
        }
    }
    changed
}

/// Replaces an instruction; whether anybody used it.
fn replace(computation: &mut hlo::Computation, old: InstructionId, new: InstructionId) -> bool {
    let is_used = !computation[old].users().is_empty() || computation.root() == old;
    computation.replace_all_uses(old, new);
    is_used
}

fn inline(module: &mut Module, found: Loop) {
    let body = module[found.body].clone();
    let start = module[found.caller][found.id].operands()[0];
    module.computation_mut(found.caller).inline(found.id, &body, &[start]);
    crate::simplify::dce::sweep(module.computation_mut(found.caller));
}

/// Counters after the last iteration, as constants.
fn counters_after(module: &mut Module, found: Loop, count: u64) -> bool {
    let mut changed = false;
    for (element, step) in analysis::induction_variables(module, &module[found.body]) {
        let value = || {
            let start = found.initial_range(module, element).value()?;
            let moved = i128::from(step).checked_mul(count.into())?.checked_add(start.into())?;
            let scalar = integer(found.array(module, element)?, moved)?;
            Some((scalar, found.array(module, element)?.clone()))
        };
        let Some((scalar, shape)) = value() else { continue };
        let caller = module.computation_mut(found.caller);
        for read in Loop::reads(caller, found.id, element) {
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
fn merge_invariants(module: &mut Module, found: Loop, invariants: &BTreeSet<usize>) -> bool {
    let mut first: BTreeMap<InstructionId, usize> = BTreeMap::new();
    let mut doubles = Vec::new();
    for &element in invariants {
        let start = found.start(module, element);
        match first.get(&start) {
            Some(&other) if is_read(module, found, element) => doubles.push((element, other)),
            Some(_) => {}
            None => {
                first.insert(start, element);
            }
        }
    }
    if doubles.is_empty() {
        return false;
    }
    let found = found.exclusive(module);
    for (element, other) in doubles {
        replace_reads(module, found, element, other);
    }
    true
}

/// Reads elements that start alike and change alike from the first of them.
fn merge_equals(module: &mut Module, found: Loop, invariants: &BTreeSet<usize>) -> bool {
    let changing: Vec<usize> = (0..found.element_count(module)).filter(|k| !invariants.contains(k)).collect();
    let mut doubles = Vec::new();
    for (place, &element) in changing.iter().enumerate().take(MAX_CHANGING) {
        let is_double = |&other: &usize| {
            let starts = [element, other].map(|k| found.start(module, k));
            let nexts = [element, other].map(|k| found.next(module, k));
            let (caller, body) = (&module[found.caller], &module[found.body]);
            Comparison { computation: caller, elements: None, left: MAX_EQUAL }.is_equal(starts)
                && Comparison { computation: body, elements: Some([element, other]), left: MAX_EQUAL }
                    .is_equal(nexts)
        };
        let other = changing[..place].iter().copied().find(is_double);
        doubles.extend(other.filter(|_| is_needed(module, found, element)).map(|other| (element, other)));
    }
    if doubles.is_empty() {
        return false;
    }
    let found = found.exclusive(module);
    for (element, other) in doubles {
        for id in [found.condition, found.body] {
            let replacement = found.read(module, id, other);
            let computation = module.computation_mut(id);
            for read in Loop::reads(computation, computation.parameters()[0], element) {
                computation.replace_all_uses(read, replacement);
            }
        }
        let replacement = found.after(module, other);
        let caller = module.computation_mut(found.caller);
        for read in Loop::reads(caller, found.id, element) {
            caller.replace_all_uses(read, replacement);
        }
    }
    true
}

/// Elements of a loop that are compared with each other.
const MAX_CHANGING: usize = 128;
/// Instructions that one comparison looks at.
const MAX_EQUAL: usize = 16;

/// A search for a difference between two instructions of a computation.
struct Comparison<'m> {
    computation: &'m hlo::Computation,
    /// Two elements of the state that are equal.
    elements: Option<[usize; 2]>,
    /// The most instructions still to compare.
    left: usize,
}

impl Comparison<'_> {
    /// True if two instructions compute the same.
    fn is_equal(&mut self, [a, b]: [InstructionId; 2]) -> bool {
        if a == b {
            return true;
        }
        let computation = self.computation;
        let read = [a, b].map(|id| state_element(computation, id));
        if self.elements.is_some_and(|elements| read == elements.map(Some)) {
            return true;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let (x, y) = (&computation[a], &computation[b]);
        let is_pure = !matches!(x.op(), Op::Parameter { .. } | Op::CustomCall { .. })
            && x.op().called_computations().is_empty()
            && !x.has_effect();
        let alike = x.shape() == y.shape() && x.operands().len() == y.operands().len() && x.op() == y.op();
        is_pure && alike && x.operands().iter().zip(y.operands()).all(|(&a, &b)| self.is_equal([a, b]))
    }
}

/// Whether anything but an element's own next value reads it, in the loop or after it.
fn is_needed(module: &Module, found: Loop, element: usize) -> bool {
    let next = found.next(module, element);
    let caller = &module[found.caller];
    let is_read_after = Loop::reads(caller, found.id, element)
        .into_iter()
        .any(|read| !caller[read].users().is_empty() || caller.root() == read);
    let body = &module[found.body];
    let users = Loop::reads(body, body.parameters()[0], element).into_iter();
    let mut users = users.flat_map(|read| body[read].users().iter().copied());
    let condition = &module[found.condition];
    let mut reads = Loop::reads(condition, condition.parameters()[0], element).into_iter();
    is_read_after
        || users.any(|user| user != next)
        || reads.any(|read| !condition[read].users().is_empty() || condition.root() == read)
}

/// Whether condition or body use an element, but for passing it through.
fn is_read(module: &Module, found: Loop, element: usize) -> bool {
    [found.condition, found.body].into_iter().any(|id| {
        let computation = &module[id];
        let reads = Loop::reads(computation, computation.parameters()[0], element);
        reads.into_iter().any(|read| {
            let users = computation[read].users();
            users.iter().any(|&user| user != computation.root() || id == found.condition)
                || computation.root() == read
        })
    })
}

/// Makes condition and body read another element instead. What they return stays as it is.
pub(super) fn replace_reads(module: &mut Module, found: Loop, element: usize, other: usize) {
    for id in [found.condition, found.body] {
        let replacement = found.read(module, id, other);
        replace_reads_with(module, found, id, element, replacement);
    }
}

/// Makes a computation of the loop use an instruction instead of an element; the tuple that it returns keeps it.
pub(super) fn replace_reads_with(
    module: &mut Module,
    found: Loop,
    id: ComputationId,
    element: usize,
    replacement: InstructionId,
) {
    let computation = module.computation_mut(id);
    let parameter = computation.parameters()[0];
    for read in Loop::reads(computation, parameter, element) {
        computation.replace_all_uses(read, replacement);
    }
    if id == found.body {
        // An invariant stays one.
        let kept = state::take(computation, parameter, element);
        let root = computation.root();
        computation.replace_operand(root, element, kept);
    }
}

/// Removes the elements that nobody needs.
fn remove_dead(module: &mut Module, found: Loop) -> bool {
    let is_live = module[found.caller].post_order().contains(&found.id);
    if !is_live {
        // All that is read after it was known without it.
        return crate::simplify::dce::sweep(module.computation_mut(found.caller));
    }
    let live = live_elements(module, found);
    let dead: BTreeSet<usize> = (0..found.element_count(module)).filter(|k| !live.contains(k)).collect();
    if dead.is_empty() {
        return false;
    }
    found.exclusive(module).remove_elements(module, &dead);
    true
}

/// What is read after the loop or by the condition or an effect, and what the body makes that of.
fn live_elements(module: &Module, found: Loop) -> BTreeSet<usize> {
    let mut live = BTreeSet::new();
    let caller: BTreeSet<InstructionId> = module[found.caller].post_order().into_iter().collect();
    for &read in module[found.caller][found.id].users() {
        if let (true, Op::GetTupleElement { index }) =
            (caller.contains(&read), module[found.caller][read].op())
        {
            live.insert(*index);
        }
    }
    let condition = &module[found.condition];
    for id in condition.post_order() {
        if let Some(element) = state_element(condition, id) {
            live.insert(element);
        }
    }
    let body = &module[found.body];
    let has_effect = |instruction: &hlo::Instruction| {
        instruction.has_effect() || !instruction.op().called_computations().is_empty()
    };
    // What calls others may have an effect inside; it stays with what it needs if anything reads it or it has one.
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
        pending.push(found.next(module, next));
    }
    live
}

/// Whether an instruction or what it calls has an effect.
fn called_effects(module: &Module, instruction: &hlo::Instruction) -> bool {
    let is_effect = |i: &hlo::Instruction| i.has_effect();
    let mut pending = instruction.op().called_computations();
    let mut seen = BTreeSet::new();
    let mut found = is_effect(instruction);
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        for (_, inner) in module[id].instructions() {
            found |= is_effect(inner);
            pending.extend(inner.op().called_computations());
        }
    }
    found
}
