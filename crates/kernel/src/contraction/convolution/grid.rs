//! The part of a convolution's output that is needed, for loops over tiles that end at sizes that
//! are known only at run time.
//!
//! Pixels are numbered in row-major order. A loop over tiles moves along one axis of the output, so
//! it ends where the axis does. Dimensions that a loop may cross are one axis.

use super::count::Count;
use crate::context::KernelContext;
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
}

impl Grid {
    /// Returns the axes of a convolution that are limited in some run.
    pub(super) fn of(cx: &mut KernelContext<'_>, plan: &ConvolutionPlan) -> Result<Self> {
        let op = cx.fusion().body[plan.hero].op();
        if ConvolutionForm::of(op) != Some(ConvolutionForm::Canonical) {
            return Ok(Self::default());
        }
        let needed = cx.needed_for(cx.fusion().root, plan.hero);
        let mut axes = Vec::new();
        for (unit, size, extent) in axes_of(&plan.dims, &needed) {
            if let Some(extent) = extent.filter(|&extent| !cx.covers(extent, size)) {
                axes.push(Axis { unit, size, limit: cx.extent(extent, size)? });
            }
        }
        Ok(Self { axes })
    }

    /// Shortens loops around tiles, the outermost first, to the part that is needed. Each has a
    /// number of iterations and moves by a number of output pixels. `output` is the first pixel of
    /// the first tile.
    pub(super) fn shorten(
        &self,
        cx: &mut KernelContext<'_>,
        output: Count,
        loops: &mut [(Count, ValueId)],
    ) -> Result<()> {
        for axis in &self.axes {
            let first = axis.index(cx, output)?;
            let rest = cx.sub(axis.limit, first);
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
            // Nothing of a rectangle that begins beyond the limit is needed.
            let nothing = cx.index(0);
            let is_inside = cx.compare(Predicate::Less, nothing, rest);
            if let Some((count, _)) = loops.first_mut() {
                count.value = cx.select(is_inside, count.value, nothing);
            }
        }
        if !self.axes.is_empty() {
            for (count, _) in loops.iter() {
                if cx.known_integer(count.value).is_none() {
                    cx.learn(count.value, Facts::range(i64::MIN / 4, count.most));
                }
            }
        }
        Ok(())
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
            Some((before, size, limit)) if !dims.keeps_lines && may_cross(d) => {
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

fn lesser(cx: &mut KernelContext<'_>, x: ValueId, y: ValueId) -> ValueId {
    let is_less = cx.compare(Predicate::Less, x, y);
    cx.select(is_less, x, y)
}

fn greater(cx: &mut KernelContext<'_>, x: ValueId, y: ValueId) -> ValueId {
    let is_less = cx.compare(Predicate::Less, x, y);
    cx.select(is_less, y, x)
}
