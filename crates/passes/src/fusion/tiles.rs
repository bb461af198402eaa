//! Instructions that are computed on the tiles of a contraction.

use hlo::{Computation, InstructionId, Op};
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};

/// The instructions of a computation that may be computed on tiles.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    /// Contractions, and the instructions that follow one, each the only reader of the previous
    /// one, with their distance in steps from the contraction.
    steps: BTreeMap<InstructionId, usize>,
    /// Instructions that are not computed with their only reader, because it follows another
    /// contraction. A reader of several follows the one that is the fewest steps away. A sum of
    /// many products therefore accumulates in one array, and no product waits in memory for the
    /// last one.
    apart: BTreeSet<InstructionId>,
}

impl Tiles {
    /// Finds the instructions in a post-order. `may_follow` returns true for instructions that can
    /// work on tiles.
    pub(super) fn new(
        computation: &Computation,
        order: &[InstructionId],
        may_follow: impl Fn(InstructionId) -> bool,
    ) -> Self {
        let mut tiles = Self::default();
        for &id in order {
            if computation[id].op().is_contraction() {
                tiles.steps.insert(id, 0);
            } else if may_follow(id) {
                tiles.follow(computation, id);
            }
        }
        tiles
    }

    /// Adds an instruction if it follows others.
    fn follow(&mut self, computation: &Computation, id: InstructionId) {
        let sizes = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::sizes);
        let moves = matches!(computation[id].op(), Op::Reshape {} | Op::Bitcast {} | Op::Transpose { .. });
        let continues = |operand: &InstructionId| {
            self.steps.contains_key(operand)
                && computation[*operand].users().len() == 1
                && (moves || sizes(*operand) == sizes(id))
        };
        let operands: BTreeSet<InstructionId> =
            computation[id].operands().iter().copied().filter(continues).collect();
        // Among equally near operands, the later one is chosen, because it need not wait for the
        // other's array.
        let nearest = computation[id].operands().iter().rev().filter(|operand| operands.contains(operand));
        let Some(&nearest) = nearest.min_by_key(|operand| self.steps[operand]) else { return };
        self.steps.insert(id, self.steps[&nearest] + 1);
        self.apart.extend(operands.into_iter().filter(|&operand| operand != nearest));
    }

    /// True if an instruction may be computed on tiles.
    pub(super) fn contains(&self, id: InstructionId) -> bool {
        self.steps.contains_key(&id)
    }

    /// True if an instruction is computed on the tiles of another contraction than its only reader.
    pub(super) fn is_apart(&self, id: InstructionId) -> bool {
        self.apart.contains(&id)
    }
}
