//! Instructions that are computed on the tiles of a contraction.

use hlo::{Computation, InstructionId, Op};
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};

/// The instructions of a computation that may be computed on tiles.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    /// Contractions, and the instructions that follow one, each the only reader of the one before; and how many steps they
    /// are away from it.
    steps: BTreeMap<InstructionId, usize>,
    /// Those that the reader of several is not computed with. It goes where the fewest steps lead to it, so a sum of many
    /// products grows in one array, and no product waits in memory for the last.
    apart: BTreeSet<InstructionId>,
}

impl Tiles {
    /// Finds them in a post-order. `may_follow` says which instructions can work on tiles.
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

    /// Adds an instruction that follows others, if it does.
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
        // Of two that are equally near the later one: it need not wait for what the other's array holds.
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
