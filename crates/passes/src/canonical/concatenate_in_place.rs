//! Rewrites concatenations of contraction results into chains of slice updates.
//!
//! A contraction that ends in a slice update writes its rows at their destination, so the
//! concatenation costs nothing. The initial array of the chain is never filled: the plan detects
//! that all of it is overwritten.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::Result;

/// Lets contractions write their results directly into a concatenation.
///
/// `concatenate(x, y) => dynamic-update-slice(dynamic-update-slice(broadcast(0), x, 0), y, size of
/// x)`, if at least half of the bytes come from contractions without other users. Results of
/// contractions are written first, in the order of the graph, so that the array is not needed
/// earlier. Exact for every input.
pub struct ConcatenateInPlace;

impl Pass for ConcatenateInPlace {
    fn name(&self) -> &'static str {
        "concatenate-in-place"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let order = module[id].post_order();
            let numbers: BTreeMap<InstructionId, usize> =
                order.iter().enumerate().map(|(number, &id)| (id, number)).collect();
            for instruction in order {
                let computation = module.computation_mut(id);
                let Some(in_place) = operands_to_compute_in_place(computation, instruction) else { continue };
                let rewritten = rewrite(computation, instruction, &in_place, &numbers);
                computation.replace_all_uses(instruction, rewritten);
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Minimum bytes to write in place. Copying less takes almost no time, and one kernel instead of
/// several.
const MIN_BYTES: u64 = 16 << 10;

/// For each operand of a concatenation, true if a contraction without other users computes it.
/// `None` if writing in place does not pay off.
fn operands_to_compute_in_place(computation: &Computation, id: InstructionId) -> Option<Vec<bool>> {
    let Op::Concatenate { .. } = computation[id].op() else { return None };
    let array = |id: InstructionId| computation[id].shape().as_array().filter(|array| array.is_static());
    let bytes = array(id)?.byte_size();
    let operands = computation[id].operands();
    let in_place: Vec<bool> =
        operands.iter().map(|&operand| comes_from_contraction(computation, operand)).collect();
    let mut bytes_in_place = 0u64;
    for (&operand, _) in operands.iter().zip(&in_place).filter(|(_, in_place)| **in_place) {
        bytes_in_place += array(operand)?.byte_size();
    }
    (bytes_in_place >= MIN_BYTES && bytes_in_place >= bytes / 2).then_some(in_place)
}

/// Upper bound of the instructions that the search for a contraction visits.
const MAX_STEPS: usize = 64;

/// True if an instruction has one user and applies only elementwise operations to the result of a
/// contraction.
fn comes_from_contraction(computation: &Computation, id: InstructionId) -> bool {
    let count = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::element_count);
    if computation[id].users().len() != 1 || computation.root() == id {
        return false;
    }
    let mut pending = vec![id];
    for _ in 0..MAX_STEPS {
        let Some(current) = pending.pop() else { return false };
        let op = computation[current].op();
        match op {
            _ if op.is_contraction() => return count(current) == count(id),
            Op::Reshape {} | Op::Bitcast {} => {}
            _ if op.is_elementwise() => {}
            _ => continue,
        }
        pending
            .extend(computation[current].operands().iter().filter(|&&operand| count(operand) == count(id)));
    }
    false
}

/// The chain of updates: first those computed in place, in the order of the graph, then those that
/// are copied.
fn rewrite(
    computation: &mut Computation,
    id: InstructionId,
    in_place: &[bool],
    numbers: &BTreeMap<InstructionId, usize>,
) -> InstructionId {
    let Op::Concatenate { dimension } = *computation[id].op() else { return id };
    let metadata = computation[id].metadata().clone();
    let array = computation[id].shape().expect_array().clone();
    let mut offset = 0;
    let mut pieces = Vec::new();
    for (&operand, &in_place) in computation[id].operands().iter().zip(in_place) {
        let size = computation[operand].shape().expect_array().size(dimension);
        pieces.push((!in_place, numbers.get(&operand).copied(), offset, operand));
        offset += size;
    }
    pieces.sort_unstable();
    let constant = |computation: &mut Computation, literal: Literal| {
        computation.add("", Op::Constant { literal: literal.clone() }, literal.shape(), &[], metadata.clone())
    };
    let start =
        |number| Literal::from_scalars(ArrayShape::new(PrimitiveType::S64, &[]), [Scalar::Signed(number)]);
    let element = ArrayShape::new(array.element_type, &[]);
    let zeros = vec![0; element.byte_size() as usize];
    let Some(zero) = Literal::from_bytes(element, zeros.into()) else { return id };
    let nothing = constant(computation, zero);
    let first = constant(computation, start(0));
    let mut starts = vec![first; array.rank()];
    let broadcast = Op::Broadcast { dimensions: Vec::new() };
    let mut chain = computation.add("", broadcast, array.clone().into(), &[nothing], metadata.clone());
    for (.., offset, operand) in pieces {
        starts[dimension] = constant(computation, start(offset));
        let operands: Vec<InstructionId> = [chain, operand].iter().chain(&starts).copied().collect();
        let update = Op::DynamicUpdateSlice {};
        chain = computation.add("", update, array.clone().into(), &operands, metadata.clone());
    }
    chain
}
