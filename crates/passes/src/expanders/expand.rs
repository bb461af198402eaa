//! Shared code of the expanders: replaces instructions by functions of plain HLO.

use crate::pass::Changed;
use composite::Expression;
use hlo::{InstructionId, Module, Op};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::Result;

/// Same as [`expand_all`] for instructions with one array as the result, which `body` computes from
/// the operands.
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

/// Replaces every instruction for which `wants` returns true, given its operands and results, by
/// the body of a function. Narrow operands are widened.
///
/// `body` computes the results, whose shapes it receives, from the operands. It is called once per
/// instruction.
pub(crate) fn expand_all(
    module: &mut Module,
    name: &str,
    wants: impl Fn(&Op, &[ArrayShape], &[ArrayShape]) -> bool,
    body: impl for<'f> Fn(&Op, &[ArrayShape], &[Expression<'f>]) -> Vec<Expression<'f>>,
) -> Result<Changed> {
    let mut changed = false;
    for id in crate::query::executed_computations(module) {
        let mut changed_here = false;
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
                let results_of_body = body(&op, &results, &operands).into_iter().zip(&results);
                results_of_body.map(|(value, result)| value.convert(result.element_type)).collect()
            })?;
            let callee = module[function].clone();
            module.computation_mut(id).inline(instruction, &callee, &arguments);
            // An instruction with an effect is removed, too, because its expansion has the effect
            // now.
            module.computation_mut(id).remove(instruction);
            changed_here = true;
        }
        if changed_here {
            crate::simplify::dce::sweep(module.computation_mut(id));
            changed = true;
        }
    }
    if changed {
        module.remove_unreachable_computations();
    }
    Ok(changed.into())
}

/// The op, operand shapes, and result shapes of an instruction on static arrays with one static
/// array, or a tuple of them, as the result.
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

/// Widens narrow floating-point types to `f32`.
fn widened(x: Expression<'_>) -> Expression<'_> {
    let element_type = x.element_type();
    let is_narrow = element_type.is_floating_point() && element_type.byte_size() < 4;
    if is_narrow { x.convert(PrimitiveType::F32) } else { x }
}
