//! Products of matrices, and cross products of vectors.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{broadcast_sizes, list};
use hlo::{DotDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("MatMul", mat_mul).types("T", NUMBERS),
    rule("SparseMatMul", sparse_mat_mul).types("Ta", SPARSE).types("Tb", SPARSE),
    rule("BatchMatMul", batch_mat_mul).types("T", NUMBERS),
    rule("BatchMatMulV2", batch_mat_mul).types("T", NUMBERS),
    rule("BatchMatMulV3", batch_mat_mul).types("Ta", NUMBERS).types("Tb", NUMBERS).types("Tout", NUMBERS),
    rule("Cross", cross).types("T", REAL),
];

const SPARSE: &[tf::DataType] = &[tf::DataType::Float, tf::DataType::Bfloat16];

/// `MatMul(a, b)` of two matrices, optionally transposed.
fn mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    matrices(cx, a, b)
}

/// Like [`mat_mul`], in float32. The sparsity hints make no difference.
fn sparse_mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    let a = cx.convert(a, PrimitiveType::F32)?;
    let b = cx.convert(b, PrimitiveType::F32)?;
    matrices(cx, a, b)
}

/// Returns the product of two matrices, transposed as attributes specify.
pub(crate) fn matrices(
    cx: &mut NodeContext<'_, '_>,
    a: InstructionId,
    b: InstructionId,
) -> Result<InstructionId> {
    let (a_sizes, b_sizes) = (cx.sizes(a), cx.sizes(b));
    cx.check(a_sizes.len() == 2 && b_sizes.len() == 2, || {
        format!("expected two matrices, got shapes {} and {}", list(&a_sizes), list(&b_sizes))
    })?;
    let attributes = &cx.attributes();
    let transpose_a = attributes.bool_or("transpose_a", false)?;
    let transpose_b = attributes.bool_or("transpose_b", false)?;
    let (a_inner, b_inner) = (usize::from(!transpose_a), usize::from(transpose_b));
    check_inner(cx, &a_sizes, &b_sizes, a_inner, b_inner)?;
    dot(cx, a, b, 0, a_inner, b_inner)
}

fn check_inner(cx: &NodeContext<'_, '_>, a: &[i64], b: &[i64], a_inner: usize, b_inner: usize) -> Result<()> {
    cx.check(a[a_inner] == b[b_inner], || {
        format!(
            "Matrix size-incompatible: {} vs. {}: dimension {a_inner} of the first ({}) differs from dimension \
             {b_inner} of the second ({})",
            list(a),
            list(b),
            a[a_inner],
            b[b_inner]
        )
    })
}

/// Returns the product over one dimension of each operand. The first `batch` dimensions are
/// batches.
pub(crate) fn dot(
    cx: &mut NodeContext<'_, '_>,
    a: InstructionId,
    b: InstructionId,
    batch: usize,
    a_inner: usize,
    b_inner: usize,
) -> Result<InstructionId> {
    let batch: Vec<usize> = (0..batch).collect();
    let dot_dimension_numbers = DotDimensionNumbers {
        lhs_batch_dims: batch.clone(),
        rhs_batch_dims: batch,
        lhs_contracting_dims: vec![a_inner],
        rhs_contracting_dims: vec![b_inner],
    };
    cx.op(Op::Dot { dot_dimension_numbers }, &[a, b])
}

/// `BatchMatMul(x, y)` of the matrices in the last two dimensions, optionally conjugated and
/// transposed. The other dimensions are broadcast.
fn batch_mat_mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, y) = (cx.input(0)?, cx.input(1)?);
    let attributes = &cx.attributes();
    let (adj_x, adj_y) = (attributes.bool_or("adj_x", false)?, attributes.bool_or("adj_y", false)?);
    let out = cx.output_type(0)?;
    batched(cx, x, y, [adj_x, adj_y], out)
}

/// Like [`batch_mat_mul`], for any arrays, in this type.
pub(crate) fn batched(
    cx: &mut NodeContext<'_, '_>,
    mut x: InstructionId,
    mut y: InstructionId,
    [adj_x, adj_y]: [bool; 2],
    out: PrimitiveType,
) -> Result<InstructionId> {
    let (x_sizes, y_sizes) = (cx.sizes(x), cx.sizes(y));
    cx.check(x_sizes.len() >= 2 && y_sizes.len() >= 2, || {
        format!(
            "expected two or more dimensions in both inputs, got shapes {} and {}",
            list(&x_sizes),
            list(&y_sizes)
        )
    })?;
    if adj_x {
        x = cx.conjugate(x)?;
    }
    if adj_y {
        y = cx.conjugate(y)?;
    }
    if cx.element_type(x) != cx.element_type(y) || cx.element_type(x) != out {
        (x, y) = (cx.convert(x, out)?, cx.convert(y, out)?);
    }
    let (x_batch, y_batch) = (&x_sizes[..x_sizes.len() - 2], &y_sizes[..y_sizes.len() - 2]);
    let batch = broadcast_sizes(x_batch, y_batch).ok_or_else(|| {
        cx.invalid(format!("Incompatible shapes: {} vs. {}", list(&x_sizes), list(&y_sizes)))
    })?;
    let (x_rank, y_rank) = (x_sizes.len(), y_sizes.len());
    let x_inner = if adj_x { x_rank - 2 } else { x_rank - 1 };
    let y_inner = if adj_y { y_rank - 1 } else { y_rank - 2 };
    check_inner(cx, &x_sizes, &y_sizes, x_inner, y_inner)?;

    // A matrix shared by all batches need not be copied for each.
    let is_shared = y_batch.iter().zip(&cx.array(y).dimensions).all(|(&size, d)| size == 1 && !d.is_dynamic);
    if is_shared && x_batch == batch {
        let y = cx.reshape(y, &y_sizes[y_rank - 2..])?;
        // The free dimensions of x, batches and rows, keep their order in the product.
        return dot(cx, x, y, 0, x_inner, y_inner + 2 - y_rank);
    }
    let x = cx.broadcast_to(x, &[&batch, &x_sizes[x_rank - 2..]].concat())?;
    let y = cx.broadcast_to(y, &[&batch, &y_sizes[y_rank - 2..]].concat())?;
    let (x_inner, y_inner) = (x_inner + batch.len() + 2 - x_rank, y_inner + batch.len() + 2 - y_rank);
    dot(cx, x, y, batch.len(), x_inner, y_inner)
}

/// `Cross(a, b)[i] = a[i + 1] * b[i + 2] - a[i + 2] * b[i + 1]` along the last dimension, of size
/// 3.
fn cross(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (a, b) = (cx.input(0)?, cx.input(1)?);
    let sizes = (cx.sizes(a), cx.sizes(b));
    cx.check(sizes.0 == sizes.1 && sizes.0.last() == Some(&3), || {
        format!(
            "expected two arrays of one shape whose last dimension is 3, got {} and {}",
            list(&sizes.0),
            list(&sizes.1)
        )
    })?;
    let last = sizes.0.len() - 1;
    let rotated = |cx: &mut NodeContext<'_, '_>, x, by: i64| {
        let (head, tail) = (cx.slice_in(x, last, 0, by)?, cx.slice_in(x, last, by, 3)?);
        cx.concatenate(&[tail, head], last)
    };
    let (a1, a2, b1, b2) = (rotated(cx, a, 1)?, rotated(cx, a, 2)?, rotated(cx, b, 1)?, rotated(cx, b, 2)?);
    let (left, right) = (cx.mul(a1, b2)?, cx.mul(a2, b1)?);
    cx.sub(left, right)
}
