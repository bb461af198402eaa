//! Expands maps whose function is more than scalar arithmetic.

use crate::pass::{Changed, Pass};
use hlo::{ComputationBuilder, ComputationId, InstructionId, Module, Op, OpMetadata};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use support::{Error, Result};

/// `map(x, ..., f) =>` a loop that calls `f` for one element after another, if `f` contains arrays,
/// tuples, or control flow. Other maps remain: their elements are computed in parallel. Exact for
/// every input.
pub struct MapExpander;

impl Pass for MapExpander {
    fn name(&self) -> &'static str {
        "map-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        // A function that is called from now on may contain maps.
        while expand_some(module)? {
            changed = true;
        }
        if changed {
            module.remove_unreachable_computations();
        }
        Ok(changed.into())
    }
}

/// Expands the maps of the computations that are now executed. Returns true if there were any.
fn expand_some(module: &mut Module) -> Result<bool> {
    let mut changed = false;
    for id in crate::query::executed_computations(module) {
        for instruction in module[id].post_order() {
            let Op::Map { to_apply, .. } = *module[id][instruction].op() else { continue };
            if is_arithmetic(module, to_apply, 0) {
                continue;
            }
            let function = loop_over_elements(module, id, instruction, to_apply)?;
            let callee = module[function].clone();
            let arguments = module[id][instruction].operands().to_vec();
            module.computation_mut(id).inline(instruction, &callee, &arguments);
            module.computation_mut(id).remove(instruction);
            changed = true;
        }
    }
    Ok(changed)
}

/// Upper bound of the nesting of functions that is examined. The code generator rejects deeper
/// nesting.
const MAX_DEPTH: usize = 64;

/// True if a function uses only scalars and no control flow.
fn is_arithmetic(module: &Module, id: ComputationId, depth: usize) -> bool {
    depth > MAX_DEPTH
        || module[id].instructions().all(|(_, instruction)| {
            let is_scalar = instruction.shape().as_array().is_some_and(|array| array.rank() == 0);
            let is_control = matches!(instruction.op(), Op::While { .. } | Op::Conditional { .. });
            let called = instruction.op().called_computations();
            is_scalar && !is_control && called.iter().all(|&callee| is_arithmetic(module, callee, depth + 1))
        })
}

/// A computation of the map's result from its operands.
fn loop_over_elements(
    module: &mut Module,
    caller: ComputationId,
    map: InstructionId,
    function: ComputationId,
) -> Result<ComputationId> {
    let metadata = module[caller][map].metadata().clone();
    let result = module[caller][map].shape().expect_array().clone();
    let operands: Vec<ArrayShape> = module[caller][map]
        .operands()
        .iter()
        .map(|&operand| module[caller][operand].shape().expect_array().clone())
        .collect();
    let count = result.element_count();
    let flat = |array: &ArrayShape| Shape::from(ArrayShape::new(array.element_type, &[count]));
    // The index, the operands, and the result, each flattened.
    let mut state = vec![Shape::scalar(PrimitiveType::S64)];
    state.extend(operands.iter().chain([&result]).map(flat));
    let condition = condition(module, &metadata, &state, count)?;
    let body = body(module, &metadata, &state, function)?;

    let mut b = builder("map", &metadata);
    let parameters: Vec<InstructionId> =
        operands.iter().map(|shape| b.parameter("", Shape::from(shape.clone()))).collect();
    let mut start = vec![b.constant(s64(0))];
    for (&parameter, shape) in parameters.iter().zip(&state[1..]) {
        start.push(b.op_with_shape(module, shape.clone(), Op::Reshape {}, &[parameter])?);
    }
    let scalar = ArrayShape::new(result.element_type, &[]);
    let bytes = vec![0; scalar.byte_size() as usize];
    let zero = Literal::from_bytes(scalar, bytes.into())
        .ok_or_else(|| Error::internal("literal of one element has the wrong number of bytes"))?;
    let zero = b.constant(zero);
    let row = flat(&result);
    start.push(b.op_with_shape(module, row, Op::Broadcast { dimensions: Vec::new() }, &[zero])?);
    let start = b.op(module, Op::Tuple {}, &start)?;
    let done = b.op(module, Op::While { condition, body }, &[start])?;
    let row = b.op(module, Op::GetTupleElement { index: state.len() - 1 }, &[done])?;
    let root = b.op_with_shape(module, Shape::from(result), Op::Reshape {}, &[row])?;
    Ok(module.add_computation(b.finish(root)))
}

/// True while elements remain.
fn condition(
    module: &mut Module,
    metadata: &OpMetadata,
    state: &[Shape],
    count: i64,
) -> Result<ComputationId> {
    let mut b = builder("map_condition", metadata);
    let parameter = b.parameter("state", Shape::Tuple(state.to_vec()));
    let index = b.op(module, Op::GetTupleElement { index: 0 }, &[parameter])?;
    let end = b.constant(s64(count));
    let less = hlo::ComparisonDirection::Lt;
    let compare = Op::Compare { direction: less, comparison_type: hlo::ComparisonType::Default };
    let root = b.op(module, compare, &[index, end])?;
    Ok(module.add_computation(b.finish(root)))
}

/// Computes one element.
fn body(
    module: &mut Module,
    metadata: &OpMetadata,
    state: &[Shape],
    function: ComputationId,
) -> Result<ComputationId> {
    let mut b = builder("map_body", metadata);
    let parameter = b.parameter("state", Shape::Tuple(state.to_vec()));
    let mut parts = Vec::with_capacity(state.len());
    for index in 0..state.len() {
        parts.push(b.op(module, Op::GetTupleElement { index }, &[parameter])?);
    }
    let index = parts[0];
    let last = state.len() - 1;
    let mut arguments = Vec::with_capacity(last - 1);
    for (&row, shape) in parts[1..last].iter().zip(&state[1..last]) {
        let one = b.op(module, Op::DynamicSlice { dynamic_slice_sizes: vec![1] }, &[row, index])?;
        let scalar = Shape::scalar(shape.expect_array().element_type);
        arguments.push(b.op_with_shape(module, scalar, Op::Reshape {}, &[one])?);
    }
    let element = b.op(module, Op::Call { to_apply: function }, &arguments)?;
    let element_shape = Shape::from(ArrayShape::new(state[last].expect_array().element_type, &[1]));
    let element = b.op_with_shape(module, element_shape, Op::Reshape {}, &[element])?;
    parts[last] = b.op(module, Op::DynamicUpdateSlice {}, &[parts[last], element, index])?;
    let one = b.constant(s64(1));
    parts[0] = b.op(module, Op::Add {}, &[index, one])?;
    let root = b.op(module, Op::Tuple {}, &parts)?;
    Ok(module.add_computation(b.finish(root)))
}

fn builder(name: &str, metadata: &OpMetadata) -> ComputationBuilder {
    let mut builder = ComputationBuilder::new(name);
    builder.set_metadata(metadata.clone());
    builder
}

fn s64(value: i64) -> Literal {
    Literal::scalar(value)
}
