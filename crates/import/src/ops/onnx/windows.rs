//! Windows of convolutions and pooling.

use crate::node::context::NodeContext;
use bounded::list;
use hlo::WindowDimension;
use support::Result;

/// Largest size of anything here. Sums and products of two fit 64 bits.
const MOST: i64 = 1 << 30;

/// The windows of a node over the spatial dimensions of an array.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// Size of the window.
    pub(crate) kernel: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
    /// Elements before the beginning and beyond the end, as the node states them.
    pub(crate) pads: Vec<[i64; 2]>,
    /// Number of positions.
    pub(crate) results: Vec<i64>,
}

/// Rounding of the number of positions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Floor,
    Ceil,
}

/// Checks positive numbers, one for each dimension.
fn positive(cx: &NodeContext<'_, '_>, name: &str, rank: usize) -> Result<Vec<i64>> {
    let values = cx.attributes().ints_or(name, vec![1; rank])?;
    let fits = values.len() == rank && values.iter().all(|value| (1..=MOST).contains(value));
    cx.check(fits, || format!("{name}: expected {rank} positive numbers, got {}", list(&values)))?;
    Ok(values)
}

/// The paddings that the node states, as pairs.
pub(crate) fn stated_pads(cx: &NodeContext<'_, '_>, rank: usize) -> Result<Vec<[i64; 2]>> {
    let pads = cx.attributes().ints_or("pads", vec![0; 2 * rank])?;
    let fits = pads.len() == 2 * rank && pads.iter().all(|pad| (-MOST..=MOST).contains(pad));
    cx.check(fits, || format!("pads: expected {} numbers, got {}", 2 * rank, list(&pads)))?;
    Ok((0..rank).map(|d| [pads[d], pads[d + rank]]).collect())
}

/// Strides and dilations.
pub(crate) fn steps(cx: &NodeContext<'_, '_>, rank: usize) -> Result<[Vec<i64>; 2]> {
    Ok([positive(cx, "strides", rank)?, positive(cx, "dilations", rank)?])
}

/// Size of a window with its gaps.
pub(crate) fn span(kernel: i64, dilation: i64) -> i64 {
    (kernel - 1).saturating_mul(dilation).saturating_add(1)
}

impl Windows {
    /// Reads the windows of a node for an array with these spatial sizes.
    pub(crate) fn of_node(
        cx: &NodeContext<'_, '_>,
        sizes: &[i64],
        kernel: &[i64],
        rounding: Rounding,
    ) -> Result<Self> {
        let rank = sizes.len();
        let fits = kernel.len() == rank && kernel.iter().all(|size| (1..=MOST).contains(size));
        cx.check(fits, || format!("a window {} does not fit {rank} spatial dimensions", list(kernel)))?;
        let [strides, dilations] = steps(cx, rank)?;
        let mut pads = stated_pads(cx, rank)?;
        let mut results = Vec::new();
        let auto = cx.text_or("auto_pad", "NOTSET")?;
        for d in 0..rank {
            let (size, stride, span) = (sizes[d], strides[d], span(kernel[d], dilations[d]));
            cx.check(size <= MOST && span <= MOST, || {
                format!("a window of {span} over {size} is too large")
            })?;
            let same = |pads: &mut [i64; 2], is_upper: bool| {
                let positions = (size + stride - 1) / stride;
                let total = ((positions - 1) * stride + span - size).max(0);
                let [less, more] = [total / 2, total - total / 2];
                *pads = if is_upper { [less, more] } else { [more, less] };
            };
            match auto {
                "NOTSET" | "" => {}
                "VALID" => pads[d] = [0, 0],
                "SAME_UPPER" => same(&mut pads[d], true),
                "SAME_LOWER" => same(&mut pads[d], false),
                other => return Err(cx.invalid(format!("auto_pad: '{other}' does not exist"))),
            }
            let room = size + pads[d][0] + pads[d][1] - span;
            cx.check(room >= 0 || size == 0, || {
                format!(
                    "a window of {span} elements does not fit the {} of dimension {d} with padding",
                    room + span
                )
            })?;
            let mut positions = if room < 0 { 0 } else { room / stride + 1 };
            if rounding == Rounding::Ceil && room % stride != 0 {
                // The last window must begin within the array or the padding before it.
                positions += i64::from(positions * stride < size + pads[d][0]);
            }
            results.push(positions);
        }
        Ok(Self { kernel: kernel.to_vec(), strides, dilations, pads, results })
    }

    /// The window along a spatial dimension of this size. The padding at the end is what the last
    /// position needs.
    pub(crate) fn dimension(&self, d: usize, size: i64) -> WindowDimension {
        let span = span(self.kernel[d], self.dilations[d]);
        let needed = (self.results[d] - 1) * self.strides[d] + span - size - self.pads[d][0];
        WindowDimension {
            stride: self.strides[d],
            padding_low: self.pads[d][0],
            padding_high: needed,
            window_dilation: self.dilations[d],
            ..WindowDimension::of_size(self.kernel[d])
        }
    }
}
