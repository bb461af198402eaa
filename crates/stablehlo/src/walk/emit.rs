//! Instructions of operations, whose operands may be arrays of bounded size.

use super::context::Context;
use super::matrices;
use bounded::Size;
use composite::{Expression, Function};
use hlo::{InstructionId, Op, Traits};
use shape::{ArrayShape, Shape};
use support::{Error, Result};

impl Context<'_, '_> {
    /// Adds the operation's main instruction with the declared result shape; several results come
    /// from a tuple.
    pub(crate) fn emit(&mut self, op: Op, operands: &[InstructionId]) -> Result<Vec<InstructionId>> {
        if self.is_sized() {
            return emit_sized(self, op, operands);
        }
        let shape = self.results_shape()?;
        let id = self.op_with_shape(op, operands, shape)?;
        if self.operation.results.len() == 1 { Ok(vec![id]) } else { self.elements_of(id) }
    }

    /// Calls a function that is written as expressions.
    pub(crate) fn composite(
        &mut self,
        operands: &[InstructionId],
        body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Vec<Expression<'f>>,
    ) -> Result<Vec<InstructionId>> {
        let parameters: Vec<Shape> = operands.iter().map(|&id| self.shape(id).clone()).collect();
        let name = self.operation.name.clone();
        let metadata = self.metadata();
        let parameters = if self.is_sized() { parameters.iter().map(whole).collect() } else { parameters };
        let module = self.importer.builder.module_mut();
        let to_apply = composite::build(module, &name, &metadata, &parameters, body)?;
        if self.is_sized() {
            return composite_sized(self, Op::Call { to_apply }, operands);
        }
        let result = self.op(Op::Call { to_apply }, operands)?;
        if self.shape(result).as_tuple().is_some() { self.elements_of(result) } else { Ok(vec![result]) }
    }
}

/// Adds the operation's main instruction, and returns its results with the sizes that their types
/// state.
fn emit_sized(
    context: &mut Context<'_, '_>,
    op: Op,
    operands: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    context.stamp();
    let operands = with_equal_bounds(context, &op, operands)?;
    let shape = requested(context, &op, &operands)?;
    let builder = &mut context.importer.builder;
    let result = match shape {
        Some(shape) => builder.op_shaped(&shape, op, &operands)?,
        None => builder.op(op, &operands)?,
    };
    let count = context.operation.results.len();
    let is_tuple = context.shape(result).as_tuple().is_some();
    let mut results = if is_tuple { context.elements_of(result)? } else { vec![result] };
    // A sort of bounded arrays has the positions of elements as a further result.
    results.truncate(count);
    results.into_iter().enumerate().map(|(k, result)| as_declared(context, k, result)).collect()
}

/// Returns a result with the sizes that its type states. Where they are not known to be equal, the
/// program checks them.
pub(crate) fn as_declared(
    context: &mut Context<'_, '_>,
    k: usize,
    result: InstructionId,
) -> Result<InstructionId> {
    let Some(declared) = declared_sizes(context, k) else { return Ok(result) };
    let mut result = result;
    let Some(rank) = context.shape(result).as_array().map(ArrayShape::rank) else { return Ok(result) };
    let (own, wanted) = (context.array(result)?.element_type, context.element_type_of_result(k)?);
    if own != wanted {
        return Err(Error::internal(format!("result {k} has elements of type {own} instead of {wanted}")));
    }
    if rank != declared.len() {
        return Err(Error::invalid(format!(
            "result {k} has {rank} dimensions instead of {}",
            declared.len()
        )));
    }
    for (d, size) in declared.into_iter().enumerate() {
        let Some(size) = size else { continue };
        let array = context.array(result)?;
        if array.dimensions[d].is_dynamic || array.size(d) != size {
            let message = format!("dimension {d} of the result of {} is not {size}", context.described());
            result = context.importer.builder.with_size(result, d, Size::known(size), &message)?;
        }
    }
    Ok(result)
}

/// Returns the sizes of the declared type of a result, `None` for one that is open.
pub(crate) fn declared_sizes(context: &Context<'_, '_>, k: usize) -> Option<Vec<Option<i64>>> {
    let &value = context.operation.results.get(k)?;
    Some(context.importer.source[value].value_type.as_tensor()?.sizes.clone())
}

/// Returns the shape of a result that does not follow from the operands.
fn requested(context: &Context<'_, '_>, op: &Op, operands: &[InstructionId]) -> Result<Option<Shape>> {
    Ok(match op {
        // Elements change, but sizes only if one element becomes several.
        Op::Convert {} | Op::BitcastConvert {} => {
            let (from, to) = (context.array(operands[0])?, context.result_array(0)?);
            let sizes = if from.rank() == to.rank() { from.sizes() } else { to.sizes() };
            Some(Shape::array(to.element_type, &sizes))
        }
        Op::Iota { .. } | Op::Reshape {} | Op::Broadcast { .. } => Some(context.results_shape()?),
        Op::CustomCall { .. } | Op::Rng { .. } | Op::RngBitGenerator { .. } => Some(context.results_shape()?),
        // Products can have elements of a wider type than their operands.
        Op::Dot { .. } | Op::Convolution { .. } => {
            let element_type = context.result_element_type()?;
            if element_type == context.array(operands[0])?.element_type {
                return Ok(None);
            }
            let shapes: Vec<Shape> = operands.iter().map(|&id| whole(context.shape(id))).collect();
            let shapes: Vec<&Shape> = shapes.iter().collect();
            let inferred = hlo::infer_shape(context.importer.builder.module(), op, &shapes, None)?;
            inferred.as_array().map(|array| array.with_element_type(element_type).into())
        }
        // Only the last dimension of real transforms changes.
        Op::Fft { .. } => {
            let mut sizes = context.array(operands[0])?.sizes();
            let last = declared_sizes(context, 0).and_then(|declared| *declared.last()?);
            if let (Some(size), Some(last)) = (sizes.last_mut(), last) {
                *size = last;
            }
            Some(Shape::array(context.result_element_type()?, &sizes))
        }
        _ => None,
    })
}

/// Cuts memory beyond the largest sizes, so that operands of equal sizes are equally large.
fn with_equal_bounds(
    context: &mut Context<'_, '_>,
    op: &Op,
    operands: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let mut operands = operands.to_vec();
    // Groups of dimensions of operands that have the same size.
    let mut groups: Vec<Vec<(usize, usize)>> = Vec::new();
    let ranks: Vec<usize> =
        operands.iter().map(|&id| context.shape(id).as_array().map_or(0, ArrayShape::rank)).collect();
    let together = |numbers: std::ops::Range<usize>, skipped: Option<usize>| {
        let rank = ranks[numbers.clone()].iter().copied().max().unwrap_or(0);
        let dimensions = (0..rank).filter(move |d| Some(*d) != skipped);
        let of_dimension = |d: usize| numbers.clone().filter(|&k| ranks[k] == rank).map(|k| (k, d)).collect();
        dimensions.map(of_dimension).collect::<Vec<Vec<(usize, usize)>>>()
    };
    match op {
        Op::Concatenate { dimension } => groups = together(0..operands.len(), Some(*dimension)),
        Op::Sort { .. } | Op::Clamp {} | Op::Map { .. } => groups = together(0..operands.len(), None),
        Op::Reduce { .. } | Op::ReduceWindow { .. } => groups = together(0..operands.len() / 2, None),
        Op::Dot { dot_dimension_numbers: numbers } => {
            let pairs = numbers.lhs_batch_dims.iter().zip(&numbers.rhs_batch_dims);
            let pairs = pairs.chain(numbers.lhs_contracting_dims.iter().zip(&numbers.rhs_contracting_dims));
            groups = pairs.map(|(&l, &r)| vec![(0, l), (1, r)]).collect();
        }
        op if op.opcode().traits().contains(Traits::ELEMENTWISE) => {
            groups = together(0..operands.len(), None)
        }
        _ => {}
    }
    for group in groups {
        let mut least = i64::MAX;
        for &(k, d) in &group {
            least = least.min(context.array(operands[k])?.size(d));
        }
        for &(k, d) in &group {
            let array = context.array(operands[k])?;
            if array.size(d) == least {
                continue;
            }
            let builder = &mut context.importer.builder;
            let range = builder.all_sizes(operands[k])?[d];
            if range.size.is_none() {
                return Err(Error::invalid(format!(
                    "operands have sizes {} and {least} in dimension {d}",
                    array.size(d)
                )));
            }
            let mut part = builder.split(operands[k])?;
            let mut bounds = array.sizes();
            bounds[d] = least;
            part.data = builder.resized_to(part.data, &bounds)?;
            operands[k] = builder.bounded(part.data, &part.sizes)?;
        }
    }
    Ok(operands)
}

/// Calls a function that is written as expressions: on elements, or on the matrices in the last two
/// dimensions of operands.
fn composite_sized(
    context: &mut Context<'_, '_>,
    op: Op,
    operands: &[InstructionId],
) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let on_elements = match context.operation.name.as_str() {
        "stablehlo.custom_call" => {
            view.text("call_target_name").is_ok_and(|target| target.starts_with("mhlo."))
        }
        name => name != "chlo.ragged_dot",
    };
    let name = context.described();
    context.stamp();
    if !on_elements && has_open_matrices(context, operands)? {
        let Some(whole) = matrices::whole(context, operands)? else {
            return Err(Error::unsupported(format!("{name} does not support open dimensions of matrices")));
        };
        let result = context.importer.builder.static_op(op, &whole.data, None)?;
        return results_like(context, result, &whole.like.sizes);
    }
    let builder = &mut context.importer.builder;
    let mut leading: Vec<Option<InstructionId>> = Vec::new();
    let mut data = Vec::with_capacity(operands.len());
    for &operand in operands {
        let part = builder.split(operand)?;
        if part.sizes.len() > leading.len() {
            leading.resize(part.sizes.len(), None);
        }
        for (size, own) in leading.iter_mut().zip(&part.sizes) {
            *size = size.or(*own);
        }
        data.push(part.data);
    }
    let result = builder.static_op(op, &data, None)?;
    results_like(context, result, &leading)
}

/// True if one of the last two dimensions of the operands is open.
fn has_open_matrices(context: &mut Context<'_, '_>, operands: &[InstructionId]) -> Result<bool> {
    let builder = &mut context.importer.builder;
    let rank = operands.iter().map(|&operand| builder.rank(operand)).max().unwrap_or(0);
    for &operand in operands {
        let sizes = builder.split(operand)?.sizes;
        let open = sizes.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        if open > 0 && open + 2 > rank {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the results of a function, whose dimensions have these true sizes.
fn results_like(
    context: &mut Context<'_, '_>,
    result: InstructionId,
    sizes: &[Option<InstructionId>],
) -> Result<Vec<InstructionId>> {
    let results =
        if context.shape(result).as_tuple().is_some() { context.elements_of(result)? } else { vec![result] };
    let builder = &mut context.importer.builder;
    let with_sizes = |result: InstructionId| {
        let rank = builder.rank(result);
        let own: Vec<_> = (0..rank).map(|d| sizes.get(d).copied().flatten()).collect();
        builder.bounded(result, &own)
    };
    results.into_iter().map(with_sizes).collect()
}

/// Returns the shape of a whole array, for parameters of functions of elements.
fn whole(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => Shape::array(array.element_type, &array.sizes()),
        other => other.clone(),
    }
}
