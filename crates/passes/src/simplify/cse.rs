//! Common subexpression elimination.

use crate::pass::{Changed, Pass};
use hlo::{Computation, ComputationId, Instruction, InstructionId, Module, Op};
use shape::{Literal, Shape};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// `f(a), f(a) => f(a)` for instructions with equal op, operands, and shape, for every input. Small
/// computations that they call may be different ones that do the same, as frontends write one for
/// each sum.
pub struct CommonSubexpressionElimination;

impl Pass for CommonSubexpressionElimination {
    fn name(&self) -> &'static str {
        "cse"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        let effects = computations_with_effects(module);
        let mut same = SameComputations::default();
        for id in module.post_order() {
            let computation = module.computation_mut(id);
            // Candidates by opcode, operands, and some bytes of a constant. Attributes and the
            // other bytes are compared linearly.
            let mut seen: BTreeMap<(hlo::Opcode, Vec<InstructionId>, Sample), Vec<InstructionId>> =
                BTreeMap::new();
            for instruction in computation.post_order() {
                let current = &computation[instruction];
                if !may_merge(current, &effects) {
                    continue;
                }
                let key = (current.opcode(), current.operands().to_vec(), sample(current.op()));
                let candidates = seen.entry(key).or_default();
                let equal = candidates.iter().copied().find(|&other| {
                    let other = &computation[other];
                    other.shape() == current.shape() && same.op(other.op()) == same.op(current.op())
                });
                match equal {
                    Some(other) => {
                        computation.replace_all_uses(instruction, other);
                        changed = true;
                    }
                    None if candidates.len() < MAX_CANDIDATES => candidates.push(instruction),
                    None => {}
                }
            }
            same.add(id, computation);
        }
        Ok(changed.into())
    }
}

/// Small computations, of which equal ones have one representative.
#[derive(Default)]
struct SameComputations {
    /// Those that do the same as one before, and that one.
    first: BTreeMap<ComputationId, ComputationId>,
    /// The different ones by their number of instructions.
    forms: BTreeMap<usize, Vec<(ComputationId, Form)>>,
}

/// The instructions of a computation from its parameters to its root: ops, numbers of the operands,
/// and shapes.
type Form = Vec<(Op, Vec<usize>, Shape)>;

/// Maximum number of instructions of a computation that is compared with others.
const MAX_INSTRUCTIONS: usize = 16;

impl SameComputations {
    /// Returns an op that calls representatives.
    fn op<'a>(&self, op: &'a Op) -> Cow<'a, Op> {
        if !op.called_computations().iter().any(|callee| self.first.contains_key(callee)) {
            return Cow::Borrowed(op);
        }
        let mut op = op.clone();
        op.map_called_computations(|callee| self.first.get(&callee).copied().unwrap_or(callee));
        Cow::Owned(op)
    }

    /// Adds a computation, after all that it calls.
    fn add(&mut self, id: ComputationId, computation: &Computation) {
        let order = computation.post_order();
        if order.len() > MAX_INSTRUCTIONS {
            return;
        }
        let number: BTreeMap<InstructionId, usize> = order.iter().copied().zip(0..).collect();
        let form_of = |&id: &InstructionId| {
            let instruction = &computation[id];
            let operands = instruction.operands().iter().map(|operand| number[operand]).collect();
            (self.op(instruction.op()).into_owned(), operands, instruction.shape().clone())
        };
        let form: Form = order.iter().map(form_of).collect();
        let others = self.forms.entry(form.len()).or_default();
        match others.iter().find(|(_, other)| *other == form) {
            Some(&(first, _)) => {
                self.first.insert(id, first);
            }
            None if others.len() < MAX_CANDIDATES => others.push((id, form)),
            None => {}
        }
    }
}

/// Maximum number of different constants or computations with which a new one is compared. Beyond
/// it, equal ones may remain.
const MAX_CANDIDATES: usize = 256;

/// Some bytes of a constant array: the first, middle, and last ones. Empty for other instructions.
type Sample = [u8; 3 * SAMPLE];

/// Number of bytes in each part of a sample.
const SAMPLE: usize = 16;

fn sample(op: &Op) -> Sample {
    let mut sample = [0; 3 * SAMPLE];
    if let Op::Constant { literal: literal @ Literal::Array { .. } } = op {
        let bytes = literal.bytes();
        let starts = [0, bytes.len() / 2, bytes.len().saturating_sub(SAMPLE)];
        for (part, start) in sample.chunks_exact_mut(SAMPLE).zip(starts) {
            let bytes = &bytes[start..bytes.len().min(start + SAMPLE)];
            part[..bytes.len()].copy_from_slice(bytes);
        }
    }
    sample
}

/// The computations that have an effect, directly or through their callees.
fn computations_with_effects(module: &Module) -> BTreeSet<ComputationId> {
    let mut effects = BTreeSet::new();
    for id in module.post_order() {
        let has_effect = module[id].instructions().any(|(_, instruction)| has_effect(instruction, &effects));
        if has_effect {
            effects.insert(id);
        }
    }
    effects
}

fn has_effect(instruction: &Instruction, effects: &BTreeSet<ComputationId>) -> bool {
    instruction.has_effect()
        || instruction.op().called_computations().iter().any(|callee| effects.contains(callee))
}

fn may_merge(instruction: &Instruction, effects: &BTreeSet<ComputationId>) -> bool {
    let custom = matches!(instruction.op(), Op::Parameter { .. } | Op::CustomCall { .. });
    !custom && !has_effect(instruction, effects)
}
