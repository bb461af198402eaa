//! What the decompositions share: products, triangles, rows and columns of stacks of matrices.

use crate::expression::Expression;
use crate::function::Function;
use shape::PrimitiveType;

/// How many rows or columns of large matrices are worked on at a time.
pub(super) const BLOCK: i64 = 64;

/// Square matrices made a multiple of a size by ones on the diagonal.
pub(super) fn padded_with_identity(a: Expression<'_>, multiple: i64) -> Expression<'_> {
    let n = a.size_from_end(0);
    let more = (multiple - n % multiple) % multiple;
    if more == 0 {
        return a;
    }
    let padded = a.pad_in(1, 0, more, 0.0).pad_in(2, 0, more, 0.0);
    let (rows, columns) = positions(padded);
    (rows.equal(columns) & rows.ge(n as f64)).select(padded.splat(1.0), padded)
}

/// A stack of matrices with one batch dimension.
pub fn as_stack(x: Expression<'_>) -> Expression<'_> {
    let sizes = x.sizes();
    let batch: i64 = sizes[..sizes.len().saturating_sub(2)].iter().product();
    x.reshape(&[batch, x.size_from_end(1), x.size_from_end(0)])
}

/// A stack with the batch dimensions of another array of matrices.
pub fn of_stack<'f>(stack: Expression<'f>, batch: &[i64]) -> Expression<'f> {
    stack.reshape(&[batch, &stack.sizes()[1..]].concat())
}

/// The conjugate transpose of each matrix.
pub fn adjoint(x: Expression<'_>) -> Expression<'_> {
    conjugate(x).transpose(&[0, 2, 1])
}

/// The complex conjugate; of real numbers themselves.
pub(super) fn conjugate(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real().complex(-x.imag()) } else { x }
}

/// The real part; of real numbers themselves.
pub(super) fn real_part(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real() } else { x }
}

/// Real numbers in the type of `like`.
pub(super) fn in_type_of<'f>(x: Expression<'f>, like: Expression<'f>) -> Expression<'f> {
    if like.element_type().is_complex() && !x.element_type().is_complex() {
        return x.complex(x.splat(0.0));
    }
    x
}

/// `|x|^2`, real.
pub(super) fn square_magnitude(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real() * x.real() + x.imag() * x.imag() } else { x * x }
}

/// `|x|`; of complex numbers, whose modulus may overflow, the larger part's.
pub(super) fn magnitude(x: Expression<'_>) -> Expression<'_> {
    if x.element_type().is_complex() { x.real().abs().max(x.imag().abs()) } else { x.abs() }
}

/// The products of two stacks; complex ones of real products.
pub fn matmul<'f>(a: Expression<'f>, b: Expression<'f>) -> Expression<'f> {
    let dot = |a: Expression<'f>, b: Expression<'f>| a.dot(b, 1, (2, 1));
    if !a.element_type().is_complex() {
        return dot(a, b);
    }
    let (ar, ai, br, bi) = (a.real(), a.imag(), b.real(), b.imag());
    (dot(ar, br) - dot(ai, bi)).complex(dot(ar, bi) + dot(ai, br))
}

/// The row and the column of each element, `s32` in the shape of `like`.
pub(super) fn positions(like: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let sizes = like.sizes();
    let function = like.function();
    (function.iota(PrimitiveType::S32, &sizes, 1), function.iota(PrimitiveType::S32, &sizes, 2))
}

/// A stack of matrices with ones on the diagonal.
pub fn identity(function: &Function, element_type: PrimitiveType, sizes: [i64; 3]) -> Expression<'_> {
    let rows = function.iota(PrimitiveType::S32, &sizes, 1);
    let columns = function.iota(PrimitiveType::S32, &sizes, 2);
    rows.equal(columns).convert(PrimitiveType::S32).convert(element_type)
}

/// What is on and below the diagonal; zeros above.
pub fn lower_triangle(x: Expression<'_>) -> Expression<'_> {
    let (rows, columns) = positions(x);
    rows.ge(columns).select(x, 0.0)
}

/// The diagonals, `[batch, count]`.
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

/// `[batch, rows, 1]` or `[batch, 1, columns]` repeated to a shape.
pub(super) fn spread<'f>(x: Expression<'f>, sizes: &[i64]) -> Expression<'f> {
    let have = x.sizes();
    let kept: Vec<usize> = (0..3).filter(|&d| have[d] == sizes[d]).collect();
    let kept_sizes: Vec<i64> = kept.iter().map(|&d| have[d]).collect();
    x.reshape(&kept_sizes).broadcast(sizes, &kept)
}

/// Matrices over the largest magnitude in each, so that neither squares nor their sums overflow; and that magnitude, `[batch]`, or 1
/// if it is 0.
pub(super) fn scaled_to_one(x: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let largest = magnitude(x).maximum(&[1, 2]);
    let scale = largest.gt(0.0).select(largest, 1.0);
    (x / in_type_of(scale.broadcast(&x.sizes(), &[0]), x), scale)
}

/// NaN where a matrix holds something that is not finite, otherwise 0: `[batch]`, real.
pub(super) fn poison(x: Expression<'_>) -> Expression<'_> {
    magnitude(x).largest_magnitude(&[1, 2]) * 0.0
}
