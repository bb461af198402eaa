//! Into how many tasks a kernel's work is cut.
//!
//! The rules know the work and nothing of the machine: not its vectors, and never how many workers there will be. A
//! kernel is cut in the same places whoever runs it, so the bits of a result do not depend on who computed it.
//!
//! Work is measured in the time that a core with wide vectors takes for it at best, so that small work on a slow core is
//! shared out as readily as on a fast one.

use crate::fusion::{Fusion, Position};
use hlo::{Op, Window};
use shape::ArrayShape;

/// Multiply-adds, or things as cheap, that a core does in a nanosecond.
const OPERATIONS: u64 = 80;

/// Bytes that a core reads or writes in a nanosecond: those of the second cache.
const BYTES: u64 = 100;

/// Less work than so many nanoseconds is not cut: to share it out, and to wait for the others' end, takes half a
/// microsecond, and the caches' content. Whether what is cut is shared out depends on its neighbours too.
const MIN_NANOSECONDS: u64 = 2000;

/// Nanoseconds that a task is worth at least: enough to be taken alone.
const TASK_NANOSECONDS: u64 = 200;

/// More tasks than this gain nothing: they keep a few dozen workers evenly busy.
const MAX_TASKS: u64 = 64;

/// What a kernel does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Multiply-adds and other operations, each weighed with what it costs.
    pub operations: u64,
    /// Bytes that are read or written.
    pub bytes: u64,
}

impl Work {
    /// How long a core takes at best, by rule of thumb.
    pub fn nanoseconds(self) -> u64 {
        (self.operations / OPERATIONS).max(self.bytes / BYTES)
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        let operations = self.operations.saturating_add(other.operations);
        Self { operations, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// How many tasks the work is worth; 1 is serial.
    pub(crate) fn tasks(self) -> i64 {
        let nanoseconds = self.nanoseconds();
        if nanoseconds < MIN_NANOSECONDS {
            return 1;
        }
        (nanoseconds / TASK_NANOSECONDS).min(MAX_TASKS) as i64
    }

    /// What a kernel does, whatever its strategy: each instruction of its body once for each element of its result.
    pub(crate) fn of_kernel(fusion: &Fusion<'_>) -> Self {
        let (mut operations, mut bytes) = (0u64, 0u64);
        for id in fusion.instructions() {
            let instruction = &fusion.body[id];
            let elements = instruction.shape().leaves().first().map_or(0, |(_, leaf)| elements_of(leaf));
            let operand =
                |k: usize| instruction.operands().get(k).and_then(|&o| fusion.body[o].shape().as_array());
            let each = match instruction.op() {
                Op::Dot { dot_dimension_numbers: numbers } => operand(0).map_or(1, |lhs| {
                    let sizes = numbers.lhs_contracting_dims.iter().map(|&d| lhs.size(d));
                    sizes.fold(1, |all: u64, size| all.saturating_mul(size.max(0) as u64))
                }),
                Op::Convolution { dim_labels, .. } => operand(1).map_or(1, |kernel| {
                    elements_of(kernel)
                        / kernel.size(dim_labels.kernel_output_feature_dimension).max(1) as u64
                }),
                Op::ReduceWindow { window, .. } => {
                    let counts = instruction.shape().leaves().first().map(|(_, leaf)| leaf.sizes());
                    match operand(0).map(ArrayShape::sizes).zip(counts) {
                        Some((sizes, counts)) if window.running_dimension(&sizes, &counts).is_some() => 1,
                        _ => taps(window),
                    }
                }
                Op::DynamicUpdateSlice {} | Op::Scatter { .. } => 0,
                op => cost(op),
            };
            let whole = match instruction.op() {
                Op::Reduce { .. } | Op::Sort { .. } | Op::SelectAndScatter { .. } => {
                    operand(0).map_or(0, elements_of)
                }
                _ => elements,
            };
            operations = operations.saturating_add(whole.saturating_mul(each));
            // What is picked from a large operand is no more than what is made of it.
            let picked =
                matches!(instruction.op(), Op::Gather { .. } | Op::Slice { .. } | Op::DynamicSlice { .. });
            // What is updated in place stays where it is, but for the update.
            let updates = matches!(instruction.op(), Op::DynamicUpdateSlice {} | Op::Scatter { .. });
            for &o in instruction.operands().iter().skip(usize::from(updates)) {
                if fusion.position(o) != Position::Inside
                    && let Some(shape) = fusion.body[o].shape().as_array()
                {
                    let read = if picked { elements_of(shape).min(elements) } else { elements_of(shape) };
                    bytes = bytes.saturating_add(read.saturating_mul(shape.element_type.byte_size() as u64));
                }
            }
        }
        let written = match fusion.root_op() {
            Op::DynamicUpdateSlice {} | Op::Scatter { .. } => bytes,
            _ => fusion.shape().byte_size(),
        };
        Self { operations, bytes: bytes.saturating_add(written) }
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

fn elements_of(shape: &ArrayShape) -> u64 {
    shape.element_count().max(0) as u64
}

fn taps(window: &Window) -> u64 {
    window.dimensions.iter().fold(1, |all: u64, d| all.saturating_mul(d.size.max(0) as u64))
}

/// What an element of an instruction costs, in multiply-adds.
pub(crate) fn cost(op: &Op) -> u64 {
    match op {
        Op::Constant { .. }
        | Op::Broadcast { .. }
        | Op::Reshape {}
        | Op::Bitcast {}
        | Op::Parameter { .. } => 0,
        op if is_transcendental(op) => 32,
        Op::Divide {}
        | Op::Remainder {}
        | Op::Sqrt {}
        | Op::Rsqrt {}
        | Op::Gather { .. }
        | Op::Map { .. } => 4,
        // Butterflies have a few operations for each doubling of the length.
        Op::Fft { fft_length, .. } => {
            fft_length.iter().map(|&n| 4 * u64::from(n.max(1).ilog2() + 1)).sum::<u64>()
        }
        _ => 1,
    }
}

/// Whether an element takes tens of instructions.
pub fn is_transcendental(op: &Op) -> bool {
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
/// `units`. Parts of few units are of one size, for shares of them to be so, too.
pub(crate) fn cut(tasks: i64, units: &[i64]) -> Vec<i64> {
    const FEW_UNITS: i64 = 4;
    let mut left = tasks.max(1);
    let cut_one = |&units: &i64| {
        let most = units.clamp(1, left);
        let each = (units.max(1) - 1) / most + 1;
        let parts = if each <= FEW_UNITS { (units.max(1) - 1) / each + 1 } else { most };
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
        let table = [
            (0, 0, 1),
            // A dense layer of 256x256 on one row, and one of 128x512, in f32.
            (256 * 256, 4 * 256 * 256, 13),
            (128 * 512, 4 * 128 * 512, 13),
            (128 * 128, 4 * 128 * 128, 1),
            // Products in cache: 32x64x64, 48x64x64, 128x128x128.
            (32 * 64 * 64, 32 << 10, 1),
            (48 * 64 * 64, 40 << 10, 12),
            (128 * 128 * 128, 192 << 10, 64),
            // An addition of 16 K floats, and of 1 M.
            (16 << 10, 3 << 16, 1),
            (1 << 20, 3 << 22, 64),
            (u64::MAX, u64::MAX, 64),
        ];
        for (operations, bytes, wanted) in table {
            assert_eq!(tasks(operations, bytes), wanted, "{operations} operations, {bytes} bytes");
        }
    }

    #[test]
    fn outer_loops_are_cut_first() {
        assert_eq!(cut(64, &[1000]), [64]);
        assert_eq!(cut(64, &[2, 3, 1000]), [2, 3, 10]);
        assert_eq!(cut(10, &[7, 100]), [7, 1]);
        assert_eq!(cut(1, &[7, 100]), [1, 1]);
        assert_eq!(cut(8, &[0, 100]), [1, 8]);
        assert_eq!(cut(21, &[32]), [16]);
        assert_eq!(cut(64, &[100, 5]), [50, 1]);
        assert_eq!(count(&cut(64, &[5, 5, 5])), 50);
    }
}
