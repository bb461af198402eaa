//! Vectors of loop nests on a device: a thread computes as many elements as fit into one access to
//! memory.

use crate::collapse::Nest;
use crate::device::reduce;
use crate::fusion::Fusion;
use hlo::Op;

/// Fewer threads than this leave parts of a device idle, so they compute single elements.
const MIN_THREADS: i64 = 1 << 14;

/// Elements that a thread computes.
pub(crate) fn lanes(fusion: &Fusion<'_>, nest: &Nest, elements: i64) -> u32 {
    let innermost = nest.loops.last().map_or(1, |l| l.extent);
    // The last vector of a single loop may overlap the one before. Rows must be whole vectors, or
    // all but the first would begin between aligned addresses.
    let is_single = nest.loops.len() == 1;
    let mut lanes = reduce::lanes(fusion, if is_single { 0 } else { innermost });
    while lanes > 1 && elements / lanes < MIN_THREADS {
        lanes /= 2;
    }
    let is_plain = nest.across.is_empty()
        && fusion.instructions().into_iter().all(|id| match fusion.body[id].op() {
            Op::Slice { slice } => slice.iter().all(|d| d.stride == 1),
            Op::Broadcast { .. }
            | Op::Constant { .. }
            | Op::Copy {}
            | Op::DynamicSlice { .. }
            | Op::Iota { .. }
            | Op::Reshape {}
            | Op::Bitcast {}
            | Op::Transpose { .. } => true,
            op => op.is_elementwise(),
        });
    if is_plain { lanes as u32 } else { 1 }
}
