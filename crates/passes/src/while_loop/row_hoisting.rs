//! Buffers that a loop fills with what is known without it.

use super::Loop;
use super::rows::{Index, Row, Rows, covers_all};
use crate::{Changed, Pass};
use hlo::analysis;
use hlo::{InstructionId, Module, Op};
use support::Result;

/// Computes a buffer outside of the loop that fills it, where each iteration writes its row, each row is written once, the
/// loop reads none, and what is written is kept by the loop, or follows from its counter or from the same row of what is
/// kept. Exact for every input.
///
/// Gradients of loops keep what their backward loop needs, also kernels and masks that are no news in any iteration.
pub struct WhileLoopRowHoisting;

impl Pass for WhileLoopRowHoisting {
    fn name(&self) -> &'static str {
        "while-loop-row-hoisting"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            if let Some(found) = Loop::at(module, site) {
                changed |= hoist(module, found);
            }
        }
        Ok(changed.into())
    }
}

/// An element of the state that is filled row by row.
struct Filled {
    element: usize,
    row: Row,
    /// What an iteration writes: the row, with or without a first dimension of size 1.
    slot: InstructionId,
}

fn hoist(module: &mut Module, found: Loop) -> bool {
    let candidates: Vec<usize> =
        (0..found.element_count(module)).filter(|&k| is_only_written(module, found, k)).collect();
    if candidates.is_empty() {
        return false;
    }
    let trip_count = found.trip_count(module);
    if trip_count.exact.is_none() {
        return false;
    }
    let mut rows = Rows::new(module, found);
    let filled: Vec<Filled> = candidates
        .into_iter()
        .filter_map(|element| filled(module, found, &rows, element))
        .filter(|filled| covers_all(module, found, filled.row, trip_count))
        .collect();
    let mut changed = false;
    for Filled { element, row, slot } in filled {
        let shape = found.array(module, element).expect("a buffer is an array").clone();
        let metadata = module[found.body][slot].metadata().clone();
        let all = rows.batched(module, slot, row);
        let whole = match *module[found.caller][all].shape().expect_array() == shape {
            true => all,
            false => rows.add(module, Op::Reshape {}, shape, &[all], metadata),
        };
        let caller = module.computation_mut(found.caller);
        for read in Loop::reads(caller, found.id, element) {
            caller.replace_all_uses(read, whole);
        }
        changed = true;
    }
    if changed {
        crate::dce::sweep(module.computation_mut(found.caller));
    }
    changed
}

/// Whether an element of the state is an array in which the body only writes a slice, and which is read after the loop.
fn is_only_written(module: &Module, found: Loop, element: usize) -> bool {
    let (body, condition) = (&module[found.body], &module[found.condition]);
    let next = found.next(module, element);
    let is_write = matches!(body[next].op(), Op::DynamicUpdateSlice {})
        && super::simplifier::state_element(body, body[next].operands()[0]) == Some(element);
    let caller = &module[found.caller];
    let reads_after = Loop::reads(caller, found.id, element);
    let is_read = reads_after.iter().any(|&read| !caller[read].users().is_empty() || caller.root() == read);
    let users = |computation: &hlo::Computation| -> Vec<InstructionId> {
        let reads = Loop::reads(computation, computation.parameters()[0], element);
        reads.into_iter().flat_map(|read| computation[read].users().to_vec()).collect()
    };
    let is_static = found.array(module, element).is_some_and(|shape| shape.is_static() && shape.rank() > 0);
    is_static
        && is_write
        && is_read
        && users(condition).is_empty()
        && users(body) == [next]
        && body[next].users() == [body.root()]
}

fn filled(module: &Module, found: Loop, rows: &Rows, element: usize) -> Option<Filled> {
    let body = &module[found.body];
    let shape = found.array(module, element)?;
    let &[_, slot, index, ref rest @ ..] = body[found.next(module, element)].operands() else { return None };
    // The row is the first dimension, and all of it is written.
    let slot_shape = body[slot].shape().as_array()?;
    if slot_shape.size(0) != 1
        || slot_shape.sizes()[1..] != shape.sizes()[1..]
        || rest.len() + 1 != shape.rank()
    {
        return None;
    }
    // Every row is written once if this holds, so the index lies within, and cannot have wrapped on the way.
    let affine = analysis::affine(module, body, index)?;
    let row = Row { index: Index::Affine(affine), count: shape.size(0) };
    let own = body[slot].operands().first().filter(|_| matches!(body[slot].op(), Op::Reshape {}));
    let is_row = |&&id: &&InstructionId| {
        body[id].shape().as_array().is_some_and(|own| own.sizes() == shape.sizes()[1..])
    };
    let slot = own.filter(is_row).copied().unwrap_or(slot);
    rows.is_of(slot, row).then_some(Filled { element, row, slot })
}
