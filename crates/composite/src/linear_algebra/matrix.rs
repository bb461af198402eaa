//! Helpers shared by the decompositions: products, triangles, rows, and columns of stacks of
//! matrices.

use crate::expression::Expression;
use crate::function::Function;
use shape::PrimitiveType;

/// Number of rows or columns of a large matrix processed at a time.
pub(super) const BLOCK: i64 = 64;

/// Pads square matrices to a multiple of a size, with ones on the diagonal.
pub(super) fn pad_with_identity(a: Expression<'_>, multiple: i64) -> Expression<'_> {
    let n = a.size_from_end(0);
    let more = (multiple - n % multiple) % multiple;
    if more == 0 {
        return a;
    }
    let padded = a.pad_in(1, 0, more, 0.0).pad_in(2, 0, more, 0.0);
    let (rows, columns) = positions(padded);
    (rows.equal(columns) & rows.ge(n as f64)).select(padded.splat(1.0), padded)
}

/// Flattens the batch dimensions of matrices into one.
pub fn as_stack(x: Expression<'_>) -> Expression<'_> {
    let sizes = x.sizes();
    let batch: i64 = sizes[..sizes.len().saturating_sub(2)].iter().product();
    x.reshape(&[batch, x.size_from_end(1), x.size_from_end(0)])
}

/// Restores the batch dimensions of a stack.
pub fn of_stack<'f>(stack: Expression<'f>, batch: &[i64]) -> Expression<'f> {
    stack.reshape(&[batch, &stack.sizes()[1..]].concat())
}

/// Returns the conjugate transpose of each matrix.
pub fn adjoint(x: Expression<'_>) -> Expression<'_> {
    conjugate(x).transpose(&[0, 2, 1])
}

/// Returns the complex conjugate; real numbers are unchanged.
pub(super) fn conjugate(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real().complex(-x.imag()) } else { x }
}

/// Returns the real part; real numbers are unchanged.
pub(super) fn real_part(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real() } else { x }
}

/// Converts real numbers to the type of `like`.
pub(super) fn in_type_of<'f>(x: Expression<'f>, like: Expression<'f>) -> Expression<'f> {
    if like.element_type().is_complex() && !x.element_type().is_complex() {
        return x.complex(x.splat(0.0));
    }
    x
}

/// Returns `|x|^2` as a real number.
pub(super) fn square_magnitude(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real() * x.real() + x.imag() * x.imag() } else { x * x }
}

/// Returns `|x|`. For complex numbers, whose modulus may overflow, returns the larger magnitude of
/// both parts.
pub(super) fn magnitude(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real().abs().max(x.imag().abs()) } else { x.abs() }
}

/// Multiplies two stacks; complex products are computed as real ones.
pub fn matmul<'f>(a: Expression<'f>, b: Expression<'f>) -> Expression<'f> {
    let dot = |a: Expression<'f>, b: Expression<'f>| a.dot(b, 1);
    if !a.element_type().is_complex() {
        return dot(a, b);
    }
    let (ar, ai, br, bi) = (a.real(), a.imag(), b.real(), b.imag());
    (dot(ar, br) - dot(ai, bi)).complex(dot(ar, bi) + dot(ai, br))
}

/// Returns the row and the column of each element, `s32` in the shape of `like`.
pub(super) fn positions(like: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let sizes = like.sizes();
    let function = like.function();
    (function.iota(PrimitiveType::S32, &sizes, 1), function.iota(PrimitiveType::S32, &sizes, 2))
}

/// Returns a stack of matrices with ones on the diagonal.
pub fn identity(function: &Function, element_type: PrimitiveType, sizes: [i64; 3]) -> Expression<'_> {
    let rows = function.iota(PrimitiveType::S32, &sizes, 1);
    let columns = function.iota(PrimitiveType::S32, &sizes, 2);
    rows.equal(columns).convert(PrimitiveType::S32).convert(element_type)
}

/// Keeps the lower triangle, including the diagonal; zeros above.
pub fn lower_triangle(x: Expression<'_>) -> Expression<'_> {
    let (rows, columns) = positions(x);
    rows.ge(columns).select(x, 0.0)
}

/// Returns the diagonals, `[batch, count]`.
pub(super) fn diagonal(x: Expression<'_>) -> Expression<'_> {
    let (rows, columns) = positions(x);
    let count = x.size_from_end(0).min(x.size_from_end(1));
    let sum = |x: Expression<'_>| rows.equal(columns).select(x, 0.0).sum(&[1]).slice_in(1, 0, count).id;
    let wrap = |id| x.function().wrap(id);
    if x.element_type().is_complex() {
        return wrap(sum(x.real())).complex(wrap(sum(x.imag())));
    }
    wrap(sum(x))
}

/// Broadcasts `[batch, rows, 1]` or `[batch, 1, columns]` to a shape.
pub(super) fn spread<'f>(x: Expression<'f>, sizes: &[i64]) -> Expression<'f> {
    let source = x.sizes();
    let matching: Vec<usize> = (0..3).filter(|&d| source[d] == sizes[d]).collect();
    let matching_sizes: Vec<i64> = matching.iter().map(|&d| source[d]).collect();
    x.reshape(&matching_sizes).broadcast(sizes, &matching)
}

/// Divides matrices by their largest magnitude, so that neither squares nor their sums overflow.
/// Also returns that magnitude, `[batch]`, or 1 if it is 0.
pub(super) fn scale_to_one(x: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let largest = magnitude(x).maximum(&[1, 2]);
    let scale = largest.gt(0.0).select(largest, 1.0);
    (x / in_type_of(scale.broadcast(&x.sizes(), &[0]), x), scale)
}

/// Returns NaN for each matrix with a nonfinite element, otherwise 0: `[batch]`, real.
pub(super) fn poison(x: Expression<'_>) -> Expression<'_> {
    magnitude(x).largest_magnitude(&[1, 2]) * 0.0
}
