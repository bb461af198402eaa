//! Decides whether a chain of convolutions pays off and into how many bands it is divided.
//!
//! In separate kernels, an array between two convolutions that exceeds the second-level cache is
//! written to shared caches or to memory, and read back. In bands it stays in the cache, but lines
//! at the borders of bands are computed twice.

use crate::contraction::convolution::ConvolutionDims;
use crate::contraction::convolution::bands::{self, Lines};
use target::Target;

/// Properties of a stage of a chain.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) dims: ConvolutionDims,
    /// Bytes per element of its output.
    pub(super) element_bytes: u64,
    /// Bytes of its kernel.
    pub(super) kernel_bytes: u64,
    /// Operations of the epilogue per element, in multiply-adds.
    pub(super) operations: u64,
}

/// Division of a chain into bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Bands per image.
    pub(super) per_image: i64,
    /// Bytes of all bands between the stages.
    pub(super) scratch_bytes: u64,
    /// Cycles for lines that are computed more than once.
    pub(super) repeated: u64,
}

/// Bytes per cycle that a core reads or writes beyond its second-level cache.
const BYTES_PER_CYCLE: u64 = 12;

/// Vectors multiplied and added per cycle.
const VECTORS_PER_CYCLE: u64 = 2;

/// Fixed cost of a band in cycles, for starting loops and finishing tiles.
const CYCLES_PER_BAND: u64 = 2000;

/// With fewer bands, workers would be idle.
const MIN_BANDS: i64 = 4;

/// Number of bands that suffices to keep workers evenly busy.
const ENOUGH_BANDS: i64 = 16;

/// With more bands, their tables would grow large.
const MAX_BANDS: i64 = 256;

/// Bands use at most half of a cache and at most this many bytes. Streaming data and unfavorably
/// placed pages take the rest.
const MAX_ROOM: u64 = 512 << 10;

/// Numbers of bands per image to try.
const COUNTS: [i64; 13] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128];

impl Stage {
    /// Bytes per line of its output.
    fn line_bytes(&self) -> u64 {
        let width = self.dims.spatial.last().map_or(1, |d| d.output);
        let features = self.dims.groups.saturating_mul(self.dims.outputs);
        (width.saturating_mul(features).max(0) as u64).saturating_mul(self.element_bytes)
    }

    /// Cycles per line of its output.
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

/// Bytes of the second-level cache that are available for bands.
fn room(target: &Target) -> u64 {
    (target.l2_bytes / 2).min(MAX_ROOM)
}

/// Bytes of a stage's largest band.
pub(super) fn band_bytes(stage: &Stage, lines: &[Lines]) -> u64 {
    let most = lines.iter().map(|l| l.output.length()).max().unwrap_or(0).max(0) as u64;
    most.saturating_mul(stage.line_bytes()).next_multiple_of(64)
}

/// Costs of a chain with this many bands per image.
fn cut_into(stages: &[Stage], per_image: i64, target: &Target) -> Option<Cut> {
    let dims: Vec<ConvolutionDims> =
        stages.iter().map(|s| ConvolutionDims { batch: 1, ..s.dims.clone() }).collect();
    let lines = bands::lines(&dims, per_image, false)?;
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

/// Chooses the fewest bands that fit the cache, or more if they repeat little work. If none fit,
/// chooses as many as possible.
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

/// Cycles that the chain saves; 0 if it does not pay off, `None` if it is impossible.
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
    let spent = cut.repeated.saturating_add(cut.repeated / 4).saturating_add(bands * CYCLES_PER_BAND);
    Some((moved / BYTES_PER_CYCLE).saturating_sub(spent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contraction::convolution::{OpenDimensions, SpatialDimension};
    use hlo::WindowDimension;

    /// A square convolution of images with `SAME` padding.
    #[derive(Clone, Copy)]
    struct Layer {
        batch: i64,
        pixels: i64,
        size: i64,
        stride: i64,
        /// Input and output features per group.
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
            let dims = ConvolutionDims {
                batch,
                groups,
                inputs,
                outputs,
                spatial: vec![spatial; 2],
                open: OpenDimensions::None,
            };
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
    fn chains_pay_where_intermediate_arrays_exceed_the_cache() {
        let v4 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let v3 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
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
    fn only_borders_of_bands_are_repeated() {
        let v4 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let stages = bottleneck(1, 56, 24, 144, 3, 1);
        let cut = |n| cut_into(&stages, n, &v4).expect("lines");
        assert_eq!(cut(1).repeated, 0);
        assert_eq!(cut(2).repeated, 2 * stages[0].line_cycles(&v4));
        assert_eq!(cut(4).repeated, 6 * stages[0].line_cycles(&v4));
        assert_eq!(cut(4).scratch_bytes, (16 + 14) * 56 * 144 * 4);
    }
}
