//! Computes what is known.

use crate::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, Traits};
use shape::Literal;
use support::Result;

/// Replaces instructions with constant operands by their value, as the evaluator computes it.
///
/// Exact for every input, but for the last bits of transcendentals. Instructions whose result is large, or larger than
/// what they are made of (`broadcast`, `iota`), stay.
pub struct ConstantFolding {
    /// Bytes of the largest result that is folded.
    pub max_bytes: u64,
    /// Multiplications and the like that one fold may cost.
    pub max_work: i64,
}

impl Default for ConstantFolding {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_work: 1 << 22 }
    }
}

impl Pass for ConstantFolding {
    fn name(&self) -> &'static str {
        "constant-folding"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in module.post_order() {
            for instruction in module[id].post_order() {
                if !self.is_foldable(&module[id], instruction) {
                    continue;
                }
                let computation = &module[id];
                let current = &computation[instruction];
                let operands: Vec<&Literal> = current
                    .operands()
                    .iter()
                    .map(|&o| constant(computation, o).expect("foldable operands are constant"))
                    .collect();
                // What the evaluator cannot do stays as it is; the code generator says if it cannot either.
                let Ok(literal) = evaluator::evaluate_instruction(module, current.op(), current.shape(), &operands)
                else {
                    continue;
                };
                let metadata = current.metadata().clone();
                let computation = module.computation_mut(id);
                let shape = literal.shape();
                let folded = computation.add("", Op::Constant { literal }, shape, &[], metadata);
                computation.replace_all_uses(instruction, folded);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

impl ConstantFolding {
    fn is_foldable(&self, computation: &Computation, id: InstructionId) -> bool {
        let instruction = &computation[id];
        let excluded = matches!(
            instruction.op(),
            Op::Constant { .. }
                | Op::Parameter { .. }
                | Op::Iota { .. }
                | Op::Tuple {}
                | Op::GetTupleElement { .. }
                | Op::CustomCall { .. }
                | Op::While { .. }
                | Op::Conditional { .. }
                | Op::Fusion { .. }
                | Op::Call { .. }
                | Op::OptimizationBarrier {}
                | Op::AfterAll {}
        );
        let Some(result) = instruction.shape().as_array() else { return false };
        if excluded || instruction.opcode().traits().contains(Traits::SIDE_EFFECT) || !result.is_static() {
            return false;
        }
        let mut operand_bytes: u64 = 0;
        for &operand in instruction.operands() {
            let Some(literal) = constant(computation, operand) else { return false };
            operand_bytes = operand_bytes.saturating_add(literal.shape().byte_size());
        }
        let grows = result.byte_size() > operand_bytes.max(64);
        !grows && result.byte_size() <= self.max_bytes && self.work(computation, id) <= self.max_work
    }

    /// Roughly how many steps the evaluator takes.
    fn work(&self, computation: &Computation, id: InstructionId) -> i64 {
        let instruction = &computation[id];
        let count = |id: InstructionId| computation[id].shape().as_array().map_or(1, |s| s.element_count());
        let operands = instruction.operands().iter().fold(0i64, |sum, &o| sum.saturating_add(count(o)));
        let inner = match instruction.op() {
            Op::Dot { dot_dimension_numbers: numbers } => {
                let lhs = computation[instruction.operands()[0]].shape().expect_array();
                numbers.lhs_contracting_dims.iter().fold(1i64, |k, &d| k.saturating_mul(lhs.size(d)))
            }
            Op::Convolution { window, .. } | Op::ReduceWindow { window, .. } => {
                window.dimensions.iter().fold(64i64, |k, d| k.saturating_mul(d.size))
            }
            _ => 1,
        };
        count(id).saturating_mul(inner).saturating_add(operands)
    }
}

fn constant(computation: &Computation, id: InstructionId) -> Option<&Literal> {
    match computation[id].op() {
        Op::Constant { literal } => Some(literal),
        _ => None,
    }
}
