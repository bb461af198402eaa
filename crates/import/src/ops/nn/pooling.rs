//! Pooling: the maximum or the mean of each window.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::math::reductions::accumulation_type;
use crate::ops::nn::windows::{Format, Padding, WindowStep, padded_same};
use bounded::{Reducer, list};
use hlo::{InstructionId, Window, WindowDimension};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("MaxPool", |cx| max_pool(cx, 4)).types("T", MAX_POOL),
    rule("MaxPoolV2", |cx| max_pool(cx, 4)).types("T", MAX_POOL),
    rule("MaxPool3D", |cx| max_pool(cx, 5)).types("T", FLOATS_TO_32_BITS),
    rule("AvgPool", |cx| avg_pool(cx, 4)).types("T", FLOATS),
    rule("AvgPool3D", |cx| avg_pool(cx, 5)).types("T", FLOATS),
];

/// The windows of a pooling op on an array of a given shape.
#[derive(Clone, Debug)]
pub(crate) struct PoolWindows {
    pub(crate) format: Format,
    pub(crate) padding: Padding,
    pub(crate) window: Window,
    /// The sizes of the result.
    pub(crate) result: Vec<i64>,
}

impl PoolWindows {
    /// Reads the windows of a node for an array of these sizes. Sizes and strides of the windows
    /// are attributes, or inputs `at` and `at + 1` if the node has them.
    pub(crate) fn of_node(cx: &mut NodeContext<'_, '_>, sizes: &[i64], at: usize) -> Result<Self> {
        let rank = sizes.len();
        let (filter, strides) = if cx.inputs().len() > at {
            (cx.constant_i64s(at)?, cx.constant_i64s(at + 1)?)
        } else {
            (cx.attributes().ints("ksize")?, cx.attributes().ints("strides")?)
        };
        cx.check_positive("ksize", &filter, rank)?;
        cx.check_positive("strides", &strides, rank)?;
        let format = Format::of_node(cx, rank)?;
        let padding = Padding::of_node(cx, rank)?;
        padding.check_spatial(cx, &format)?;
        let (mut window, mut result) = (Window::default(), Vec::new());
        for (d, &size) in sizes.iter().enumerate() {
            let step = WindowStep { filter: filter[d], stride: strides[d], dilation: 1 };
            // A dimension without elements has no windows, either.
            let (dimension, positions) = match (size, filter[d], strides[d]) {
                (0, 1, 1) => (WindowDimension::of_size(1), 0),
                _ => padding.window(cx, d, size, step)?,
            };
            window.dimensions.push(dimension);
            result.push(positions);
        }
        Ok(Self { format, padding, window, result })
    }

    /// Returns an array of open sizes for these windows, and the windows: where the size
    /// determines the padding, the array is padded with a value instead.
    fn open(
        &self,
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
        value: InstructionId,
    ) -> Result<(InstructionId, Window)> {
        let mut window = self.window.clone();
        let mut open = Vec::new();
        for (d, along) in window.dimensions.iter_mut().enumerate() {
            let step = WindowStep { filter: along.size, stride: along.stride, dilation: 1 };
            if self.padding.depends_on_size(cx, x, d, step) {
                open.push((d, step));
                (along.padding_low, along.padding_high) = (0, 0);
            }
        }
        let x = if open.is_empty() { x } else { padded_same(cx, x, &open, value, true)? };
        Ok((x, window))
    }

    /// Rejects windows over several images or features.
    fn check_only_spatial(&self, cx: &NodeContext<'_, '_>) -> Result<()> {
        let alone = |d: usize| self.window.dimensions[d] == WindowDimension::of_size(1);
        cx.check(alone(self.format.batch) && alone(self.format.feature), || {
            format!(
                "ksize and strides must be 1 for the batch (dimension {}) and the features (dimension {}): means over \
                 these dimensions are not defined",
                self.format.batch, self.format.feature
            )
        })
    }
}

/// Returns the maximum of each window, or -inf (or the smallest integer) if the window is empty.
/// NaN is skipped, as in TensorFlow's kernel and in XLA's code.
fn max_pool(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let format = Format::of_node(cx, rank)?;
    let (x, block) = format.merge_blocks(cx, x)?;
    let sizes = cx.sizes(x);
    cx.check_rank("the input", &sizes, rank)?;
    let pool = PoolWindows::of_node(cx, &sizes, 1)?;
    let (x, window) = if cx.is_bounded(x) {
        pool.check_only_spatial(cx)?;
        let element_type = cx.element_type(x);
        let lowest = cx.literal(bounded::lowest(element_type));
        pool.open(cx, x, lowest)?
    } else {
        (x, pool.window)
    };
    let largest = cx.reduce_window(x, Reducer::LargestNumber, window)?;
    format.split_blocks(cx, largest, block)
}

/// Returns the mean of each window's elements within the array. Narrow types are summed in float32.
fn avg_pool(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    cx.check_rank("the input", &sizes, rank)?;
    let pool = PoolWindows::of_node(cx, &sizes, 1)?;
    pool.check_only_spatial(cx)?;
    let wide = cx.convert(x, accumulation_type(element_type))?;
    if cx.is_bounded(x) {
        let wide_type = cx.element_type(wide);
        let zero = cx.scalar(wide_type, 0.0);
        let ones = cx.splat_like(wide, 1.0)?;
        let ones = cx.with_sizes_of(ones, wide)?;
        let mut sums = Vec::new();
        for array in [wide, ones] {
            let (array, window) = pool.open(cx, array, zero)?;
            sums.push(cx.reduce_window(array, Reducer::Add, window)?);
        }
        let mean = cx.div(sums[0], sums[1])?;
        return cx.convert(mean, element_type);
    }
    let sums = cx.reduce_window(wide, Reducer::Add, pool.window.clone())?;
    let mean = divide_by_counts(cx, sums, &sizes, &pool)?;
    cx.convert(mean, element_type)
}

/// Maximum number of positions along one dimension whose windows are counted individually.
const MAX_COUNTED: i64 = 1 << 22;

/// Divides each element by the number of elements in its window. There is one element for each
/// window on an array of `sizes`.
pub(crate) fn divide_by_counts(
    cx: &mut NodeContext<'_, '_>,
    sums: InstructionId,
    sizes: &[i64],
    pool: &PoolWindows,
) -> Result<InstructionId> {
    let result = cx.sizes(sums);
    if result.contains(&0) {
        return Ok(sums);
    }
    let element_type = cx.element_type(sums);
    let spatial_sizes: Vec<i64> = pool.format.spatial.iter().map(|&d| result[d]).collect();
    // Windows within the array have the same size. Often, this is true of all windows.
    let mut common = 1.0;
    let mut counts: Option<InstructionId> = None;
    for (i, &d) in pool.format.spatial.iter().enumerate() {
        let window = &pool.window.dimensions[d];
        if window.padding_low == 0 && window.padding_high == 0 {
            common *= window.size as f64;
            continue;
        }
        if result[d] > MAX_COUNTED {
            return Err(Error::unsupported(format!(
                "the result has {} elements along dimension {d}, but the maximum is {MAX_COUNTED} with \
                 padding {:?}; pad with a Pad and use VALID",
                result[d], pool.padding
            )));
        }
        let vector = cx.literal(counts_along(element_type, result[d], sizes[d], window));
        let spread = cx.broadcast(vector, &spatial_sizes, &[i])?;
        counts = Some(match counts {
            Some(others) => cx.mul(others, spread)?,
            None => spread,
        });
    }
    let Some(mut counts) = counts else {
        let count = cx.splat_like(sums, common)?;
        return cx.div(sums, count);
    };
    if common != 1.0 {
        counts = cx.mul_scalar(counts, common)?;
    }
    let counts = cx.broadcast(counts, &result, &pool.format.spatial)?;
    cx.div(sums, counts)
}

/// Returns the number of each window's elements along a dimension that are within an array of that
/// size.
fn counts_along(element_type: PrimitiveType, positions: i64, size: i64, window: &WindowDimension) -> Literal {
    let count = |position: i64| {
        let begin = position * window.stride - window.padding_low;
        let end = begin.saturating_add(window.size).min(size);
        Scalar::Float((end - begin.max(0)).max(0) as f64)
    };
    Literal::from_scalars(ArrayShape::new(element_type, &[positions]), (0..positions).map(count))
}

/// Checks that an array has the expected sizes.
pub(crate) fn check_same(
    cx: &NodeContext<'_, '_>,
    what: &str,
    actual: &[i64],
    expected: &[i64],
) -> Result<()> {
    cx.check(actual == expected, || {
        format!("{what}: expected shape {}, got {}", list(expected), list(actual))
    })
}
