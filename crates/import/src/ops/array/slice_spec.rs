//! The masks of strided slices: the meaning of each dimension of the operand and of the result.

use crate::node::context::NodeContext;
use support::Result;

/// The effect of a strided slice on one dimension of its input.
pub(crate) struct DenseDimension {
    /// Position in `begin`, `end`, and `strides`. `None` for dimensions covered by the ellipsis.
    pub(crate) sparse: Option<usize>,
    pub(crate) stride: i64,
    pub(crate) begin_masked: bool,
    pub(crate) end_masked: bool,
    pub(crate) shrink: bool,
}

/// One dimension of the result.
pub(crate) enum FinalDimension {
    Kept(usize),
    New,
}

/// The masks applied: one entry for each dimension of the input, and the dimensions of the result.
pub(crate) struct DenseSpec {
    pub(crate) dimensions: Vec<DenseDimension>,
    pub(crate) result: Vec<FinalDimension>,
}

/// A range of one dimension with known bounds.
pub(crate) struct Range {
    pub(crate) begin: i64,
    pub(crate) stride: i64,
    pub(crate) size: i64,
}

impl DenseSpec {
    /// Follows the definition of `tf.strided_slice`.
    pub(crate) fn new(cx: &NodeContext<'_, '_>, strides: &[i64], rank: usize) -> Result<Self> {
        let mask = |name: &str| cx.attributes().int_or(name, 0);
        let (begin_mask, end_mask) = (mask("begin_mask")?, mask("end_mask")?);
        let (new_axis_mask, shrink_mask) = (mask("new_axis_mask")?, mask("shrink_axis_mask")?);
        let ellipsis_mask = mask("ellipsis_mask")?;
        let set = |mask: i64, i: usize| i < 63 && mask >> i & 1 == 1;
        let count = strides.len();
        let ellipses = (0..count).filter(|&i| set(ellipsis_mask, i)).count();
        cx.check(ellipses <= 1, || "expected at most one ellipsis, got several".to_owned())?;
        let mut spec = Self { dimensions: Vec::new(), result: Vec::new() };
        // Without an ellipsis, there is an implicit one after the last index.
        let order = (0..count).chain((ellipses == 0).then_some(count));
        for i in order {
            if i == count || set(ellipsis_mask, i) {
                let following = (i + 1..count).filter(|&j| !set(new_axis_mask, j)).count();
                let next = rank.saturating_sub(following).max(spec.dimensions.len());
                while spec.dimensions.len() < next {
                    spec.result.push(FinalDimension::Kept(spec.dimensions.len()));
                    spec.dimensions.push(DenseDimension {
                        sparse: None,
                        stride: 1,
                        begin_masked: true,
                        end_masked: true,
                        shrink: false,
                    });
                }
            } else if set(new_axis_mask, i) {
                spec.result.push(FinalDimension::New);
            } else {
                let shrink = set(shrink_mask, i);
                if !shrink {
                    spec.result.push(FinalDimension::Kept(spec.dimensions.len()));
                }
                spec.dimensions.push(DenseDimension {
                    sparse: Some(i),
                    stride: strides[i],
                    begin_masked: set(begin_mask, i),
                    end_masked: set(end_mask, i),
                    shrink,
                });
            }
        }
        cx.check(spec.dimensions.len() == rank, || {
            format!("the slice has {} indices, but the tensor has {rank} dimensions", spec.dimensions.len())
        })?;
        Ok(spec)
    }
}

impl DenseDimension {
    /// Returns the range, given its known bounds, or `None` if a bound that matters is unknown.
    pub(crate) fn range(
        &self,
        cx: &NodeContext<'_, '_>,
        begin: Option<i64>,
        end: Option<i64>,
        size: i64,
    ) -> Result<Option<Range>> {
        let stride = self.stride;
        cx.check(stride != 0, || "strides must not be 0".to_owned())?;
        if self.shrink {
            cx.check(stride > 0, || "an index that removes its dimension must have stride 1".to_owned())?;
            let Some(index) = begin else { return Ok(None) };
            let wrapped = if index < 0 { index + size } else { index };
            cx.check((0..size).contains(&wrapped), || {
                format!("slice index {index} is out of bounds of a dimension of size {size}")
            })?;
            return Ok(Some(Range { begin: wrapped, stride: 1, size: 1 }));
        }
        let (low, high) = if stride > 0 { (0, size) } else { (-1, size - 1) };
        let bound = |value: Option<i64>, masked: bool, default: i64| match (masked, value) {
            (true, _) => Some(default),
            (false, Some(value)) => {
                let value = if value < 0 { value.saturating_add(size) } else { value };
                Some(value.clamp(low, high))
            }
            (false, None) => None,
        };
        let (first, last) = if stride > 0 { (low, high) } else { (high, low) };
        let begin = bound(begin, self.begin_masked, first);
        let end = bound(end, self.end_masked, last);
        let (Some(begin), Some(end)) = (begin, end) else { return Ok(None) };
        let length = end - begin;
        let size = if length == 0 || (length < 0) != (stride < 0) {
            0
        } else {
            (length.unsigned_abs().div_ceil(stride.unsigned_abs())) as i64
        };
        Ok(Some(Range { begin, stride, size }))
    }
}
