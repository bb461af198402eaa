//! Convolutions whose groups have many features: tiles of pixels by vectors of output features.

use super::bands::{self, Lines};
use super::cost;
use super::dims::ConvolutionDims;
use super::tiling::{self, Sharing, Tiling};
use crate::candidate::Candidate;
use crate::contraction::grouping::{FactorTypes, GROUP_BYTES, Grouping, tiles};
use crate::contraction::panels::PanelLayout;
use crate::contraction::tile::{self, Tile};
use crate::packing::Packing;
use crate::tasks::Work;
use hlo::CACHE_LINE;
use shape::PrimitiveType;
use target::Target;

/// Tiles of output pixels by vectors of output features, accumulated over taps and input features.
#[derive(Clone, Debug, PartialEq)]
pub struct DensePlan {
    /// Pixels of the largest tiles, and vectors of features.
    pub tile: Tile,
    /// Upper bound of the pixels per tile.
    pub most_pixels: u32,
    /// The tiles of the output.
    pub tiling: Tiling,
    /// Packing of the kernel: in place, or as panels.
    pub kernel_packing: Packing,
    /// Type of the panels' elements: the accumulator's, or a narrower one that tiles widen in
    /// registers.
    pub stored: PrimitiveType,
    /// Panels per group of a packed kernel. Its rows are the summands of an output, taps times
    /// input features; its columns are output features.
    pub panels: PanelLayout,
    /// Rows of the panels per tap: input features, or groups of them.
    pub inputs: i64,
    /// Groups that take the place of single input features.
    pub grouping: Option<Grouping>,
    /// True if neighboring taps of the last dimension, with their input features, are contiguous in
    /// memory.
    pub is_run: bool,
    /// True if panels are the outer loop and pixels the inner one.
    pub panels_outside: bool,
    /// Number of parts into which the panels of a group are divided; multiplied by the chunks of
    /// the tiling, the number of tasks.
    pub feature_chunks: i64,
}

impl DensePlan {
    /// Number of summands of an output from which on its sum is computed in parts.
    pub const MANY_SUMMANDS: i64 = 8192;

    /// Number of full groups of `tile.vectors` vectors.
    pub fn whole_panels(&self, dims: &ConvolutionDims) -> i64 {
        dims.outputs / self.tile.columns()
    }

    /// Bytes of the next panels to prefetch per summand of a tile with this many pixels. All tiles
    /// together prefetch the next panels while the current ones, in the second-level cache, are in
    /// use. `None` if the panels stay in the cache, or if they are read so rarely that memory
    /// bandwidth limits them anyway.
    pub fn ahead(&self, dims: &ConvolutionDims, pixels: u32) -> Option<i64> {
        let columns = self.tile.columns();
        let is_apart = self.panels_outside
            && self.kernel_packing == Packing::Constant
            && columns % self.panels.width == 0
            && self.whole_panels(dims) > 1;
        let all = self.tiling.taps_of_pixels.saturating_mul(self.inputs).max(1);
        let rows = self.panels.rows.saturating_add(self.panels.header);
        let panels = columns.saturating_mul(rows).saturating_mul(self.panels.element_bytes);
        let bytes = panels.saturating_mul(i64::from(pixels)) / all;
        (is_apart && (1..=CACHE_LINE).contains(&bytes)).then_some(bytes)
    }

    /// Number of tasks of the kernel.
    pub fn tasks(&self) -> i64 {
        self.tiling.chunks * self.feature_chunks
    }

    /// The candidate that this plan implements.
    pub(crate) fn candidate(&self) -> Candidate {
        let Tile { vectors, .. } = self.tile;
        Candidate::Dense { pixels: self.most_pixels, vectors, panels_outside: self.panels_outside }
    }
}

/// Parts of the output.
#[derive(Clone, Copy, Default)]
pub(super) struct Parts<'b> {
    /// The bands that are computed, if not all lines at once.
    pub(super) bands: Option<&'b [Lines]>,
    /// True if pixels may be computed twice.
    pub(super) overlaps: bool,
}

/// Chooses tiles and loops; `None` if the shape is too irregular. `kernel` is the type of a
/// constant kernel, which groups require.
pub(super) fn choose(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    kernel: Option<PrimitiveType>,
    grouping: Option<Grouping>,
    parts: Parts<'_>,
    candidate: Option<Candidate>,
    target: &Target,
) -> Option<DensePlan> {
    let sharing = Sharing::All { overlaps: parts.overlaps };
    let size = accumulator.byte_size();
    let is_whole = grouping.is_none_or(|grouping| grouping.tail == 0);
    let dims = &in_groups(dims, grouping);
    let summands = dims.taps().checked_mul(dims.inputs).filter(|&n| n > 0)?;
    let (mut tile, most) = choose_tile(dims, size, grouping, target)?;
    let mut most = most;
    let is_in_tiles = grouping.is_some_and(Grouping::is_in_tiles);
    if let Some(Candidate::Dense { pixels, vectors, .. }) = candidate
        && (!is_in_tiles || tiles::fits(pixels, vectors.saturating_mul(tile.lanes)))
    {
        (tile.vectors, most) = (vectors, pixels);
    }
    let last = dims.spatial.last();
    let is_run = is_whole
        && dims.groups == 1
        && last.is_none_or(|d| d.window.window_dilation == 1 && d.window.base_dilation == 1);
    let element_bytes = grouping.map_or(size, |grouping| grouping.bytes() as usize);
    let stored = kernel.filter(|&kernel| is_kept(kernel, accumulator, target)).unwrap_or(accumulator);
    let kernel_bytes = kernel_bytes(dims, stored.byte_size(), grouping);
    let whole = dims.outputs / tile.columns();
    let panels_outside = match candidate {
        Some(Candidate::Dense { panels_outside, .. }) => panels_outside,
        _ => order(dims, whole, kernel_bytes, size, target).0,
    };
    let task_limit = Work { operations: dims.work_in_vectors().max(0) as u64, bytes: 0 }.tasks(target);
    let (tiling, feature_chunks) = if let Some(bands) = parts.bands {
        (bands::tiles(dims, most, bands, sharing)?, 1)
    } else {
        let (chunks, feature_chunks) = split(dims, task_limit, i64::from(most), whole, panels_outside);
        (tiling::tiles(dims, most, chunks, sharing)?, feature_chunks)
    };
    tile.rows = tiling.sizes.iter().map(|s| s.pixels).max().unwrap_or(1);
    let panels = PanelLayout::of_constant(summands, dims.outputs, element_bytes);
    let stored_bytes = if grouping.is_some() { element_bytes } else { stored.byte_size() };
    Some(DensePlan {
        panels: PanelLayout {
            header: grouping.map_or(0, |grouping| grouping.header(sums(dims))),
            element_bytes: stored_bytes as i64,
            ..panels
        },
        stored,
        inputs: dims.inputs,
        grouping,
        tile,
        most_pixels: most,
        tiling,
        kernel_packing: if kernel.is_some() { Packing::Constant } else { Packing::None },
        is_run,
        panels_outside,
        feature_chunks,
    })
}

/// The choice of the rules without groups and bands, for a kernel of the accumulator's type.
pub(super) fn of_rules(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    is_constant: bool,
    target: &Target,
) -> Option<DensePlan> {
    let parts = Parts { overlaps: true, ..Parts::default() };
    choose(dims, accumulator, is_constant.then_some(accumulator), None, parts, None, target)
}

/// The choice of the rules for a constant kernel whose products are in groups, without bands.
pub(super) fn of_groups(
    types: [PrimitiveType; 3],
    dims: &ConvolutionDims,
    target: &Target,
) -> Option<DensePlan> {
    let [_, kernel, accumulator] = types;
    let grouping = Some(grouping(FactorTypes::new(types, None, target), dims, target)?);
    let parts = Parts { overlaps: true, ..Parts::default() };
    choose(dims, accumulator, Some(kernel), grouping, parts, None, target)
}

/// True if panels keep the type of a constant kernel: if a vector of it is widened by one or two
/// instructions, few in comparison with the products of a tile's pixels.
fn is_kept(kernel: PrimitiveType, accumulator: PrimitiveType, target: &Target) -> bool {
    accumulator == PrimitiveType::F32
        && match kernel {
            PrimitiveType::Bf16 => true,
            PrimitiveType::F16 => target.has_f16_conversion,
            _ => false,
        }
}

/// Number of sums of each column that the header of a panel has: one for each tap, because outputs
/// whose windows contain padding have some of the taps, or one for all taps.
fn sums(dims: &ConvolutionDims) -> i64 {
    if dims.has_all_taps() { 1 } else { dims.taps() }
}

/// True if panels are the outer loop, so that each panel of the kernel is read once from beyond the
/// second-level cache, while the previous one is in use. This pays off if the kernel is large, or
/// much larger than the input, which is then read for each panel. A large result, however, would be
/// written in stripes.
///
/// Also returns the reason.
fn order(
    dims: &ConvolutionDims,
    panels: i64,
    kernel_bytes: u64,
    size: usize,
    target: &Target,
) -> (bool, &'static str) {
    const MANY_PANELS: i64 = 4;
    const LARGER: u64 = 4;
    let bytes = |features: i64, pixels: i64| {
        let elements = dims.groups.saturating_mul(features).saturating_mul(pixels).saturating_mul(dims.batch);
        (elements.max(0) as u64).saturating_mul(size as u64)
    };
    let pixels = dims.spatial.iter().fold(1i64, |pixels, d| pixels.saturating_mul(d.input));
    let (input, result) = (bytes(dims.inputs, pixels), bytes(dims.outputs, dims.pixels()));
    let is_larger = kernel_bytes / LARGER >= input && result <= target.l2_bytes / 4;
    if panels <= 1 {
        (false, "there is one panel")
    } else if kernel_bytes > target.l2_bytes / 2 {
        (true, "the kernel exceeds half of the second-level cache")
    } else if panels >= MANY_PANELS && is_larger {
        (true, "the kernel is much larger than the input, and the result is small")
    } else {
        (false, "the kernel stays in the second-level cache")
    }
}

/// Reason for the order of the loops of a plan that the rules chose.
pub(super) fn order_reason(
    plan: &DensePlan,
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    target: &Target,
) -> &'static str {
    let dims = in_groups(dims, plan.grouping);
    let size = accumulator.byte_size();
    order(&dims, plan.whole_panels(&dims), kernel_bytes(&dims, size, plan.grouping), size, target).1
}

/// Bytes of the kernel of a group, if `dims` are those in groups of summands.
fn kernel_bytes(dims: &ConvolutionDims, size: usize, grouping: Option<Grouping>) -> u64 {
    let element = grouping.map_or(size as u64, |grouping| grouping.bytes().unsigned_abs());
    let summands = dims.taps().saturating_mul(dims.inputs).max(0) as u64;
    summands.saturating_mul(dims.outputs as u64).saturating_mul(element)
}

/// The same convolution with groups of summands in place of input features. If each pixel ends in a
/// part of a group, but the taps of a line are neighbors in memory and none is padding, the line is
/// one tap with the features of all.
pub(super) fn in_groups(dims: &ConvolutionDims, grouping: Option<Grouping>) -> ConvolutionDims {
    let mut dims = dims.clone();
    if let Some(grouping) = grouping {
        let run = run(&dims, grouping.summands());
        if let Some(last) = dims.spatial.last_mut().filter(|_| run != dims.inputs) {
            last.window.size = 1;
        }
        dims.inputs = grouping.groups(run);
    }
    dims
}

/// Groups of products of an input and a constant kernel, if the target sums them.
pub(super) fn grouping(types: FactorTypes, dims: &ConvolutionDims, target: &Target) -> Option<Grouping> {
    let in_lanes = grouping_in_lanes(types, dims, target);
    let in_tiles = grouping_in_tiles(types, dims, target);
    let cycles = |grouping: Grouping| {
        let dims = &in_groups(dims, Some(grouping));
        let vectors = vectors(dims, types.sums.byte_size(), Some(grouping), target);
        Some(cost::ranked(dims, vectors, target)?.first()?.0)
    };
    let are_faster = |in_tiles: &Grouping| match (cycles(*in_tiles), in_lanes.and_then(cycles)) {
        (Some(in_tiles), Some(in_lanes)) => tiles::are_faster(in_tiles, in_lanes),
        (in_tiles, _) => in_tiles.is_some(),
    };
    in_tiles.filter(are_faster).or(in_lanes)
}

/// Groups whose sums are in tile registers, if the target has them and the layout allows it. A
/// single sum of very many `bf16` would be inexact.
fn grouping_in_tiles(types: FactorTypes, dims: &ConvolutionDims, target: &Target) -> Option<Grouping> {
    let of = |run: i64| Grouping::in_tiles(types, run, dims.outputs, target);
    let grouping = of(run(dims, of(GROUP_BYTES)?.summands()))?;
    let dims = in_groups(dims, Some(grouping));
    let is_exact = types.sums.is_integer();
    let summands = dims.taps().saturating_mul(dims.inputs);
    (is_exact || summands < DensePlan::MANY_SUMMANDS).then_some(grouping)
}

/// Groups whose sums are in vector registers.
fn grouping_in_lanes(types: FactorTypes, dims: &ConvolutionDims, target: &Target) -> Option<Grouping> {
    let pixels = dims.batch.saturating_mul(dims.pixels());
    let of = |run: i64| Grouping::of(types, run, [pixels, dims.outputs], target);
    // Of a longer run, groups are not shorter.
    let summands =
        of(dims.inputs.max(GROUP_BYTES)).or_else(|| of(dims.inputs.max(4 * GROUP_BYTES)))?.summands();
    of(run(dims, summands))
}

/// Number of summands that are neighbors in memory and that all outputs have, for groups of
/// `summands`.
pub(super) fn run(dims: &ConvolutionDims, summands: i64) -> i64 {
    let Some(last) = dims.spatial.last() else { return dims.inputs };
    let window = last.window;
    let is_inside = window.padding_low == 0
        && window.base_dilation == 1
        && window.window_dilation == 1
        && (last.output - 1).saturating_mul(window.stride).saturating_add(window.size) <= last.input;
    let joins = dims.groups == 1 && dims.inputs % summands != 0 && is_inside;
    if joins { dims.inputs.saturating_mul(window.size) } else { dims.inputs }
}

/// Divides features into vectors.
pub(super) fn vectors(
    dims: &ConvolutionDims,
    size: usize,
    grouping: Option<Grouping>,
    target: &Target,
) -> cost::Vectors {
    let groups = grouping.map(|_| target.for_groups());
    let target = groups.as_ref().unwrap_or(target);
    let lanes = target.lanes(size).min(tile::panel(dims.outputs, size) as u32);
    let element_bytes = grouping.map_or(size, |grouping| grouping.bytes() as usize);
    cost::Vectors { lanes, panel: tile::panel(dims.outputs, element_bytes) as u32, element_bytes, grouping }
}

/// The vectors of features and the upper bound of the pixels of a tile.
fn choose_tile(
    dims: &ConvolutionDims,
    size: usize,
    grouping: Option<Grouping>,
    target: &Target,
) -> Option<(Tile, u32)> {
    let vectors = vectors(dims, size, grouping, target);
    let choice = cost::choose(dims, vectors, target)?;
    let tile = Tile { rows: choice.pixels, vectors: choice.vectors, lanes: vectors.lanes, k_split: 1 };
    Some((tile, choice.pixels))
}

/// Numbers of parts into which pixels and panels are divided. Tasks that share a large kernel read
/// it once together. Otherwise pixels are divided first, into parts that still fill tiles along
/// every border.
pub(super) fn split(
    dims: &ConvolutionDims,
    task_limit: i64,
    most: i64,
    panels: i64,
    panels_outside: bool,
) -> (i64, i64) {
    let (rows, row) = match &dims.spatial[..] {
        [] => (dims.batch, 1),
        [only] if dims.batch == 1 => (only.output, 1),
        [outer @ .., last] => (outer.iter().fold(dims.batch, |n, d| n.saturating_mul(d.output)), last.output),
    };
    let tiles_of_row = row / (2 * most).max(1);
    let parts = match dims.as_one_row() {
        Some(row) => row.pixels() / (2 * most).max(1),
        None if tiling::runs_along_images(dims, u32::try_from(most).unwrap_or(u32::MAX)) => {
            dims.pixels().saturating_mul((dims.batch + most - 1) / most.max(1))
        }
        // A few long lines, such as sound, are divided themselves.
        None if rows < most.min(8) && tiles_of_row > 1 => rows.saturating_mul(tiles_of_row),
        None => rows / most.min(8),
    };
    let parts = parts.max(1);
    if panels_outside {
        // Tasks that share panels are consecutive, so that a worker finds them in its cache.
        const ENOUGH: i64 = 16;
        let features = task_limit.min(panels).max(1);
        // An even number, so that two workers have equal shares.
        let chunks = task_limit.clamp(1, ENOUGH).unsigned_abs() / features.unsigned_abs();
        return ((chunks.next_power_of_two() as i64).clamp(1, parts), features);
    }
    let chunks = task_limit.min(parts);
    (chunks, (task_limit / chunks).clamp(1, panels.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contraction::convolution::dims::{OpenDimensions, SpatialDimension};
    use hlo::WindowDimension;

    fn same(batch: i64, pixels: i64, size: i64, stride: i64, inputs: i64, outputs: i64) -> ConvolutionDims {
        let low = (size - 1) / 2;
        let window = WindowDimension {
            stride,
            padding_low: low,
            padding_high: size - 1 - low,
            ..WindowDimension::of_size(size)
        };
        let spatial = SpatialDimension { input: pixels, output: (pixels - 1) / stride + 1, window };
        ConvolutionDims {
            batch,
            groups: 1,
            inputs,
            outputs,
            spatial: vec![spatial; 2],
            open: OpenDimensions::None,
        }
    }

    #[test]
    fn tiles_fill_the_registers() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let avx2 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
        let neon = Target::new("aarch64-linux-gnu", "", "").expect("a valid triple");
        let web = |features| Target::new("wasm32-unknown-unknown", "", features).expect("a valid triple");
        let (plain, relaxed) = (web("+simd128"), web("+simd128,+relaxed-simd"));
        let table = [
            // (target, (pixels, window, stride, features)), (pixels of a tile, vectors, lanes,
            // panels outside)
            (&avx512, (56, 3, 1, (64, 64)), (6, 4, 16, false)),
            (&avx512, (28, 3, 1, (128, 128)), (6, 4, 16, true)),
            (&avx512, (14, 3, 1, (256, 256)), (12, 2, 16, true)),
            (&avx512, (7, 3, 1, (512, 512)), (5, 2, 16, true)),
            (&avx512, (7, 1, 1, (960, 320)), (6, 4, 16, true)),
            (&avx512, (14, 1, 1, (576, 96)), (9, 3, 16, false)),
            (&avx512, (112, 1, 1, (32, 16)), (11, 1, 16, false)),
            (&avx512, (7, 1, 1, (1024, 64)), (6, 4, 16, false)),
            (&avx2, (56, 3, 1, (64, 64)), (6, 2, 8, false)),
            (&neon, (56, 3, 1, (64, 64)), (6, 4, 4, false)),
            (&plain, (7, 1, 1, (160, 960)), (4, 2, 4, true)),
            (&relaxed, (7, 1, 1, (160, 960)), (5, 2, 4, true)),
        ];
        for (target, (pixels, window, stride, features @ (inputs, outputs)), expected) in table {
            let dims = same(1, pixels, window, stride, inputs, outputs);
            let plan = of_rules(&dims, PrimitiveType::F32, true, target).expect("a regular shape");
            let tile = plan.tile;
            let tile_and_order = (tile.rows, tile.vectors, tile.lanes, plan.panels_outside);
            assert_eq!(
                tile_and_order, expected,
                "{pixels} {window}x{window} {features:?} for {}",
                target.cpu
            );
            assert!(tile.rows * tile.vectors + tile.vectors < target.vector_registers);
        }
    }

    #[test]
    fn lines_of_pixels_are_summed_in_tile_registers() {
        use PrimitiveType::{Bf16, F32, S8, S32};
        let amx = Target::new("x86_64-pc-linux", "sapphirerapids", "").expect("a valid triple");
        let table = [
            // (types, (pixels, window, stride, features)), pixels and vectors in tile registers
            ([S8, S8, S32], (56, 3, 1, (64, 64)), Some((27, 2))),
            ([S8, S8, S32], (28, 3, 2, (128, 128)), Some((13, 2))),
            ([S8, S8, S32], (14, 1, 1, (576, 96)), Some((28, 2))),
            ([S8, S8, S32], (7, 3, 1, (512, 512)), Some((5, 2))),
            ([Bf16, Bf16, F32], (56, 3, 1, (64, 64)), Some((27, 2))),
            // Parts of groups, a single group for each tap, and too few features for a register.
            ([S8, S8, S32], (112, 7, 2, (3, 64)), None),
            ([S8, S8, S32], (56, 1, 1, (4, 64)), None),
            ([S8, S8, S32], (56, 3, 1, (64, 8)), None),
        ];
        for (types, (pixels, window, stride, features @ (inputs, outputs)), expected) in table {
            let dims = same(1, pixels, window, stride, inputs, outputs);
            let plan = of_groups(types, &dims, &amx).expect("groups");
            let is_in_tiles = plan.grouping.is_some_and(Grouping::is_in_tiles);
            let tile = is_in_tiles.then_some((plan.tile.rows, plan.tile.vectors));
            assert_eq!(tile, expected, "{types:?} {pixels} {window}x{window} {features:?}");
        }
    }

    #[test]
    fn panels_that_exceed_the_cache_are_prefetched() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let ahead = |dims: ConvolutionDims| {
            let plan = of_rules(&dims, PrimitiveType::F32, true, &avx512).expect("a regular shape");
            plan.ahead(&dims, plan.tile.rows)
        };
        // Two lines per row of the panels, divided by the 361 taps of all pixels, for 5 pixels;
        // three lines, divided by 49, for 7.
        assert_eq!(ahead(same(1, 7, 3, 1, 512, 512)), Some(2 * 64 * 9 * 5 / 361));
        assert_eq!(ahead(same(1, 7, 1, 1, 2048, 512)), Some(3 * 64 * 7 / 49));
        // Kernels that stay in the cache, and those of a single pixel, which are streamed anyway.
        assert_eq!(ahead(same(1, 56, 3, 1, 64, 64)), None);
        assert_eq!(ahead(same(1, 1, 1, 1, 2048, 2048)), None);
    }

    #[test]
    fn large_kernels_are_shared_by_tasks_and_small_ones_read_by_each() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let chunks = |dims: ConvolutionDims| {
            let plan = of_rules(&dims, PrimitiveType::F32, true, &avx512).expect("a regular shape");
            (plan.tiling.chunks, plan.feature_chunks)
        };
        assert_eq!(chunks(same(1, 56, 3, 1, 64, 64)), (9, 1));
        assert_eq!(chunks(same(1, 7, 3, 1, 512, 512)), (1, 16));
        assert_eq!(chunks(same(1, 4, 3, 1, 4, 4)), (1, 1));
        assert_eq!(chunks(same(16, 7, 3, 1, 64, 64)), (18, 1));
        // Sound: one or two lines with one feature, whose products take the time of a vector each.
        // Short lines have few tiles.
        let sound = |batch: i64, pixels: i64| {
            let lines = same(batch, pixels, 9, 1, 1, 1);
            let line = SpatialDimension { input: 1, output: 1, window: WindowDimension::of_size(1) };
            ConvolutionDims { spatial: vec![line, lines.spatial[1]], ..lines }
        };
        assert_eq!(chunks(sound(1, 16000)), (64, 1));
        assert_eq!(chunks(sound(2, 4000)), (64, 1));
        assert_eq!(chunks(sound(2, 1000)), (18, 1));
        assert_eq!(chunks(sound(2, 200)), (1, 1));
    }
}
