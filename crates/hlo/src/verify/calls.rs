//! Calls between computations: callees exist, there is no recursion, and calls do not nest too
//! deep.

use super::{Errors, MAX_CALL_DEPTH};
use crate::ids::ComputationId;
use crate::module::Module;
use std::collections::{BTreeMap, BTreeSet};

/// Checks the calls; returns true if called computations can be accessed safely.
pub(super) fn verify(module: &Module, errors: &mut Errors) -> bool {
    let before = errors.list.len();
    match module.entry_if_set() {
        None => errors.module("the module has no entry"),
        Some(entry) if module.get(entry).is_none() => errors.module("the entry was removed"),
        Some(_) => {}
    }
    let mut callees: BTreeMap<ComputationId, BTreeSet<ComputationId>> = BTreeMap::new();
    for (id, computation) in module.computations() {
        let own_callees = callees.entry(id).or_default();
        for (caller, instruction) in computation.instructions() {
            for callee in instruction.op().called_computations() {
                if module.get(callee).is_none() {
                    errors.instruction(
                        computation,
                        caller,
                        format_args!("calls {callee}, which does not exist"),
                    );
                } else if module.entry_if_set() == Some(callee) {
                    errors.instruction(computation, caller, "calls the entry");
                } else {
                    own_callees.insert(callee);
                }
            }
        }
    }
    verify_depths(module, &callees, errors);
    errors.list.len() == before
}

/// Computes the nesting depth of each computation's calls, callees first. A computation that is
/// never reached is recursive.
fn verify_depths(
    module: &Module,
    callees: &BTreeMap<ComputationId, BTreeSet<ComputationId>>,
    errors: &mut Errors,
) {
    let mut callers: BTreeMap<ComputationId, Vec<ComputationId>> = BTreeMap::new();
    let mut waiting = BTreeMap::new();
    let mut ready = Vec::new();
    for (&caller, own_callees) in callees {
        own_callees.iter().for_each(|&callee| callers.entry(callee).or_default().push(caller));
        waiting.insert(caller, own_callees.len());
        if own_callees.is_empty() {
            ready.push(caller);
        }
    }
    let mut depths: BTreeMap<ComputationId, usize> = BTreeMap::new();
    while let Some(id) = ready.pop() {
        waiting.remove(&id);
        let deepest = callees[&id].iter().map(|callee| depths.get(callee).map_or(0, |depth| depth + 1));
        let depth = deepest.max().unwrap_or(0);
        depths.insert(id, depth);
        if depth == MAX_CALL_DEPTH + 1 {
            errors.computation(&module[id], format_args!("calls nest deeper than {MAX_CALL_DEPTH} levels"));
        }
        for caller in callers.get(&id).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(caller) {
                *count -= 1;
                if *count == 0 {
                    ready.push(*caller);
                }
            }
        }
    }
    for id in waiting.into_keys() {
        errors.computation(&module[id], "is recursive, or calls a recursive computation");
    }
}
