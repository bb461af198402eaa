//! Into how many tasks a kernel's work is cut.
//!
//! The rules know the work and nothing of the machine: not its vectors, and never how many workers there will be. A
//! kernel is cut in the same places whoever runs it, so the bits of a result do not depend on who computed it.

use crate::{Fusion, Position};
use hlo::Op;

/// So many multiply-adds, or things as cheap, are worth a task.
const OPERATIONS: u64 = 32 << 10;

/// So many bytes read or written are worth a task.
const BYTES: u64 = 64 << 10;

/// Less work than so many tasks' is done at once: sharing it out costs some microseconds, and the caches' content.
const MIN_TASKS: u64 = 24;

/// More tasks than this gain nothing: they keep a few dozen workers evenly busy.
const MAX_TASKS: u64 = 64;

/// What a kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Multiply-adds and other operations, each weighed with what it costs.
    pub(crate) operations: u64,
    /// Bytes that are read or written.
    pub(crate) bytes: u64,
}

impl Work {
    /// How many tasks the work is worth; 1 is serial.
    pub(crate) fn tasks(self) -> i64 {
        let tasks = (self.operations / OPERATIONS).max(self.bytes / BYTES);
        if tasks < MIN_TASKS { 1 } else { tasks.min(MAX_TASKS) as i64 }
    }

    /// What a fusion does whose body is computed for so many elements.
    pub(crate) fn of_elements(fusion: &Fusion<'_>, elements: i64) -> Self {
        let elements = elements.max(0) as u64;
        let (mut operations, mut bytes) = (0u64, 0u64);
        for id in fusion.instructions() {
            operations = operations.saturating_add(cost(fusion.body[id].op()));
            for &operand in fusion.body[id].operands() {
                if fusion.position(operand) != Position::Inside
                    && let Some(shape) = fusion.body[operand].shape().as_array()
                {
                    // Of a small operand the same elements are read again and again.
                    let read = (shape.element_count().max(0) as u64).min(elements);
                    bytes = bytes.saturating_add(read.saturating_mul(shape.element_type.byte_size() as u64));
                }
            }
        }
        for (_, leaf) in fusion.shape().leaves() {
            let written =
                (leaf.element_count().max(0) as u64).saturating_mul(leaf.element_type.byte_size() as u64);
            bytes = bytes.saturating_add(written);
        }
        Self { operations: operations.saturating_mul(elements), bytes }
    }
}

/// What an element of an instruction costs, in multiply-adds.
fn cost(op: &Op) -> u64 {
    match op {
        Op::Constant { .. }
        | Op::Broadcast { .. }
        | Op::Reshape {}
        | Op::Bitcast {}
        | Op::Parameter { .. } => 0,
        op if is_transcendental(op) => 16,
        Op::Divide {}
        | Op::Remainder {}
        | Op::Sqrt {}
        | Op::Rsqrt {}
        | Op::Gather { .. }
        | Op::Map { .. } => 4,
        _ => 1,
    }
}

/// Whether an element takes tens of instructions.
pub(crate) fn is_transcendental(op: &Op) -> bool {
    matches!(
        op,
        Op::Exp {}
            | Op::Expm1 {}
            | Op::Log {}
            | Op::Log1p {}
            | Op::Tanh {}
            | Op::Logistic {}
            | Op::Erf {}
            | Op::Sin {}
            | Op::Cos {}
            | Op::Tan {}
            | Op::Power {}
            | Op::Atan2 {}
            | Op::Cbrt {}
    )
}

/// Cuts loops, the outermost first, into at most `tasks` parts in all; the parts of each loop, none more than its
/// `units`.
pub(crate) fn cut(tasks: i64, units: &[i64]) -> Vec<i64> {
    let mut left = tasks.max(1);
    let cut_one = |&units: &i64| {
        let parts = units.clamp(1, left);
        left /= parts;
        parts
    };
    units.iter().map(cut_one).collect()
}

/// How many tasks loops that are cut so make.
pub(crate) fn count(cuts: &[i64]) -> i64 {
    cuts.iter().product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_work_is_not_cut_and_large_work_not_finely() {
        let tasks = |operations, bytes| Work { operations, bytes }.tasks();
        assert_eq!(tasks(0, 0), 1);
        assert_eq!(tasks(100_000, 400_000), 1);
        assert_eq!(tasks(23 * OPERATIONS, 23 * BYTES), 1);
        assert_eq!(tasks(24 * OPERATIONS, 0), 24);
        assert_eq!(tasks(0, 30 * BYTES), 30);
        assert_eq!(tasks(40 * OPERATIONS, 30 * BYTES), 40);
        assert_eq!(tasks(u64::MAX, u64::MAX), 64);
    }

    #[test]
    fn outer_loops_are_cut_first() {
        assert_eq!(cut(64, &[1000]), [64]);
        assert_eq!(cut(64, &[2, 3, 1000]), [2, 3, 10]);
        assert_eq!(cut(10, &[7, 100]), [7, 1]);
        assert_eq!(cut(1, &[7, 100]), [1, 1]);
        assert_eq!(cut(8, &[0, 100]), [1, 8]);
        assert_eq!(count(&cut(64, &[5, 5, 5])), 50);
    }
}
