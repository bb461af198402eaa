//! Conversions between positions and indices, and dense arrays from lists of positions.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Indices, Reducer, list};
use hlo::{InstructionId, Op};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("SparseToDense", sparse_to_dense).types("T", ALL).types("Tindices", INDICES),
    rule("UnravelIndex", unravel_index).types("Tidx", INDICES),
];

/// `SparseToDense(indices, shape, values, default)`: the values at their indices, and the default
/// elsewhere.
fn sparse_to_dense(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (mut indices, mut values, default) = (cx.input(0)?, cx.input(2)?, cx.input(3)?);
    let sizes = cx.constant_sizes(1)?;
    let index_sizes = cx.sizes(indices);
    let (count, depth) = match index_sizes[..] {
        [] => (1, 1),
        [count] => (count, 1),
        [count, depth] => (count, depth),
        _ => {
            return Err(cx.invalid(format!(
                "sparse_indices: expected rank 2 or less, got shape {}",
                list(&index_sizes)
            )));
        }
    };
    cx.check(sizes.len() as i64 == depth, || {
        format!("indices of {depth} elements do not match the shape {}", list(&sizes))
    })?;
    let value_sizes = cx.sizes(values);
    cx.check(value_sizes.is_empty() || value_sizes == [count], || {
        format!("sparse_values: expected a scalar or {count} values, got shape {}", list(&value_sizes))
    })?;
    let rank = cx.rank(default);
    cx.check(rank == 0, || format!("default_value: expected a scalar, got rank {rank}"))?;
    let dense = cx.broadcast(default, &sizes, &[])?;
    indices = cx.reshape(indices, &[count, depth])?;
    if value_sizes.is_empty() {
        values = cx.broadcast(values, &[count], &[])?;
    }
    if depth == 0 {
        return Err(Error::unsupported(
            "sparse_indices without elements, which assign a scalar; use the value itself",
        ));
    }
    cx.scatter(dense, indices, values, Indices::Vectors, Reducer::Replace)
}

/// `UnravelIndex(indices, dims)`: converts row-major positions to indices, with one row for each
/// dimension.
fn unravel_index(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let indices = cx.input(0)?;
    let dims = cx.constant_sizes(1)?;
    let index_sizes = cx.sizes(indices);
    cx.check(index_sizes.len() <= 1 && !dims.is_empty() && !dims.contains(&0), || {
        format!(
            "expected a scalar or a vector of indices and dims above 0, got {} and {}",
            list(&index_sizes),
            list(&dims)
        )
    })?;
    let row_sizes = [&[1][..], &index_sizes].concat();
    let mut rest = indices;
    let mut rows = Vec::with_capacity(dims.len());
    for &dim in dims.iter().rev() {
        let dim = cx.splat_like(rest, dim as f64)?;
        let row = cx.op(Op::Remainder {}, &[rest, dim])?;
        rows.push(cx.reshape(row, &row_sizes)?);
        rest = cx.div(rest, dim)?;
    }
    rows.reverse();
    cx.concatenate(&rows, 0)
}
