//! Data formats, padding, and windows, which convolutions, pooling, and similar ops have in common.

use crate::node::context::NodeContext;
use bounded::{Size, list};
use hlo::{InstructionId, Op, WindowDimension};
use support::{Code, Error, Result};

/// The roles of an array's dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) batch: usize,
    pub(crate) feature: usize,
    pub(crate) spatial: Vec<usize>,
    /// True if the features are stored in blocks, with the position in the block as the last
    /// dimension (`NCHW_VECT_C`). The dimensions above are those of the array with merged blocks.
    pub(crate) vectorized: bool,
}

impl Format {
    /// Batch first, features last.
    pub(crate) fn channels_last(rank: usize) -> Self {
        Self { batch: 0, feature: rank - 1, spatial: (1..rank - 1).collect(), vectorized: false }
    }

    /// Batch first, features second.
    pub(crate) fn channels_first(rank: usize) -> Self {
        Self { batch: 0, feature: 1, spatial: (2..rank).collect(), vectorized: false }
    }

    /// Reads the attribute `data_format` for an array of this rank, at least 2. By default,
    /// features are last.
    pub(crate) fn of_node(cx: &NodeContext<'_, '_>, rank: usize) -> Result<Self> {
        match cx.text_or("data_format", "NHWC")? {
            "NHWC" | "NDHWC" | "CHANNELS_LAST" => Ok(Self::channels_last(rank)),
            "NCHW" | "NCDHW" | "CHANNELS_FIRST" => Ok(Self::channels_first(rank)),
            "NCHW_VECT_C" if rank == 4 => Ok(Self { vectorized: true, ..Self::channels_first(rank) }),
            other => Err(cx.invalid(format!(
                "data_format: expected NHWC or NCHW (NDHWC or NCDHW in 3-D), got '{other}'"
            ))),
        }
    }

    /// Number of dimensions.
    pub(crate) fn rank(&self) -> usize {
        self.spatial.len() + 2
    }

    /// Merges blocks of features: `[n, c/b, h, w, b]` becomes `[n, c, h, w]`. Also returns the size
    /// of a block.
    pub(crate) fn merge_blocks(
        &self,
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
    ) -> Result<(InstructionId, i64)> {
        if !self.vectorized {
            return Ok((x, 1));
        }
        let sizes = cx.sizes(x);
        cx.check(sizes.len() == 5, || {
            format!("expected 5 dimensions in data_format NCHW_VECT_C, got shape {}", list(&sizes))
        })?;
        let features = cx.checked_product(&[sizes[1], sizes[4]])?;
        let x = cx.transpose(x, &[0, 1, 4, 2, 3])?;
        Ok((cx.reshape(x, &[sizes[0], features, sizes[2], sizes[3]])?, sizes[4]))
    }

    /// Splits features into blocks, the inverse of [`Self::merge_blocks`].
    pub(crate) fn split_blocks(
        &self,
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
        block: i64,
    ) -> Result<InstructionId> {
        if !self.vectorized {
            return Ok(x);
        }
        let sizes = cx.sizes(x);
        cx.check(block > 0 && sizes[1] % block == 0, || {
            format!("the {} features of the result are not a multiple of the block size {block}", sizes[1])
        })?;
        let x = cx.reshape(x, &[sizes[0], sizes[1] / block, block, sizes[2], sizes[3]])?;
        cx.transpose(x, &[0, 1, 3, 4, 2])
    }
}

/// Padding of the edges of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    /// Enough for a result of size `ceil(size / stride)`. If the total is odd, the extra element is
    /// at the end.
    Same,
    /// None.
    Valid,
    /// (low, high) of each dimension.
    Explicit(Vec<(i64, i64)>),
}

impl Padding {
    /// Reads the attribute `padding`, with `explicit_paddings` for all `rank` dimensions of the
    /// array.
    pub(crate) fn of_node(cx: &NodeContext<'_, '_>, rank: usize) -> Result<Self> {
        match cx.attributes().text("padding")? {
            "SAME" => return Ok(Self::Same),
            "VALID" => return Ok(Self::Valid),
            "EXPLICIT" => {}
            other => {
                return Err(cx.invalid(format!("padding: expected SAME, VALID, or EXPLICIT, got '{other}'")));
            }
        }
        let values = cx.attributes().ints_or("explicit_paddings", Vec::new())?;
        cx.check(values.len() == 2 * rank, || {
            format!(
                "explicit_paddings: expected a pair for each of the {rank} dimensions, got {}",
                list(&values)
            )
        })?;
        cx.check(values.iter().all(|&value| value >= 0), || {
            format!("explicit_paddings: expected numbers >= 0, got {}; use a Slice to crop", list(&values))
        })?;
        Ok(Self::Explicit(values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()))
    }

    /// Rejects explicit padding of dimensions that are not spatial.
    pub(crate) fn check_spatial(&self, cx: &NodeContext<'_, '_>, format: &Format) -> Result<()> {
        let Self::Explicit(pairs) = self else { return Ok(()) };
        cx.check(pairs[format.batch] == (0, 0) && pairs[format.feature] == (0, 0), || {
            format!(
                "explicit_paddings of the batch (dimension {}) and the features (dimension {}) must be 0; use a Pad \
                 for them",
                format.batch, format.feature
            )
        })
    }

    /// True if the padding of a dimension follows from its size, which is open.
    pub(crate) fn depends_on_size(
        &self,
        cx: &NodeContext<'_, '_>,
        x: InstructionId,
        dimension: usize,
        step: WindowStep,
    ) -> bool {
        *self == Self::Same && step.stride > 1 && cx.array(x).dimensions[dimension].is_dynamic
    }

    /// Returns the window along one dimension of an array of that size, and the number of its
    /// positions.
    pub(crate) fn window(
        &self,
        cx: &NodeContext<'_, '_>,
        dimension: usize,
        size: i64,
        step: WindowStep,
    ) -> Result<(WindowDimension, i64)> {
        let WindowStep { filter, stride, dilation } = step;
        // Attributes may be arbitrary, so compute in 128 bits. Values that pass the checks below
        // fit in 64 bits.
        let span = (i128::from(filter) - 1) * i128::from(dilation) + 1;
        let (wide_size, wide_stride) = (i128::from(size), i128::from(stride));
        let (low, high) = match self {
            Self::Valid => (0, 0),
            Self::Explicit(pairs) => (i128::from(pairs[dimension].0), i128::from(pairs[dimension].1)),
            Self::Same => {
                let positions = (wide_size + wide_stride - 1) / wide_stride;
                let total = ((positions - 1) * wide_stride + span - wide_size).max(0);
                (total / 2, total - total / 2)
            }
        };
        let room = wide_size + low + high - span;
        let positions = if *self == Self::Same {
            (wide_size + wide_stride - 1) / wide_stride
        } else {
            (room + wide_stride) / wide_stride
        };
        // A window of one element has no position in an empty dimension.
        let is_empty = room == -1 && span == 1;
        cx.check(*self == Self::Same || room >= 0 || is_empty, || {
            format!(
                "the window spans {span} elements along dimension {dimension}, which has {} with \
                 padding: use a smaller filter or dilation, or padding SAME",
                wide_size + low + high
            )
        })?;
        cx.check(span <= MAX_SPAN && wide_size + low + high <= MAX_SPAN, || {
            format!(
                "the window spans {span} elements along dimension {dimension}, which has {} with padding: the maximum of \
                 both is 2^60",
                wide_size + low + high
            )
        })?;
        let window = WindowDimension {
            stride,
            padding_low: low as i64,
            padding_high: high as i64,
            window_dilation: dilation,
            ..WindowDimension::of_size(filter)
        };
        Ok((window, positions as i64))
    }
}

/// Pads dimensions of open size with a value, such that windows without further padding have the
/// positions that `SAME` gives them. If the total is odd, the extra element is at the end, or at
/// the beginning unless `is_upper`.
///
/// The padding before the first element depends on the size. The array is therefore padded for the
/// largest one, and cut where the padding of the run begins.
pub(crate) fn padded_same(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    steps: &[(usize, WindowStep)],
    value: InstructionId,
    is_upper: bool,
) -> Result<InstructionId> {
    let mut part = cx.split(x)?;
    let dimensions: Vec<usize> = steps.iter().map(|&(dimension, _)| dimension).collect();
    let masked = cx.masked(&part, &dimensions, value)?;
    let mut sizes = cx.sizes(masked);
    let (zero, two) = (cx.s32(0)?, cx.s32(2)?);
    let mut padding = vec![(0, 0, 0); sizes.len()];
    let mut starts = vec![zero; sizes.len()];
    for &(dimension, step) in steps {
        let size = cx.all_sizes(x)?[dimension];
        let total = size_with_padding(cx, size, dimension, step)?;
        let (own, end) = (cx.size_value(size)?, cx.size_value(total)?);
        let added = cx.sub(end, own)?;
        let added = cx.op(Op::Maximum {}, &[added, zero])?;
        let half = cx.div(added, two)?;
        let low = if is_upper { half } else { cx.sub(added, half)? };
        let span = step.span();
        let most_low = if is_upper { (span - 1) / 2 } else { span / 2 };
        let most = cx.s32(most_low)?;
        starts[dimension] = cx.sub(most, low)?;
        let end = total.bound.min(sizes[dimension] + span);
        padding[dimension] = (most_low, end - sizes[dimension], 0);
        sizes[dimension] = end;
        part.sizes[dimension] = total.size;
    }
    let padded = cx.pad(masked, value, &padding)?;
    let cut = Op::DynamicSlice { dynamic_slice_sizes: sizes };
    let cut = cx.op(cut, &[&[padded][..], &starts].concat())?;
    cx.bounded(cut, &part.sizes)
}

/// Returns the size of a dimension with padding `SAME`.
fn size_with_padding(
    cx: &mut NodeContext<'_, '_>,
    size: Size,
    dimension: usize,
    step: WindowStep,
) -> Result<Size> {
    let stride = step.stride;
    let is_empty = cx.size_range(size).low.is_none_or(|low| low < 1);
    let positions = if is_empty { None } else { cx.size_quotient(size, stride)? };
    let total = match positions {
        Some(positions) => cx.size_sum(Size::known(step.span() - stride), positions, stride)?,
        None => None,
    };
    total.ok_or_else(|| {
        Error::unsupported(format!(
            "padding SAME with a stride of {stride} along dimension {dimension}, which may be empty or too large"
        ))
        .coded(Code::BoundedSize)
    })
}

/// Maximum size of windows and padded dimensions. Sums of a few of these sizes fit in 64 bits.
const MAX_SPAN: i128 = 1 << 60;

/// Size and motion of a window along one dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowStep {
    /// Number of elements of the window.
    pub(crate) filter: i64,
    /// Distance between positions.
    pub(crate) stride: i64,
    /// Distance between elements of the window.
    pub(crate) dilation: i64,
}

impl WindowStep {
    /// Number of elements from the first one of the window to the last.
    fn span(self) -> i64 {
        (self.filter - 1).saturating_mul(self.dilation).saturating_add(1)
    }
}

impl NodeContext<'_, '_> {
    /// Reads a list attribute with one positive integer for each of the array's dimensions. An
    /// absent or empty list means `default`.
    pub(crate) fn positive_ints(&self, name: &str, rank: usize, default: Option<i64>) -> Result<Vec<i64>> {
        let mut values = match default {
            Some(_) => self.attributes().ints_or(name, Vec::new())?,
            None => self.attributes().ints(name)?,
        };
        if let (Some(default), true) = (default, values.is_empty()) {
            values = vec![default; rank];
        }
        self.check_positive(name, &values, rank)?;
        Ok(values)
    }

    /// Checks that there is one positive integer for each dimension.
    pub(crate) fn check_positive(&self, name: &str, values: &[i64], rank: usize) -> Result<()> {
        self.check(values.len() == rank && values.iter().all(|&value| value >= 1), || {
            format!(
                "{name}: expected one positive integer for each of the {rank} dimensions, got {}",
                list(values)
            )
        })
    }

    /// Checks that the values of the batch and the features are 1.
    pub(crate) fn check_only_spatial(&self, name: &str, values: &[i64], format: &Format) -> Result<()> {
        self.check(values[format.batch] == 1 && values[format.feature] == 1, || {
            format!(
                "{name}: expected 1 for the batch (dimension {}) and the features (dimension {}), got {}",
                format.batch,
                format.feature,
                list(values)
            )
        })
    }

    /// Checks the number of dimensions of an array.
    pub(crate) fn check_rank(&self, what: &str, sizes: &[i64], rank: usize) -> Result<()> {
        self.check(sizes.len() == rank, || {
            format!("{what}: expected {rank} dimensions, got shape {}", list(sizes))
        })
    }

    /// Returns a product of sizes, or an error if it overflows.
    pub(crate) fn checked_product(&self, sizes: &[i64]) -> Result<i64> {
        let product = sizes.iter().try_fold(1i64, |product, &size| product.checked_mul(size));
        product.ok_or_else(|| self.invalid(format!("the product of {} is too large", list(sizes))))
    }
}
