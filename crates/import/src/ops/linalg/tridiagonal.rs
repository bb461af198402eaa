//! Tridiagonal matrices: products and linear systems.
//!
//! A matrix is given by its three diagonals, each as long as the number of rows. The last element
//! of the one above the main diagonal and the first element of the one below it are ignored.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("TridiagonalMatMul", tridiagonal_mat_mul).types("T", FLOATS_AND_COMPLEX),
    rule("TridiagonalSolve", tridiagonal_solve).types("T", FLOATS_AND_COMPLEX),
];

/// `TridiagonalMatMul(above, main, below, x)`: each row is a linear combination of three rows of
/// `x`.
fn tridiagonal_mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (above, main, below, x) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
    let sizes = cx.sizes(x);
    let [batch @ .., rows, _] = &sizes[..] else {
        return Err(cx.invalid(format!("expected matrices on the right, got shape {}", list(&sizes))));
    };
    let requested = [batch, &[1, *rows]].concat();
    for diagonal in [above, main, below] {
        let actual = cx.sizes(diagonal);
        cx.check(actual == requested, || {
            format!("expected diagonals of shape {}, got {}", list(&requested), list(&actual))
        })?;
    }
    if sizes.contains(&0) {
        return Ok(x);
    }
    let (rows, rank) = (*rows, sizes.len());
    let (element_type, of_rows) = (cx.element_type(x), rank - 2);
    let dimensions: Vec<usize> = (0..rank - 1).collect();
    let flat = [batch, &[rows]].concat();
    let scaled = |cx: &mut NodeContext<'_, '_>, diagonal, x, start: i64, limit: i64| {
        let diagonal = cx.reshape(diagonal, &flat)?;
        let diagonal = cx.slice_in(diagonal, of_rows, start, limit)?;
        let sizes = cx.sizes(x);
        let diagonal = cx.broadcast(diagonal, &sizes, &dimensions)?;
        cx.mul(diagonal, x)
    };
    let zero = cx.scalar(element_type, 0.0);
    let mut shift = vec![(0, 0, 0); rank];
    let (next, previous) = (cx.slice_in(x, of_rows, 1, rows)?, cx.slice_in(x, of_rows, 0, rows - 1)?);
    let from_next = scaled(cx, above, next, 0, rows - 1)?;
    shift[of_rows] = (0, 1, 0);
    let from_next = cx.pad(from_next, zero, &shift)?;
    let from_previous = scaled(cx, below, previous, 1, rows)?;
    shift[of_rows] = (1, 0, 0);
    let from_previous = cx.pad(from_previous, zero, &shift)?;
    let own = scaled(cx, main, x, 0, rows)?;
    let sum = cx.add(from_previous, own)?;
    cx.add(sum, from_next)
}

/// The equations, with rows as the first dimension and flattened batches.
struct Equations {
    above: InstructionId,
    main: InstructionId,
    below: InstructionId,
    /// `[rows, batches, right-hand sides]`.
    right: InstructionId,
    rows: i64,
    /// `[batches, right-hand sides]`.
    sizes: [i64; 2],
}

/// `TridiagonalSolve(diagonals, rhs)`: Gaussian elimination from the first row to the last, then
/// back substitution. With `partial_pivoting`, each step divides by the larger of two rows' leading
/// elements.
fn tridiagonal_solve(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (diagonals, right) = (cx.input(0)?, cx.input(1)?);
    let (sizes, right_sizes) = (cx.sizes(diagonals), cx.sizes(right));
    let ([batch @ .., 3, rows], [right_batch @ .., right_rows, count]) = (&sizes[..], &right_sizes[..])
    else {
        return Err(cx.invalid(format!(
            "expected diagonals [..., 3, rows] and a right-hand side [..., rows, columns], got {} and {}",
            list(&sizes),
            list(&right_sizes)
        )));
    };
    cx.check(batch == right_batch && rows == right_rows && i32::try_from(*rows).is_ok(), || {
        format!(
            "the shapes of diagonals {} and right-hand side {} do not match",
            list(&sizes),
            list(&right_sizes)
        )
    })?;
    let attributes = &cx.attributes();
    if attributes.bool_or("perturb_singular", false)? {
        return Err(Error::unsupported(
            "perturb_singular is not supported; with false, singular systems yield inf or NaN",
        ));
    }
    let pivots = attributes.bool_or("partial_pivoting", true)?;
    if right_sizes.contains(&0) {
        return Ok(right);
    }
    let batches = cx.checked_product(batch)?;
    let element_type = cx.element_type(right);
    let wide = match element_type {
        PrimitiveType::F16 | PrimitiveType::Bf16 => PrimitiveType::F32,
        other => other,
    };
    let (diagonals, right) = (cx.convert(diagonals, wide)?, cx.convert(right, wide)?);
    let diagonals = cx.reshape(diagonals, &[batches, 3, *rows])?;
    let diagonals = cx.transpose(diagonals, &[1, 2, 0])?;
    let diagonal = |cx: &mut NodeContext<'_, '_>, k| {
        let diagonal = cx.slice_in(diagonals, 0, k, k + 1)?;
        cx.reshape(diagonal, &[*rows, batches])
    };
    let (above, main, below) = (diagonal(cx, 0)?, diagonal(cx, 1)?, diagonal(cx, 2)?);
    let inside = cx.slice_in(above, 0, 0, rows - 1)?;
    let zero = cx.scalar(wide, 0.0);
    let above = cx.pad(inside, zero, &[(0, 1, 0), (0, 0, 0)])?;
    let right = cx.reshape(right, &[batches, *rows, *count])?;
    let right = cx.transpose(right, &[1, 0, 2])?;
    let equations = Equations { above, main, below, right, rows: *rows, sizes: [batches, *count] };
    let eliminated = eliminate(cx, &equations, pivots)?;
    let solution = substitute(cx, &equations, &eliminated)?;
    let solution = cx.transpose(solution, &[1, 0, 2])?;
    let solution = cx.reshape(solution, &right_sizes)?;
    cx.convert(solution, element_type)
}

/// Selects one of two rows per batch element.
fn choose(
    cx: &mut NodeContext<'_, '_>,
    first: InstructionId,
    a: InstructionId,
    b: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(a);
    let first = cx.broadcast(first, &sizes, &[0])?;
    cx.select(first, a, b)
}

/// `a - factor * b`, with a factor per batch element.
fn reduced(
    cx: &mut NodeContext<'_, '_>,
    a: InstructionId,
    factor: InstructionId,
    b: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(b);
    let factor = cx.broadcast(factor, &sizes, &[0])?;
    let product = cx.mul(factor, b)?;
    cx.sub(a, product)
}

/// Returns the rows of the triangular matrix: its main diagonal, the two above it, and the
/// right-hand side.
fn eliminate(
    cx: &mut NodeContext<'_, '_>,
    equations: &Equations,
    pivots: bool,
) -> Result<Vec<InstructionId>> {
    let Equations { above, main, below, right, .. } = *equations;
    let row = |cx: &mut NodeContext<'_, '_>, x| {
        let row = cx.slice_in(x, 0, 0, 1)?;
        let sizes = cx.sizes(x)[1..].to_vec();
        cx.reshape(row, &sizes)
    };
    let current = [row(cx, main)?, row(cx, above)?, row(cx, right)?];
    let zeros = cx.splat_like(main, 0.0)?;
    let initial = [&[main, zeros, zeros, right, above, main, below, right][..], &current].concat();
    let body = |cx: &mut NodeContext<'_, '_>, i: InstructionId, values: &[InstructionId]| {
        let [u0, u1, u2, y, above, main, below, right, lead, next, side] = values[..] else {
            return Err(Error::internal("expected eleven carried arrays"));
        };
        let following = cx.add_scalar(i, 1.0)?;
        let (below_i, main_i) = (cx.dynamic_row(below, following)?, cx.dynamic_row(main, following)?);
        let (above_i, right_i) = (cx.dynamic_row(above, following)?, cx.dynamic_row(right, following)?);
        let nothing = cx.splat_like(lead, 0.0)?;
        // The pivot row, and the row to be reduced by it with its leading element.
        let (mut pivot, mut other) = ([lead, next, nothing, side], [below_i, main_i, above_i, right_i]);
        if pivots {
            let (size, size_below) = (cx.op(Op::Abs {}, &[lead])?, cx.op(Op::Abs {}, &[below_i])?);
            let keeps = cx.compare(ComparisonDirection::Ge, size, size_below)?;
            for (a, b) in pivot.iter_mut().zip(&mut other) {
                (*a, *b) = (choose(cx, keeps, *a, *b)?, choose(cx, keeps, *b, *a)?);
            }
        }
        let factor = cx.div(other[0], pivot[0])?;
        let lead = reduced(cx, other[1], factor, pivot[1])?;
        let next = reduced(cx, other[2], factor, pivot[2])?;
        let side = reduced(cx, other[3], factor, pivot[3])?;
        let mut result = Vec::with_capacity(values.len());
        for (array, row) in [u0, u1, u2, y].into_iter().zip(pivot) {
            result.push(cx.with_dynamic_row(array, row, i)?);
        }
        result.extend([above, main, below, right, lead, next, side]);
        Ok(result)
    };
    let count = i32::try_from(equations.rows - 1).expect("the number of rows does not fit in i32");
    let results = cx.counted_loop(count, &initial, body)?;
    let last = cx.scalar(PrimitiveType::S32, f64::from(count));
    let (lead, side) = (results[8], results[10]);
    let (u0, y) =
        (cx.with_dynamic_row(results[0], lead, last)?, cx.with_dynamic_row(results[3], side, last)?);
    Ok(vec![u0, results[1], results[2], y])
}

/// Returns the solution, computed from the last row to the first.
fn substitute(
    cx: &mut NodeContext<'_, '_>,
    equations: &Equations,
    eliminated: &[InstructionId],
) -> Result<InstructionId> {
    let element_type = cx.element_type(equations.right);
    let nothing = cx.splat(element_type, &equations.sizes, 0.0)?;
    let initial = [eliminated, &[nothing, nothing]].concat();
    let count = i32::try_from(equations.rows).expect("the number of rows does not fit in i32");
    let body = |cx: &mut NodeContext<'_, '_>, i: InstructionId, values: &[InstructionId]| {
        let [u0, u1, u2, y, after, after_that] = values[..] else {
            return Err(Error::internal("expected six carried arrays"));
        };
        let last = cx.scalar(PrimitiveType::S32, f64::from(count - 1));
        let at = cx.sub(last, i)?;
        let (lead, first, second) =
            (cx.dynamic_row(u0, at)?, cx.dynamic_row(u1, at)?, cx.dynamic_row(u2, at)?);
        let side = cx.dynamic_row(y, at)?;
        let side = reduced(cx, side, first, after)?;
        let side = reduced(cx, side, second, after_that)?;
        let sizes = cx.sizes(side);
        let lead = cx.broadcast(lead, &sizes, &[0])?;
        let solved = cx.div(side, lead)?;
        Ok(vec![u0, u1, u2, cx.with_dynamic_row(y, solved, at)?, solved, after])
    };
    let results = cx.counted_loop(count, &initial, body)?;
    Ok(results[3])
}
