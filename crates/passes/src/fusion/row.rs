//! Row fusion: merges reductions along rows and the instructions that need their results.

mod group;
mod rewrite;
mod rows;

use crate::pass::{Changed, Pass};
use group::Groups;
use hlo::{ComputationId, Module};
use support::Result;

/// Fuses row patterns: softmax and its logarithm, cross entropy, and normalization by mean and
/// variance or by a norm.
///
/// A group is connected. It contains a reduction over the last dimensions of an array, reductions
/// of arrays with the same dimensions, elementwise work on such arrays and on arrays with one
/// element per row, and broadcasts along rows between the two. It is also closed: no instruction
/// outside of it lies between two of its instructions. The kernel walks row after row, so
/// intermediate values of a row are in the cache, and only the group's results are stored. If there
/// are several results, the fusion's value is a tuple. Exact for every input.
pub struct RowFusion {
    /// Upper bound of the instructions per fusion, which bounds the size of a kernel.
    pub max_instructions: usize,
    /// Upper bound of the operands per fusion.
    pub max_operands: usize,
    /// Upper bound of the bytes per row. Walking longer rows several times is no better than
    /// reading from memory, and they distribute badly over workers.
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
        let groups = Groups::new(self, module, id).groups;
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
