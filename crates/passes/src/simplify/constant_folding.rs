//! Evaluates constant expressions.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, Window};
use shape::{ArrayShape, Literal};
use support::Result;

/// Replaces instructions with constant operands by the value that the evaluator computes.
///
/// Exact for every input, except for the last bits of transcendental functions. Instructions whose
/// result is large, or larger than their operands (`iota`, `pad`), are left unchanged. The
/// broadcast of a scalar constant counts as a constant, and a result whose elements are all equal
/// becomes such a broadcast.
pub struct ConstantFolding {
    /// Maximum bytes of a folded result, except for constants that are only reordered.
    pub max_bytes: u64,
    /// Maximum cost of one fold, in multiplications or operations as expensive.
    pub max_work: i64,
    /// Maximum cost of all folds of one run. Further instructions are left unchanged.
    pub max_total_work: i64,
}

impl Default for ConstantFolding {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_work: 1 << 22, max_total_work: 1 << 25 }
    }
}

impl Pass for ConstantFolding {
    fn name(&self) -> &'static str {
        "constant-folding"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        let mut remaining_work = self.max_total_work;
        for id in module.post_order() {
            for instruction in module[id].post_order() {
                if !self.is_foldable(&module[id], instruction) {
                    continue;
                }
                let computation = &module[id];
                let work = self.work(computation, instruction);
                if work > remaining_work {
                    continue;
                }
                remaining_work -= work;
                let current = &computation[instruction];
                let operands: Vec<Literal> = current
                    .operands()
                    .iter()
                    .map(|&o| {
                        self.constant(computation, o)
                            .expect("operand of a foldable instruction is not constant")
                    })
                    .collect();
                let operands: Vec<&Literal> = operands.iter().collect();
                // An instruction that the evaluator rejects is left unchanged. If the code
                // generator does not support it either, it reports that.
                let Ok(literal) =
                    evaluator::evaluate_instruction(module, current.op(), current.shape(), &operands)
                else {
                    continue;
                };
                let metadata = current.metadata().clone();
                let computation = module.computation_mut(id);
                let folded = add_constant(computation, literal, metadata);
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
                | Op::Broadcast { .. }
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
        if excluded || instruction.has_effect() || !result.is_static() {
            return false;
        }
        let mut operand_bytes: u64 = 0;
        for &operand in instruction.operands() {
            if self.constant(computation, operand).is_none() {
                return false;
            }
            operand_bytes = operand_bytes.saturating_add(computation[operand].shape().byte_size());
        }
        let grows = result.byte_size() > operand_bytes.max(64);
        let is_small = result.byte_size() <= self.max_bytes || is_moved_constant(computation, id);
        !grows && is_small && self.work(computation, id) <= self.max_work
    }

    /// Approximate number of steps of the evaluator.
    fn work(&self, computation: &Computation, id: InstructionId) -> i64 {
        let instruction = &computation[id];
        let count = |id: InstructionId| computation[id].shape().as_array().map_or(1, |s| s.element_count());
        let operands = instruction.operands().iter().fold(0i64, |sum, &o| sum.saturating_add(count(o)));
        let inner = match instruction.op() {
            Op::Dot { dot_dimension_numbers: numbers } => {
                let lhs = computation[instruction.operands()[0]].shape().expect_array();
                numbers.lhs_contracting_dims.iter().fold(1i64, |k, &d| k.saturating_mul(lhs.size(d)))
            }
            Op::ReduceWindow { window, .. } if is_running_total(computation, id, window) => 64,
            Op::Convolution { window, .. } | Op::ReduceWindow { window, .. } => {
                window.dimensions.iter().fold(64i64, |k, d| k.saturating_mul(d.size))
            }
            Op::Cholesky { .. } | Op::TriangularSolve { .. } | Op::Fft { .. } => {
                let operand = computation[instruction.operands()[0]].shape().expect_array();
                operand.sizes().last().map_or(1, |&size| size.saturating_mul(8))
            }
            // Reordering costs one step per element, regardless of the size.
            Op::Reshape {} => return 1,
            Op::Transpose { .. } | Op::Reverse { .. } => return count(id),
            Op::Map { .. } | Op::Reduce { .. } | Op::Scatter { .. } | Op::Sort { .. } => 64,
            _ => 1,
        };
        let operands = operands.saturating_mul(inner.min(64));
        count(id).saturating_mul(inner).saturating_add(operands)
    }

    /// The value of a constant, or of a scalar constant's broadcast within the limit.
    fn constant(&self, computation: &Computation, id: InstructionId) -> Option<Literal> {
        match computation[id].op() {
            Op::Constant { literal } => Some(literal.clone()),
            Op::Broadcast { .. } => {
                let shape = computation[id].shape().as_array()?;
                let Op::Constant { literal } = computation[computation[id].operands()[0]].op() else {
                    return None;
                };
                if literal.array_shape().rank() != 0
                    || shape.byte_size() > self.max_bytes
                    || !shape.is_static()
                {
                    return None;
                }
                let bytes = literal.bytes().repeat(shape.element_count() as usize);
                Literal::from_bytes(ArrayShape::new(shape.element_type, &shape.sizes()), bytes.into())
            }
            _ => None,
        }
    }
}

/// True if the evaluator takes one step per result of a windowed reduction.
fn is_running_total(computation: &Computation, id: InstructionId, window: &Window) -> bool {
    let sizes = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::sizes);
    let sizes = sizes(computation[id].operands()[0]).zip(sizes(id));
    sizes.is_some_and(|(operand, result)| window.running_dimension(&operand, &result).is_some())
}

/// True if an instruction only reorders a constant. Kernels of contractions should be constants
/// regardless of their size.
fn is_moved_constant(computation: &Computation, id: InstructionId) -> bool {
    let instruction = &computation[id];
    matches!(instruction.op(), Op::Transpose { .. } | Op::Reverse { .. } | Op::Reshape {})
        && matches!(computation[instruction.operands()[0]].op(), Op::Constant { .. })
}

/// Adds a constant; if it has several equal elements, as the broadcast of a scalar.
fn add_constant(computation: &mut Computation, literal: Literal, metadata: OpMetadata) -> InstructionId {
    let shape = literal.array_shape().clone();
    if shape.rank() == 0 || shape.element_count() == 0 || !literal.is_splat() {
        return computation.add("", Op::Constant { literal }, shape.into(), &[], metadata);
    }
    let scalar = ArrayShape::new(shape.element_type, &[]);
    let bytes = literal.bytes().slice(..shape.element_type.byte_size());
    let literal = Literal::from_bytes(scalar.clone(), bytes)
        .expect("literal of one element has the wrong number of bytes");
    let scalar = computation.add("", Op::Constant { literal }, scalar.into(), &[], metadata.clone());
    computation.add("", Op::Broadcast { dimensions: Vec::new() }, shape.into(), &[scalar], metadata)
}
