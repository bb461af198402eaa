//! The part of a convolution's output that is needed, for loops over tiles that end at sizes that
//! are known only at run time.
//!
//! Pixels are numbered in row-major order. A loop over tiles moves along one axis of the output, so
//! it ends where the axis does. Dimensions that a loop may cross are one axis.

use super::count::Count;
use super::pixels::{Pixels, Place};
use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::index::{Facts, Index};
use hlo::ConvolutionForm;
use hlo::analysis::Extent;
use nest::{BinaryOp, Predicate, ValueId};
use plan::{ConvolutionDims, ConvolutionPlan, SpatialDimension};
use support::Result;

/// Maximum number of groups of outputs with the same taps, as in a tiling.
const MAX_SEGMENTS: usize = 256;

/// The limited axes of an output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    axes: Vec<Axis>,
    /// Pixels of a line and of the output, if some axis is limited and no loop runs over the pixels
    /// of several lines.
    lines: Option<(i64, i64)>,
    /// True if tiles have the sizes of the tiling only.
    has_fixed_tiles: bool,
}

/// One or several neighboring dimensions of the output, of which the first indices are needed.
#[derive(Clone, Copy, Debug)]
struct Axis {
    /// Distance of neighbors, in pixels.
    unit: i64,
    /// Number of indices.
    size: i64,
    /// Number of indices that are needed.
    limit: ValueId,
    /// Number of indices whose sums are read, if a mask hides the others.
    shown: Option<ValueId>,
}

impl Grid {
    /// Returns the axes of a convolution that are limited in some run.
    pub(in crate::contraction) fn of(cx: &mut KernelContext<'_>, plan: &ConvolutionPlan) -> Result<Self> {
        let op = cx.fusion().body[plan.hero].op();
        if ConvolutionForm::of(op) != Some(ConvolutionForm::Canonical) {
            return Ok(Self::default());
        }
        let needed = axes_of(&plan.dims, &cx.needed_for(cx.fusion().root, plan.hero));
        let shown = axes_of(&plan.dims, &cx.needed(plan.hero));
        let mut axes = Vec::new();
        for ((unit, size, extent), (_, _, shown)) in needed.into_iter().zip(shown) {
            let [extent, shown] =
                [extent, shown].map(|extent| extent.filter(|&extent| !cx.covers(extent, size)));
            let shown = shown.filter(|_| plan.dims.keeps_lines() && shown != extent);
            let limit = match extent {
                Some(extent) => cx.extent(extent, size)?,
                None if shown.is_some() => cx.index(size),
                None => continue,
            };
            let shown = shown.map(|shown| cx.extent(shown, size)).transpose()?;
            axes.push(Axis { unit, size, limit, shown });
        }
        let (dims, is_limited) = (&plan.dims, !axes.is_empty());
        let line = dims.spatial.last().filter(|_| dims.keeps_lines() && is_limited);
        let lines = line.map(|line| (line.output, dims.batch * dims.pixels()));
        Ok(Self { axes, lines, has_fixed_tiles: false })
    }

    /// Returns the place of a tile's first output pixel in its line, if the others follow in the
    /// same line. Masks are then computed without a division for each pixel.
    pub(super) fn place(&self, cx: &mut KernelContext<'_>, tile: &Pixels) -> Result<Option<Place>> {
        let is_row = cx.known_integer(tile.output_step) == Some(1);
        let Some((width, pixels)) = self.lines.filter(|_| is_row) else { return Ok(None) };
        let last = width - i64::from(tile.count);
        if width == 1 || last < 0 {
            return Ok(None);
        }
        cx.learn(tile.output, Facts::range(0, pixels - 1));
        let (line, column) = cx.div_rem(&Index::scalar(tile.output), width)?;
        let (line, column) = (cx.scalar_value(&line)?, cx.scalar_value(&column)?);
        cx.learn(column, Facts::range(0, last));
        Ok(Some(Place { line, column, width }))
    }

    /// True if all of the output is needed.
    pub(super) fn is_whole(&self) -> bool {
        self.axes.is_empty()
    }

    /// The same, but with tiles of the tiling's sizes only, and the sums of all needed pixels are
    /// computed.
    pub(super) fn with_fixed_tiles(mut self) -> Self {
        self.axes.iter_mut().for_each(|axis| axis.shown = None);
        Self { has_fixed_tiles: true, ..self }
    }

    /// True if tiles have the sizes of the tiling only.
    pub(super) fn has_fixed_tiles(&self) -> bool {
        self.has_fixed_tiles
    }

    /// True if lines along which tiles move by such steps may end at a size, or before numbers that
    /// a mask hides.
    pub(super) fn ends_lines(&self, cx: &KernelContext<'_>, step: ValueId) -> bool {
        let is_row = cx.known_integer(step) == Some(1);
        is_row
            && self.lines.is_some_and(|(width, _)| width > 1)
            && self.axes.iter().any(|axis| axis.unit == 1 || axis.shown.is_some())
    }

    /// True if a mask hides some sums.
    pub(super) fn hides(&self) -> bool {
        self.axes.iter().any(|axis| axis.shown.is_some())
    }

    /// Returns how many pixels of a line are not hidden and how many are needed, of those that some
    /// tiles have.
    pub(super) fn line(&self, cx: &mut KernelContext<'_>, tile: &Pixels, tiles: Count) -> Result<[Count; 2]> {
        let pixels = i64::from(tile.count);
        let most = tiles.most * pixels;
        let mut end = cx.mul_constant(tiles.value, pixels);
        let mut shown = end;
        let zero = cx.index(0);
        for axis in &self.axes {
            let is_line = axis.unit == 1;
            if !is_line && axis.shown.is_none() {
                continue;
            }
            let first = axis.index(cx, Count { value: tile.output, most: i64::MAX })?;
            if is_line {
                let rest = cx.sub(axis.limit, first);
                end = lesser(cx, end, rest);
            }
            let Some(limit) = axis.shown else { continue };
            let rest = cx.sub(limit, first);
            if is_line {
                shown = lesser(cx, shown, rest);
            } else {
                let is_shown = cx.compare(Predicate::Less, zero, rest);
                shown = cx.select(is_shown, shown, zero);
            }
        }
        let shown = lesser(cx, shown, end);
        Ok([shown, end].map(|value| {
            let value = greater(cx, value, zero);
            cx.learn(value, Facts::range(0, most));
            Count { value, most }
        }))
    }

    /// Returns a condition that does not hold if none of the pixels from `first` to `last` is
    /// needed, or `None` if all are. It may hold for pixels that are not needed.
    pub(super) fn may_need(
        &self,
        cx: &mut KernelContext<'_>,
        [first, last]: [ValueId; 2],
    ) -> Result<Option<ValueId>> {
        let mut is_needed: Option<ValueId> = None;
        for axis in &self.axes {
            let (begin, _) = cx.div_rem(&Index::scalar(first), axis.unit)?;
            let (outer, begin) = cx.div_rem(&begin, axis.size)?;
            let (last_outer, _) = cx.div_rem(&Index::scalar(last), axis.unit.saturating_mul(axis.size))?;
            let [outer, last_outer, begin] =
                [cx.scalar_value(&outer)?, cx.scalar_value(&last_outer)?, cx.scalar_value(&begin)?];
            let reaches_next = cx.compare(Predicate::Less, outer, last_outer);
            let is_within = cx.compare(Predicate::Less, begin, axis.limit);
            let is_any = cx.or(reaches_next, is_within);
            is_needed = Some(is_needed.map_or(is_any, |is_needed| cx.and(is_needed, is_any)));
        }
        Ok(is_needed)
    }

    /// Runs `body` for a rectangle that begins at an output pixel, unless nothing of it is needed,
    /// with the number of indices that are needed along each axis from there on.
    pub(super) fn when_needed(
        &self,
        cx: &mut KernelContext<'_>,
        output: Count,
        body: impl FnOnce(&mut KernelContext<'_>, &[ValueId]) -> Result<()>,
    ) -> Result<()> {
        let mut rests = Vec::new();
        for axis in &self.axes {
            let first = axis.index(cx, output)?;
            rests.push(cx.sub(axis.limit, first));
        }
        let (zero, one) = (cx.index(0), cx.index(1));
        let once = rests.iter().fold(one, |least, &rest| lesser(cx, least, rest));
        cx.for_dynamic(zero, once, 1, &[], |cx, _, _| body(cx, &rests).map(|()| Vec::new())).map(|_| ())
    }

    /// Shortens loops around tiles, the outermost first, to the part that is needed. Each has a
    /// number of iterations and moves by a number of output pixels. `rests` are the indices that
    /// are needed along each axis, from the first tile on.
    pub(super) fn shorten(
        &self,
        cx: &mut KernelContext<'_>,
        rests: &[ValueId],
        loops: &mut [(Count, ValueId)],
    ) {
        for (axis, &rest) in self.axes.iter().zip(rests) {
            for (count, step) in loops.iter_mut().filter(|(count, _)| count.most > 1) {
                let Some(moves) = axis.is_along(cx, *count, *step) else { continue };
                // Iterations until the end of what is needed, rounded up.
                let unit = cx.index(axis.unit);
                let by = cx.binary(BinaryOp::DivideSigned, *step, unit);
                let one = cx.index(1);
                let by = greater(cx, by, one);
                let most = cx.add(rest, by);
                let most = cx.add_constant(most, -1);
                let most = cx.binary(BinaryOp::DivideSigned, most, by);
                let shorter = lesser(cx, most, count.value);
                count.value = cx.select(moves, shorter, count.value);
            }
        }
        if !self.axes.is_empty() {
            for (count, _) in loops.iter() {
                if cx.known_integer(count.value).is_none() {
                    cx.learn(count.value, Facts::range(i64::MIN / 4, count.most));
                }
            }
        }
    }
}

impl Axis {
    /// Returns the index of a pixel.
    fn index(&self, cx: &mut KernelContext<'_>, pixel: Count) -> Result<ValueId> {
        let pixel = match cx.known_integer(pixel.value) {
            Some(pixel) => Index::constant(pixel),
            None => Index::scalar(pixel.value),
        };
        let (index, _) = cx.div_rem(&pixel, self.unit)?;
        let (_, index) = cx.div_rem(&index, self.size)?;
        cx.scalar_value(&index)
    }

    /// Returns a condition that holds if a loop moves along the axis, or `None` if it never does.
    fn is_along(&self, cx: &mut KernelContext<'_>, count: Count, step: ValueId) -> Option<ValueId> {
        let last = cx.add_constant(count.value, -1);
        let reach = cx.mul(last, step);
        let (unit, end) = (cx.index(self.unit), cx.index(self.unit.saturating_mul(self.size)));
        if cx.known_integer(step).is_some_and(|step| step < self.unit) {
            return None;
        }
        let is_large = cx.compare(Predicate::LessEqual, unit, step);
        let is_within = cx.compare(Predicate::Less, reach, end);
        Some(cx.and(is_large, is_within))
    }
}

/// Returns the unit, the size, and the extent of each axis.
fn axes_of(dims: &ConvolutionDims, needed: &[Option<Extent>]) -> Vec<(i64, i64, Option<Extent>)> {
    let mut axes: Vec<(i64, i64, Option<Extent>)> = Vec::new();
    let mut unit = dims.pixels();
    axes.push((unit, dims.batch, needed.first().copied().flatten()));
    for (number, d) in dims.spatial.iter().enumerate() {
        unit = unit.checked_div(d.output).unwrap_or(0);
        let extent = needed.get(number + 1).copied().flatten();
        match axes.last_mut() {
            Some((before, size, limit)) if !dims.keeps_lines() && may_cross(d) => {
                *limit = if *size == 1 { extent } else { limit.and_then(|limit| limit.times(d.output)) };
                (*before, *size) = (unit, size.saturating_mul(d.output));
            }
            _ => axes.push((unit, d.output, extent)),
        }
    }
    axes
}

/// True if one loop may run over a dimension and the one before: if a step from the end of one line
/// to the next one may be as long as any other.
fn may_cross(d: &SpatialDimension) -> bool {
    let Some(segments) = d.segments(MAX_SEGMENTS) else { return true };
    segments.iter().any(|segment| {
        let is_whole = segment.count.saturating_mul(segment.step) >= d.output;
        is_whole && (d.input == 0 || segment.count.saturating_mul(segment.input_step) % d.input == 0)
    })
}
