//! Instructions that are computed on the tiles of a contraction.

use hlo::{Computation, InstructionId, Op};
use shape::ArrayShape;
use std::collections::{BTreeMap, BTreeSet};

/// The instructions of a computation that may be computed on tiles.
#[derive(Debug, Default)]
pub(super) struct Tiles {
    /// Contractions, and the instructions that follow one, with the contraction and their distance
    /// from it in steps. Each is the only reader of the previous one, or all of its readers lead to
    /// one instruction.
    steps: BTreeMap<InstructionId, (InstructionId, usize)>,
    /// Instructions with several readers that lead to one instruction.
    joined: BTreeSet<InstructionId>,
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
        let places: BTreeMap<InstructionId, usize> =
            order.iter().enumerate().map(|(place, &id)| (id, place)).collect();
        for &id in order {
            if computation[id].op().is_contraction() {
                tiles.steps.insert(id, (id, 0));
            } else if may_follow(id) {
                tiles.follow(computation, id);
            }
            let is_split = tiles.contains(id) && computation[id].users().len() > 1;
            if is_split && joins(computation, &places, id, &may_follow) {
                tiles.joined.insert(id);
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
                && (computation[*operand].users().len() == 1 || self.joined.contains(operand))
                && (moves || sizes(*operand) == sizes(id))
        };
        let operands: BTreeSet<InstructionId> =
            computation[id].operands().iter().copied().filter(continues).collect();
        // Among equally near operands, the later one is chosen, because it need not wait for the
        // other's array.
        let nearest = computation[id].operands().iter().rev().filter(|operand| operands.contains(operand));
        let Some(&nearest) = nearest.min_by_key(|operand| self.steps[operand].1) else { return };
        let (contraction, steps) = self.steps[&nearest];
        self.steps.insert(id, (contraction, steps + 1));
        for operand in operands.into_iter().filter(|operand| operand != &nearest) {
            if self.steps[&operand].0 != contraction {
                self.cut(computation, operand);
            }
        }
    }

    /// Separates an instruction from its only reader, which follows another contraction. If the
    /// instructions before it have smaller elements, the array in memory is the smallest of them,
    /// and the reader's tiles compute the rest.
    fn cut(&mut self, computation: &Computation, id: InstructionId) {
        let size =
            |id: InstructionId| computation[id].shape().as_array().map_or(0, |s| s.element_type.byte_size());
        let (mut smallest, mut next, mut between) = (id, id, Vec::new());
        let mut after = Vec::new();
        while let Some(before) = self.only_step(computation, next) {
            between.push(next);
            if size(before) < size(smallest) {
                smallest = before;
                after.clone_from(&between);
            }
            next = before;
        }
        for id in after {
            self.steps.remove(&id);
        }
        self.apart.insert(smallest);
    }

    /// The instruction that an elementwise one follows, if it has no other reader and the one that
    /// follows reads nothing else but constants.
    fn only_step(&self, computation: &Computation, id: InstructionId) -> Option<InstructionId> {
        if !computation[id].op().is_elementwise() {
            return None;
        }
        let is_constant = |id: InstructionId| match computation[id].op() {
            Op::Constant { .. } => true,
            Op::Broadcast { .. } => {
                matches!(computation[computation[id].operands()[0]].op(), Op::Constant { .. })
            }
            _ => false,
        };
        let mut read = computation[id].operands().iter().copied().filter(|&operand| !is_constant(operand));
        let (before, other) = (read.next()?, read.next());
        let is_only = other.is_none() && self.contains(before) && computation[before].users().len() == 1;
        (is_only && !computation[before].op().is_contraction()).then_some(before)
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

/// Upper bound of the instructions between one with several readers and the one to which they lead.
const MAX_BETWEEN: usize = 32;

/// True if all readers of an instruction lead to one instruction of the same size, through
/// instructions that may follow.
fn joins(
    computation: &Computation,
    places: &BTreeMap<InstructionId, usize>,
    id: InstructionId,
    may_follow: &impl Fn(InstructionId) -> bool,
) -> bool {
    let sizes = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::sizes);
    let fits = |id: InstructionId| may_follow(id) && computation[id].op().is_elementwise();
    // Readers in order, so that what is left is one instruction exactly where all paths meet.
    let mut pending: BTreeSet<(usize, InstructionId)> = BTreeSet::new();
    let mut next = id;
    for _ in 0..MAX_BETWEEN {
        let users = computation[next].users().iter();
        pending.extend(users.filter_map(|user| Some((*places.get(user)?, *user))));
        let Some((_, first)) = pending.pop_first() else { return false };
        if !fits(first) || sizes(first) != sizes(id) || computation.root() == first && !pending.is_empty() {
            return false;
        }
        if pending.is_empty() {
            return true;
        }
        next = first;
    }
    false
}
