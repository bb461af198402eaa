//! Number of tasks into which a kernel's work is divided.
//!
//! The rules depend on the work and on nothing of the machine: neither its vector width nor the
//! number of workers. A kernel is divided at the same places on every machine, so the bits of a
//! result do not depend on which worker computed it.
//!
//! Work is measured in the time that a core with wide vectors needs at best. Small work on a slow
//! core is therefore shared as readily as on a fast one.

use crate::fusion::{Fusion, Position};
use hlo::{Op, Window};
use shape::ArrayShape;
use target::Target;

/// Multiply-adds, or operations as cheap, per nanosecond and core.
const OPERATIONS: u64 = 80;

/// Bytes that a core reads or writes per nanosecond from its second-level cache.
const BYTES: u64 = 100;

/// Work shorter than this is not divided. Sharing it and waiting for the other workers takes 0.2 us
/// between cores that are close to each other, up to 1 us between others, and loses the caches'
/// content. Whether divided work is actually shared also depends on the adjacent kernels.
const MIN_NANOSECONDS: u64 = 800;

/// Minimum duration of a task in nanoseconds, enough to be worth scheduling alone.
const TASK_NANOSECONDS: u64 = 200;

/// Upper bound of the number of tasks. This many keep a few dozen workers evenly busy.
const MAX_TASKS: u64 = 64;

/// Upper bound of the number of tasks on a device.
const MAX_DEVICE_TASKS: i64 = 1 << 40;

/// Elements of the widest vectors of 32-bit numbers.
const LANES: i64 = 16;

/// The output features of a convolution, of which a few take the time of a vector.
pub(crate) fn features_in_vectors(features: i64) -> i64 {
    features.max(LANES)
}

/// Estimated work of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Multiply-adds and other operations, each weighted by its cost.
    pub operations: u64,
    /// Bytes read or written.
    pub bytes: u64,
}

impl Work {
    /// Estimated time of one core at best.
    pub fn nanoseconds(self) -> u64 {
        (self.operations / OPERATIONS).max(self.bytes / BYTES)
    }

    /// Sum of both.
    pub(crate) fn and(self, other: Self) -> Self {
        let operations = self.operations.saturating_add(other.operations);
        Self { operations, bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// Number of tasks that the work justifies; 1 is serial. On a device every thread runs a task,
    /// so each piece of work is one.
    pub(crate) fn tasks(self, target: &Target) -> i64 {
        if target.gpu.is_some() {
            return MAX_DEVICE_TASKS;
        }
        self.tasks_of_processor()
    }

    /// Number of tasks that the work justifies on a processor.
    pub(crate) fn tasks_of_processor(self) -> i64 {
        let nanoseconds = self.nanoseconds();
        if nanoseconds < MIN_NANOSECONDS {
            return 1;
        }
        (nanoseconds / TASK_NANOSECONDS).min(MAX_TASKS) as i64
    }

    /// Work of a kernel, independent of its strategy: each instruction of its body, once per
    /// element of its result.
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
                Op::Convolution { dim_labels, feature_group_count, .. } => operand(1).map_or(1, |kernel| {
                    let outputs = kernel.size(dim_labels.kernel_output_feature_dimension).max(1);
                    let is_one_group = *feature_group_count == 1;
                    let products = if is_one_group { features_in_vectors(outputs) } else { outputs };
                    let of_all = (elements_of(kernel) / outputs as u64).saturating_mul(products as u64);
                    of_all / outputs as u64
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
            // A gather or slice reads at most as many elements of a large operand as it produces.
            let picks =
                matches!(instruction.op(), Op::Gather { .. } | Op::Slice { .. } | Op::DynamicSlice { .. });
            // An array updated in place is not moved, except for the update.
            let updates = matches!(instruction.op(), Op::DynamicUpdateSlice {} | Op::Scatter { .. });
            for &o in instruction.operands().iter().skip(usize::from(updates)) {
                if fusion.position(o) != Position::Inside
                    && let Some(shape) = fusion.body[o].shape().as_array()
                {
                    let read = if picks { elements_of(shape).min(elements) } else { elements_of(shape) };
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

    /// Work of a fusion whose body is computed for `elements` elements.
    pub(crate) fn of_elements(fusion: &Fusion<'_>, elements: i64) -> Self {
        let elements = elements.max(0) as u64;
        let (mut operations, mut bytes) = (0u64, 0u64);
        for id in fusion.instructions() {
            operations = operations.saturating_add(cost(fusion.body[id].op()));
            for &operand in fusion.body[id].operands() {
                if fusion.position(operand) != Position::Inside
                    && let Some(shape) = fusion.body[operand].shape().as_array()
                {
                    // The elements of a small operand are read repeatedly.
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

/// Cost of one element of an instruction, in multiply-adds.
pub(crate) fn cost(op: &Op) -> u64 {
    match op {
        Op::Constant { .. }
        | Op::Broadcast { .. }
        | Op::Reshape {}
        | Op::Bitcast {}
        | Op::Parameter { .. } => 0,
        op if is_transcendental(op) => 32,
        // Elements of a table, which are loaded one by one.
        Op::Gather { slice_sizes, .. } if slice_sizes.iter().all(|&size| size == 1) => 32,
        Op::Divide {}
        | Op::Remainder {}
        | Op::Sqrt {}
        | Op::Rsqrt {}
        | Op::Gather { .. }
        | Op::Map { .. } => 4,
        // Butterflies take a few operations per doubling of the length.
        Op::Fft { fft_length, .. } => {
            fft_length.iter().map(|&n| 4 * u64::from(n.max(1).ilog2() + 1)).sum::<u64>()
        }
        _ => 1,
    }
}

/// True if computing an element takes tens of machine instructions.
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

/// Divides loops, the outermost first, into at most `tasks` parts in total. Returns the parts of
/// each loop, at most its `units`. If parts have few units, they all have the same size, so that
/// shares of them do, too.
pub(crate) fn cut(tasks: i64, units: &[i64]) -> Vec<i64> {
    const FEW_UNITS: i64 = 4;
    let mut remaining = tasks.max(1);
    let cut_one = |&units: &i64| {
        let limit = units.clamp(1, remaining);
        let each = (units.max(1) - 1) / limit + 1;
        let parts = if each <= FEW_UNITS { (units.max(1) - 1) / each + 1 } else { limit };
        remaining /= parts;
        parts
    };
    units.iter().map(cut_one).collect()
}

/// Number of tasks that these cuts produce.
pub(crate) fn count(cuts: &[i64]) -> i64 {
    cuts.iter().product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_work_is_not_cut_and_large_work_not_finely() {
        let target = Target::new("x86_64-pc-linux", "", "").expect("a triple");
        let tasks = |operations, bytes| Work { operations, bytes }.tasks(&target);
        let table = [
            (0, 0, 1),
            // Dense layers in f32: 256x256 and 128x512 on one row.
            (256 * 256, 4 * 256 * 256, 13),
            (128 * 512, 4 * 128 * 512, 13),
            (128 * 128, 4 * 128 * 128, 1),
            // Matrix products in cache: 32x64x64, 48x64x64, 128x128x128.
            (32 * 64 * 64, 32 << 10, 8),
            (48 * 64 * 64, 40 << 10, 12),
            (128 * 128 * 128, 192 << 10, 64),
            // Additions of 8 K, 16 K, and 1 M floats.
            (8 << 10, 3 << 15, 4),
            (16 << 10, 3 << 16, 9),
            (1 << 20, 3 << 22, 64),
            (u64::MAX, u64::MAX, 64),
        ];
        for (operations, bytes, expected) in table {
            assert_eq!(tasks(operations, bytes), expected, "{operations} operations, {bytes} bytes");
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
