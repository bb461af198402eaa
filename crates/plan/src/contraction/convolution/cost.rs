//! Chooses the tile of pixels and vectors with the shortest time by a model of a core's ports.

use super::area::{Area, even};
use super::dims::ConvolutionDims;
use super::tiling;
use crate::contraction::grouping::{Grouping, tiles};
use crate::contraction::tile::most_together;
use target::{Architecture, Target};

/// A tile: an upper bound of the pixels, and the vectors of output features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) pixels: u32,
    pub(super) vectors: u32,
}

/// Properties of a convolution that the model uses.
struct Model<'a> {
    areas: &'a [Area],
    /// Input features per group.
    inputs: i64,
    /// Vectors that the output features of a group fill.
    needed: u32,
    /// Bytes per vector of a kernel's row.
    vector_bytes: i64,
    /// Pixels that are multiplied at once. Half of them take the time of all.
    at_once: u32,
    /// Summands per output.
    summands: i64,
    /// Distance of input pixels, in bytes.
    pixel_bytes: i64,
    /// Lanes of a vector, if sums are in tile registers.
    tile_lanes: Option<u32>,
    /// Instructions of a product and its addition to a sum.
    of_product: u32,
    target: &'a Target,
    /// Bytes of a core's caches.
    l1_bytes: i64,
    l2_bytes: i64,
}

/// Upper bound of the vectors per tile; more streams of panels exceed the prefetchers.
const MOST_VECTORS: u32 = 6;

/// Number of independent sums that keeps two multiply-add units with a latency of four cycles busy.
pub(super) const ENOUGH_SUMS: u32 = 8;

/// Slowdown of a tile whose pixels evict one another from the first-level cache.
const MISSES: f64 = 1.5;

/// Upper bound of the pixels of a tile with this many vectors. Each sum has a register, and so do
/// each vector of the kernel and the values multiplied with them. With a single vector,
/// multiply-adds can read the pixels from memory.
pub(super) fn most_pixels(vectors: u32, target: &Target) -> u32 {
    // Without multiply-add, products take registers of their own. Scalars are loaded early, and to
    // a lesser extent so are operands that no multiply-add reads from memory.
    let is_x86 = matches!(target.triple.architecture, Architecture::X86_64);
    let others = if !target.has_fma || target.vector_bytes == 4 { 4 } else { 2 * u32::from(!is_x86) };
    let registers = target.vector_registers.saturating_sub(others);
    let registers = target.registers_in_order().unwrap_or(registers);
    match vectors {
        1 => registers.saturating_sub(4).min(24),
        _ => registers.saturating_sub(vectors + 1) / vectors,
    }
    .max(1)
}

/// Division of features into vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors {
    /// Elements per vector.
    pub(super) lanes: u32,
    /// Adjacent elements in a packed kernel.
    pub(super) panel: u32,
    pub(super) element_bytes: usize,
    /// Groups that take the place of single input features.
    pub(super) grouping: Option<Grouping>,
}

/// The fastest tile.
pub(super) fn choose(dims: &ConvolutionDims, vectors: Vectors, target: &Target) -> Option<Choice> {
    Some(ranked(dims, vectors, target)?.first()?.1)
}

/// All tiles that fit the registers with their times, fastest first.
pub(super) fn ranked(
    dims: &ConvolutionDims,
    vectors: Vectors,
    target: &Target,
) -> Option<Vec<(f64, Choice)>> {
    let Vectors { lanes, panel, element_bytes, grouping } = vectors;
    let areas = tiling::areas(dims)?;
    let needed = dims.outputs.max(1).saturating_add(i64::from(lanes) - 1) / i64::from(lanes);
    let model = Model {
        areas: &areas,
        inputs: dims.inputs,
        needed: u32::try_from(needed).unwrap_or(u32::MAX),
        vector_bytes: i64::from(lanes) * element_bytes as i64,
        at_once: grouping.map_or(1, |grouping| grouping.rows() as u32),
        summands: dims.taps().saturating_mul(dims.inputs),
        pixel_bytes: dims.groups.saturating_mul(dims.inputs).saturating_mul(element_bytes as i64),
        tile_lanes: grouping.filter(|grouping| grouping.is_in_tiles()).map(|_| lanes),
        of_product: of_product(target),
        target,
        l1_bytes: i64::try_from(target.l1_bytes).unwrap_or(i64::MAX),
        l2_bytes: i64::try_from(target.l2_bytes).unwrap_or(i64::MAX),
    };
    let panel_vectors = (panel / lanes).max(1);
    let mut all = Vec::new();
    for vectors in 1..=MOST_VECTORS.min(model.needed.next_multiple_of(panel_vectors)) {
        // A tile covers whole panels, or a panel whole tiles.
        if vectors % panel_vectors != 0 && panel_vectors % vectors != 0 {
            continue;
        }
        if model.tile_lanes.is_some() && !tiles::fits(1, vectors.saturating_mul(lanes)) {
            continue;
        }
        let most = most_pixels(vectors, target);
        let most = grouping.map_or(most, |grouping| grouping.most_pixels(vectors, most, target));
        for pixels in 1..=most {
            let choice = Choice { pixels, vectors };
            all.push((model.cost(choice), choice));
        }
    }
    // The sort is stable, so the smallest of equally fast tiles comes first.
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(all)
}

/// Number of pixels at this distance in bytes that stay in a first-level cache of eight ways: those
/// at multiples of a page share a set.
fn pixels_in_cache(distance: i64) -> u32 {
    const PAGE: i64 = 4096;
    const WAYS: u32 = 8;
    WAYS << ((PAGE.trailing_zeros()).saturating_sub(distance.max(1).trailing_zeros())).min(8)
}

/// Cycles per summand of a tile without stalls. A cycle issues two loads, two products, and six
/// instructions in total.
fn step(pixels: u32, vectors: u32, of_product: u32) -> f64 {
    let (sums, loads) = (f64::from(pixels * vectors), f64::from(pixels + vectors));
    (sums / 2.0).max(loads / 2.0).max(issued(pixels, vectors, of_product) / 6.0)
}

/// Instructions per summand of a tile; products with a single vector read memory directly.
fn issued(pixels: u32, vectors: u32, of_product: u32) -> f64 {
    f64::from(pixels * vectors * of_product + vectors + 3 + if vectors > 1 { pixels } else { 0 })
}

/// Instructions of a product and its addition to a sum. They do not decide between the tiles of
/// processors without multiply-add, but engines of WebAssembly add instructions of their own.
fn of_product(target: &Target) -> u32 {
    if target.registers_in_order().is_some() && !target.has_relaxed_simd() { 2 } else { 1 }
}

/// The tile of a kernel gradient.
#[derive(Clone, Copy, Debug)]
pub(super) struct GradientChoice {
    /// Upper bound of the rows (input features).
    pub(super) rows: i64,
    /// Vectors of output features.
    pub(super) vectors: u32,
    /// Number of taps of the last dimension whose rows share one tile.
    pub(super) taps: i64,
}

/// The extents of a kernel gradient on which its tile depends.
#[derive(Clone, Copy, Debug)]
pub(super) struct GradientShape {
    /// Input features.
    pub(super) features: i64,
    /// Output features.
    pub(super) outputs: i64,
    /// Taps of the last dimension.
    pub(super) taps: i64,
    /// True if the input features of neighboring taps are contiguous.
    pub(super) is_run: bool,
}

impl GradientShape {
    /// The fastest tile.
    pub(super) fn choose(self, lanes: u32, target: &Target) -> GradientChoice {
        let least = GradientChoice { rows: 1, vectors: 1, taps: 1 };
        self.ranked(lanes, target).first().map_or(least, |best| best.1)
    }

    /// All tiles with their times, fastest first.
    pub(super) fn ranked(self, lanes: u32, target: &Target) -> Vec<(f64, GradientChoice)> {
        let Self { features, outputs, taps, is_run } = self;
        let needed = (outputs.max(1) + i64::from(lanes) - 1) / i64::from(lanes);
        let mut all = Vec::new();
        let mut consider = |cost: f64, choice: GradientChoice| all.push((cost, choice));
        for vectors in 1..=needed.min(4) as u32 {
            let (whole, rest) = (needed / i64::from(vectors), (needed % i64::from(vectors)) as u32);
            // Sums wait for one another; slightly more than a full set of them hides that. Each
            // tile reads its pixels anew.
            let latency =
                |rows: i64, vectors: u32| step(rows as u32, vectors, of_product(target)).max(5.0) + 0.7;
            let of_rows = |rows: i64| {
                let rest = if rest > 0 { latency(rows, rest) } else { 0.0 };
                whole as f64 * latency(rows, vectors) + rest
            };
            let most = i64::from(most_pixels(vectors, target)).max(1);
            for rows in 1..=most.min(features.max(1)) {
                let tiles = even(features, rows).into_iter();
                let cost: f64 = tiles.map(|(rows, count)| of_rows(rows) * count as f64).sum();
                consider(cost, GradientChoice { rows, vectors, taps: 1 });
            }
            let groups = if is_run { taps.min(most / features.max(1)) } else { 1 };
            for group in 2..=groups {
                let rest = if taps % group > 0 { of_rows(taps % group * features) } else { 0.0 };
                let cost = (of_rows(group * features) * (taps / group) as f64 + rest) / taps as f64;
                consider(cost, GradientChoice { rows: group * features, vectors, taps: group });
            }
        }
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        all
    }
}

impl Model<'_> {
    /// Cycles per group, without the cost that all choices share.
    fn cost(&self, choice: Choice) -> f64 {
        let whole = self.needed / choice.vectors;
        let rest = self.needed % choice.vectors;
        let most = i64::from(choice.pixels);
        let mut cost = 0.0;
        for area in self.areas {
            let length = area.length(most);
            let lines = area.pixels() / length.max(1);
            let taps: i64 = area.taps.iter().product();
            let distance = area.step(most).saturating_mul(self.pixel_bytes);
            for (pixels, tiles) in even(length, most) {
                let slower = if pixels > i64::from(pixels_in_cache(distance)) { MISSES } else { 1.0 };
                let tile = |vectors: u32| self.tile(pixels as u32, vectors, taps) * slower;
                let mut line = f64::from(whole) * tile(choice.vectors);
                if rest > 0 {
                    line += tile(rest);
                }
                cost += line * (tiles as f64) * (lines as f64);
            }
        }
        cost
    }

    /// Upper bound of the sets of sums between which the summands of a tile alternate.
    fn most_sets(&self, pixels: u32, vectors: u32) -> f64 {
        let is_limited = self.target.registers_in_order().is_some();
        if is_limited { f64::from(most_together(pixels * vectors, vectors, self.target)) } else { 4.0 }
    }

    /// Cycles per tile.
    fn tile(&self, pixels: u32, vectors: u32, taps: i64) -> f64 {
        if let Some(lanes) = self.tile_lanes {
            let columns = i64::from(vectors) * i64::from(lanes);
            return tiles::cycles(i64::from(pixels), columns, self.inputs, taps);
        }
        let pixels = pixels.next_multiple_of(self.at_once);
        let sums = f64::from(pixels * vectors);
        let split = (f64::from(ENOUGH_SUMS) / sums).floor().clamp(1.0, self.most_sets(pixels, vectors));
        // Data beyond the first-level cache comes from the next level, at half a line per cycle.
        let panel = f64::from(vectors) * self.vector_bytes as f64;
        let bytes = panel * self.summands as f64;
        // The next panels are prefetched while these are in use. To the extent that both do not
        // fit, they evict one another.
        let crowded = (bytes / (self.l2_bytes as f64 * 0.4)).clamp(1.0, 2.0);
        let streamed = if bytes > self.l1_bytes as f64 / 2.0 { panel / 28.0 * crowded } else { 0.0 };
        let step = step(pixels, vectors, self.of_product).max(4.0 / split).max(streamed);
        let steps = (taps * self.inputs) as f64;
        // The first lines of each pixel stall the tile, except as far as instructions of the
        // previous tile are still in flight.
        let instructions = steps * issued(pixels, vectors, self.of_product);
        let lines = (self.pixel_bytes as f64 / 64.0).clamp(1.0, 2.0) * f64::from(pixels);
        let waited = 3.0 * lines * (1.0 - 400.0 / instructions.max(400.0));
        // Starting the loops, and one or two cycles of work for each finished sum.
        steps * step + waited + 24.0 + 1.5 * sums
    }
}
