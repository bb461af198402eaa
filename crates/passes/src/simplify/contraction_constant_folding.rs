//! Evaluates constant expressions whose value a contraction reads.

use super::constant_expression::value;
use super::dce;
use crate::pass::{Changed, Pass};
use crate::query::{executed_computations, is_static_array};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Literal};
use std::collections::BTreeSet;
use support::Result;

/// `dot(x, f(constants)) => dot(x, constant)`, and the same for either operand of a dot or a
/// convolution, of floats: for example filters that a graph states as a formula, and large weights
/// with a scale. A contraction reads each weight several times, and only constants are packed for
/// it at compile time.
///
/// [`super::ConstantFolding`] leaves expressions unchanged that are larger than their constants,
/// and large ones. Here, `f` consists of elementwise arithmetic and of changes of the shape.
/// Expressions that round constants as large as their value remain: they quantize weights.
///
/// Exact for every input, except for the last bits of transcendental functions.
pub struct ContractionConstantFolding {
    /// Maximum bytes by which one value may exceed the constants that it makes redundant.
    pub max_growth: u64,
    /// Maximum number of elements that the instructions of all expressions of one run compute.
    pub max_total_work: i64,
}

impl Default for ContractionConstantFolding {
    fn default() -> Self {
        Self { max_growth: 1 << 24, max_total_work: 1 << 26 }
    }
}

impl Pass for ContractionConstantFolding {
    fn name(&self) -> &'static str {
        "contraction-constant-folding"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        let mut remaining_work = self.max_total_work;
        for id in executed_computations(module) {
            let computation = module.computation_mut(id);
            let mut has_replaced = false;
            for contraction in computation.post_order() {
                if !computation[contraction].op().is_contraction() {
                    continue;
                }
                for root in computation[contraction].operands().to_vec() {
                    let Some(expression) = Expression::of(computation, root) else { continue };
                    if expression.work > remaining_work || expression.growth > self.max_growth {
                        continue;
                    }
                    let Some(literal) = value(computation, &expression.steps, root) else { continue };
                    // An array of equal elements is smaller as the broadcast of a scalar.
                    if literal.is_splat() {
                        continue;
                    }
                    remaining_work -= expression.work;
                    let metadata = computation[root].metadata().clone();
                    let folded = add(computation, literal, metadata);
                    computation.replace_all_uses(root, folded);
                    has_replaced = true;
                }
            }
            if has_replaced {
                dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

fn add(computation: &mut Computation, literal: Literal, metadata: OpMetadata) -> InstructionId {
    let shape = literal.array_shape().clone();
    computation.add("", Op::Constant { literal }, shape.into(), &[], metadata)
}

/// An expression of constants.
struct Expression {
    /// All instructions, with the constants.
    steps: BTreeSet<InstructionId>,
    /// Number of elements that they compute.
    work: i64,
    /// Bytes by which the value exceeds the constants that nothing else reads.
    growth: u64,
}

/// Maximum number of instructions of an expression.
const MAX_STEPS: usize = 64;

impl Expression {
    /// The expression with this root, if its value should be known.
    fn of(computation: &Computation, root: InstructionId) -> Option<Self> {
        let result = computation[root].shape().as_array()?;
        let is_float = result.element_type.is_floating_point() || result.element_type.is_complex();
        if !is_float {
            return None;
        }
        let (mut steps, mut pending) = (BTreeSet::new(), vec![root]);
        let (mut work, mut constants, mut rounds) = (0i64, 0i64, false);
        while let Some(id) = pending.pop() {
            let op = computation[id].op();
            if !is_step(op) || !is_static_array(computation, id) || steps.len() > MAX_STEPS {
                return None;
            }
            if !steps.insert(id) {
                continue;
            }
            let elements = computation[id].shape().expect_array().element_count();
            if let Op::Constant { .. } = op {
                constants = constants.saturating_add(elements);
            } else {
                work = work.saturating_add(elements);
            }
            rounds |= is_rounding(op);
            pending.extend(computation[id].operands());
        }
        let has_work = steps.iter().any(|&id| !is_step_without_work(computation[id].op()));
        let quantizes = rounds && constants >= result.element_count() / 2;
        if !has_work || quantizes {
            return None;
        }
        let is_redundant = |&&id: &&InstructionId| {
            matches!(computation[id].op(), Op::Constant { .. })
                && computation[id].users().iter().all(|user| steps.contains(user))
        };
        let bytes = |&id: &InstructionId| computation[id].shape().as_array().map_or(0, ArrayShape::byte_size);
        let redundant = steps.iter().filter(is_redundant).map(bytes).fold(0, u64::saturating_add);
        let growth = result.byte_size().saturating_sub(redundant);
        Some(Self { steps, work, growth })
    }
}

/// True if an expression may contain an instruction.
fn is_step(op: &Op) -> bool {
    let is_arithmetic = op.is_elementwise() && !matches!(op, Op::Map { .. } | Op::StochasticConvert { .. });
    let is_moved = matches!(op, Op::Slice { .. } | Op::Concatenate { .. } | Op::Pad { .. });
    is_arithmetic || is_moved || is_step_without_work(op)
}

/// True if an expression of such instructions alone is better left to the simplifier and to
/// kernels, which read through them.
fn is_step_without_work(op: &Op) -> bool {
    matches!(
        op,
        Op::Constant { .. }
            | Op::Iota { .. }
            | Op::Broadcast { .. }
            | Op::Reshape {}
            | Op::Transpose { .. }
            | Op::Reverse { .. }
    )
}

fn is_rounding(op: &Op) -> bool {
    matches!(
        op,
        Op::Convert {}
            | Op::Floor {}
            | Op::Ceil {}
            | Op::RoundNearestAfz {}
            | Op::RoundNearestEven {}
            | Op::ReducePrecision { .. }
    )
}
