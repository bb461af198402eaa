//! `chlo.scan`: a loop over one dimension of its inputs that carries values from step to step.

use crate::regions::{block_of, captures};
use crate::walk::{Context, Scope};
use hlo::{ComparisonDirection, ComparisonType, InstructionId, Op};
use mlir::Block;
use shape::{ArrayShape, PrimitiveType, Shape};
use support::{Error, Result};

/// The parts of a scan.
struct Scan<'s> {
    block: &'s Block,
    dimension: usize,
    is_reverse: bool,
    /// Numbers of inputs, outputs, and carries.
    inputs: usize,
    outputs: usize,
    carries: usize,
    /// Number of steps.
    steps: i64,
}

impl<'s> Scan<'s> {
    fn from_context(context: &mut Context<'_, 's>) -> Result<Self> {
        let view = context.view();
        let carries = match view.find("inits") {
            Some(_) => view.integer("inits")?,
            None => view.integers("operandSegmentSizes")?.last().copied().unwrap_or(0),
        };
        let too_few = || Error::invalid("more initial values than operands or results");
        let carries = usize::try_from(carries).map_err(|_| too_few())?;
        let inputs = context.operation.operands.len().checked_sub(carries).ok_or_else(too_few)?;
        let outputs = context.operation.results.len().checked_sub(carries).ok_or_else(too_few)?;
        let dimension = view.dimension("dimension")?;
        let first = if inputs > 0 {
            context.operand(0)?
        } else {
            return Err(Error::unsupported("a scan without inputs is not supported"));
        };
        let first = context.array(first)?;
        if dimension >= first.rank() {
            return Err(Error::invalid(format!("dimension {dimension} is out of range for {first}")));
        }
        let block = block_of(context.operation, 0)?;
        if block.arguments.len() != inputs + carries {
            return Err(Error::invalid(format!(
                "expected {} arguments of the body, got {}",
                inputs + carries,
                block.arguments.len()
            )));
        }
        let is_reverse = view.flag("is_reverse");
        Ok(Self { block, dimension, is_reverse, inputs, outputs, carries, steps: first.size(dimension) })
    }
}

pub(super) fn scan(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let scan = Scan::from_context(context)?;
    let outside = captures(context, &[scan.block]);
    let operands = context.operands()?;
    let mut state = vec![context.number(PrimitiveType::S64, 0)];
    state.extend(&operands[..scan.inputs]);
    for k in 0..scan.outputs {
        let shape = context.result_array(k)?;
        let zero = context.number(shape.element_type, 0);
        state.push(context.spread(zero, &shape)?);
    }
    state.extend(&operands[scan.inputs..]);
    state.extend(context.values(&outside)?);
    let start = context.op(Op::Tuple {}, &state)?;
    let shape = context.shape(start).clone();

    let mut condition = Scope::new("scan_condition", false);
    let tuple = condition.own().parameter("", shape.clone());
    let mut inner = Context {
        importer: context.importer,
        scope: &mut condition,
        operation: context.operation,
        dequantize: None,
    };
    let step = inner.op(Op::GetTupleElement { index: 0 }, &[tuple])?;
    let steps = inner.number(PrimitiveType::S64, scan.steps);
    let compare =
        Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default };
    let root = inner.op(compare, &[step, steps])?;
    let condition = context.importer.builder.add_computation(condition.finish(root));

    let mut body = Scope::new("scan_body", false);
    let tuple = body.own().parameter("", shape);
    let root = step_of(context, &mut body, &scan, tuple, &outside)?;
    let body = context.importer.builder.add_computation(body.finish(root));

    let done = context.op(Op::While { condition, body }, &[start])?;
    let all = context.elements_of(done)?;
    Ok(all[1 + scan.inputs..1 + scan.inputs + scan.outputs + scan.carries].to_vec())
}

/// One step: passes slices of the inputs and the carries through the region, and writes its results
/// to the outputs.
fn step_of<'s>(
    context: &mut Context<'_, 's>,
    scope: &mut Scope,
    scan: &Scan<'s>,
    tuple: InstructionId,
    outside: &[mlir::ValueId],
) -> Result<InstructionId> {
    let mut inner =
        Context { importer: context.importer, scope, operation: context.operation, dequantize: None };
    let state = inner.elements_of(tuple)?;
    let step = state[0];
    let one = inner.number(PrimitiveType::S64, 1);
    let position = if scan.is_reverse {
        let last = inner.number(PrimitiveType::S64, scan.steps - 1);
        inner.op(Op::Subtract {}, &[last, step])?
    } else {
        step
    };
    let (inputs, rest) = state[1..].split_at(scan.inputs);
    let (outputs, rest) = rest.split_at(scan.outputs);
    let (carries, captured) = rest.split_at(scan.carries);
    for (&argument, &input) in scan.block.arguments.iter().zip(inputs) {
        let slice = slice_at(&mut inner, input, scan.dimension, position)?;
        inner.scope.define(argument, slice);
    }
    for (&argument, &carry) in scan.block.arguments[scan.inputs..].iter().zip(carries) {
        inner.scope.define(argument, carry);
    }
    for (&value, &instruction) in outside.iter().zip(captured) {
        inner.scope.define(value, instruction);
    }
    let results = inner.importer.block(inner.scope, scan.block)?;
    if results.len() != scan.outputs + scan.carries {
        return Err(Error::invalid(format!(
            "expected {} results of the body, got {}",
            scan.outputs + scan.carries,
            results.len()
        )));
    }
    let mut next = vec![inner.op(Op::Add {}, &[step, one])?];
    next.extend(inputs);
    for (&output, &slice) in outputs.iter().zip(&results) {
        next.push(update_at(&mut inner, output, slice, scan.dimension, position)?);
    }
    next.extend(&results[scan.outputs..]);
    next.extend(captured);
    inner.op(Op::Tuple {}, &next)
}

/// Indices that are 0 except in one dimension.
fn indices(
    context: &mut Context<'_, '_>,
    rank: usize,
    dimension: usize,
    position: InstructionId,
) -> Vec<InstructionId> {
    let zero = context.number(PrimitiveType::S64, 0);
    (0..rank).map(|d| if d == dimension { position } else { zero }).collect()
}

fn slice_at(
    context: &mut Context<'_, '_>,
    input: InstructionId,
    dimension: usize,
    position: InstructionId,
) -> Result<InstructionId> {
    let array = context.array(input)?;
    let mut operands = vec![input];
    operands.extend(indices(context, array.rank(), dimension, position));
    let mut dynamic_slice_sizes = array.sizes();
    dynamic_slice_sizes[dimension] = 1;
    let slice =
        context.op(Op::DynamicSlice { dynamic_slice_sizes: dynamic_slice_sizes.clone() }, &operands)?;
    dynamic_slice_sizes.remove(dimension);
    context.op_with_shape(Op::Reshape {}, &[slice], Shape::array(array.element_type, &dynamic_slice_sizes))
}

fn update_at(
    context: &mut Context<'_, '_>,
    output: InstructionId,
    slice: InstructionId,
    dimension: usize,
    position: InstructionId,
) -> Result<InstructionId> {
    let array: ArrayShape = context.array(output)?;
    let mut sizes = array.sizes();
    sizes[dimension] = 1;
    let update = context.op_with_shape(Op::Reshape {}, &[slice], Shape::array(array.element_type, &sizes))?;
    let mut operands = vec![output, update];
    operands.extend(indices(context, array.rank(), dimension, position));
    context.op(Op::DynamicUpdateSlice {}, &operands)
}
