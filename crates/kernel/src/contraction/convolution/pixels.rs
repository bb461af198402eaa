//! Tiles of pixels.

use super::count::Count;
use crate::context::KernelContext;
use crate::index::{Facts, Index};
use nest::{FunctionBuilder, ValueId};
use support::Result;

/// A tile of pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pixels {
    /// Number of pixels.
    pub(super) count: u32,
    /// Number of the first input pixel, at the first tap.
    pub(super) input: ValueId,
    /// Number of the first output pixel.
    pub(super) output: ValueId,
    /// Its place, if the other pixels follow in the same line.
    pub(super) place: Option<Place>,
    /// Number of the first tap.
    pub(super) tap: ValueId,
    /// Number of taps in each dimension.
    pub(super) taps: [Count; 3],
    /// Distance between input pixels.
    pub(super) input_step: ValueId,
    /// Distance between output pixels.
    pub(super) output_step: ValueId,
    /// Number of taps of the pixels in all earlier tiles, if they are counted.
    pub(super) before: Option<ValueId>,
    /// True if a mask hides the sums, so that they need not be computed.
    pub(super) is_hidden: bool,
}

/// Place of a pixel in an output with lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Number of the line, of all images.
    pub(super) line: ValueId,
    /// Number of the pixel in the line.
    pub(super) column: ValueId,
    /// Pixels of a line.
    pub(super) width: i64,
}

impl Pixels {
    /// Returns the number of an output pixel of the tile.
    pub(super) fn output_index(&self, cx: &mut KernelContext<'_>, pixel: &Index) -> Result<Index> {
        let index =
            |b: &FunctionBuilder, v| b.known_integer(v).map_or_else(|| Index::scalar(v), Index::constant);
        let first = match self.place {
            Some(place) => Index::scalar(place.line).times(place.width).plus(&index(cx, place.column)),
            None => index(cx, self.output),
        };
        let distance = match (cx.known_integer(self.output_step), pixel.as_constant()) {
            (Some(step), _) => pixel.times(step),
            (None, Some(pixel)) => Index::scalar(self.output_step).times(pixel),
            (None, None) => {
                let pixel = cx.scalar_value(pixel)?;
                let distance = cx.mul(pixel, self.output_step);
                cx.learn(distance, Facts::range(0, MAX_PIXEL));
                Index::scalar(distance)
            }
        };
        Ok(first.plus(&distance))
    }
}

/// Upper bound on the numbers of pixels. The plan rejects larger ones.
const MAX_PIXEL: i64 = 1 << 56;
