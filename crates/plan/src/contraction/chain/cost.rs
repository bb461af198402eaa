//! Whether a chain of convolutions pays, and into how many bands it is cut.
//!
//! Apart, an array between two convolutions that is larger than the second-level cache is written to caches that cores
//! share, or to memory, and read from there. In bands it stays, but lines at the borders of bands are computed twice.

use crate::contraction::convolution::ConvolutionDims;
use crate::contraction::convolution::bands::{self, Lines};
use target::Target;

/// What is known of a stage of a chain.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) dims: ConvolutionDims,
    /// Of an element that it hands on.
    pub(super) element_bytes: u64,
    /// Of its kernel.
    pub(super) kernel_bytes: u64,
    /// Operations on each element behind the convolution, in multiply-adds.
    pub(super) operations: u64,
}

/// How a chain is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Bands of an image.
    pub(super) per_image: i64,
    /// Bytes that the bands between the stages take.
    pub(super) scratch_bytes: u64,
    /// Cycles for what is computed more than once.
    pub(super) repeated: u64,
}

/// Bytes that a core reads or writes in a cycle beyond its second-level cache.
const BYTES_PER_CYCLE: u64 = 12;

/// Vectors multiplied and added in a cycle.
const VECTORS_PER_CYCLE: u64 = 2;

/// What a band costs by itself, in cycles: loops begin, and tiles end.
const CYCLES_OF_BAND: u64 = 2000;

/// With fewer bands, workers would have nothing to do.
const MIN_BANDS: i64 = 4;

/// More are not needed to keep workers evenly busy.
const ENOUGH_BANDS: i64 = 16;

/// With more, their tables would grow large.
const MAX_BANDS: i64 = 256;

/// Of a cache, bands use half, and no more than this: what streams through takes its part, and pages that lie badly.
const MAX_ROOM: u64 = 512 << 10;

/// Bands of an image that are tried.
const COUNTS: [i64; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128];

impl Stage {
    /// Bytes of a line of its output.
    fn line_bytes(&self) -> u64 {
        let width = self.dims.spatial.last().map_or(1, |d| d.output);
        let features = self.dims.groups.saturating_mul(self.dims.outputs);
        (width.saturating_mul(features).max(0) as u64).saturating_mul(self.element_bytes)
    }

    /// Cycles for a line of its output.
    fn line_cycles(&self, target: &Target) -> u64 {
        let elements = self.line_bytes() / self.element_bytes.max(1);
        let summands = self.dims.taps().saturating_mul(self.dims.inputs).max(0) as u64;
        let each = summands.saturating_add(self.operations);
        elements.saturating_mul(each) / (VECTORS_PER_CYCLE * u64::from(target.lanes(4)))
    }

    fn lines(&self) -> u64 {
        self.dims.lines().max(0) as u64
    }
}

/// The bytes of the second-level cache that are there for bands.
fn room(target: &Target) -> u64 {
    (target.l2_bytes / 2).min(MAX_ROOM)
}

/// The bytes of a stage's largest band.
pub(super) fn band_bytes(stage: &Stage, lines: &[Lines]) -> u64 {
    let most = lines.iter().map(|l| l.output.length()).max().unwrap_or(0).max(0) as u64;
    most.saturating_mul(stage.line_bytes()).next_multiple_of(64)
}

/// What a chain in so many bands of each image takes.
fn cut_into(stages: &[Stage], per_image: i64, target: &Target) -> Option<Cut> {
    let dims: Vec<ConvolutionDims> =
        stages.iter().map(|s| ConvolutionDims { batch: 1, ..s.dims.clone() }).collect();
    let lines = bands::lines(&dims, per_image)?;
    let images = stages.first()?.dims.batch.max(0) as u64;
    let (mut scratch_bytes, mut repeated) = (0u64, 0u64);
    for (stage, lines) in stages.iter().zip(&lines).take(stages.len() - 1) {
        scratch_bytes = scratch_bytes.saturating_add(band_bytes(stage, lines));
        let computed: u64 = lines.iter().map(|l| l.output.length() as u64).sum();
        let once = stage.lines() / images.max(1);
        let twice = computed.saturating_sub(once).saturating_mul(images);
        repeated = repeated.saturating_add(twice.saturating_mul(stage.line_cycles(target)));
    }
    Some(Cut { per_image, scratch_bytes, repeated })
}

/// As few bands as fit the cache, or more if they repeat little work; as many as there may be if none fit.
pub(super) fn cut(stages: &[Stage], target: &Target) -> Option<Cut> {
    let last = &stages.last()?.dims;
    let rows = last.spatial.first()?.output;
    if stages.iter().any(|s| s.dims.batch != last.batch || s.dims.spatial.len() != 2) {
        return None;
    }
    let is_possible = |&per_image: &i64| {
        let bands = last.batch.saturating_mul(per_image);
        per_image <= rows && bands <= MAX_BANDS && bands > 1
    };
    let cuts = COUNTS.into_iter().filter(is_possible).map(|n| cut_into(stages, n, target));
    let cuts: Vec<Cut> = cuts.collect::<Option<_>>()?;
    let work: u64 = stages.iter().map(|s| s.lines().saturating_mul(s.line_cycles(target))).sum();
    let fits = |cut: &&Cut| {
        cut.scratch_bytes <= room(target) && last.batch.saturating_mul(cut.per_image) >= MIN_BANDS
    };
    let few = cuts.iter().find(fits);
    let is_cheap =
        |cut: &&Cut| last.batch.saturating_mul(cut.per_image) <= ENOUGH_BANDS && cut.repeated <= work / 16;
    let more = cuts.iter().rev().find(|cut| fits(cut) && is_cheap(cut));
    more.or(few).or(cuts.last()).copied()
}

/// Cycles that the chain saves; 0 if it does not pay, nothing if it cannot be.
pub(super) fn saving(stages: &[Stage], target: &Target) -> Option<u64> {
    let cut = cut(stages, target).filter(|cut| cut.scratch_bytes <= 4 * target.l2_bytes)?;
    let kernels = stages.iter().fold(0u64, |sum, s| sum.saturating_add(s.kernel_bytes));
    if cut.scratch_bytes > room(target) || kernels > room(target) / 2 {
        return Some(0);
    }
    let moved = |stage: &Stage| {
        let bytes = stage.lines().saturating_mul(stage.line_bytes());
        if bytes > room(target) / 2 * 3 { bytes.saturating_mul(2) } else { 0 }
    };
    let moved = stages[..stages.len() - 1].iter().fold(0u64, |sum, s| sum.saturating_add(moved(s)));
    let bands = (stages[0].dims.batch.saturating_mul(cut.per_image)).max(0) as u64;
    let spent = cut.repeated.saturating_add(cut.repeated / 4).saturating_add(bands * CYCLES_OF_BAND);
    Some((moved / BYTES_PER_CYCLE).saturating_sub(spent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contraction::convolution::SpatialDimension;
    use hlo::WindowDimension;

    /// A square convolution of images with `SAME` padding.
    #[derive(Clone, Copy)]
    struct Layer {
        batch: i64,
        pixels: i64,
        size: i64,
        stride: i64,
        /// Input and output features of a group.
        inputs: i64,
        outputs: i64,
        groups: i64,
        operations: u64,
    }

    impl Layer {
        fn stage(self) -> Stage {
            let Self { batch, pixels, size, stride, inputs, outputs, groups, operations } = self;
            let low = (size - stride).max(0) / 2;
            let window = WindowDimension {
                stride,
                padding_low: low,
                padding_high: (size - stride).max(0) - low,
                ..WindowDimension::of_size(size)
            };
            let spatial = SpatialDimension { input: pixels, output: (pixels - 1) / stride + 1, window };
            let dims = ConvolutionDims { batch, groups, inputs, outputs, spatial: vec![spatial; 2] };
            let kernel_bytes = (size * size * inputs * outputs * groups * 4) as u64;
            Stage { dims, element_bytes: 4, kernel_bytes, operations }
        }
    }

    /// Expand, depthwise, project.
    fn bottleneck(batch: i64, pixels: i64, narrow: i64, wide: i64, size: i64, stride: i64) -> Vec<Stage> {
        let after = (pixels - 1) / stride + 1;
        let pointwise = Layer {
            batch,
            pixels,
            size: 1,
            stride: 1,
            inputs: narrow,
            outputs: wide,
            groups: 1,
            operations: 3,
        };
        let depthwise = Layer { size, stride, inputs: 1, outputs: 1, groups: wide, ..pointwise };
        let project = Layer { pixels: after, inputs: wide, outputs: narrow, operations: 2, ..pointwise };
        [pointwise, depthwise, project].map(Layer::stage).to_vec()
    }

    #[test]
    fn chains_are_formed_where_what_is_between_leaves_the_cache() {
        let v4 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a triple");
        let v3 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a triple");
        let mut wide_swish = bottleneck(1, 112, 16, 96, 3, 2);
        wide_swish.truncate(2);
        wide_swish.iter_mut().for_each(|stage| stage.operations = 20);
        let table = [
            (bottleneck(1, 112, 16, 96, 3, 2), &v4, true, 16),
            (bottleneck(1, 56, 24, 144, 3, 1), &v4, true, 8),
            (bottleneck(1, 56, 24, 144, 3, 2), &v4, true, 6),
            // Its arrays are small.
            (bottleneck(1, 28, 32, 192, 3, 1), &v4, false, 0),
            (bottleneck(1, 7, 160, 960, 3, 1), &v4, false, 0),
            // Small again, but for eight images.
            (bottleneck(8, 28, 32, 192, 3, 1), &v4, true, 24),
            (wide_swish, &v4, true, 12),
            // Half of the cache is a few lines.
            (bottleneck(1, 56, 24, 144, 3, 1), &v3, false, 0),
        ];
        for (number, (stages, target, pays, bands)) in table.into_iter().enumerate() {
            let saved = saving(&stages, target).expect("possible");
            assert_eq!(saved > 0, pays, "row {number}: {saved} cycles");
            if pays {
                let cut = cut(&stages, target).expect("possible");
                assert_eq!(cut.per_image * stages[0].dims.batch, bands, "row {number}: {cut:?}");
                assert!(cut.scratch_bytes <= room(target));
            }
        }
    }

    #[test]
    fn what_is_repeated_is_the_borders_of_bands() {
        let v4 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a triple");
        let stages = bottleneck(1, 56, 24, 144, 3, 1);
        let cut = |n| cut_into(&stages, n, &v4).expect("lines");
        assert_eq!(cut(1).repeated, 0);
        assert_eq!(cut(2).repeated, 2 * stages[0].line_cycles(&v4));
        assert_eq!(cut(4).repeated, 6 * stages[0].line_cycles(&v4));
        assert_eq!(cut(4).scratch_bytes, (16 + 14) * 56 * 144 * 4);
    }
}
