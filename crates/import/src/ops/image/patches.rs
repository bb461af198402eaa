//! Patches of images as features.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::nn::windows::{Format, Padding, WindowStep};
use bounded::list;
use hlo::{InstructionId, SliceDimension, WindowDimension};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] =
    &[rule("ExtractImagePatches", extract_image_patches).types("T", CONVOLUTION)];

/// `[n, h, w, c]` to `[n, positions, positions, kh * kw * c]`: the elements of each window, row by
/// row. Elements beyond the edge are 0.
///
/// The rows of the window are extracted first, then their columns. This takes `kh + kw` slices, and
/// nothing but copies.
fn extract_image_patches(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    cx.check_rank("the input", &sizes, 4)?;
    let format = Format::channels_last(4);
    let padding = Padding::of_node(cx, 4)?;
    let filter = cx.positive_ints("ksizes", 4, None)?;
    let strides = cx.positive_ints("strides", 4, None)?;
    let rates = cx.positive_ints("rates", 4, None)?;
    for (name, values) in [("ksizes", &filter), ("strides", &strides), ("rates", &rates)] {
        cx.check_only_spatial(name, values, &format)?;
    }
    padding.check_spatial(cx, &format)?;
    let mut result = sizes.clone();
    let mut windows = Vec::new();
    for d in [1, 2] {
        let step = WindowStep { filter: filter[d], stride: strides[d], dilation: rates[d] };
        let (window, positions) = padding.window(cx, d, sizes[d], step)?;
        windows.push(window);
        result[d] = positions;
    }
    result[3] = cx.checked_product(&[filter[1], filter[2], sizes[3]])?;
    cx.check(shape::index::element_count(&result).is_some(), || {
        format!("the result is too large: {}", list(&result))
    })?;
    if result.contains(&0) {
        return cx.splat(element_type, &result, 0.0);
    }
    let zero = cx.scalar(element_type, 0.0);
    let edges: Vec<(i64, i64, i64)> = windows.iter().map(|w| (w.padding_low, w.padding_high, 0)).collect();
    let padded = cx.pad(x, zero, &[(0, 0, 0), edges[0], edges[1], (0, 0, 0)])?;
    let rows = elements(cx, padded, 1, &windows[0], result[1])?;
    let columns = elements(cx, rows, 2, &windows[1], result[2])?;
    // The shape is [n, y, x, kw, kh, c], because each `elements` inserts its dimension before the
    // rest.
    let by_row = cx.transpose(columns, &[0, 1, 2, 4, 3, 5])?;
    cx.reshape(by_row, &result)
}

/// Maximum number of elements of a patch along one dimension. Each is a slice.
const MAX_ELEMENTS: i64 = 1 << 12;

/// For each position of a window along a dimension, returns its elements as a new dimension after
/// the third.
fn elements(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    window: &WindowDimension,
    positions: i64,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    if window.size > MAX_ELEMENTS {
        return Err(Error::unsupported(format!(
            "patches of {} elements along dimension {dimension} are not supported; the maximum is {MAX_ELEMENTS}",
            window.size
        )));
    }
    let mut parts = Vec::new();
    for element in 0..window.size {
        let whole = |&limit: &i64| SliceDimension { start: 0, limit, stride: 1 };
        let mut slice: Vec<SliceDimension> = sizes.iter().map(whole).collect();
        let start = element * window.window_dilation;
        slice[dimension] = SliceDimension {
            start,
            limit: start + (positions - 1) * window.stride + 1,
            stride: window.stride,
        };
        let part = cx.slice(x, slice)?;
        let mut with_one = cx.sizes(part);
        with_one.insert(3, 1);
        parts.push(cx.reshape(part, &with_one)?);
    }
    cx.concatenate(&parts, 3)
}
