//! Large arrays that are cheap to make of one other array are made where they are read.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, Traits};
use shape::{ArrayShape, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Computes cheap arrays again for each reader, so that each fuses them.
///
/// `y = x - broadcast(mean)` and its like read one large array that is in memory anyway. To read `x` and subtract costs the
/// readers of `y` nothing beside what they wait for, and `y` need not be written. Only elementwise arrays of several
/// readers are copied, all of whose readers can compute them, and only large ones. What is read through a reshape that
/// splits a dimension, as `tree-reduction-rewriter` makes them, is computed in the dimensions behind it, so that the
/// reduction fuses it. Exact for every input.
pub struct ProducerDuplication;

impl Pass for ProducerDuplication {
    fn name(&self) -> &'static str {
        "producer-duplication"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let is_changed = duplicate(computation);
            if is_changed {
                crate::simplify::dce::sweep(computation);
            }
            changed |= is_changed;
        }
        Ok(changed.into())
    }
}

/// Smaller arrays stay in the caches.
const MIN_BYTES: u64 = 256 << 10;

/// An array of more readers is stored.
const MAX_READERS: usize = 8;

/// How many copies are made for each instruction that there was, at most.
const MAX_GROWTH: usize = 1;

fn duplicate(computation: &mut Computation) -> bool {
    let order = computation.post_order();
    let mut budget = 16 + order.len() * MAX_GROWTH;
    let mut changed = false;
    // Readers first: what one of their copies reads is looked at later.
    for id in order.into_iter().rev() {
        if let Some(split) = Split::of(computation, id) {
            let input = computation[id].operands()[0];
            if is_elementwise(computation, input) && may_compute(computation, input) && budget > 0 {
                let mut copies = BTreeMap::new();
                let copy = split.apply(computation, input, &mut copies, &mut budget);
                computation.replace_all_uses(id, copy);
                changed = true;
            }
            continue;
        }
        if is_elementwise(computation, id) && is_cheap(computation, id) {
            changed |= copy_for_readers(computation, id, &mut budget);
        }
    }
    changed
}

/// A copy for each reader but the first one.
fn copy_for_readers(computation: &mut Computation, id: InstructionId, budget: &mut usize) -> bool {
    let readers: BTreeSet<InstructionId> = computation[id].users().iter().copied().collect();
    let mut changed = false;
    for reader in readers.into_iter().skip(1) {
        if *budget == 0 {
            return changed;
        }
        *budget -= 1;
        let original = &computation[id];
        let (name, op, shape) = (original.name().to_owned(), original.op().clone(), original.shape().clone());
        let (operands, metadata) = (original.operands().to_vec(), original.metadata().clone());
        let copy = computation.add(&name, op, shape, &operands, metadata);
        let positions: Vec<usize> = (0..computation[reader].operands().len())
            .filter(|&position| computation[reader].operands()[position] == id)
            .collect();
        positions.into_iter().for_each(|position| computation.replace_operand(reader, position, copy));
        changed = true;
    }
    changed
}

fn array(computation: &Computation, id: InstructionId) -> Option<&ArrayShape> {
    computation[id].shape().as_array().filter(|shape| shape.is_static())
}

fn is_elementwise(computation: &Computation, id: InstructionId) -> bool {
    computation[id].op().opcode().traits().contains(Traits::ELEMENTWISE) && array(computation, id).is_some()
}

/// Whether an instruction may be computed once more, or for its one reader elsewhere.
fn may_compute(computation: &Computation, id: InstructionId) -> bool {
    computation[id].users().len() == 1 || is_cheap(computation, id)
}

/// Whether an array is large, costs a few operations on one large array that is in memory anyway, and is read by what can
/// compute it only.
fn is_cheap(computation: &Computation, id: InstructionId) -> bool {
    let instruction = &computation[id];
    let op = matches!(
        instruction.op(),
        Op::Add {}
            | Op::Subtract {}
            | Op::Multiply {}
            | Op::Maximum {}
            | Op::Minimum {}
            | Op::Negate {}
            | Op::Abs {}
            | Op::Compare { .. }
            | Op::And {}
            | Op::Or {}
            | Op::Not {}
    );
    let Some(own) = array(computation, id).filter(|shape| op && shape.byte_size() >= MIN_BYTES) else {
        return false;
    };
    let readers: BTreeSet<InstructionId> = instruction.users().iter().copied().collect();
    let can_compute = |&reader: &InstructionId| {
        let first = computation[reader].operands()[0] == id;
        match computation[reader].op() {
            Op::Reduce { .. } => first && computation[reader].operands().len() == 2,
            Op::Reshape {} => Split::of(computation, reader).is_some(),
            _ => is_elementwise(computation, reader),
        }
    };
    let is_read = (2..=MAX_READERS).contains(&readers.len()) && readers.iter().all(can_compute);
    let large: BTreeSet<InstructionId> =
        instruction.operands().iter().copied().filter(|&operand| !is_spread(computation, operand)).collect();
    let mut large = large.into_iter();
    let (Some(source), None) = (large.next(), large.next()) else { return false };
    let fits = array(computation, source).is_some_and(|s| s.byte_size() <= own.byte_size());
    is_read && fits && computation[source].users().iter().any(|&user| user != id)
}

/// Whether an array is made of a smaller one, or of nothing.
fn is_spread(computation: &Computation, id: InstructionId) -> bool {
    match computation[id].op() {
        Op::Constant { literal } => literal.is_splat(),
        Op::Broadcast { .. } => true,
        _ => false,
    }
}

/// A reshape that splits one dimension.
struct Split {
    dimension: usize,
    /// The sizes that the dimension becomes.
    sizes: [i64; 2],
}

impl Split {
    /// The split that a reshape does before reductions read it.
    fn of(computation: &Computation, id: InstructionId) -> Option<Self> {
        if !matches!(computation[id].op(), Op::Reshape {}) {
            return None;
        }
        let is_reduced = |&user: &InstructionId| matches!(computation[user].op(), Op::Reduce { .. });
        let users = computation[id].users();
        if users.is_empty() || !users.iter().all(is_reduced) {
            return None;
        }
        let from = array(computation, computation[id].operands()[0])?.sizes();
        let to = array(computation, id)?.sizes();
        let dimension = from.iter().zip(&to).position(|(f, t)| f != t)?;
        let is_split = to.len() == from.len() + 1
            && to[dimension].checked_mul(to[dimension + 1]) == Some(from[dimension])
            && to[dimension + 2..] == from[dimension + 1..];
        is_split.then(|| Self { dimension, sizes: [to[dimension], to[dimension + 1]] })
    }

    /// An array behind the split: computed there as far as it is elementwise and nobody else needs it.
    fn apply(
        &self,
        computation: &mut Computation,
        id: InstructionId,
        copies: &mut BTreeMap<InstructionId, InstructionId>,
        budget: &mut usize,
    ) -> InstructionId {
        // Operands before what they are of, with a stack of its own: chains may be long.
        let mut pending = vec![id];
        while let Some(&at) = pending.last() {
            if copies.contains_key(&at) {
                pending.pop();
                continue;
            }
            let goes_on = is_elementwise(computation, at)
                && *budget > copies.len()
                && (at == id || may_compute(computation, at));
            let operands = if goes_on { computation[at].operands() } else { &[] };
            let missing: Vec<InstructionId> =
                operands.iter().filter(|o| !copies.contains_key(o)).copied().collect();
            if !missing.is_empty() {
                pending.extend(missing);
                continue;
            }
            let copy = self.one(computation, at, goes_on, copies);
            copies.insert(at, copy);
        }
        *budget = budget.saturating_sub(copies.len());
        copies[&id]
    }

    /// One instruction behind the split, given its operands there if it is computed.
    fn one(
        &self,
        computation: &mut Computation,
        id: InstructionId,
        is_computed: bool,
        copies: &BTreeMap<InstructionId, InstructionId>,
    ) -> InstructionId {
        let original = &computation[id];
        let (name, op, metadata) =
            (original.name().to_owned(), original.op().clone(), original.metadata().clone());
        let own = original.shape().expect_array().clone();
        if own.rank() == 0 {
            return id;
        }
        let shape = Shape::Array(self.shape(&own, self.dimension));
        if is_computed {
            let operands: Vec<InstructionId> = original.operands().iter().map(|o| copies[o]).collect();
            return computation.add(&name, op, shape, &operands, metadata);
        }
        let Op::Broadcast { dimensions } = op else {
            return computation.add("", Op::Reshape {}, shape, &[id], metadata);
        };
        let operand = original.operands()[0];
        let split = dimensions.iter().position(|&d| d == self.dimension);
        let operand = match split {
            Some(place) => {
                let shape = self.shape(computation[operand].shape().expect_array(), place);
                computation.add("", Op::Reshape {}, Shape::Array(shape), &[operand], metadata.clone())
            }
            None => operand,
        };
        let mut moved = Vec::with_capacity(dimensions.len() + 1);
        for d in dimensions {
            moved.push(if d > self.dimension { d + 1 } else { d });
            if d == self.dimension {
                moved.push(d + 1);
            }
        }
        computation.add(&name, Op::Broadcast { dimensions: moved }, shape, &[operand], metadata)
    }

    /// A shape with one of its dimensions split.
    fn shape(&self, of: &ArrayShape, dimension: usize) -> ArrayShape {
        let mut sizes = of.sizes();
        sizes.splice(dimension..=dimension, self.sizes);
        ArrayShape::new(of.element_type, &sizes)
    }
}
