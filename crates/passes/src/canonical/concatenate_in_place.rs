//! Concatenations of what contractions make, as chains of slice updates.
//!
//! A contraction that ends in a slice update writes its rows where they belong, so the concatenation costs nothing. The array
//! that the chain begins with is never made: the plan sees that all of it is overwritten.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeMap;
use support::Result;

/// Lets contractions write where a concatenation wants their results.
///
/// `concatenate(x, y) => dynamic-update-slice(dynamic-update-slice(broadcast(0), x, 0), y, size of x)`, if at least half of
/// the bytes are made by contractions for nobody else. What contractions make is written first, in the order of the graph,
/// so that the array is not needed before. Exact for every input.
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
                let Some(made) = operands_made_in_place(computation, instruction) else { continue };
                let rewritten = rewrite(computation, instruction, &made, &numbers);
                computation.replace_all_uses(instruction, rewritten);
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// Less is copied in no time, and by one kernel rather than several.
const MIN_BYTES: u64 = 16 << 10;

/// Which operands of a concatenation contractions make for nobody else, if it pays to write them in place.
fn operands_made_in_place(computation: &Computation, id: InstructionId) -> Option<Vec<bool>> {
    let Op::Concatenate { .. } = computation[id].op() else { return None };
    let array = |id: InstructionId| computation[id].shape().as_array().filter(|array| array.is_static());
    let bytes = array(id)?.byte_size();
    let operands = computation[id].operands();
    let made: Vec<bool> =
        operands.iter().map(|&operand| is_made_by_contraction(computation, operand)).collect();
    let mut in_place = 0u64;
    for (&operand, _) in operands.iter().zip(&made).filter(|(_, made)| **made) {
        in_place += array(operand)?.byte_size();
    }
    (in_place >= MIN_BYTES && in_place >= bytes / 2).then_some(made)
}

/// How many instructions the search for a contraction looks at.
const MAX_STEPS: usize = 64;

/// Whether one user reads an instruction, which works element by element on what a contraction makes.
fn is_made_by_contraction(computation: &Computation, id: InstructionId) -> bool {
    let count = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::element_count);
    if computation[id].users().len() != 1 || computation.root() == id {
        return false;
    }
    let mut pending = vec![id];
    for _ in 0..MAX_STEPS {
        let Some(at) = pending.pop() else { return false };
        let op = computation[at].op();
        match op {
            _ if op.is_contraction() => return count(at) == count(id),
            Op::Reshape {} | Op::Bitcast {} => {}
            _ if op.is_elementwise() => {}
            _ => continue,
        }
        pending.extend(computation[at].operands().iter().filter(|&&operand| count(operand) == count(id)));
    }
    false
}

/// The chain of updates: first what is made in place, in the order of the graph, then what is copied.
fn rewrite(
    computation: &mut Computation,
    id: InstructionId,
    made: &[bool],
    numbers: &BTreeMap<InstructionId, usize>,
) -> InstructionId {
    let Op::Concatenate { dimension } = *computation[id].op() else { return id };
    let metadata = computation[id].metadata().clone();
    let array = computation[id].shape().expect_array().clone();
    let mut offset = 0;
    let mut pieces = Vec::new();
    for (&operand, &made) in computation[id].operands().iter().zip(made) {
        let size = computation[operand].shape().expect_array().size(dimension);
        pieces.push((!made, numbers.get(&operand).copied(), offset, operand));
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
