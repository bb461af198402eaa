//! Recomputes large arrays, which derive cheaply from one other array, at their readers.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, Traits};
use shape::{ArrayShape, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Duplicates cheap arrays for each reader, so that each reader can fuse them.
///
/// `y = x - broadcast(mean)` and similar instructions read one large array that is in memory
/// anyway. Reading `x` and subtracting costs the readers of `y` nothing compared with their memory
/// accesses, and `y` need not be written. Only large elementwise arrays with several readers are
/// copied, and only if all readers can compute them. An array that is read through a reshape that
/// splits a dimension, as `tree-reduction-rewriter` adds them, is computed in the dimensions after
/// the split, so that the reduction fuses it.
///
/// A large array of one number that begins several elements of states of loops is made for each,
/// because loops change their state in place: a copy would also read it. Exact for every input.
pub struct ProducerDuplication;

impl Pass for ProducerDuplication {
    fn name(&self) -> &'static str {
        "producer-duplication"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let changed_here = duplicate(computation);
            if changed_here {
                crate::simplify::dce::sweep(computation);
            }
            changed |= changed_here;
        }
        Ok(changed.into())
    }
}

/// Smaller arrays stay in the caches.
const MIN_BYTES: u64 = 256 << 10;

/// An array with more readers than this is stored.
const MAX_READERS: usize = 8;

/// Upper bound of the copies per original instruction.
const MAX_GROWTH: usize = 1;

fn duplicate(computation: &mut Computation) -> bool {
    let order = computation.post_order();
    let mut budget = 16 + order.len() * MAX_GROWTH;
    let mut changed = false;
    // Readers come first: the operands of their copies are examined later.
    for id in order.into_iter().rev() {
        if is_large_splat(computation, id) {
            changed |= copy_for_loops(computation, id, &mut budget);
            continue;
        }
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

/// Adds a copy for each reader but the first.
fn copy_for_readers(computation: &mut Computation, id: InstructionId, budget: &mut usize) -> bool {
    let readers: BTreeSet<InstructionId> = computation[id].users().iter().copied().collect();
    let mut changed = false;
    for reader in readers.into_iter().skip(1) {
        if *budget == 0 {
            return changed;
        }
        *budget -= 1;
        let copy = copy_of(computation, id);
        let positions: Vec<usize> = (0..computation[reader].operands().len())
            .filter(|&position| computation[reader].operands()[position] == id)
            .collect();
        positions.into_iter().for_each(|position| computation.replace_operand(reader, position, copy));
        changed = true;
    }
    changed
}

/// True if an array is large and has the same number everywhere.
fn is_large_splat(computation: &Computation, id: InstructionId) -> bool {
    matches!(computation[id].op(), Op::Broadcast { dimensions } if dimensions.is_empty())
        && array(computation, id).is_some_and(|shape| shape.byte_size() >= MIN_BYTES)
}

/// Adds a copy for each initial state of a loop that has an array as an element, but one if nothing
/// else reads the array.
fn copy_for_loops(computation: &mut Computation, id: InstructionId, budget: &mut usize) -> bool {
    let readers: BTreeSet<InstructionId> = computation[id].users().iter().copied().collect();
    let begins_loop = |reader: &InstructionId| {
        let is_loop = |user: &InstructionId| matches!(computation[*user].op(), Op::While { .. });
        matches!(computation[*reader].op(), Op::Tuple {}) && computation[*reader].users().iter().any(is_loop)
    };
    let (states, others): (Vec<_>, Vec<_>) = readers.into_iter().partition(begins_loop);
    let elements = states.iter().flat_map(|&state| {
        let operands = computation[state].operands().iter().enumerate();
        operands.filter(|&(_, &operand)| operand == id).map(move |(position, _)| (state, position))
    });
    let elements: Vec<(InstructionId, usize)> = elements.skip(usize::from(others.is_empty())).collect();
    let mut changed = false;
    for (state, position) in elements {
        if *budget == 0 {
            return changed;
        }
        *budget -= 1;
        let copy = copy_of(computation, id);
        computation.replace_operand(state, position, copy);
        changed = true;
    }
    changed
}

fn copy_of(computation: &mut Computation, id: InstructionId) -> InstructionId {
    let original = &computation[id];
    let (name, op, shape) = (original.name().to_owned(), original.op().clone(), original.shape().clone());
    let (operands, metadata) = (original.operands().to_vec(), original.metadata().clone());
    computation.add(&name, op, shape, &operands, metadata)
}

fn array(computation: &Computation, id: InstructionId) -> Option<&ArrayShape> {
    computation[id].shape().as_array().filter(|shape| shape.is_static())
}

fn is_elementwise(computation: &Computation, id: InstructionId) -> bool {
    computation[id].op().opcode().traits().contains(Traits::ELEMENTWISE) && array(computation, id).is_some()
}

/// True if an instruction may be duplicated, or moved to its only reader.
fn may_compute(computation: &Computation, id: InstructionId) -> bool {
    computation[id].users().len() == 1 || is_cheap(computation, id)
}

/// True if an array is large, costs a few operations on one large array that is in memory anyway,
/// and has only readers that can compute it.
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

/// True if an array derives from a smaller one or from a constant.
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
    /// The sizes of the two new dimensions.
    sizes: [i64; 2],
}

impl Split {
    /// The split of a reshape that only reductions read.
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

    /// The array after the split. Elementwise instructions without other users are computed there.
    fn apply(
        &self,
        computation: &mut Computation,
        id: InstructionId,
        copies: &mut BTreeMap<InstructionId, InstructionId>,
        budget: &mut usize,
    ) -> InstructionId {
        // Operands first, with an explicit stack, because chains may be long.
        let mut pending = vec![id];
        while let Some(&current) = pending.last() {
            if copies.contains_key(&current) {
                pending.pop();
                continue;
            }
            let is_computed = is_elementwise(computation, current)
                && *budget > copies.len()
                && (current == id || may_compute(computation, current));
            let operands = if is_computed { computation[current].operands() } else { &[] };
            let missing: Vec<InstructionId> =
                operands.iter().filter(|o| !copies.contains_key(o)).copied().collect();
            if !missing.is_empty() {
                pending.extend(missing);
                continue;
            }
            let copy = self.one(computation, current, is_computed, copies);
            copies.insert(current, copy);
        }
        *budget = budget.saturating_sub(copies.len());
        copies[&id]
    }

    /// One instruction after the split, given its operands there if it is computed.
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

    /// A shape with one dimension split.
    fn shape(&self, original: &ArrayShape, dimension: usize) -> ArrayShape {
        let mut sizes = original.sizes();
        sizes.splice(dimension..=dimension, self.sizes);
        ArrayShape::new(original.element_type, &sizes)
    }
}
