//! Splits arrays into equal blocks along several dimensions, and concatenates such blocks.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many, rule_values};
use crate::values::value::Value;
use bounded::list;
use hlo::{InstructionId, SliceDimension};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("XlaConcatND", |cx| {
        let blocks = cx.inputs_from(0)?;
        concat(cx, &blocks)
    })
    .types("T", ALL),
    rule_many("XlaSplitND", |cx| {
        let x = cx.input(0)?;
        split(cx, x)
    })
    .types("T", ALL),
    rule_values("AssignVariableXlaConcatND", assign_concat).types("T", ALL).effect(),
    rule_many("ReadVariableXlaSplitND", read_split).types("T", ALL),
];

/// The partition of an array: the number of blocks along each dimension, and the padding of the
/// last ones.
struct Partition {
    counts: Vec<i64>,
    paddings: Vec<i64>,
    blocks: i64,
}

impl Partition {
    fn of_node(cx: &NodeContext<'_, '_>, attribute: &str) -> Result<Self> {
        let counts = cx.attributes().ints(attribute)?;
        let mut paddings = cx.attributes().ints_or("paddings", Vec::new())?;
        if paddings.is_empty() {
            paddings = vec![0; counts.len()];
        }
        let fits = paddings.len() == counts.len() && paddings.iter().all(|&padding| padding >= 0);
        cx.check(fits && counts.iter().all(|&count| count > 0), || {
            format!(
                "expected positive {attribute} and as many paddings >= 0, got {} and {}",
                list(&counts),
                list(&paddings)
            )
        })?;
        let blocks = counts.iter().try_fold(1i64, |product, &count| product.checked_mul(count));
        let n = cx.attributes().int("N")?;
        cx.check(blocks == Some(n), || {
            format!("N is {n}, which is not the number of blocks of {attribute} {}", list(&counts))
        })?;
        Ok(Self { counts, paddings, blocks: n })
    }

    /// Returns the position of a block, in row-major order.
    fn position(&self, mut block: i64) -> Vec<i64> {
        let mut position = vec![0; self.counts.len()];
        for (at, &count) in position.iter_mut().zip(&self.counts).rev() {
            *at = block % count;
            block /= count;
        }
        position
    }
}

/// Splits an array into blocks. Elements beyond its end are zeros.
fn split(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<Vec<InstructionId>> {
    let partition = Partition::of_node(cx, "num_splits")?;
    let sizes = cx.sizes(x);
    let fits = partition.counts.len() == sizes.len()
        && (0..sizes.len()).all(|d| {
            let padded = sizes[d].checked_add(partition.paddings[d]);
            padded.is_some_and(|padded| padded % partition.counts[d] == 0)
        });
    cx.check(fits, || {
        format!(
            "cannot split the shape {} with paddings {} into {} equal blocks",
            list(&sizes),
            list(&partition.paddings),
            list(&partition.counts)
        )
    })?;
    let element_type = cx.element_type(x);
    let zero = cx.scalar(element_type, 0.0);
    let size = |d: usize| (sizes[d] + partition.paddings[d]) / partition.counts[d];
    let mut blocks = Vec::new();
    for block in 0..partition.blocks {
        let (mut slice, mut padding) = (Vec::new(), Vec::new());
        for (d, at) in partition.position(block).into_iter().enumerate() {
            let start = (at * size(d)).min(sizes[d]);
            let limit = (start + size(d)).min(sizes[d]);
            slice.push(SliceDimension { start, limit, stride: 1 });
            padding.push((0, size(d) - (limit - start), 0));
        }
        let inside = cx.slice(x, slice)?;
        blocks.push(cx.pad(inside, zero, &padding)?);
    }
    Ok(blocks)
}

/// Concatenates blocks to an array, and removes the paddings.
fn concat(cx: &mut NodeContext<'_, '_>, blocks: &[InstructionId]) -> Result<InstructionId> {
    let partition = Partition::of_node(cx, "num_concats")?;
    let shapes: Vec<Vec<i64>> = blocks.iter().map(|&block| cx.sizes(block)).collect();
    let Some(size) = shapes.first().cloned() else { return Err(cx.invalid("expected at least one block")) };
    let rank = partition.counts.len();
    cx.check(size.len() == rank && shapes.iter().all(|shape| *shape == size), || {
        format!("expected blocks of one shape of rank {rank}; the first has shape {}", list(&size))
    })?;
    cx.check(blocks.len() as i64 == partition.blocks, || {
        format!("expected {} blocks, got {}", partition.blocks, blocks.len())
    })?;
    let mut parts = blocks.to_vec();
    for d in (0..rank).rev() {
        let count = partition.counts[d] as usize;
        let mut merged = Vec::with_capacity(parts.len() / count);
        for row in parts.chunks(count) {
            merged.push(cx.concatenate(row, d)?);
        }
        parts = merged;
    }
    let whole = parts[0];
    let sizes = cx.sizes(whole);
    let fits = sizes.iter().zip(&partition.paddings).all(|(size, padding)| padding <= size);
    cx.check(fits, || {
        format!("the paddings {} exceed the sizes {}", list(&partition.paddings), list(&sizes))
    })?;
    let to_slice =
        |(&size, &padding): (&i64, &i64)| SliceDimension { start: 0, limit: size - padding, stride: 1 };
    let slices: Vec<SliceDimension> = sizes.iter().zip(&partition.paddings).map(to_slice).collect();
    cx.slice(whole, slices)
}

/// Assigns the concatenation of blocks to a variable.
fn assign_concat(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let variable = cx.variable(0)?;
    let blocks = cx.inputs_from(1)?;
    let whole = concat(cx, &blocks)?;
    cx.assign_variable(variable, whole)
}

/// Splits a variable's value into blocks.
fn read_split(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let variable = cx.variable(0)?;
    let value = cx.read_variable(variable);
    let (requested, actual) = (cx.type_attribute("T")?, cx.element_type(value));
    cx.check(requested == actual, || format!("the variable has type {actual}, but is read as {requested}"))?;
    split(cx, value)
}
