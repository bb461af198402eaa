//! QR factors by Householder reflections, one column per step, with LAPACK's signs.

use super::matrix::{
    adjoint, conjugate, identity, in_type_of, magnitude, matmul, positions, real_part, spread,
    square_magnitude,
};
use crate::expression::Expression;
use shape::PrimitiveType;

/// Returns `q` and `r` with `a = q r`. `q` has all columns, or as many as the smaller of `a`'s
/// dimensions.
pub fn qr(a: Expression<'_>, full_matrices: bool) -> (Expression<'_>, Expression<'_>) {
    let function = a.function();
    let sizes = a.sizes();
    let (batch, m, n) = (sizes[0], sizes[1], sizes[2]);
    let p = m.min(n);
    let width = if full_matrices { m } else { p };
    let element_type = a.element_type();
    if sizes.contains(&0) {
        let q = identity(function, element_type, [batch, m, width]);
        return (q, function.splat(element_type, &[batch, width, n], 0.0));
    }
    let (r, vectors, taus) = reflect_columns(a);
    let q = reflect_identity(vectors, taus, width);
    let r = r.slice_in(1, 0, width);
    let (rows, columns) = positions(r);
    (q, rows.le(columns).select(r, 0.0))
}

/// LAPACK's `geqrf`: returns R on and above the diagonal and, below it, the vectors of the
/// reflections whose product is Q, each without its leading 1. Also returns their scalar factors,
/// `[batch, count]`.
pub fn reflections(a: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let sizes = a.sizes();
    let (batch, m, n) = (sizes[0], sizes[1], sizes[2]);
    let p = m.min(n);
    if sizes.contains(&0) {
        return (a, a.function().splat(a.element_type(), &[batch, p], 0.0));
    }
    let (r, vectors, taus) = reflect_columns(a);
    let (rows, columns) = positions(r);
    let packed = rows.gt(columns).select(vectors.pad_in(2, 0, n - p, 0.0), r);
    (packed, taus.reshape(&[batch, p]))
}

/// LAPACK's `orgqr`: returns the first columns of the product of reflections packed by
/// [`reflections`].
pub fn orthonormal_columns<'f>(packed: Expression<'f>, taus: Expression<'f>, width: i64) -> Expression<'f> {
    let function = packed.function();
    let (batch, m, count) = (packed.sizes()[0], packed.sizes()[1], taus.sizes()[1]);
    if packed.sizes().contains(&0) || count == 0 {
        return identity(function, packed.element_type(), [batch, m, width]);
    }
    let vectors = packed.slice_in(2, 0, count);
    let (rows, columns) = positions(vectors);
    let vectors = rows.gt(columns).select(vectors, 0.0);
    let vectors = rows.equal(columns).select(vectors.splat(1.0), vectors);
    reflect_identity(vectors, taus.reshape(&[batch, 1, count]), width)
}

/// Reduces each column in turn. Returns the reduced matrix, the reflection vectors, and their
/// scalar factors.
fn reflect_columns(a: Expression<'_>) -> (Expression<'_>, Expression<'_>, Expression<'_>) {
    let function = a.function();
    let (batch, m, n) = (a.sizes()[0], a.sizes()[1], a.sizes()[2]);
    let p = m.min(n);
    let vectors = function.splat(a.element_type(), &[batch, m, p], 0.0);
    let taus = function.splat(a.element_type(), &[batch, 1, p], 0.0);
    let reduced = function.for_loop(p, &[a, vectors, taus], |_, k, state| reflect(k, state));
    (reduced[0], reduced[1], reduced[2])
}

/// Returns the first columns of the product of all reflections, applied from last to first.
fn reflect_identity<'f>(vectors: Expression<'f>, taus: Expression<'f>, width: i64) -> Expression<'f> {
    let function = vectors.function();
    let (batch, m, count) = (vectors.sizes()[0], vectors.sizes()[1], vectors.sizes()[2]);
    let q = identity(function, vectors.element_type(), [batch, m, width]);
    let outputs = function.for_loop(count, &[q, vectors, taus], |_, step, state| {
        let &[q, vectors, taus] = state else { return Vec::new() };
        let k = (count - 1) as f64 - step;
        let v = vectors.dynamic_slice_in(2, k);
        let tau = taus.dynamic_slice_in(2, k);
        vec![apply_reflection(q, v, tau), vectors, taus]
    });
    outputs[0]
}

/// `x - tau v (v^H x)`.
pub(super) fn apply_reflection<'f>(
    x: Expression<'f>,
    v: Expression<'f>,
    tau: Expression<'f>,
) -> Expression<'f> {
    let sizes = x.sizes();
    let projection = matmul(adjoint(v), x);
    let scaled = projection * spread(tau, &projection.sizes());
    x - spread(v, &sizes) * spread(scaled, &sizes)
}

/// A reflection `1 - tau v v^H`. Its adjoint reduces a column to end with `beta`, a real number.
pub(super) struct Reflection<'f> {
    /// `[batch, rows, 1]`: 1 in the first row of the reflection, zeros before it.
    pub(super) v: Expression<'f>,
    /// `[batch, 1, 1]`.
    pub(super) tau: Expression<'f>,
    /// `[batch, 1, 1]`.
    pub(super) beta: Expression<'f>,
}

/// Returns the reflection that makes columns, `[batch, rows, 1]`, 0 below row `k`.
pub(super) fn reflection<'f>(column: Expression<'f>, k: Expression<'f>) -> Reflection<'f> {
    let sizes = column.sizes();
    let rows = column.function().iota(PrimitiveType::S32, &sizes, 1);
    let k_everywhere = k.spread_like(rows);
    let alpha = column.dynamic_slice_in(1, k);
    let tail = rows.gt(k_everywhere).select(column, 0.0);
    let (norm, scale) = norm_of(tail, alpha);
    let real = real_part(alpha);
    let beta = real.lt(0.0).select(norm, -norm);
    let has_tail = scale.gt(0.0);
    let is_real = if alpha.element_type().is_complex() { alpha.imag().equal(0.0) } else { real.equal(real) };
    // Identity if the column is already reduced.
    let idle = !has_tail & is_real;
    let beta = in_type_of(idle.select(real, beta), alpha);
    let one = alpha.splat(1.0);
    let tau = idle.select(alpha.splat(0.0), (beta - alpha) / beta);
    let divisor = idle.select(one, alpha - beta);
    let v = tail / spread(divisor, &sizes);
    Reflection { v: rows.equal(k_everywhere).select(v.splat(1.0), v), tau, beta }
}

/// Makes a column 0 below the diagonal, and stores the reflection's vector and scalar factor.
fn reflect<'f>(k: Expression<'f>, state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[a, vectors, taus] = state else { return Vec::new() };
    let column = a.dynamic_slice_in(2, k);
    let sizes = column.sizes();
    let rows = a.function().iota(PrimitiveType::S32, &sizes, 1);
    let k_everywhere = k.spread_like(rows);
    let Reflection { v, tau, beta } = reflection(column, k);
    let next = apply_reflection(a, v, conjugate(tau));
    // The eliminated elements are exactly 0.
    let exact = rows.equal(k_everywhere).select(spread(beta, &sizes), 0.0);
    let exact = rows.lt(k_everywhere).select(column, exact);
    vec![
        next.dynamic_update_in(exact, 2, k),
        vectors.dynamic_update_in(v, 2, k),
        taus.dynamic_update_in(tau, 2, k),
    ]
}

/// Returns the norm of a column that begins with `alpha`, and the largest magnitude of the rest.
/// Squares neither overflow nor underflow.
fn norm_of<'f>(tail: Expression<'f>, alpha: Expression<'f>) -> (Expression<'f>, Expression<'f>) {
    let sizes = alpha.sizes();
    let tail_magnitude = magnitude(tail).largest_magnitude(&[1, 2]).reshape(&sizes);
    let scale = tail_magnitude.max(magnitude(alpha));
    let divisor = scale.gt(0.0).select(scale, 1.0);
    let divisor = in_type_of(divisor, alpha);
    let scaled = square_magnitude(tail / spread(divisor, &tail.sizes())).sum(&[1, 2]).reshape(&sizes);
    let norm = (scaled + square_magnitude(alpha / divisor)).sqrt() * scale;
    (norm, tail_magnitude)
}
