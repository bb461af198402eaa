//! Patches of pixels in memory: the address of each pixel, and zeros for pixels outside the image.

use crate::context::KernelContext;
use nest::{FunctionBuilder, Predicate, ValueId};
use support::Result;

/// Position of a patch: the image, and the first line and column there. They may be outside.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) image: ValueId,
    pub(super) first: [ValueId; 2],
}

/// Images from which patches are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Image {
    /// Address of the first pixel of the first image.
    pub(super) pointer: ValueId,
    /// Numbers of lines and columns.
    pub(super) extents: [i64; 2],
    /// Distance in bytes between pixels.
    pub(super) pixel_bytes: i64,
    /// Smallest and largest first line of a patch, and first column.
    pub(super) first: [(i64, i64); 2],
    /// Address of a pixel of zeros.
    pub(super) zeros: ValueId,
}

impl Image {
    /// True if a patch with `size` pixels per side, at a first line and column, is inside.
    pub(super) fn has(&self, b: &mut FunctionBuilder, first: [ValueId; 2], size: i64) -> ValueId {
        let [lines, columns] = [0, 1].map(|d| inside(b, first[d], self.extents[d], size));
        b.and(lines, columns)
    }

    /// Returns the addresses of the pixels of a patch, row-major.
    pub(super) fn pixels(
        &self,
        b: &mut FunctionBuilder,
        place: Place,
        size: i64,
        is_inside: bool,
    ) -> Vec<ValueId> {
        if is_inside { self.inner_pixels(b, place, size) } else { self.border_pixels(b, place, size) }
    }

    fn inner_pixels(&self, b: &mut FunctionBuilder, place: Place, size: i64) -> Vec<ValueId> {
        let Place { image, first } = place;
        let [lines, columns] = self.extents;
        let line = b.mul_constant(image, lines);
        let line = b.add(line, first[0]);
        let pixel = b.mul_constant(line, columns);
        let pixel = b.add(pixel, first[1]);
        let source = b.offset(self.pointer, pixel, self.pixel_bytes);
        let at = |row: i64, column: i64| (row * columns + column) * self.pixel_bytes;
        (0..size * size).map(|k| b.offset_bytes(source, at(k / size, k % size))).collect()
    }

    /// Returns the addresses for a patch that crosses the border. Pixels outside are zeros.
    fn border_pixels(&self, b: &mut FunctionBuilder, place: Place, size: i64) -> Vec<ValueId> {
        let Place { image, first } = place;
        let [lines, columns] = [0, 1].map(|d| {
            let numbers = (0..size).map(|k| {
                let at = b.add_constant(first[d], k);
                (self.exists(b, d, at, k), at)
            });
            numbers.collect::<Vec<_>>()
        });
        let [height, width] = self.extents;
        let image = b.mul_constant(image, height);
        let mut pixels = Vec::new();
        for &(line_exists, line) in &lines {
            let line = b.add(image, line);
            let line = b.mul_constant(line, width);
            for &(column_exists, column) in &columns {
                let pixel = b.add(line, column);
                let mut pixel = b.offset(self.pointer, pixel, self.pixel_bytes);
                for exists in [line_exists, column_exists].into_iter().flatten() {
                    pixel = b.select(exists, pixel, self.zeros);
                }
                pixels.push(pixel);
            }
        }
        pixels
    }

    /// Returns a condition for the `k`th line or column of a patch to be inside, or `None` if it
    /// always is.
    fn exists(&self, b: &mut FunctionBuilder, d: usize, at: ValueId, k: i64) -> Option<ValueId> {
        let (least, largest) = self.first[d];
        let low = (least + k < 0).then(|| {
            let zero = b.index(0);
            b.compare(Predicate::GreaterEqual, at, zero)
        });
        let high = (largest + k >= self.extents[d]).then(|| {
            let end = b.index(self.extents[d]);
            b.compare(Predicate::Less, at, end)
        });
        match (low, high) {
            (Some(low), Some(high)) => Some(b.and(low, high)),
            (low, high) => low.or(high),
        }
    }
}

/// Returns whether `count` numbers, starting at `first`, are all nonnegative and less than `end`.
pub(super) fn inside(b: &mut FunctionBuilder, first: ValueId, end: i64, count: i64) -> ValueId {
    let (zero, last) = (b.index(0), b.index(end - count));
    let from = b.compare(Predicate::GreaterEqual, first, zero);
    let to = b.compare(Predicate::LessEqual, first, last);
    b.and(from, to)
}

/// Runs `body` for vectors of channels, with the first channel and the number of lanes. The last
/// vector repeats some channels.
pub(super) fn in_vectors(
    cx: &mut KernelContext<'_>,
    channels: i64,
    element_bytes: i64,
    body: &mut dyn FnMut(&mut KernelContext<'_>, ValueId, u32) -> Result<()>,
) -> Result<()> {
    let lanes = 1u32 << i64::from(cx.target().lanes(element_bytes as usize)).min(channels).ilog2();
    let whole = channels / i64::from(lanes) * i64::from(lanes);
    cx.for_range(0, whole, i64::from(lanes), |cx, channel| {
        let channel = cx.scalar_value(&channel)?;
        body(cx, channel, lanes)
    })?;
    if whole == channels {
        return Ok(());
    }
    let channel = cx.index(channels - i64::from(lanes));
    body(cx, channel, lanes)
}
