//! Moves blocks of pixels into features or into the batch, and back.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::nn::windows::Format;
use bounded::list;
use bounded::{Size, bounds, run_time};
use hlo::{InstructionId, SliceDimension};
use support::{Code, Error, Result};

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
    cx.check(format.spatial.iter().all(|&d| sizes[d] % block == 0), || {
        format!("height and width of {} are not multiples of block_size {block}", list(&sizes))
    })?;
    let [h, w] = [sizes[format.spatial[0]] / block, sizes[format.spatial[1]] / block];
    let features = cx.checked_product(&[block * block, sizes[format.feature]])?;
    let y = if format.feature == 3 {
        let x = cx.reshape(x, &[sizes[0], h, block, w, block, sizes[3]])?;
        let x = cx.transpose(x, &[0, 1, 3, 2, 4, 5])?;
        cx.reshape(x, &[sizes[0], h, w, features])?
    } else {
        let x = cx.reshape(x, &[sizes[0], sizes[1], h, block, w, block])?;
        let x = cx.transpose(x, &[0, 3, 5, 1, 2, 4])?;
        cx.reshape(x, &[sizes[0], features, h, w])?
    };
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
    let features = features / (block * block);
    let [h, w] = [sizes[format.spatial[0]], sizes[format.spatial[1]]];
    let (high, wide) = (cx.checked_product(&[h, block])?, cx.checked_product(&[w, block])?);
    let y = if format.feature == 3 {
        let x = cx.reshape(x, &[sizes[0], h, w, block, block, features])?;
        let x = cx.transpose(x, &[0, 1, 3, 2, 4, 5])?;
        cx.reshape(x, &[sizes[0], high, wide, features])?
    } else {
        let x = cx.reshape(x, &[sizes[0], block, block, features, h, w])?;
        let x = cx.transpose(x, &[0, 3, 4, 1, 5, 2])?;
        cx.reshape(x, &[sizes[0], features, high, wide])?
    };
    format.split_blocks(cx, y, vector)
}

/// Block sizes, and for each a pair (before, after) of elements to pad or crop.
struct Blocks {
    sizes: Vec<i64>,
    edges: Vec<(i64, i64)>,
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
        let literal = cx.constant(k)?;
        let shape = literal.array_shape().sizes();
        cx.check(shape == [rank as i64, 2], || {
            format!(
                "input {k}: expected a matrix [{rank}, 2] with a pair for each block size, got shape {}",
                list(&shape)
            )
        })?;
        let values = literal.to_i64s().unwrap_or_default();
        cx.check(values.len() == 2 * rank && values.iter().all(|&value| value >= 0), || {
            format!("input {k}: expected integers >= 0, got {}", list(&values))
        })?;
        let edges = values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
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
    let (x, samples) = open_batch(cx, x)?;
    let blocks = Blocks::new(cx, blocks, edges, &sizes)?;
    let rank = blocks.sizes.len();
    let mut padding = vec![(0, 0, 0); sizes.len()];
    for (d, &(low, high)) in blocks.edges.iter().enumerate() {
        padding[d + 1] = (low, high, 0);
    }
    let zero = cx.scalar(element_type, 0.0);
    let padded = cx.pad(x, zero, &padding)?;
    let padded_sizes = cx.sizes(padded);
    let whole = (0..rank).all(|d| padded_sizes[d + 1] % blocks.sizes[d] == 0);
    cx.check(whole, || {
        format!(
            "the padded shape {} does not divide into blocks of {}",
            list(&padded_sizes),
            list(&blocks.sizes)
        )
    })?;
    cx.checked_product(&[sizes[0], blocks.count])?;
    let batch = cx.size_sum(Size::known(0), samples, blocks.count)?;
    let batch = batch.ok_or_else(|| cx.invalid("the number of blocks is too large"))?;
    let (mut split, mut result) = (vec![sizes[0]], vec![batch]);
    let mut permutation: Vec<usize> = (0..rank).map(|d| 2 * d + 2).collect();
    permutation.push(0);
    for d in 0..rank {
        let count = padded_sizes[d + 1] / blocks.sizes[d];
        split.extend([count, blocks.sizes[d]]);
        result.push(Size::known(count));
        permutation.push(2 * d + 1);
    }
    split.extend(&sizes[rank + 1..]);
    result.extend(sizes[rank + 1..].iter().copied().map(Size::known));
    permutation.extend(2 * rank + 1..split.len());
    let apart = cx.reshape(padded, &split)?;
    let moved = cx.transpose(apart, &permutation)?;
    let mut true_sizes = vec![None; split.len()];
    true_sizes[rank] = run_time(&[samples])[0];
    let moved = cx.bounded(moved, &true_sizes)?;
    cx.reshape_to(moved, &result)
}

/// The whole array and its number of samples, the only size that may be open.
fn open_batch(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<(InstructionId, Size)> {
    let whole = cx.split(x)?;
    if whole.sizes.iter().skip(1).any(Option::is_some) {
        return Err(Error::unsupported(
            "a dimension other than the batch is open, which blocks do not support; fix its size",
        )
        .coded(Code::BoundedSize));
    }
    let sizes = cx.all_sizes(x)?;
    let samples = sizes.first().copied().ok_or_else(|| cx.invalid("expected an array, got a scalar"))?;
    Ok((whole.data, samples))
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
    let (_, samples) = open_batch(cx, x)?;
    let samples = cx.size_quotient(samples, blocks.count)?;
    let samples = samples.ok_or_else(|| {
        cx.invalid(format!(
            "the batch size is not known to be a multiple of the {} elements of a block",
            blocks.count
        ))
    })?;
    let batch = bounds(&[samples])[0];
    let split = [&blocks.sizes, &[batch][..], &sizes[1..]].concat();
    let mut apart: Vec<Size> = split.iter().copied().map(Size::known).collect();
    apart[rank] = samples;
    let (mut permutation, mut merged) = (vec![rank], vec![batch]);
    let mut slices = vec![SliceDimension { start: 0, limit: batch, stride: 1 }];
    for d in 0..rank {
        permutation.extend([rank + 1 + d, d]);
        let size = cx.checked_product(&[sizes[d + 1], blocks.sizes[d]])?;
        merged.push(size);
        let (low, high) = blocks.edges[d];
        cx.check(low <= size && high <= size - low, || {
            format!("cannot crop {low} and {high} elements from the {size} along dimension {}", d + 1)
        })?;
        slices.push(SliceDimension { start: low, limit: size - high, stride: 1 });
    }
    permutation.extend(2 * rank + 1..split.len());
    merged.extend(&sizes[rank + 1..]);
    slices.extend(sizes[rank + 1..].iter().map(|&limit| SliceDimension { start: 0, limit, stride: 1 }));
    let apart = cx.reshape_to(x, &apart)?;
    let apart = cx.split(apart)?;
    let moved = cx.transpose(apart.data, &permutation)?;
    let whole = cx.reshape(moved, &merged)?;
    let cropped = cx.slice(whole, slices)?;
    let mut true_sizes = vec![None; merged.len()];
    true_sizes[0] = apart.sizes[rank];
    cx.bounded(cropped, &true_sizes)
}
