//! The largest elements.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_many};
use bounded::{Size, list};
use hlo::{InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("TopK", top_k_v1).types("T", REAL),
    rule_many("TopKV2", top_k_v2).types("T", REAL).types("Tk", INDICES).types("index_type", INDICES),
    rule_many("ApproxTopK", approx_top_k).types("T", FLOATS_TO_32_BITS),
];

fn top_k_v1(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let k = cx.attributes().int("k")?;
    top_k(cx, Size::known(k))
}

fn top_k_v2(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let &[k] = cx.bounded_i64s(1)?.as_slice() else { return Err(cx.invalid("k: expected a scalar")) };
    top_k(cx, k)
}

fn top_k(cx: &mut NodeContext<'_, '_>, k: Size) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let (values, indices) = top_k_of_rows(cx, x, k, true)?;
    let index_type = cx.output_type(1)?;
    Ok(vec![values, cx.convert(indices, index_type)?])
}

/// Returns the `k` largest (or smallest) elements of the last dimension in order, and their
/// positions. Equal elements remain in order. A run-time number `k` may be the true size of the
/// dimension, which it does not exceed.
pub(crate) fn top_k_of_rows(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    k: Size,
    largest: bool,
) -> Result<(InstructionId, InstructionId)> {
    let sizes = cx.sizes(x);
    let Some(&columns) = sizes.last() else {
        return Err(cx.invalid("expected one or more dimensions, got a scalar"));
    };
    let bound = if k.size.is_some() { k.bound.min(columns) } else { k.bound };
    cx.check((0..=columns).contains(&bound), || {
        format!("k: expected 0 to the size of the last dimension of {}, got {bound}", list(&sizes))
    })?;
    let pair = cx.op(Op::TopK { k: bound, largest }, &[x])?;
    let mut results = [cx.tuple_element(pair, 0)?, cx.tuple_element(pair, 1)?];
    if let Some(count) = k.size {
        let all = cx.true_size(x, sizes.len() - 1)?;
        let count = cx.op(Op::Minimum {}, &[count, all])?;
        for result in &mut results {
            let mut part = cx.split(*result)?;
            part.sizes[sizes.len() - 1] = Some(count);
            *result = cx.bounded(part.data, &part.sizes)?;
        }
    }
    let [values, positions] = results;
    Ok((values, positions))
}

/// `ApproxTopK(x)`: exactly the `k` largest (or smallest) elements along a dimension, and their
/// positions. Without `aggregate_to_topk`, the number of results is the number of candidates that
/// an accelerator would leave for a later step.
fn approx_top_k(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let attributes = &cx.attributes();
    let (k, largest) = (attributes.int("k")?, attributes.bool_or("is_max_k", true)?);
    let dimension = attributes.int_or("reduction_dimension", -1)?;
    let dimension = cx.dimension(dimension, sizes.len())?;
    let size = sizes[dimension];
    cx.check((0..=size).contains(&k), || {
        format!("k: expected 0 to the size of dimension {dimension} of {}, got {k}", list(&sizes))
    })?;
    let k = if attributes.bool_or("aggregate_to_topk", true)? {
        k
    } else {
        let recall = f64::from(attributes.float_or("recall_target", 0.95)?);
        let logical = attributes.int_or("reduction_input_size_override", -1)?;
        cx.check(recall > 0.0 && recall <= 1.0 && (logical < 0 || logical >= size), || {
            format!(
                "expected recall_target in (0, 1], got {recall}, and reduction_input_size_override < 0 or >= {size}, got \
                 {logical}"
            )
        })?;
        reduced_size(size, sizes.len(), k, recall, if logical < 0 { size } else { logical })
    };
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&d| d != dimension).collect();
    order.push(dimension);
    let rows = cx.transpose(x, &order)?;
    let pair = cx.op(Op::TopK { k, largest }, &[rows])?;
    let (values, indices) = (cx.tuple_element(pair, 0)?, cx.tuple_element(pair, 1)?);
    let mut back = vec![0; sizes.len()];
    order.iter().enumerate().for_each(|(at, &d)| back[d] = at);
    Ok(vec![cx.transpose(values, &back)?, cx.transpose(indices, &back)?])
}

/// Returns the number of candidates that a reduction of `size` elements in tiles leaves, as defined
/// by XLA's `ApproxTopKReductionOutputSize`.
fn reduced_size(size: i64, rank: usize, k: i64, recall: f64, logical: i64) -> i64 {
    let tile = if rank == 1 { 1024 } else { 128 };
    if size <= tile {
        return size;
    }
    if k == 1 {
        return tile;
    }
    // The conversion saturates. A recall of 1 makes the quotient infinite, so that no candidate is
    // dropped.
    let requested = ((1.0 - k as f64) / recall.ln()) as i64;
    let requested = requested.max(tile).min(logical).max(1);
    let halvings = (logical / requested).max(1).ilog2();
    if recall >= 1.0 || halvings == 0 {
        return size;
    }
    let halvings = halvings.min(((size / tile) as u64).next_power_of_two().ilog2());
    let tiles = (size as u64).div_ceil(tile as u64).div_ceil(1 << halvings);
    (tiles as i64 * tile).min(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_fill_tiles() {
        // Tiles have 128 elements, or 1024 for vectors. Nothing is dropped from a single tile, or
        // with a recall of 1.
        assert_eq!(reduced_size(100, 2, 10, 0.95, 100), 100);
        assert_eq!(reduced_size(5000, 2, 1, 0.95, 5000), 128);
        assert_eq!(reduced_size(5000, 2, 10, 1.0, 5000), 5000);
        // -9 / ln(0.95) = 175.46: 5000 / 175 = 28, so 4 halvings of 40 tiles.
        assert_eq!(reduced_size(5000, 2, 10, 0.95, 5000), 384);
        // 5000 / 1024 = 4, so 2 halvings of 5 tiles.
        assert_eq!(reduced_size(5000, 1, 10, 0.95, 5000), 2048);
    }
}
