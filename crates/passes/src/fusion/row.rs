//! Row fusion: reductions along rows and what needs their results, in one fusion.

mod group;
mod rewrite;
mod rows;

use crate::pass::{Changed, Pass};
use group::Groups;
use hlo::{ComputationId, Module};
use support::Result;

/// Fuses row patterns: softmax and its logarithm, cross entropy, normalisation by mean and variance or by a norm.
///
/// A group is connected: a reduction over the last dimensions of an array, reductions of arrays with the same dimensions,
/// elementwise work on such arrays and on what has one element for each row, and broadcasts along rows between the two. It
/// is closed: nothing outside of it lies between two of its instructions. The kernel walks row after row, so what is
/// computed for a row is in the cache, and is not stored but for the group's results; with several the fusion's value is a
/// tuple. Exact for every input.
pub struct RowFusion {
    /// The most instructions in one fusion; bounds the size of a kernel.
    pub max_instructions: usize,
    /// The most operands of one fusion.
    pub max_operands: usize,
    /// Rows of more bytes are no better walked several times than read from memory, and share out badly.
    pub max_row_bytes: u64,
}

impl Default for RowFusion {
    fn default() -> Self {
        Self { max_instructions: 128, max_operands: 32, max_row_bytes: 256 << 10 }
    }
}

impl Pass for RowFusion {
    fn name(&self) -> &'static str {
        "row-fusion"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            changed |= self.fuse(module, id);
        }
        Ok(changed.into())
    }
}

impl RowFusion {
    fn fuse(&self, module: &mut Module, id: ComputationId) -> bool {
        let groups = Groups::new(self, module, id).found;
        let mut replaced = rewrite::Replaced::new();
        for group in &groups {
            rewrite::replace(module, id, group, &mut replaced);
        }
        !groups.is_empty() && {
            crate::simplify::dce::sweep(module.computation_mut(id));
            true
        }
    }
}
