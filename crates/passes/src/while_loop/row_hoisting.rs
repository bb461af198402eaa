//! Simplifies buffers that a loop fills with values known outside of it.

use super::Loop;
use super::rows::{Index, Row, Rows, covers_all};
use crate::pass::{Changed, Pass};
use hlo::analysis::{self, Affine, Range};
use hlo::{InstructionId, Module, Op};
use support::Result;

/// Rewrites buffers in the state in two ways, each exact for every input. First, it drops a write
/// that no iteration reads, if each iteration writes another row and reads only the row that it
/// writes, and the buffer has no users after the loop. Second, it computes a buffer outside of the
/// loop that fills it. This requires that each iteration writes its row, each row is written once,
/// the loop reads no row, and the written value is loop-invariant, or follows from the loop's
/// counter or from the same row of invariant buffers.
///
/// Gradients of loops store the values that their backward loop needs, including kernels and masks
/// that are the same in every iteration or known in advance.
pub struct WhileLoopRowHoisting;

impl Pass for WhileLoopRowHoisting {
    fn name(&self) -> &'static str {
        "while-loop-row-hoisting"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            changed |= drop_writes(module, while_loop);
            let Some(while_loop) = Loop::at(module, site) else { continue };
            changed |= hoist(module, while_loop);
        }
        Ok(changed.into())
    }
}

/// A state element that is filled row by row.
struct Filled {
    element: usize,
    row: Row,
    /// The value that an iteration writes: the row, with or without a first dimension of size 1.
    slot: InstructionId,
}

fn hoist(module: &mut Module, while_loop: Loop) -> bool {
    let candidates: Vec<usize> =
        (0..while_loop.element_count(module)).filter(|&k| is_only_written(module, while_loop, k)).collect();
    if candidates.is_empty() {
        return false;
    }
    let trip_count = while_loop.trip_count(module);
    if trip_count.exact.is_none() {
        return false;
    }
    let mut rows = Rows::new(module, while_loop);
    let filled: Vec<Filled> = candidates
        .into_iter()
        .filter_map(|element| filled(module, while_loop, &rows, element))
        .filter(|filled| covers_all(module, while_loop, filled.row, trip_count))
        .collect();
    let mut changed = false;
    for Filled { element, row, slot } in filled {
        let shape = while_loop.array(module, element).expect("buffer is not an array").clone();
        let metadata = module[while_loop.body][slot].metadata().clone();
        let all = rows.batched(module, slot, row);
        let is_whole = *module[while_loop.caller][all].shape().expect_array() == shape;
        let whole = if is_whole { all } else { rows.add(module, Op::Reshape {}, shape, &[all], metadata) };
        let caller = module.computation_mut(while_loop.caller);
        for read in Loop::reads(caller, while_loop.id, element) {
            caller.replace_all_uses(read, whole);
        }
        changed = true;
    }
    if changed {
        crate::simplify::dce::sweep(module.computation_mut(while_loop.caller));
    }
    changed
}

/// True if an element of the state is an array in which the body only writes a slice, and which is
/// read after the loop.
pub(super) fn is_only_written(module: &Module, while_loop: Loop, element: usize) -> bool {
    let (body, condition) = (&module[while_loop.body], &module[while_loop.condition]);
    let next = while_loop.next(module, element);
    let is_write = matches!(body[next].op(), Op::DynamicUpdateSlice {})
        && analysis::state_element(body, body[next].operands()[0]) == Some(element);
    let is_read = is_read_after(module, while_loop, element);
    let users = |computation: &hlo::Computation| -> Vec<InstructionId> {
        let reads = Loop::reads(computation, computation.parameters()[0], element);
        reads.into_iter().flat_map(|read| computation[read].users().to_vec()).collect()
    };
    let is_static =
        while_loop.array(module, element).is_some_and(|shape| shape.is_static() && shape.rank() > 0);
    is_static
        && is_write
        && is_read
        && users(condition).is_empty()
        && users(body) == [next]
        && body[next].users() == [body.root()]
}

fn filled(module: &Module, while_loop: Loop, rows: &Rows, element: usize) -> Option<Filled> {
    let body = &module[while_loop.body];
    let shape = while_loop.array(module, element)?;
    let &[_, slot, index, ref rest @ ..] = body[while_loop.next(module, element)].operands() else {
        return None;
    };
    // The row is along the first dimension and completely written.
    let slot_shape = body[slot].shape().as_array()?;
    if slot_shape.size(0) != 1
        || slot_shape.sizes()[1..] != shape.sizes()[1..]
        || rest.len() + 1 != shape.rank()
    {
        return None;
    }
    let affine = affine(module, while_loop, &while_loop.state_ranges(module), index)?;
    let row = Row { index: Index::Affine(affine), count: shape.size(0) };
    let own = body[slot].operands().first().filter(|_| matches!(body[slot].op(), Op::Reshape {}));
    let is_row = |&&id: &&InstructionId| {
        body[id].shape().as_array().is_some_and(|own| own.sizes() == shape.sizes()[1..])
    };
    let slot = own.filter(is_row).copied().unwrap_or(slot);
    rows.is_of(slot, row).then_some(Filled { element, row, slot })
}

fn is_read_after(module: &Module, while_loop: Loop, element: usize) -> bool {
    let caller = &module[while_loop.caller];
    let reads = Loop::reads(caller, while_loop.id, element);
    reads.iter().any(|&read| !caller[read].users().is_empty() || caller.root() == read)
}

fn drop_writes(module: &mut Module, while_loop: Loop) -> bool {
    let elements: Vec<usize> = (0..while_loop.element_count(module))
        .filter(|&k| is_written_in_vain(module, while_loop, k))
        .collect();
    if elements.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    for element in elements {
        let unchanged = while_loop.read(module, while_loop.body, element);
        while_loop.set_next(module, element, unchanged);
    }
    crate::simplify::dce::sweep(module.computation_mut(while_loop.body));
    true
}

fn is_written_in_vain(module: &Module, while_loop: Loop, element: usize) -> bool {
    let (body, condition) = (&module[while_loop.body], &module[while_loop.condition]);
    let next = while_loop.next(module, element);
    let &[buffer, slot, index, ..] = body[next].operands() else { return false };
    let is_write = matches!(body[next].op(), Op::DynamicUpdateSlice {})
        && analysis::state_element(body, buffer) == Some(element)
        && body[slot].shape().as_array().is_some_and(|slot| slot.rank() > 0 && slot.size(0) == 1)
        && body[next].users() == [body.root()]
        && body[body.root()].operands().iter().filter(|&&result| result == next).count() == 1;
    let is_read_by_condition = Loop::reads(condition, condition.parameters()[0], element)
        .iter()
        .any(|&read| !condition[read].users().is_empty());
    if !is_write || is_read_by_condition || is_read_after(module, while_loop, element) {
        return false;
    }
    let reads = Loop::reads(body, body.parameters()[0], element);
    let mut users = reads.iter().flat_map(|&read| body[read].users()).filter(|&&user| user != next);
    let ranges = while_loop.state_ranges(module);
    let row = affine(module, while_loop, &ranges, index);
    let is_same = |other: InstructionId| {
        let is_alike = body[other].shape() == body[index].shape();
        other == index || is_alike && affine(module, while_loop, &ranges, other) == row
    };
    let takes_same_row = |&user: &InstructionId| match body[user].op() {
        Op::DynamicSlice { dynamic_slice_sizes: sizes } => {
            let is_read = reads.contains(&body[user].operands()[0]);
            sizes.first() == Some(&1) && is_read && is_same(body[user].operands()[1])
        }
        _ => false,
    };
    row.is_some()
        && users.all(takes_same_row)
        && has_one_row_each(module, while_loop, &ranges, element, index)
}

/// An index of the body as a linear function of the state.
pub(super) fn affine(
    module: &Module,
    while_loop: Loop,
    ranges: &[Range],
    index: InstructionId,
) -> Option<Affine> {
    let of_state = |k: usize| ranges.get(k).copied().unwrap_or_default();
    analysis::affine(module, &module[while_loop.body], index, &of_state)
}

/// True if an index differs in each iteration and lies within an array's first dimension.
fn has_one_row_each(
    module: &Module,
    while_loop: Loop,
    ranges: &[Range],
    element: usize,
    index: InstructionId,
) -> bool {
    let body = &module[while_loop.body];
    let moves = |affine: Affine| analysis::induction_variables(module, body).contains_key(&affine.element);
    if !affine(module, while_loop, ranges, index).is_some_and(moves) {
        return false;
    }
    let of_leaf = |id: InstructionId| ranges.get(analysis::state_element(body, id)?).copied();
    let range = analysis::range_in(module, body, index, &of_leaf);
    let Some(shape) = while_loop.array(module, element).filter(|shape| shape.rank() > 0) else {
        return false;
    };
    range.low.is_some_and(|low| low >= 0) && range.high.is_some_and(|high| high < shape.size(0))
}
