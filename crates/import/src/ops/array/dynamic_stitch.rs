//! `DynamicStitch`: merges rows of several tensors at positions known at compile time. The
//! gradients of reductions use it to assemble shapes.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::InstructionId;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("DynamicStitch", dynamic_stitch).types("T", ALL),
    rule("ParallelDynamicStitch", dynamic_stitch).types("T", ALL),
];

/// `DynamicStitch(indices..., data...)`: `result[indices[k][i]] = data[k][i]`. The last of several
/// equal indices wins. Rows that no index writes are zeros; TensorFlow leaves them uninitialized.
fn dynamic_stitch(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let count = cx.inputs().len() / 2;
    cx.check(count > 0 && cx.inputs().len() == 2 * count, || {
        format!("expected as many indices as data, got {} inputs", cx.inputs().len())
    })?;
    let mut parts = Vec::new();
    // For each row of the result, the part that contains it and its row there.
    let mut sources: Vec<Option<(usize, i64)>> = Vec::new();
    let mut row_sizes: Option<Vec<i64>> = None;
    for k in 0..count {
        let indices_id = cx.input(k)?;
        let index_sizes = cx.sizes(indices_id);
        let indices = cx.constant(k)?;
        let indices = indices.to_i64s().ok_or_else(|| cx.invalid(format!("input {k}: expected integers")))?;
        let data = cx.input(count + k)?;
        let sizes = cx.sizes(data);
        cx.check(sizes.starts_with(&index_sizes), || {
            format!(
                "the shape {} of data {k} does not begin with the shape {} of its indices",
                list(&sizes),
                list(&index_sizes)
            )
        })?;
        let rest = sizes[index_sizes.len()..].to_vec();
        let expected = row_sizes.get_or_insert_with(|| rest.clone());
        cx.check(*expected == rest, || {
            format!("the rows have different shapes: {} and {}", list(expected), list(&rest))
        })?;
        parts.push(cx.reshape(data, &[&[indices.len() as i64], &rest[..]].concat())?);
        for (row, &index) in indices.iter().enumerate() {
            let place = usize::try_from(index).ok().filter(|&place| place < 1 << 24);
            let place = place.ok_or_else(|| cx.invalid(format!("index {index} is out of range")))?;
            sources.resize(sources.len().max(place + 1), None);
            sources[place] = Some((k, row as i64));
        }
    }
    let rest = row_sizes.unwrap_or_default();
    let element_type = cx.element_type(parts[0]);
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < sources.len() {
        let follows = |a: Option<(usize, i64)>, b: Option<(usize, i64)>| match (a, b) {
            (None, None) => true,
            (Some((k, row)), Some((other, next))) => k == other && row + 1 == next,
            _ => false,
        };
        let mut end = start + 1;
        while end < sources.len() && follows(sources[end - 1], sources[end]) {
            end += 1;
        }
        let rows = (end - start) as i64;
        pieces.push(match sources[start] {
            Some((k, row)) => cx.slice_in(parts[k], 0, row, row + rows)?,
            None => cx.splat(element_type, &[&[rows], &rest[..]].concat(), 0.0)?,
        });
        start = end;
    }
    match pieces.as_slice() {
        [] => cx.splat(element_type, &[&[0], &rest[..]].concat(), 0.0),
        pieces => cx.concatenate(pieces, 0),
    }
}
