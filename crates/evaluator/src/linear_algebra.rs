//! `cholesky` and `triangular-solve`, on the last two dimensions.

use crate::array::{array, check_array, from_scalars};
use crate::complex::{Complex, add, conjugate, divide, multiply};
use crate::contraction::{Term, terms};
use crate::evaluator::Evaluator;
use hlo::TriangularTranspose;
use shape::{Literal, PrimitiveType, Scalar, Shape};
use support::{Error, Result};

/// Options of a triangular solve.
#[derive(Clone, Copy)]
pub(crate) struct TriangularSolve {
    pub(crate) left_side: bool,
    pub(crate) lower: bool,
    pub(crate) unit_diagonal: bool,
    pub(crate) transpose_a: TriangularTranspose,
}

/// Returns the number, rows, and columns of a stack of matrices.
fn stack(literal: &Literal) -> Result<[i64; 3]> {
    check_array(literal)?;
    match literal.array_shape().sizes().as_slice() {
        [batch @ .., rows, columns] => Ok([batch.iter().product(), *rows, *columns]),
        sizes => Err(Error::invalid(format!("expected a stack of matrices, got {sizes:?}"))),
    }
}

fn subtract(x: Complex, y: Complex) -> Complex {
    add(x, [-y[0], -y[1]])
}

fn to_scalar(element_type: PrimitiveType, value: Complex) -> Scalar {
    if element_type.is_complex() { Scalar::Complex(value[0], value[1]) } else { Scalar::Float(value[0]) }
}

impl Evaluator<'_> {
    /// Evaluates `cholesky`: `l` with `a = l l^H`, or `u` with `a = u^H u`, reading only that
    /// triangle of `a`. The other triangle is zero. A matrix that is not positive definite yields
    /// all NaN.
    pub(crate) fn cholesky(&mut self, shape: &Shape, a: &Literal, lower: bool) -> Result<Literal> {
        let result = array(shape)?;
        let [batch, n, columns] = stack(a)?;
        if n != columns || result.sizes() != a.array_shape().sizes() {
            return Err(Error::invalid(format!("expected square matrices, got {}", a.shape())));
        }
        self.charge_product(&[batch, n, n, n])?;
        let a: Vec<Complex> = terms(a);
        let n = n as usize;
        let mut scalars = Vec::with_capacity(a.len());
        for matrix in a.chunks_exact((n * n).max(1)) {
            // The upper triangle is the conjugate transpose of the lower one.
            let at =
                |i: usize, j: usize| if lower { matrix[i * n + j] } else { conjugate(matrix[j * n + i]) };
            let factor = factorize(n, &at).unwrap_or_else(|| vec![[f64::NAN; 2]; n * n]);
            let element =
                |i: usize, j: usize| if lower { factor[i * n + j] } else { conjugate(factor[j * n + i]) };
            scalars.extend((0..n * n).map(|k| to_scalar(result.element_type, element(k / n, k % n))));
        }
        Ok(from_scalars(&result, scalars))
    }

    /// Evaluates `triangular-solve`: `x` with `op(a) x = b`, or `x op(a) = b`.
    pub(crate) fn triangular_solve(
        &mut self,
        shape: &Shape,
        a: &Literal,
        b: &Literal,
        options: TriangularSolve,
    ) -> Result<Literal> {
        let result = array(shape)?;
        let ([batch, n, columns], [b_batch, rows, b_columns]) = (stack(a)?, stack(b)?);
        let solved = if options.left_side { rows } else { b_columns };
        if n != columns || batch != b_batch || solved != n || result.sizes() != b.array_shape().sizes() {
            return Err(Error::invalid(format!(
                "the triangular solve does not match its shapes: {} and {}",
                a.shape(),
                b.shape()
            )));
        }
        self.charge_product(&[batch, n, rows, b_columns])?;
        let (a, mut x): (Vec<Complex>, Vec<Complex>) = (terms(a), terms(b));
        let (n, rows, b_columns) = (n as usize, rows as usize, b_columns as usize);
        let pairs = a.chunks_exact((n * n).max(1)).zip(x.chunks_exact_mut((rows * b_columns).max(1)));
        for (a, x) in pairs {
            for vector in 0..(if options.left_side { b_columns } else { rows }) {
                let place = |i: usize| {
                    if options.left_side { i * b_columns + vector } else { vector * b_columns + i }
                };
                solve_vector(n, a, x, &place, options);
            }
        }
        Ok(from_scalars(&result, x.into_iter().map(|v| to_scalar(result.element_type, v))))
    }
}

/// Factors row by row (Cholesky-Banachiewicz). Returns `None` if a pivot is not positive.
fn factorize(n: usize, at: &dyn Fn(usize, usize) -> Complex) -> Option<Vec<Complex>> {
    let mut l = vec![[0.0, 0.0]; n * n];
    for i in 0..n {
        for j in 0..=i {
            let sum =
                (0..j).fold(Complex::ZERO, |s, k| add(s, multiply(l[i * n + k], conjugate(l[j * n + k]))));
            let rest = subtract(at(i, j), sum);
            l[i * n + j] = if i != j {
                divide(rest, l[j * n + j])
            } else if rest[0] > 0.0 {
                [rest[0].sqrt(), 0.0]
            } else {
                return None;
            };
        }
    }
    Some(l)
}

/// Substitutes in place for one column (or, from the right, one row) of `x`.
fn solve_vector(
    n: usize,
    a: &[Complex],
    x: &mut [Complex],
    place: &dyn Fn(usize) -> usize,
    options: TriangularSolve,
) {
    let is_transposed = options.transpose_a != TriangularTranspose::NoTranspose;
    // From the right, x op(a) = b is op(a)^T x^T = b^T.
    let swaps = is_transposed == options.left_side;
    let at = |i: usize, j: usize| {
        let value = if swaps { a[j * n + i] } else { a[i * n + j] };
        if options.transpose_a == TriangularTranspose::Adjoint { conjugate(value) } else { value }
    };
    let is_lower = options.lower != swaps;
    for step in 0..n {
        let i = if is_lower { step } else { n - 1 - step };
        let known = if is_lower { 0..i } else { i + 1..n };
        let sum = known.fold(Complex::ZERO, |s, j| add(s, multiply(at(i, j), x[place(j)])));
        let rest = subtract(x[place(i)], sum);
        x[place(i)] = if options.unit_diagonal { rest } else { divide(rest, at(i, i)) };
    }
}
