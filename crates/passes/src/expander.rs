//! What the expanders share: functions of plain HLO in the place of instructions.

use crate::Changed;
use composite::Expression;
use hlo::{InstructionId, Module, Op};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::Result;

/// Puts a function's body in the place of every instruction that `wants` says, operands of narrow types widened.
///
/// `body` makes the result, whose shape it is told, of the operands; it is asked once for each such instruction.
pub(crate) fn expand(
    module: &mut Module,
    name: &str,
    wants: impl Fn(&Op, &[ArrayShape]) -> bool,
    body: impl for<'f> Fn(&Op, &ArrayShape, &[Expression<'f>]) -> Expression<'f>,
) -> Result<Changed> {
    let mut changed = false;
    for id in crate::executed_computations(module) {
        let mut expanded = false;
        for instruction in module[id].post_order() {
            let Some((op, shapes)) = operands_of(module, id, instruction) else { continue };
            if !wants(&op, &shapes) {
                continue;
            }
            let result = module[id][instruction].shape().expect_array().clone();
            let metadata = module[id][instruction].metadata().clone();
            let arguments = module[id][instruction].operands().to_vec();
            let parameters: Vec<Shape> = shapes.into_iter().map(Shape::from).collect();
            let function = composite::build(module, name, &metadata, &parameters, |_, operands| {
                let operands: Vec<Expression<'_>> = operands.iter().map(|&x| widened(x)).collect();
                vec![body(&op, &result, &operands).convert(result.element_type)]
            })?;
            let callee = module[function].clone();
            module.computation_mut(id).inline(instruction, &callee, &arguments);
            // Not even one with an effect, which its expansion has now.
            module.computation_mut(id).remove(instruction);
            expanded = true;
        }
        if expanded {
            crate::dce::sweep(module.computation_mut(id));
            changed = true;
        }
    }
    if changed {
        module.remove_unreachable_computations();
    }
    Ok(changed.into())
}

/// The opcode and the operands' shapes of an instruction that takes and makes static arrays.
fn operands_of(
    module: &Module,
    computation: hlo::ComputationId,
    id: InstructionId,
) -> Option<(Op, Vec<ArrayShape>)> {
    let instruction = &module[computation][id];
    instruction.shape().as_array().filter(|shape| shape.is_static())?;
    let shape = |&operand: &InstructionId| {
        module[computation][operand].shape().as_array().filter(|shape| shape.is_static()).cloned()
    };
    let shapes: Option<Vec<ArrayShape>> = instruction.operands().iter().map(shape).collect();
    Some((instruction.op().clone(), shapes?))
}

/// Narrow floating-point types as `f32`.
fn widened(x: Expression<'_>) -> Expression<'_> {
    let element_type = x.element_type();
    let is_narrow = element_type.is_floating_point() && element_type.byte_size() < 4;
    if is_narrow { x.convert(PrimitiveType::F32) } else { x }
}
