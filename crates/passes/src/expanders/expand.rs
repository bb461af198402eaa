//! What the expanders share: functions of plain HLO in the place of instructions.

use crate::pass::Changed;
use composite::Expression;
use hlo::{InstructionId, Module, Op};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::Result;

/// As [`expand_all`], of instructions that make one array: `body` makes it of the operands.
pub(crate) fn expand(
    module: &mut Module,
    name: &str,
    wants: impl Fn(&Op, &[ArrayShape]) -> bool,
    body: impl for<'f> Fn(&Op, &ArrayShape, &[Expression<'f>]) -> Expression<'f>,
) -> Result<Changed> {
    expand_all(
        module,
        name,
        |op, operands, results| results.len() == 1 && wants(op, operands),
        |op, results, operands| vec![body(op, &results[0], operands)],
    )
}

/// Puts a function's body in the place of every instruction that `wants` says of its operands and results, operands of narrow
/// types widened.
///
/// `body` makes the results, whose shapes it is told, of the operands; it is asked once for each such instruction.
pub(crate) fn expand_all(
    module: &mut Module,
    name: &str,
    wants: impl Fn(&Op, &[ArrayShape], &[ArrayShape]) -> bool,
    body: impl for<'f> Fn(&Op, &[ArrayShape], &[Expression<'f>]) -> Vec<Expression<'f>>,
) -> Result<Changed> {
    let mut changed = false;
    for id in crate::query::executed_computations(module) {
        let mut expanded = false;
        for instruction in module[id].post_order() {
            let Some((op, shapes, results)) = signature_of(module, id, instruction) else { continue };
            if !wants(&op, &shapes, &results) {
                continue;
            }
            let metadata = module[id][instruction].metadata().clone();
            let arguments = module[id][instruction].operands().to_vec();
            let parameters: Vec<Shape> = shapes.into_iter().map(Shape::from).collect();
            let function = composite::build(module, name, &metadata, &parameters, |_, operands| {
                let operands: Vec<Expression<'_>> = operands.iter().map(|&x| widened(x)).collect();
                let made = body(&op, &results, &operands).into_iter().zip(&results);
                made.map(|(made, result)| made.convert(result.element_type)).collect()
            })?;
            let callee = module[function].clone();
            module.computation_mut(id).inline(instruction, &callee, &arguments);
            // Not even one with an effect, which its expansion has now.
            module.computation_mut(id).remove(instruction);
            expanded = true;
        }
        if expanded {
            crate::simplify::dce::sweep(module.computation_mut(id));
            changed = true;
        }
    }
    if changed {
        module.remove_unreachable_computations();
    }
    Ok(changed.into())
}

/// The opcode, the operands' shapes and the results' of an instruction that takes static arrays and makes one, or a tuple of them.
fn signature_of(
    module: &Module,
    computation: hlo::ComputationId,
    id: InstructionId,
) -> Option<(Op, Vec<ArrayShape>, Vec<ArrayShape>)> {
    let instruction = &module[computation][id];
    let array = |shape: &Shape| shape.as_array().filter(|shape| shape.is_static()).cloned();
    let results: Option<Vec<ArrayShape>> = match instruction.shape() {
        Shape::Tuple(elements) => elements.iter().map(array).collect(),
        shape => array(shape).map(|shape| vec![shape]),
    };
    let operands = instruction.operands().iter().map(|&operand| array(module[computation][operand].shape()));
    Some((instruction.op().clone(), operands.collect::<Option<_>>()?, results?))
}

/// Narrow floating-point types as `f32`.
fn widened(x: Expression<'_>) -> Expression<'_> {
    let element_type = x.element_type();
    let is_narrow = element_type.is_floating_point() && element_type.byte_size() < 4;
    if is_narrow { x.convert(PrimitiveType::F32) } else { x }
}
