//! LAPACK functions under the names that JAX uses on CPUs: `lapack_sgetrf_ffi` and so on.
//!
//! They compute the results in LAPACK's documentation, except for `info`: it is always 0, and a
//! matrix without a decomposition gives NaN.

use super::Convert;
use crate::walk::Context;
use crate::walk::matrices::lapack_function;
use composite::linear_algebra::{Triangular, as_stack, of_stack};
use composite::{Expression, Function, linear_algebra};
use hlo::{InstructionId, TriangularTranspose};
use shape::ArrayShape;
use support::{Error, Result};

/// Parses the target of a custom call: `lapack_`, a letter for the element type, the function's
/// name, `_ffi`.
pub(super) fn find(target: &str) -> Option<Convert> {
    Some(match lapack_function(target)? {
        "potrf" => cholesky,
        "trsm" => triangular_solve,
        "getrf" => lu,
        "geqrf" => qr,
        "orgqr" | "ungqr" => orthonormal,
        "syevd" | "heevd" => eigh,
        "gesdd" => svd,
        _ => return None,
    })
}

fn option(context: &Context<'_, '_>, name: &str) -> Result<char> {
    context.lapack_option(name).ok_or_else(|| Error::invalid(format!("missing option '{name}'")))
}

/// Returns the first operand, a matrix or a batch of matrices, and the batch dimensions.
fn matrices(context: &mut Context<'_, '_>) -> Result<(InstructionId, Vec<i64>)> {
    let operand = context.operand(0)?;
    let mut batch = context.array(operand)?.sizes();
    if batch.len() < 2 {
        return Err(Error::invalid("expected a matrix"));
    }
    batch.truncate(batch.len() - 2);
    Ok((operand, batch))
}

/// Zeros in the shape of one of the call's results: `info`, and results that were not requested.
fn zeros<'f>(function: &'f Function, shape: &ArrayShape) -> Expression<'f> {
    function.splat(shape.element_type, &shape.sizes(), 0.0)
}

fn result_arrays(context: &Context<'_, '_>) -> Result<Vec<ArrayShape>> {
    (0..context.operation.results.len()).map(|k| context.result_array(k)).collect()
}

/// `(factor, info)`; the other triangle is copied from the operand.
fn cholesky(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let lower = option(context, "uplo")? == 'L';
    let (operand, batch) = matrices(context)?;
    let shapes = result_arrays(context)?;
    context.composite(&[operand], |function, operands| {
        let factor = of_stack(linear_algebra::cholesky(as_stack(operands[0]), lower), &batch);
        shapes
            .iter()
            .enumerate()
            .map(|(k, shape)| if k == 0 { factor } else { zeros(function, shape) })
            .collect()
    })
}

fn triangular_solve(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let options = Triangular {
        left_side: option(context, "side")? == 'L',
        lower: option(context, "uplo")? == 'L',
        unit_diagonal: option(context, "diag")? == 'U',
        transpose_a: match option(context, "trans_x")? {
            'T' => TriangularTranspose::Transpose,
            'C' => TriangularTranspose::Adjoint,
            _ => TriangularTranspose::NoTranspose,
        },
    };
    let (matrix, batch) = matrices(context)?;
    let operands = [matrix, context.operand(1)?];
    context.composite(&operands, |_, operands| {
        let solution =
            linear_algebra::triangular_solve(as_stack(operands[0]), as_stack(operands[1]), options);
        vec![of_stack(solution, &batch)]
    })
}

/// `(factors, pivots, info)`: row k was swapped with row `pivots[k] - 1`.
fn lu(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (operand, batch) = matrices(context)?;
    let shapes = result_arrays(context)?;
    let [_, pivots_shape, info] = &shapes[..] else {
        return Err(Error::invalid("expected three results"));
    };
    let count = pivots_shape.sizes().last().copied().unwrap_or(0);
    context.composite(&[operand], |function, operands| {
        let lu = linear_algebra::lu(as_stack(operands[0]));
        let pivots = lu.pivots(count) + 1.0;
        vec![of_stack(lu.factors, &batch), pivots.reshape(&pivots_shape.sizes()), zeros(function, info)]
    })
}

/// `(packed, taus)`: R above and on the diagonal, the reflections below it.
fn qr(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (operand, batch) = matrices(context)?;
    context.composite(&[operand], |_, operands| {
        let (packed, taus) = linear_algebra::reflections(as_stack(operands[0]));
        let taus_shape = [&batch[..], &taus.sizes()[1..]].concat();
        vec![of_stack(packed, &batch), taus.reshape(&taus_shape)]
    })
}

/// The columns of Q that packed reflections represent.
fn orthonormal(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (packed, batch) = matrices(context)?;
    let operands = [packed, context.operand(1)?];
    let width = context.result_array(0)?.sizes().last().copied().unwrap_or(0);
    context.composite(&operands, |_, operands| {
        let packed = as_stack(operands[0]);
        let count = operands[1].size_from_end(0);
        let taus = operands[1].reshape(&[packed.sizes()[0], count]);
        vec![of_stack(linear_algebra::orthonormal_columns(packed, taus, width), &batch)]
    })
}

/// `(vectors, values, info)`.
fn eigh(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let lower = option(context, "uplo")? == 'L';
    let (operand, batch) = matrices(context)?;
    let shapes = result_arrays(context)?;
    let [_, values_shape, info] = &shapes[..] else {
        return Err(Error::invalid("expected three results"));
    };
    context.composite(&[operand], |function, operands| {
        let (values, vectors) = linear_algebra::eigh(as_stack(operands[0]), lower);
        vec![of_stack(vectors, &batch), values.reshape(&values_shape.sizes()), zeros(function, info)]
    })
}

/// `(overwritten operand, singular values, u, v^H, info)`.
fn svd(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let mode = option(context, "mode")?;
    let (operand, batch) = matrices(context)?;
    let shapes = result_arrays(context)?;
    let [_, values_shape, u_shape, v_shape, info] = &shapes[..] else {
        return Err(Error::invalid("expected five results"));
    };
    context.composite(&[operand], |function, operands| {
        let [u, s, v] = linear_algebra::svd(as_stack(operands[0]), mode == 'A');
        let s = s.reshape(&values_shape.sizes());
        let (u, v) = match mode {
            'N' => (zeros(function, u_shape), zeros(function, v_shape)),
            _ => (of_stack(u, &batch), of_stack(linear_algebra::adjoint(v), &batch)),
        };
        vec![operands[0], s, u, v, zeros(function, info)]
    })
}
