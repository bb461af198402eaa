//! Sums of products of narrow floats, and what follows from them, in `f32`.

use crate::pass::{Changed, Pass};
use crate::query::is_static;
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// `op(convert(x), y) => convert(op(x, convert(y)))` for arithmetic in `f16` and `bf16`, and
/// `convert(convert(x)) => x`, where x is a contraction's sums in `f32` or follows from them: these
/// numbers stay `f32` until they are stored in the narrow type or reach an op that needs it.
///
/// Named after XLA's pass, which removes conversions between all ops if
/// `xla_allow_excess_precision` is on. Here, arithmetic that does not follow from a contraction is
/// rounded op by op, as TensorFlow's kernels do: its results are exact, those of sums depend on
/// their order anyway. The operands of comparisons, of rounding to integers, and of reductions are
/// still rounded.
///
/// More accurate: results between two ops are not rounded, and do not overflow.
pub struct SimplifyFpConversions;

impl Pass for SimplifyFpConversions {
    fn name(&self) -> &'static str {
        "simplify-fp-conversions"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let mut wide = Wide::default();
            for id in computation.post_order() {
                wide.replace(computation, id);
            }
            if wide.has_replaced {
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

/// The `f32` forms of narrow arrays.
#[derive(Default)]
struct Wide {
    /// Of sums, and of what follows from them, before they are rounded.
    results: BTreeMap<InstructionId, InstructionId>,
    /// Sums in `f32`, and what follows from them.
    sums: BTreeSet<InstructionId>,
    /// Of other operands.
    operands: BTreeMap<InstructionId, InstructionId>,
    has_replaced: bool,
}

impl Wide {
    /// Replaces an instruction if it computes narrow floats, or converts them to `f32`.
    fn replace(&mut self, computation: &mut Computation, id: InstructionId) {
        if !is_static(computation, id) {
            return;
        }
        let op = computation[id].op().clone();
        let operands = computation[id].operands().to_vec();
        if let Op::Convert {} = op {
            self.convert(computation, id, operands[0]);
            return;
        }
        let is_contraction = matches!(op, Op::Dot { .. } | Op::Convolution { .. });
        let has_sums =
            |operand: &InstructionId| self.results.contains_key(operand) || self.sums.contains(operand);
        if !(is_contraction || is_continuous(&op) && operands.iter().any(has_sums)) {
            return;
        }
        if element_type(computation, id) == Some(PrimitiveType::F32) {
            self.sums.insert(id);
        }
        if !is_narrow(computation, id) {
            return;
        }
        let widened: Vec<InstructionId> = operands
            .into_iter()
            .map(|operand| if is_contraction { operand } else { self.widened(computation, operand) })
            .collect();
        let (narrow, metadata) = (computation[id].shape().clone(), computation[id].metadata().clone());
        let wide = computation.add("", op, of_f32(&narrow), &widened, metadata.clone());
        let converted = computation.add("", Op::Convert {}, narrow, &[wide], metadata);
        computation.replace_all_uses(id, converted);
        self.results.insert(converted, wide);
        self.sums.insert(wide);
        self.has_replaced = true;
    }

    /// Replaces a conversion of a rounded number back to `f32`.
    fn convert(&mut self, computation: &mut Computation, id: InstructionId, operand: InstructionId) {
        let is_f32 = element_type(computation, id) == Some(PrimitiveType::F32);
        if is_narrow(computation, id) && self.sums.contains(&operand) {
            self.results.insert(id, operand);
        } else if let Some(&wide) = self.results.get(&operand).filter(|_| is_f32) {
            computation.replace_all_uses(id, wide);
            self.has_replaced = true;
        }
    }

    /// An operand in `f32`: of another type that narrow floats, the operand itself.
    fn widened(&mut self, computation: &mut Computation, operand: InstructionId) -> InstructionId {
        if !is_narrow(computation, operand) {
            return operand;
        }
        if let Some(&wide) = self.results.get(&operand).or_else(|| self.operands.get(&operand)) {
            return wide;
        }
        let (shape, metadata) =
            (of_f32(computation[operand].shape()), computation[operand].metadata().clone());
        let wide = match computation[operand].op() {
            Op::Constant { literal } => {
                let wide = ArrayShape::new(PrimitiveType::F32, &literal.array_shape().sizes());
                let literal = Literal::from_scalars(wide, literal.scalars());
                computation.add("", Op::Constant { literal }, shape, &[], metadata)
            }
            op @ (Op::Broadcast { .. } | Op::Reshape {}) => {
                // The array is smaller before, and a broadcast is part of its reader's kernel.
                let (op, source) = (op.clone(), computation[operand].operands()[0]);
                let source = self.widened(computation, source);
                computation.add("", op, shape, &[source], metadata)
            }
            _ => computation.add("", Op::Convert {}, shape, &[operand], metadata),
        };
        self.operands.insert(operand, wide);
        wide
    }
}

fn element_type(computation: &Computation, id: InstructionId) -> Option<PrimitiveType> {
    computation[id].shape().as_array().map(|shape| shape.element_type)
}

fn is_narrow(computation: &Computation, id: InstructionId) -> bool {
    matches!(element_type(computation, id), Some(PrimitiveType::F16 | PrimitiveType::Bf16))
}

/// The shape of an array with elements in `f32`.
fn of_f32(shape: &Shape) -> Shape {
    Shape::Array(ArrayShape::new(PrimitiveType::F32, &shape.expect_array().sizes()))
}

/// True for continuous elementwise ops: a small change of an operand changes the result little.
/// Others, such as roots, logarithms, and powers, are NaN right beside a number.
fn is_continuous(op: &Op) -> bool {
    matches!(
        op,
        Op::Abs {}
            | Op::Add {}
            | Op::Cbrt {}
            | Op::Clamp {}
            | Op::Cos {}
            | Op::Divide {}
            | Op::Erf {}
            | Op::Exp {}
            | Op::Expm1 {}
            | Op::Logistic {}
            | Op::Maximum {}
            | Op::Minimum {}
            | Op::Multiply {}
            | Op::Negate {}
            | Op::Select {}
            | Op::Sin {}
            | Op::Subtract {}
            | Op::Tanh {}
    )
}
