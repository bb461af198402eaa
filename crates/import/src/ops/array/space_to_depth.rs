//! Moves blocks of pixels into features or into the batch, and back.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::array::pad::pad_at_run_time;
use crate::ops::nn::windows::Format;
use bounded::{Size, bounds, list};
use hlo::custom_call::ASSERT;
use hlo::{ComparisonDirection, InstructionId};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("SpaceToDepth", space_to_depth).types("T", ALL),
    rule("DepthToSpace", depth_to_space).types("T", ALL),
    rule("SpaceToBatch", space_to_batch).types("T", ALL),
    rule("SpaceToBatchND", space_to_batch_nd).types("T", ALL),
    rule("BatchToSpace", batch_to_space).types("T", ALL),
    rule("BatchToSpaceND", batch_to_space_nd).types("T", ALL),
];

/// Returns the attribute `block_size`.
fn block_size(cx: &NodeContext<'_, '_>) -> Result<i64> {
    let block = cx.attributes().int("block_size")?;
    // The largest number computed from it is its square.
    cx.check((2..=1 << 30).contains(&block), || format!("block_size: expected 2 to 2^30, got {block}"))?;
    Ok(block)
}

/// Moves the pixels of each block into features: `[n, h, w, c]` to `[n, h/b, w/b, b*b*c]`.
fn space_to_depth(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, block) = (cx.input(0)?, block_size(cx)?);
    let format = Format::of_node(cx, 4)?;
    let (x, vector) = format.merge_blocks(cx, x)?;
    let sizes = cx.sizes(x);
    cx.check_rank("the input", &sizes, 4)?;
    let (x, h) = in_blocks(cx, x, format.spatial[0], block)?;
    let (x, w) = in_blocks(cx, x, format.spatial[1], block)?;
    let features = Size::known(cx.checked_product(&[block * block, sizes[format.feature]])?);
    let (all, block) = (cx.all_sizes(x)?, Size::known(block));
    let (split, order, result) = if format.feature == 3 {
        ([all[0], h, block, w, block, all[3]], [0, 1, 3, 2, 4, 5], [all[0], h, w, features])
    } else {
        ([all[0], all[1], h, block, w, block], [0, 3, 5, 1, 2, 4], [all[0], features, h, w])
    };
    let x = cx.reshape_to(x, &split)?;
    let x = cx.transpose(x, &order)?;
    let y = cx.reshape_to(x, &result)?;
    format.split_blocks(cx, y, vector)
}

/// Moves features into blocks of pixels: `[n, h, w, b*b*c]` to `[n, h*b, w*b, c]`.
fn depth_to_space(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, block) = (cx.input(0)?, block_size(cx)?);
    let format = Format::of_node(cx, 4)?;
    let (x, vector) = format.merge_blocks(cx, x)?;
    let sizes = cx.sizes(x);
    cx.check_rank("the input", &sizes, 4)?;
    let features = sizes[format.feature];
    cx.check(features % (block * block) == 0, || {
        format!(
            "the {features} features of {} are not a multiple of the square of block_size {block}",
            list(&sizes)
        )
    })?;
    let features = Size::known(features / (block * block));
    let all = cx.all_sizes(x)?;
    let [n, h, w] = [all[0], all[format.spatial[0]], all[format.spatial[1]]];
    let (high, wide) = (multiple(cx, h, block)?, multiple(cx, w, block)?);
    let block = Size::known(block);
    let (split, order, result) = if format.feature == 3 {
        ([n, h, w, block, block, features], [0, 1, 3, 2, 4, 5], [n, high, wide, features])
    } else {
        ([n, block, block, features, h, w], [0, 3, 4, 1, 5, 2], [n, features, high, wide])
    };
    let x = cx.reshape_to(x, &split)?;
    let x = cx.transpose(x, &order)?;
    let y = cx.reshape_to(x, &result)?;
    format.split_blocks(cx, y, vector)
}

/// A size times a number.
pub(crate) fn multiple(cx: &mut NodeContext<'_, '_>, size: Size, times: i64) -> Result<Size> {
    cx.checked_product(&[size.bound, times])?;
    let product = cx.size_sum(Size::known(0), size, times)?;
    product.ok_or_else(|| cx.invalid("the result is too large"))
}

/// Block sizes, and for each a pair (before, after) of elements to pad or crop.
struct Blocks {
    sizes: Vec<i64>,
    edges: Vec<[Size; 2]>,
    /// Number of elements of a block.
    count: i64,
}

impl Blocks {
    /// Creates the blocks of an array from the pairs at input `k`, and checks both.
    fn new(cx: &mut NodeContext<'_, '_>, sizes: Vec<i64>, k: usize, array: &[i64]) -> Result<Self> {
        let rank = sizes.len();
        cx.check(array.len() > rank, || {
            format!(
                "expected an array of more than {rank} dimensions, the number of block sizes, got {}",
                list(array)
            )
        })?;
        cx.check(sizes.iter().all(|&size| size >= 1), || {
            format!("expected positive block sizes, got {}", list(&sizes))
        })?;
        let count = cx.checked_product(&sizes)?;
        let pairs = cx.input(k)?;
        let shape = cx.sizes(pairs);
        cx.check(shape == [rank as i64, 2], || {
            format!(
                "input {k}: expected a matrix [{rank}, 2] with a pair for each block size, got shape {}",
                list(&shape)
            )
        })?;
        let mut edges = Vec::new();
        for d in 0..rank {
            edges.push([cx.bounded_element(k, 2 * d)?, cx.bounded_element(k, 2 * d + 1)?]);
        }
        cx.check(edges.iter().flatten().all(|edge| edge.bound >= 0), || {
            format!("input {k}: expected integers >= 0, got {}", list(&bounds(&edges.concat())))
        })?;
        Ok(Self { sizes, edges, count })
    }
}

fn space_to_batch(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let block = block_size(cx)?;
    blocks_to_batch(cx, vec![block; 2], 1)
}

fn space_to_batch_nd(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let blocks = cx.constant_i64s(1)?;
    blocks_to_batch(cx, blocks, 2)
}

/// Pads with zeros, then moves the position within the block to the front of the batch.
fn blocks_to_batch(cx: &mut NodeContext<'_, '_>, blocks: Vec<i64>, edges: usize) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let blocks = Blocks::new(cx, blocks, edges, &sizes)?;
    let rank = blocks.sizes.len();
    let zero = cx.scalar(element_type, 0.0);
    let mut padded = if blocks.edges.iter().flatten().all(|edge| edge.size.is_none()) {
        let mut padding = vec![(0, 0, 0); sizes.len()];
        for (d, [low, high]) in blocks.edges.iter().enumerate() {
            padding[d + 1] = (low.bound, high.bound, 0);
        }
        cx.pad(x, zero, &padding)?
    } else {
        let place = |d: usize, end: usize| (1..=rank).contains(&d).then(|| (edges, 2 * (d - 1) + end));
        pad_at_run_time(cx, x, zero, &place)?
    };
    let samples = cx.all_sizes(x)?[0];
    cx.checked_product(&[sizes[0], blocks.count])?;
    let batch = cx.size_sum(Size::known(0), samples, blocks.count)?;
    let batch = batch.ok_or_else(|| cx.invalid("the number of blocks is too large"))?;
    let (mut split, mut result) = (vec![samples], vec![batch]);
    let mut permutation: Vec<usize> = (0..rank).map(|d| 2 * d + 2).collect();
    permutation.push(0);
    for (d, &block) in blocks.sizes.iter().enumerate() {
        let count;
        (padded, count) = in_blocks(cx, padded, d + 1, block)?;
        split.extend([count, Size::known(block)]);
        result.push(count);
        permutation.push(2 * d + 1);
    }
    let rest = cx.all_sizes(padded)?.split_off(rank + 1);
    split.extend(&rest);
    result.extend(rest);
    permutation.extend(2 * rank + 1..split.len());
    let apart = cx.reshape_to(padded, &split)?;
    let moved = cx.transpose(apart, &permutation)?;
    cx.reshape_to(moved, &result)
}

/// Returns an array with room for whole blocks along a dimension, and their number. A run in which
/// the dimension does not consist of whole blocks fails.
pub(crate) fn in_blocks(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    block: i64,
) -> Result<(InstructionId, Size)> {
    let sizes = cx.all_sizes(x)?;
    let size = sizes[dimension];
    let apart = || {
        format!("dimension {dimension} of {} does not divide into blocks of {block}", list(&bounds(&sizes)))
    };
    if size.size.is_none() {
        cx.check(size.bound % block == 0, apart)?;
        return Ok((x, Size::known(size.bound / block)));
    }
    let count = cx.size_quotient(size, block)?;
    let whole = match count {
        Some(count) => cx.size_sum(Size::known(0), count, block)?,
        None => None,
    };
    let (Some(count), Some(whole)) = (count, whole) else { return Err(cx.invalid(apart())) };
    if cx.known_difference(size, whole) != Some(0) {
        let (size, whole) = (cx.size_value(size)?, cx.size_value(whole)?);
        let is_whole = cx.compare(ComparisonDirection::Eq, size, whole)?;
        cx.fail_unless(ASSERT, is_whole, &apart())?;
    }
    let mut split = cx.split(x)?;
    let room = count.bound * block;
    split.data = if room < size.bound {
        cx.slice_in(split.data, dimension, 0, room)?
    } else {
        cx.pad_end(split.data, dimension, room - size.bound)?
    };
    split.sizes[dimension] = whole.size;
    Ok((cx.bounded(split.data, &split.sizes)?, count))
}

fn batch_to_space(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let block = block_size(cx)?;
    batch_to_blocks(cx, vec![block; 2], 1)
}

fn batch_to_space_nd(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let blocks = cx.constant_i64s(1)?;
    batch_to_blocks(cx, blocks, 2)
}

/// Moves the front of the batch to positions within blocks, then crops.
fn batch_to_blocks(cx: &mut NodeContext<'_, '_>, blocks: Vec<i64>, edges: usize) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let blocks = Blocks::new(cx, blocks, edges, &sizes)?;
    let rank = blocks.sizes.len();
    cx.check(sizes[0] % blocks.count == 0, || {
        format!("the batch size {} is not a multiple of the {} elements of a block", sizes[0], blocks.count)
    })?;
    let sizes = cx.all_sizes(x)?;
    let samples = cx.size_quotient(sizes[0], blocks.count)?;
    let samples = samples.ok_or_else(|| {
        cx.invalid(format!(
            "the batch size is not known to be a multiple of the {} elements of a block",
            blocks.count
        ))
    })?;
    let mut apart: Vec<Size> = blocks.sizes.iter().copied().map(Size::known).collect();
    apart.push(samples);
    apart.extend(&sizes[1..]);
    let (mut permutation, mut merged) = (vec![rank], vec![samples]);
    for (d, &block) in blocks.sizes.iter().enumerate() {
        permutation.extend([rank + 1 + d, d]);
        merged.push(multiple(cx, sizes[d + 1], block)?);
    }
    permutation.extend(2 * rank + 1..apart.len());
    merged.extend(&sizes[rank + 1..]);
    let apart = cx.reshape_to(x, &apart)?;
    let moved = cx.transpose(apart, &permutation)?;
    let mut whole = cx.reshape_to(moved, &merged)?;
    for (d, &[low, high]) in blocks.edges.iter().enumerate() {
        let size = merged[d + 1];
        cx.check(
            low.bound <= size.bound && (high.size.is_some() || high.bound <= size.bound - low.bound),
            || {
                format!(
                    "cannot crop {} and {} elements from the {} along dimension {}",
                    low.bound,
                    high.bound,
                    size.bound,
                    d + 1
                )
            },
        )?;
        let length = match cx.size_sum(size, low, -1)? {
            Some(rest) => cx.size_sum(rest, high, -1)?,
            None => None,
        };
        let length = length.ok_or_else(|| cx.invalid("the number of cropped elements is not known"))?;
        let low = cx.size_value(low)?;
        whole = cx.take(whole, d + 1, low, 1, length)?;
    }
    Ok(whole)
}
