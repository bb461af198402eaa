//! Expands third powers into products.

use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op};
use shape::{PrimitiveType, Scalar};
use support::Result;

/// Multiplies instead of calling `power` for third powers, such as those in the approximation of
/// GELU.
///
/// `power(x, 3) => x * x * x`, for `f32` and `f64`. Exact except for rounding: there are two
/// roundings, and where the square overflows or underflows to 0, so does the cube.
pub struct PowerExpander;

impl Pass for PowerExpander {
    fn name(&self) -> &'static str {
        "power-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            for instruction in computation.post_order() {
                let Some(base) = cubed(computation, instruction) else { continue };
                let shape = computation[instruction].shape().clone();
                let metadata = computation[instruction].metadata().clone();
                let square =
                    computation.add("", Op::Multiply {}, shape.clone(), &[base, base], metadata.clone());
                let cube = computation.add("", Op::Multiply {}, shape, &[square, base], metadata);
                computation.replace_all_uses(instruction, cube);
                changed = true;
            }
            if changed {
                crate::simplify::dce::sweep(computation);
            }
        }
        Ok(changed.into())
    }
}

/// The base of a third power.
fn cubed(computation: &Computation, id: InstructionId) -> Option<InstructionId> {
    let (Op::Power {}, &[base, mut exponent]) = (computation[id].op(), computation[id].operands()) else {
        return None;
    };
    let element_type = computation[id].shape().as_array()?.element_type;
    if !matches!(element_type, PrimitiveType::F32 | PrimitiveType::F64) {
        return None;
    }
    while let Op::Broadcast { .. } | Op::Reshape {} | Op::Bitcast {} = computation[exponent].op() {
        exponent = computation[exponent].operands()[0];
    }
    let Op::Constant { literal } = computation[exponent].op() else { return None };
    let is_three = literal.array_shape().element_count() > 0
        && literal.is_splat()
        && literal.scalar_at(0) == Scalar::Float(3.0);
    is_three.then_some(base)
}
