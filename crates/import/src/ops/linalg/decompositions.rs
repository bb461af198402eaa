//! Decompositions of matrices, and linear systems. They apply to each matrix of the last two
//! dimensions.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use ::composite::Expression;
use ::composite::linear_algebra as matrices;
use bounded::list;
use hlo::{InstructionId, Op, TriangularTranspose};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Cholesky", cholesky).types("T", FLOATS_AND_COMPLEX),
    rule("MatrixTriangularSolve", triangular_solve).types("T", FLOATS_AND_COMPLEX),
    rule("BatchMatrixTriangularSolve", triangular_solve).types("T", FLOATS_AND_COMPLEX),
    rule("MatrixSolve", solve).types("T", FLOATS_AND_COMPLEX),
    rule("MatrixInverse", inverse).types("T", FLOATS_AND_COMPLEX),
    rule("MatrixDeterminant", determinant).types("T", FLOATS_AND_COMPLEX),
    rule_many("LogMatrixDeterminant", log_determinant).types("T", FLOATS_AND_COMPLEX),
    rule_many("Lu", lu).types("T", FLOATS_AND_COMPLEX),
    rule_many("Qr", qr).types("T", FLOATS_AND_COMPLEX),
    rule_many("SelfAdjointEigV2", self_adjoint_eig).types("T", FLOATS_AND_COMPLEX),
    rule_many("XlaSelfAdjointEig", xla_self_adjoint_eig).types("T", FLOATS_AND_COMPLEX),
    rule_many("Svd", svd).types("T", FLOATS_AND_COMPLEX),
    rule_many("XlaSvd", xla_svd).types("T", FLOATS_AND_COMPLEX),
    rule("MatrixExponential", exponential).types("T", FLOATS_AND_COMPLEX),
    rule("MatrixSolveLs", least_squares).types("T", FLOATS_AND_COMPLEX),
];

/// Returns the type to compute in.
fn wide(element_type: PrimitiveType) -> PrimitiveType {
    match element_type {
        PrimitiveType::F16 | PrimitiveType::Bf16 => PrimitiveType::F32,
        other => other,
    }
}

/// Returns the matrices at an input, and their sizes.
fn matrix(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<(InstructionId, Vec<i64>)> {
    let x = cx.input(k)?;
    let sizes = cx.sizes(x);
    cx.check(sizes.len() >= 2, || {
        format!("input {k}: expected two or more dimensions, got shape {}", list(&sizes))
    })?;
    Ok((x, sizes))
}

/// Returns the square matrices at an input, and their sizes.
fn square(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<(InstructionId, Vec<i64>)> {
    let (x, sizes) = matrix(cx, k)?;
    let is_square = sizes[sizes.len() - 2] == sizes[sizes.len() - 1];
    cx.check(is_square, || format!("input {k}: expected square matrices, got shape {}", list(&sizes)))?;
    Ok((x, sizes))
}

/// Returns the batch dimensions of matrices.
fn batch_of(sizes: &[i64]) -> &[i64] {
    &sizes[..sizes.len() - 2]
}

/// Returns a stack of matrices in the type to compute in.
fn stack(x: Expression<'_>) -> Expression<'_> {
    matrices::as_stack(x.convert(wide(x.element_type())))
}

/// `Cholesky(a)`: the lower factor.
fn cholesky(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, sizes) = square(cx, 0)?;
    if sizes.contains(&0) {
        return Ok(a);
    }
    let element_type = cx.element_type(a);
    let a = cx.convert(a, wide(element_type))?;
    let factor = cx.op(Op::Cholesky { lower: true }, &[a])?;
    cx.convert(factor, element_type)
}

/// `MatrixTriangularSolve(a, b)` with broadcasting of batch dimensions.
fn triangular_solve(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let ((a, a_sizes), (b, b_sizes)) = (square(cx, 0)?, matrix(cx, 1)?);
    let attributes = &cx.attributes();
    let (lower, adjoint) = (attributes.bool_or("lower", true)?, attributes.bool_or("adjoint", false)?);
    let (n, rows) = (a_sizes[a_sizes.len() - 1], b_sizes[b_sizes.len() - 2]);
    cx.check(n == rows, || {
        format!(
            "the shapes of matrices {} and right-hand sides {} do not match",
            list(&a_sizes),
            list(&b_sizes)
        )
    })?;
    let batch = cx.broadcast_sizes(batch_of(&a_sizes), batch_of(&b_sizes))?;
    let full = |sizes: &[i64]| [&batch, &sizes[sizes.len() - 2..]].concat();
    let (a, b) = (cx.broadcast_to(a, &full(&a_sizes))?, cx.broadcast_to(b, &full(&b_sizes))?);
    let element_type = cx.element_type(b);
    if cx.sizes(b).contains(&0) {
        return Ok(b);
    }
    let (a, b) = (cx.convert(a, wide(element_type))?, cx.convert(b, wide(element_type))?);
    let transpose_a = if adjoint { TriangularTranspose::Adjoint } else { TriangularTranspose::NoTranspose };
    let op = Op::TriangularSolve { left_side: true, lower, unit_diagonal: false, transpose_a };
    let x = cx.op(op, &[a, b])?;
    cx.convert(x, element_type)
}

/// `MatrixSolve(a, b)` with `a` or its adjoint.
fn solve(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let ((a, a_sizes), (b, b_sizes)) = (square(cx, 0)?, matrix(cx, 1)?);
    let adjoint = cx.attributes().bool_or("adjoint", false)?;
    let n = a_sizes[a_sizes.len() - 1];
    let fits = batch_of(&a_sizes) == batch_of(&b_sizes) && b_sizes[b_sizes.len() - 2] == n;
    cx.check(fits, || {
        format!(
            "the shapes of matrices {} and right-hand sides {} do not match",
            list(&a_sizes),
            list(&b_sizes)
        )
    })?;
    cx.composite_one(&[a, b], |_, operands| {
        let (a, b) = (stack(operands[0]), stack(operands[1]));
        let a = if adjoint { matrices::adjoint(a) } else { a };
        matrices::of_stack(matrices::solve(a, b), batch_of(&b_sizes)).convert(operands[1].element_type())
    })
}

/// `MatrixInverse(a)` of `a` or its adjoint.
fn inverse(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, sizes) = square(cx, 0)?;
    let adjoint = cx.attributes().bool_or("adjoint", false)?;
    if sizes.contains(&0) {
        return Ok(a);
    }
    cx.composite_one(&[a], |function, operands| {
        let a = stack(operands[0]);
        let a = if adjoint { matrices::adjoint(a) } else { a };
        let stacked = a.sizes();
        let identity = matrices::identity(function, a.element_type(), [stacked[0], stacked[1], stacked[2]]);
        matrices::of_stack(matrices::solve(a, identity), batch_of(&sizes)).convert(operands[0].element_type())
    })
}

/// Returns the sign and the pivots, whose product is the determinant, both in the type to compute
/// in.
fn pivots(a: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let (sign, pivots) = matrices::determinant(stack(a));
    let is_complex = pivots.element_type().is_complex();
    (if is_complex { sign.complex(sign.splat(0.0)) } else { sign }, pivots)
}

/// `MatrixDeterminant(a)`.
fn determinant(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, sizes) = square(cx, 0)?;
    cx.composite_one(&[a], |_, operands| {
        let (sign, pivots) = pivots(operands[0]);
        (sign * pivots.product(&[1])).reshape(batch_of(&sizes)).convert(operands[0].element_type())
    })
}

/// `LogMatrixDeterminant(a)`: the sign, and the logarithm of the magnitude.
fn log_determinant(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (a, sizes) = square(cx, 0)?;
    cx.composite(&[a], |_, operands| {
        let (sign, pivots) = pivots(operands[0]);
        let magnitude = pivots.abs();
        let is_complex = pivots.element_type().is_complex();
        let complex = |x: Expression<'_>| if is_complex { x.complex(x.splat(0.0)).id() } else { x.id() };
        let wrap = |id| operands[0].function().expression(id);
        let signs = magnitude.equal(0.0).select(pivots.splat(0.0), pivots / wrap(complex(magnitude)));
        let sign = sign * signs.product(&[1]);
        let log = wrap(complex(magnitude.log().sum(&[1])));
        [sign, log].map(|x| x.reshape(batch_of(&sizes)).convert(operands[0].element_type())).to_vec()
    })
}

/// `Lu(a)`: both factors in one matrix, and the permutation of the rows.
fn lu(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (a, sizes) = square(cx, 0)?;
    let index_type = cx.output_type(1)?;
    cx.composite(&[a], |_, operands| {
        let lu = matrices::lu(stack(operands[0]));
        let rows = &sizes[..sizes.len() - 1];
        vec![
            matrices::of_stack(lu.factors, batch_of(&sizes)).convert(operands[0].element_type()),
            lu.permutation.reshape(rows).convert(index_type),
        ]
    })
}

/// `Qr(a)`.
fn qr(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (a, sizes) = matrix(cx, 0)?;
    let full = cx.attributes().bool_or("full_matrices", false)?;
    let padded = cx.padded_matrices(a)?;
    let factors = cx.composite(&[padded.data], |_, operands| {
        let (q, r) = matrices::qr(stack(operands[0]), full);
        [q, r].map(|x| matrices::of_stack(x, batch_of(&sizes)).convert(operands[0].element_type())).to_vec()
    })?;
    match factors[..] {
        [q, r] => Ok(cx.qr_factors(&padded, [q, r], full)?.to_vec()),
        _ => Ok(factors),
    }
}

fn self_adjoint_eig(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let with_vectors = cx.attributes().bool_or("compute_v", true)?;
    eigh(cx, true, with_vectors)
}

fn xla_self_adjoint_eig(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let lower = cx.attributes().bool_or("lower", true)?;
    eigh(cx, lower, true)
}

/// Returns the eigenvalues in ascending order, and the eigenvectors as columns.
fn eigh(cx: &mut NodeContext<'_, '_>, lower: bool, with_vectors: bool) -> Result<Vec<InstructionId>> {
    let (a, sizes) = square(cx, 0)?;
    let outputs = [cx.output_type(0)?, cx.output_type(1)?];
    cx.composite(&[a], |function, operands| {
        let (values, vectors) = matrices::eigh(stack(operands[0]), lower);
        let values = values.reshape(&sizes[..sizes.len() - 1]).convert(outputs[0]);
        let vectors = if with_vectors {
            matrices::of_stack(vectors, batch_of(&sizes)).convert(outputs[1])
        } else {
            function.splat(outputs[1], &[0], 0.0)
        };
        vec![values, vectors]
    })
}

fn svd(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let attributes = &cx.attributes();
    let with_vectors = attributes.bool_or("compute_uv", true)?;
    let full = attributes.bool_or("full_matrices", false)?;
    singular(cx, with_vectors, full)
}

fn xla_svd(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    singular(cx, true, true)
}

/// Returns `s`, `u`, `v` with `a = u diag(s) v^H` and the singular values in descending order.
fn singular(cx: &mut NodeContext<'_, '_>, with_vectors: bool, full: bool) -> Result<Vec<InstructionId>> {
    let (a, sizes) = matrix(cx, 0)?;
    let element_type = cx.element_type(a);
    let padded = cx.padded_for_singular_values(a, with_vectors)?;
    let parts = cx.composite(&[padded.data], |function, operands| {
        let [u, s, v] = matrices::svd(stack(operands[0]), full);
        let values = [batch_of(&sizes), &s.sizes()[1..]].concat();
        let s = s.reshape(&values).convert(element_type);
        let side = |x: Expression<'_>| {
            if with_vectors {
                matrices::of_stack(x, batch_of(&sizes)).convert(element_type).id()
            } else {
                function.splat(element_type, &[0], 0.0).id()
            }
        };
        vec![s, function.expression(side(u)), function.expression(side(v))]
    })?;
    let [s, u, v] = parts[..] else { return Ok(parts) };
    let s = cx.singular_values(&padded, s)?;
    if !with_vectors {
        return Ok(vec![s, u, v]);
    }
    let u = cx.singular_vectors(&padded, u, true, full)?;
    Ok(vec![s, u, cx.singular_vectors(&padded, v, false, full)?])
}

/// `MatrixExponential(a)`.
fn exponential(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, sizes) = square(cx, 0)?;
    cx.composite_one(&[a], |_, operands| {
        let result = matrices::exponential(stack(operands[0]));
        matrices::of_stack(result, batch_of(&sizes)).convert(operands[0].element_type())
    })
}

/// `MatrixSolveLs(a, b, l2_regularizer)`. If `fast`, solves the normal equations. Otherwise returns
/// the solution of minimum norm, ignoring the regularizer.
fn least_squares(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let ((a, a_sizes), (b, b_sizes)) = (matrix(cx, 0)?, matrix(cx, 1)?);
    let regularizer = cx.input(2)?;
    let rank = cx.rank(regularizer);
    cx.check(rank == 0, || format!("l2_regularizer: expected a scalar, got rank {rank}"))?;
    let fits =
        batch_of(&a_sizes) == batch_of(&b_sizes) && a_sizes[a_sizes.len() - 2] == b_sizes[b_sizes.len() - 2];
    cx.check(fits, || {
        format!(
            "the shapes of matrices {} and right-hand sides {} do not match",
            list(&a_sizes),
            list(&b_sizes)
        )
    })?;
    let is_fast = cx.attributes().bool_or("fast", true)?;
    let element_type = cx.element_type(b);
    let result = [batch_of(&a_sizes), &[a_sizes[a_sizes.len() - 1], b_sizes[b_sizes.len() - 1]]].concat();
    if a_sizes.contains(&0) || b_sizes.contains(&0) {
        return cx.splat(element_type, &result, 0.0);
    }
    cx.composite_one(&[a, b, regularizer], |_, operands| {
        let (a, b) = (stack(operands[0]), stack(operands[1]));
        let regularizer = operands[2].convert(a.element_type().real_part());
        let x = if is_fast {
            matrices::normal_least_squares(a, b, regularizer)
        } else {
            matrices::least_squares(a, b)
        };
        matrices::of_stack(x, batch_of(&a_sizes)).convert(element_type)
    })
}
