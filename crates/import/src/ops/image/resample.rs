//! Images whose sizes are open, resized: for each position of the result, a run computes its place
//! in the array, and reads elements around it.

use crate::node::context::NodeContext;
use crate::ops::array::space_to_depth::multiple;
use bounded::Size;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

/// A dimension that is resized. Places are numbers of a floating-point type.
pub(crate) struct Resampling {
    element_type: PrimitiveType,
    /// Sizes in the array and in the result, as scalars.
    pub(crate) from: InstructionId,
    pub(crate) to: InstructionId,
    /// The positions of the result: 0, 1, ....
    pub(crate) positions: InstructionId,
    result: Size,
}

impl Resampling {
    /// Begins to resize a dimension of an array to a size.
    pub(crate) fn new(
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
        dimension: usize,
        result: Size,
        element_type: PrimitiveType,
    ) -> Result<Self> {
        let from = cx.true_size(x, dimension)?;
        let to = cx.size_value(result)?;
        Ok(Self {
            element_type,
            from: cx.convert(from, element_type)?,
            to: cx.convert(to, element_type)?,
            positions: cx.iota(element_type, &[result.bound], 0)?,
            result,
        })
    }

    /// A scalar for each position.
    pub(crate) fn spread(
        &self,
        cx: &mut NodeContext<'_, '_>,
        scalar: InstructionId,
    ) -> Result<InstructionId> {
        cx.broadcast(scalar, &[self.result.bound], &[])
    }

    /// A number as a scalar.
    pub(crate) fn number(&self, cx: &mut NodeContext<'_, '_>, value: f64) -> InstructionId {
        cx.scalar(self.element_type, value)
    }

    /// The index of the last element, as a scalar.
    pub(crate) fn last(&self, cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
        cx.add_scalar(self.from, -1.0)
    }

    /// A number where the result has at most one element, and another one elsewhere.
    pub(crate) fn for_one(
        &self,
        cx: &mut NodeContext<'_, '_>,
        one: InstructionId,
        more: InstructionId,
    ) -> Result<InstructionId> {
        let is_one = cx.compare_scalar(ComparisonDirection::Le, self.to, 1.0)?;
        cx.select(is_one, one, more)
    }

    /// The nearest elements of an array to places, as an array without true sizes.
    pub(crate) fn elements(
        &self,
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
        dimension: usize,
        places: InstructionId,
    ) -> Result<InstructionId> {
        let (data, size) = (cx.split(x)?.data, cx.true_size(x, dimension)?);
        let last = cx.add_scalar(size, -1.0)?;
        let (indices, last) = (cx.convert(places, PrimitiveType::S32)?, self.spread(cx, last)?);
        // A gather itself takes the first element for an index before it.
        let indices = cx.op(Op::Minimum {}, &[indices, last])?;
        cx.gather_along(data, indices, dimension as i64, 0)
    }

    /// Weights for the positions, along a dimension of an array of this shape.
    pub(crate) fn weights(
        &self,
        cx: &mut NodeContext<'_, '_>,
        weights: InstructionId,
        like: InstructionId,
        dimension: usize,
    ) -> Result<InstructionId> {
        let (sizes, element_type) = (cx.sizes(like), cx.element_type(like));
        let weights = cx.convert(weights, element_type)?;
        cx.broadcast(weights, &sizes, &[dimension])
    }

    /// Gives a result the sizes of the array, and that of the dimension.
    pub(crate) fn finish(
        &self,
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
        dimension: usize,
        result: InstructionId,
    ) -> Result<InstructionId> {
        let mut sizes = cx.split(x)?.sizes;
        sizes[dimension] = self.result.size;
        cx.bounded(result, &sizes)
    }
}

/// Repeats each slice of a dimension, whose size may be open.
pub(crate) fn repeated(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    times: i64,
) -> Result<InstructionId> {
    let mut result = cx.all_sizes(x)?;
    result[dimension] = multiple(cx, result[dimension], times)?;
    let mut split = cx.sizes(x);
    split.insert(dimension + 1, times);
    let dimensions: Vec<usize> = (0..split.len()).filter(|&d| d != dimension + 1).collect();
    let repeated = cx.broadcast(x, &split, &dimensions)?;
    cx.reshape_to(repeated, &result)
}
