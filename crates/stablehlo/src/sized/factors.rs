//! LAPACK's functions for QR factors and singular values, on matrices of open sizes.

use super::shaping;
use crate::walk::emit::as_declared;
use crate::walk::matrices::lapack_function;
use crate::walk::{Context, Convert};
use bounded::{bounds, run_time};
use composite::linear_algebra::{self, as_stack, of_stack};
use composite::{Expression, Function};
use hlo::{InstructionId, Op};
use shape::{PrimitiveType, Shape};
use support::{Error, Result};

/// Returns the conversion of a function whose operands end with the shapes of its results, of which
/// one has an open size.
pub(super) fn find(context: &Context<'_, '_>, target: &str) -> Option<Convert> {
    let (convert, arrays): (Convert, usize) = match lapack_function(target)? {
        "geqrf" => (qr, 1),
        "orgqr" | "ungqr" => (orthonormal, 2),
        "gesdd" => (svd, 1),
        _ => return None,
    };
    let operands = context.operation.operands.len();
    (operands == arrays + context.operation.results.len()).then_some(convert)
}

/// Calls a function of whole arrays.
fn call(
    context: &mut Context<'_, '_>,
    operands: &[InstructionId],
    body: impl for<'f> FnOnce(&'f Function, &[Expression<'f>]) -> Vec<Expression<'f>>,
) -> Result<Vec<InstructionId>> {
    let parameters: Vec<Shape> = operands.iter().map(|&id| context.shape(id).clone()).collect();
    let (name, metadata) = (context.operation.name.clone(), context.metadata());
    let module = context.importer.builder.module_mut();
    let to_apply = composite::build(module, &name, &metadata, &parameters, body)?;
    let result = context.op(Op::Call { to_apply }, operands)?;
    if context.shape(result).as_tuple().is_some() { context.elements_of(result) } else { Ok(vec![result]) }
}

/// Returns the first operand, and the batch dimensions of its memory.
fn matrices(context: &mut Context<'_, '_>) -> Result<(InstructionId, Vec<i64>)> {
    context.stamp();
    let operand = context.operand(0)?;
    let mut batch = context.array(operand)?.sizes();
    batch.truncate(batch.len() - 2);
    Ok((operand, batch))
}

/// Returns zeros for a result whose shape an operand states.
fn zeros(context: &mut Context<'_, '_>, k: usize, element_type: PrimitiveType) -> Result<InstructionId> {
    let stated = context.operand(k + 1)?;
    let sizes = shaping::sizes_of_result(context, k, stated)?;
    let builder = &mut context.importer.builder;
    let whole = builder.splat(element_type, &bounds(&sizes), 0.0)?;
    builder.bounded(whole, &run_time(&sizes))
}

fn declared(context: &mut Context<'_, '_>, results: Vec<InstructionId>) -> Result<Vec<InstructionId>> {
    results.into_iter().enumerate().map(|(k, result)| as_declared(context, k, result)).collect()
}

/// `(packed, taus)`.
fn qr(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (operand, batch) = matrices(context)?;
    let padded = context.importer.builder.padded_matrices(operand)?;
    let parts = call(context, &[padded.data], |_, operands| {
        let (packed, taus) = linear_algebra::reflections(as_stack(operands[0]));
        let taus_shape = [&batch[..], &taus.sizes()[1..]].concat();
        vec![of_stack(packed, &batch), taus.reshape(&taus_shape)]
    })?;
    let [packed, taus] = parts[..] else { return Err(Error::internal("expected two factors")) };
    let results = context.importer.builder.packed_reflections(&padded, [packed, taus])?;
    declared(context, results.to_vec())
}

/// The columns of Q that packed reflections represent.
fn orthonormal(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (operand, batch) = matrices(context)?;
    let (factors, stated) = (context.operand(1)?, context.operand(2)?);
    let Some(&width) = shaping::sizes_of(context, stated)?.last() else {
        return Err(Error::invalid("expected the shape of a matrix"));
    };
    let builder = &mut context.importer.builder;
    let padded = builder.padded_matrices(operand)?;
    // A factor of 0 is that of a reflection that changes nothing.
    let split = builder.split(factors)?;
    let element_type = builder.element_type(factors);
    let zero = builder.scalar(element_type, 0.0);
    let factors = builder.masked(&split, &[split.sizes.len() - 1], zero)?;
    let columns = call(context, &[padded.data, factors], |_, operands| {
        let packed = as_stack(operands[0]);
        let taus = operands[1].reshape(&[packed.sizes()[0], operands[1].size_from_end(0)]);
        vec![of_stack(linear_algebra::orthonormal_columns(packed, taus, width.bound), &batch)]
    })?;
    let result = context.importer.builder.orthonormal_columns(&padded, columns[0], width)?;
    declared(context, vec![result])
}

/// `(overwritten operand, singular values, u, v^H, info)`.
fn svd(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let mode = context.lapack_option("mode").ok_or_else(|| Error::invalid("missing option 'mode'"))?;
    let (operand, batch) = matrices(context)?;
    let with_vectors = mode != 'N';
    let padded = context.importer.builder.padded_for_singular_values(operand, with_vectors)?;
    let parts = call(context, &[padded.data], |_, operands| {
        let [u, s, v] = linear_algebra::svd(as_stack(operands[0]), mode == 'A');
        let values = [&batch[..], &s.sizes()[1..]].concat();
        vec![s.reshape(&values), of_stack(u, &batch), of_stack(v, &batch)]
    })?;
    let [s, u, v] = parts[..] else { return Err(Error::internal("expected three parts")) };
    let element_type = context.array(operand)?.element_type;
    let info = context.element_type_of_result(4)?;
    let info = zeros(context, 4, info)?;
    let values = context.importer.builder.singular_values(&padded, s)?;
    if !with_vectors {
        let (u, v) = (zeros(context, 2, element_type)?, zeros(context, 3, element_type)?);
        return declared(context, vec![operand, values, u, v, info]);
    }
    let builder = &mut context.importer.builder;
    let u = builder.singular_vectors(&padded, u, true, mode == 'A')?;
    let v = builder.singular_vectors(&padded, v, false, mode == 'A')?;
    let mut order: Vec<usize> = (0..batch.len() + 2).collect();
    order.swap(batch.len(), batch.len() + 1);
    let v = builder.conjugate(v)?;
    let v = builder.transpose(v, &order)?;
    declared(context, vec![operand, values, u, v, info])
}
