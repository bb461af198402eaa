//! Counts of occurrences of values.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Indices, Reducer, list};
use hlo::InstructionId;
use shape::index::element_count;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Bincount", |cx| bincount(cx, false)).types("T", COUNTED),
    rule("DenseBincount", |cx| bincount(cx, true)).types("T", COUNTED).types("Tidx", INDICES),
];

const COUNTED: &[tf::DataType] =
    &[tf::DataType::Float, tf::DataType::Double, tf::DataType::Int32, tf::DataType::Int64];

/// `Bincount(x, size, weights)`: the number of occurrences of each number below `size`, or the sum
/// of its weights. Other numbers are not counted. `DenseBincount` counts each row of a matrix by
/// itself. With `binary_output`, it returns whether a number occurs.
fn bincount(cx: &mut NodeContext<'_, '_>, by_rows: bool) -> Result<InstructionId> {
    let (x, weights) = (cx.input(0)?, cx.input(2)?);
    let size = cx.constant_i64(1)?;
    let (sizes, weight_sizes) = (cx.sizes(x), cx.sizes(weights));
    cx.check(size >= 0, || format!("size: expected a number >= 0, got {size}"))?;
    cx.check(!by_rows || sizes.len() <= 2, || {
        format!("expected rank 2 or less, got shape {}", list(&sizes))
    })?;
    let has_weights = element_count(&weight_sizes) != Some(0) || sizes.contains(&0);
    cx.check(weight_sizes == sizes || !has_weights || sizes.contains(&0), || {
        format!(
            "weights: expected the shape {} of the values, or an empty array, got shape {}",
            list(&sizes),
            list(&weight_sizes)
        )
    })?;
    let element_type = cx.element_type(weights);
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    let is_binary = by_rows && cx.attributes().bool_or("binary_output", false)?;
    let updates = if weight_sizes == sizes && !is_binary {
        cx.reshape(weights, &[count])?
    } else {
        cx.splat(element_type, &[count], 1.0)?
    };
    let reducer = if is_binary { Reducer::Replace } else { Reducer::Add };
    let index_type = cx.element_type(x);
    if let (true, &[rows, columns]) = (by_rows, &sizes[..]) {
        let row = cx.iota(index_type, &sizes, 0)?;
        let pair = [rows.saturating_mul(columns), 1];
        let (row, value) = (cx.reshape(row, &pair)?, cx.reshape(x, &pair)?);
        let indices = cx.concatenate(&[row, value], 1)?;
        let bins = cx.splat(element_type, &[rows, size], 0.0)?;
        return cx.scatter(bins, indices, updates, Indices::Vectors, reducer);
    }
    let indices = cx.reshape(x, &[count])?;
    let bins = cx.splat(element_type, &[size], 0.0)?;
    cx.scatter(bins, indices, updates, Indices::Scalars, reducer)
}
