//! Arrays of which every element is overwritten before it is read.

use crate::fusion::Fusion;
use hlo::{Computation, InstructionId, Module, Op};

/// Upper bound of the number of consecutive updates that are followed.
const MAX_UPDATES: usize = 4096;

/// True if no element of a source instruction's result is ever read, because successive slice
/// updates at constant positions replace all of them. Such a result needs memory but no content.
pub(crate) fn is_overwritten(module: &Module, computation: &Computation, id: InstructionId) -> bool {
    let Some(array) = computation[id].shape().as_array().filter(|array| array.is_static()) else {
        return false;
    };
    let is_constant = |&id: &InstructionId| matches!(computation[id].op(), Op::Constant { .. });
    let makes_data = matches!(computation[id].op(), Op::Broadcast { .. } | Op::Fusion { .. });
    if !makes_data || !computation[id].operands().iter().all(is_constant) {
        return false;
    }
    let sizes = array.sizes();
    let mut along = None;
    let mut written: Vec<(i64, i64)> = Vec::new();
    let mut current = id;
    for _ in 0..MAX_UPDATES {
        let Some((dimension, first, end)) = slice_written(module, computation, current) else { return false };
        if *along.get_or_insert(dimension) != dimension {
            return false;
        }
        written.push((first, end));
        if covers(&mut written, sizes[dimension]) {
            return true;
        }
        current = computation[current].users()[0];
    }
    false
}

/// The slice that the only reader of an array, a slice update, replaces: (dimension along which it
/// is a part, start, end).
fn slice_written(module: &Module, computation: &Computation, id: InstructionId) -> Option<(usize, i64, i64)> {
    let &[user] = computation[id].users() else { return None };
    let is_operand = |&&operand: &&InstructionId| operand == id;
    if computation.root() == id || computation[user].operands().iter().filter(is_operand).count() != 1 {
        return None;
    }
    let fusion = Fusion::of(module, computation, user).ok()?;
    let starts = fusion.constant_starts()?;
    let operands = fusion.body[fusion.root].operands();
    let buffer = crate::in_place::updated(&fusion).filter(|&number| fusion.operand(number) == id)?;
    let reads = fusion.instructions().into_iter().flat_map(|id| fusion.body[id].operands());
    if reads.filter(|&&read| fusion.position(read) == crate::fusion::Position::Operand(buffer)).count() != 1 {
        return None;
    }
    let sizes = fusion.shape().as_array()?.sizes();
    let update = fusion.body[operands[1]].shape().as_array()?.sizes();
    let mut parts = (0..sizes.len()).filter(|&d| update[d] != sizes[d]);
    let dimension = parts.next().or_else(|| sizes.len().checked_sub(1))?;
    parts.next().is_none().then(|| (dimension, starts[dimension], starts[dimension] + update[dimension]))
}

/// True if the intervals together cover 0 to `size`.
fn covers(intervals: &mut [(i64, i64)], size: i64) -> bool {
    intervals.sort_unstable();
    let reached = intervals.iter().fold(
        0,
        |reached, &(first, end)| {
            if first <= reached { end.max(reached) } else { reached }
        },
    );
    reached >= size
}
