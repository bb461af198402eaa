//! Convolutions whose groups have one input feature: vectors run along the groups.

use super::bands::{self, Lines};
use super::dims::ConvolutionDims;
use super::tiling::{self, Sharing, Tiling, three_dimensions};
use crate::candidate::Candidate;
use crate::contraction::grouping::{FactorTypes, Factors, GROUP_BYTES, Grouping, Sums};
use crate::contraction::panels::PanelLayout;
use crate::tasks::Work;
use shape::PrimitiveType;
use target::{Architecture, Target};

/// Tiles of output pixels by vectors of output features, each computed from its own input feature.
#[derive(Clone, Debug, PartialEq)]
pub struct DepthwisePlan {
    /// Elements per vector; a multiple of the features that share an input.
    pub lanes: u32,
    /// Vectors per tile. The last block of vectors may overlap the previous one.
    pub vectors: u32,
    /// Upper bound of the pixels per tile.
    pub most_pixels: u32,
    /// The tiles of the output.
    pub tiling: Tiling,
    /// True if blocks of features are the outer loop and pixels the inner one.
    pub blocks_outside: bool,
    /// Number of parts into which the blocks are divided; multiplied by the chunks of the tiling,
    /// the number of tasks.
    pub feature_chunks: i64,
    /// The packed kernel, if the taps of a column of the window are multiplied in fours.
    pub columns: Option<PackedColumns>,
}

/// A packed kernel of bytes. Each row has four taps of a column of the window for every feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedColumns {
    /// Groups of taps; the tail is that of a column.
    pub grouping: Grouping,
    /// One panel of all features. Its rows are, for each plane of the window, groups of lines times
    /// columns.
    pub panel: PanelLayout,
}

impl DepthwisePlan {
    /// Features per block.
    pub fn block(&self) -> i64 {
        i64::from(self.lanes) * i64::from(self.vectors)
    }

    /// Number of blocks that cover all features.
    pub fn blocks(&self, dims: &ConvolutionDims) -> i64 {
        (dims.groups * dims.outputs + self.block() - 1) / self.block()
    }

    /// Number of blocks that overlap no other. Tasks are divided at these. A last block that
    /// overlaps the previous one belongs to the same task, so that no two tasks write the same
    /// element.
    pub fn whole_blocks(&self, dims: &ConvolutionDims) -> i64 {
        dims.groups * dims.outputs / self.block()
    }

    /// Number of tasks of the kernel.
    pub fn tasks(&self) -> i64 {
        self.tiling.chunks * self.feature_chunks
    }

    /// The candidate that this plan implements.
    pub(crate) fn candidate(&self) -> Candidate {
        let Self { most_pixels: pixels, vectors, blocks_outside, .. } = *self;
        Candidate::Depthwise { pixels, vectors, blocks_outside }
    }
}

/// Chooses tiles and loops, of bands if given; `None` if the convolution is of another kind or too
/// irregular. Groups of taps require a constant kernel.
pub(super) fn choose(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    grouping: Option<Grouping>,
    bands: Option<&[Lines]>,
    candidate: Option<Candidate>,
    target: &Target,
) -> Option<DepthwisePlan> {
    let features = dims.groups.checked_mul(dims.outputs)?;
    if dims.inputs != 1 || dims.groups == 1 || features == 0 {
        return None;
    }
    let groups = grouping.map(|_| target.for_groups());
    let target = groups.as_ref().unwrap_or(target);
    let mut lanes = target.lanes(accumulator.byte_size());
    while i64::from(lanes) > features {
        lanes /= 2;
    }
    // Each vector has whole sets of features that share an input.
    if dims.outputs > i64::from(lanes) || i64::from(lanes) % dims.outputs != 0 {
        return None;
    }
    let mut vectors = vectors(features, lanes, target);
    let grouping = grouping.filter(|_| i64::from(lanes) >= FEWEST_LANES && dims.outputs < i64::from(lanes));
    let mut most = most_pixels(vectors, target);
    if let Some(grouping) = grouping {
        most = grouping.most_pixels(vectors, most, target);
    }
    if let Some(Candidate::Depthwise { pixels, vectors: chosen_vectors, .. }) = candidate {
        (most, vectors) = (pixels, chosen_vectors);
    }
    let block = i64::from(lanes) * i64::from(vectors);
    let task_limit = Work { operations: dims.work().max(0) as u64, bytes: 0 }.tasks(target);
    let (tiling, feature_chunks) = if let Some(bands) = bands {
        (bands::tiles(dims, most, bands, Sharing::Interior)?, 1)
    } else {
        let chunks = task_limit.min(parts_of_lines(dims));
        let feature_chunks = (task_limit / chunks).clamp(1, (features / block).max(1));
        (tiling::tiles(dims, most, chunks, Sharing::Interior)?, feature_chunks)
    };
    // The input lines that a line of output reads, with all their features.
    let lines = dims.spatial.iter().rev().nth(1).map_or(1, |d| d.window.size);
    let line = dims.spatial.last().map_or(1, |d| d.input).saturating_mul(dims.groups);
    let bytes = lines.saturating_mul(line).saturating_mul(accumulator.byte_size() as i64);
    let blocks_outside = match candidate {
        Some(Candidate::Depthwise { blocks_outside, .. }) => blocks_outside,
        _ => bytes as u64 > target.l1_bytes / 2,
    };
    let columns =
        grouping.and_then(|grouping| packed_columns(dims, grouping)).filter(|_| dims.has_all_taps());
    Some(DepthwisePlan { lanes, vectors, most_pixels: most, tiling, blocks_outside, feature_chunks, columns })
}

/// Upper bound of the lines and columns of a window whose taps are unrolled.
const MAX_UNROLLED: i64 = 8;

/// Lanes of the shortest vectors whose bytes are interleaved.
const FEWEST_LANES: i64 = 4;

/// Groups of bytes of a column of the window, if the target sums their products.
pub(super) fn grouping(types: FactorTypes, dims: &ConvolutionDims, target: &Target) -> Option<Grouping> {
    let grouping = Grouping::of(types, column(dims), [1, dims.groups], target);
    // Without an instruction that adds all products to one lane, single taps are as fast.
    grouping
        .filter(|grouping| matches!(grouping.factors, Factors::Bytes { .. }) && grouping.sums == Sums::Lanes)
}

/// Taps of a column of the window.
pub(super) fn column(dims: &ConvolutionDims) -> i64 {
    three_dimensions(dims).map_or(1, |spatial| spatial[1].window.size)
}

/// The layout of a kernel whose columns of taps are in groups; `None` if the window is too large.
fn packed_columns(dims: &ConvolutionDims, grouping: Grouping) -> Option<PackedColumns> {
    let [planes, lines, columns] = three_dimensions(dims)?.map(|d| d.window.size);
    let features = dims.groups * dims.outputs;
    let rows = planes.checked_mul(grouping.groups(lines))?.checked_mul(columns)?;
    let panel = PanelLayout {
        rows,
        columns: features,
        width: features,
        element_bytes: GROUP_BYTES,
        header: 1,
        block_rows: 0,
        scale_bytes: 0,
    };
    (lines <= MAX_UNROLLED && columns <= MAX_UNROLLED).then_some(PackedColumns { grouping, panel })
}

/// Number of parts into which the lines are divided: a power of two, so that two or four workers
/// have the same lines as in the convolutions before and after this one, and find them in their
/// caches. A part also reads a line or two of its neighbors, so it needs several lines of its own.
/// If the lines are too few to be halved, features are divided instead.
fn parts_of_lines(dims: &ConvolutionDims) -> i64 {
    const FEW: i64 = 3;
    const TOO_FEW: i64 = 8;
    let outer = dims.spatial.iter().rev().skip(1);
    let lines = outer.fold(dims.batch, |lines, d| lines.saturating_mul(d.output));
    match lines / FEW {
        _ if lines < TOO_FEW => 1,
        parts => 1 << parts.ilog2(),
    }
}

/// The number of vectors with which the last block overlaps least, and the largest of those. More
/// than two vectors are no faster and take several times as long to generate.
fn vectors(features: i64, lanes: u32, target: &Target) -> u32 {
    let most = if target.vector_registers >= 32 { 2 } else { 1 };
    let covered = |vectors: u32| {
        let block = i64::from(lanes) * i64::from(vectors);
        (features + block - 1) / block * block
    };
    let fits = |&vectors: &u32| i64::from(lanes) * i64::from(vectors) <= features;
    (1..=most).rev().filter(fits).min_by_key(|&vectors| covered(vectors)).unwrap_or(1)
}

/// Upper bound of the pixels of a tile whose accumulators fit the registers, with the weights of
/// three taps. If a multiply-add reads an operand from memory, inputs need no registers; otherwise
/// many of them are loaded early.
fn most_pixels(vectors: u32, target: &Target) -> u32 {
    let takes_memory = matches!(target.triple.architecture, Architecture::X86_64) && target.has_fma;
    match (vectors, target.vector_registers >= 32) {
        (1, true) => 8,
        (2, true) if takes_memory => 8,
        (1, false) if takes_memory => 8,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contraction::convolution::OpenDimensions;

    #[test]
    fn lines_are_divided_like_those_of_adjacent_convolutions() {
        let dims = |batch, lines| {
            let window =
                hlo::WindowDimension { padding_low: 1, padding_high: 1, ..hlo::WindowDimension::of_size(3) };
            let spatial =
                vec![
                    crate::contraction::convolution::SpatialDimension { input: lines, output: lines, window };
                    2
                ];
            ConvolutionDims { batch, groups: 576, inputs: 1, outputs: 1, spatial, open: OpenDimensions::None }
        };
        let target = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        for ((batch, lines), (chunks, features)) in
            [((1, 7), (1, 15)), ((1, 14), (4, 15)), ((1, 28), (8, 8)), ((1, 112), (32, 2)), ((4, 7), (8, 7))]
        {
            let dims = dims(batch, lines);
            let plan = choose(&dims, PrimitiveType::F32, None, None, None, &target).expect("a plan");
            assert_eq!((plan.tiling.chunks, plan.feature_chunks), (chunks, features), "{batch} {lines}");
        }
    }

    #[test]
    fn blocks_cover_the_features_with_little_overlap() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let avx2 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
        let table = [
            (&avx512, 32, (2, 32)),
            (&avx512, 144, (1, 144)),
            (&avx512, 576, (2, 576)),
            (&avx512, 24, (1, 32)),
            (&avx512, 64, (2, 64)),
            (&avx512, 160, (2, 160)),
            (&avx2, 144, (1, 144)),
        ];
        for (target, features, (expected, covered)) in table {
            let lanes = target.lanes(4);
            let vectors = vectors(features, lanes, target);
            let block = i64::from(vectors * lanes);
            assert_eq!((vectors, (features + block - 1) / block * block), (expected, covered), "{features}");
        }
    }

    #[test]
    fn tiles_leave_registers_for_the_inputs() {
        let table = [
            (("x86_64-pc-linux", "x86-64-v4"), [8, 8]),
            (("x86_64-pc-linux", "x86-64-v3"), [8, 4]),
            (("x86_64-pc-linux", "x86-64"), [4, 4]),
            (("aarch64-unknown-linux-gnu", ""), [8, 4]),
            (("armv7-unknown-linux-gnueabihf", ""), [4, 4]),
        ];
        for ((triple, cpu), pixels) in table {
            let target = Target::new(triple, cpu, "").expect("a valid triple");
            assert_eq!([1, 2].map(|vectors| most_pixels(vectors, &target)), pixels, "{triple} {cpu}");
        }
    }
}
