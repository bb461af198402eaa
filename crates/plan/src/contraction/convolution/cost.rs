//! Which tile of pixels and vectors takes a convolution the least time, by a model of a core's ports.

use super::area::{Area, even};
use super::dims::ConvolutionDims;
use super::tiling;
use target::{Architecture, Target};

/// A tile: so many pixels at most, times so many vectors of output features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) pixels: u32,
    pub(super) vectors: u32,
}

/// What the model knows of a convolution.
struct Model<'a> {
    areas: &'a [Area],
    /// Input features of a group.
    inputs: i64,
    /// Vectors that the output features of a group fill.
    needed: u32,
    /// Bytes of a vector.
    vector_bytes: i64,
    /// Summands of an output.
    summands: i64,
    /// Bytes from pixel to pixel of the input.
    pixel_bytes: i64,
    /// Bytes of the caches of a core.
    l1_bytes: i64,
    l2_bytes: i64,
}

/// Vectors of a tile, at most: more streams of panels than this outrun the prefetchers.
const MOST_VECTORS: u32 = 6;

/// So many independent sums keep two multiply-add units with a latency of four busy.
pub(super) const ENOUGH_SUMS: u32 = 8;

/// How much longer a tile takes whose pixels push one another out of the first-level cache.
const MISSES: f64 = 1.5;

/// Pixels that a tile of so many vectors can have: each sum has a register, each vector of the kernel too, and what is
/// multiplied with these. Of one vector, the pixels may be multiplied from memory.
pub(super) fn most_pixels(vectors: u32, target: &Target) -> u32 {
    // Without multiply-add, products take registers of their own; single numbers are loaded early, and so is, a little, what no
    // multiply-add takes from memory.
    let is_x86 = matches!(target.triple.architecture, Architecture::X86_64);
    let others = if !target.has_fma || target.vector_bytes == 4 { 4 } else { 2 * u32::from(!is_x86) };
    let registers = target.vector_registers.saturating_sub(others);
    match vectors {
        1 => registers.saturating_sub(4).min(24),
        _ => registers.saturating_sub(vectors + 1) / vectors,
    }
    .max(1)
}

/// The cut of features into vectors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors {
    /// The elements of a vector.
    pub(super) lanes: u32,
    /// The elements that are side by side in a packed kernel.
    pub(super) panel: u32,
    pub(super) element_bytes: usize,
}

/// The tile of the least time.
pub(super) fn choose(dims: &ConvolutionDims, vectors: Vectors, target: &Target) -> Option<Choice> {
    Some(ranked(dims, vectors, target)?.first()?.1)
}

/// All tiles that the registers hold, those of the least time first, with that time.
pub(super) fn ranked(
    dims: &ConvolutionDims,
    vectors: Vectors,
    target: &Target,
) -> Option<Vec<(f64, Choice)>> {
    let Vectors { lanes, panel, element_bytes } = vectors;
    let areas = tiling::areas(dims)?;
    let needed = dims.outputs.max(1).saturating_add(i64::from(lanes) - 1) / i64::from(lanes);
    let model = Model {
        areas: &areas,
        inputs: dims.inputs,
        needed: u32::try_from(needed).unwrap_or(u32::MAX),
        vector_bytes: i64::from(lanes) * element_bytes as i64,
        summands: dims.taps().saturating_mul(dims.inputs),
        pixel_bytes: dims.groups.saturating_mul(dims.inputs).saturating_mul(element_bytes as i64),
        l1_bytes: i64::try_from(target.l1_bytes).unwrap_or(i64::MAX),
        l2_bytes: i64::try_from(target.l2_bytes).unwrap_or(i64::MAX),
    };
    let of_panel = (panel / lanes).max(1);
    let mut all = Vec::new();
    for vectors in 1..=MOST_VECTORS.min(model.needed.next_multiple_of(of_panel)) {
        // A tile covers whole panels, or a panel whole tiles.
        if vectors % of_panel != 0 && of_panel % vectors != 0 {
            continue;
        }
        for pixels in 1..=most_pixels(vectors, target) {
            let choice = Choice { pixels, vectors };
            all.push((model.cost(choice), choice));
        }
    }
    // Of equal ones the smallest stays in front.
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(all)
}

/// How many pixels so many bytes apart stay in a first-level cache of eight ways: those at multiples of a page share a set.
fn pixels_in_cache(distance: i64) -> u32 {
    const PAGE: i64 = 4096;
    const WAYS: u32 = 8;
    WAYS << ((PAGE.trailing_zeros()).saturating_sub(distance.max(1).trailing_zeros())).min(8)
}

/// The cycles that a summand of a tile takes where nothing is waited for: two loads and two products are begun in each, and
/// six instructions.
fn step(pixels: u32, vectors: u32) -> f64 {
    let (sums, loads) = (f64::from(pixels * vectors), f64::from(pixels + vectors));
    (sums / 2.0).max(loads / 2.0).max(issued(pixels, vectors) / 6.0)
}

/// The instructions of a summand of a tile: products with a single vector are taken from memory.
fn issued(pixels: u32, vectors: u32) -> f64 {
    f64::from(pixels * vectors + vectors + 3 + if vectors > 1 { pixels } else { 0 })
}

/// The tile of a kernel's gradient.
#[derive(Clone, Copy, Debug)]
pub(super) struct GradientChoice {
    /// Rows at most (input features).
    pub(super) rows: i64,
    /// Vectors of output features.
    pub(super) vectors: u32,
    /// The taps of the last dimension that have their rows in one tile.
    pub(super) taps: i64,
}

/// The extents of a kernel's gradient that its tile depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct GradientShape {
    /// Input features.
    pub(super) features: i64,
    /// Output features.
    pub(super) outputs: i64,
    /// Taps of the last dimension.
    pub(super) taps: i64,
    /// True if the input features of neighboring taps are one run.
    pub(super) is_run: bool,
}

impl GradientShape {
    /// The tile of the least time.
    pub(super) fn choose(self, lanes: u32, target: &Target) -> GradientChoice {
        let least = GradientChoice { rows: 1, vectors: 1, taps: 1 };
        self.ranked(lanes, target).first().map_or(least, |best| best.1)
    }

    /// All tiles, those of the least time first, with that time.
    pub(super) fn ranked(self, lanes: u32, target: &Target) -> Vec<(f64, GradientChoice)> {
        let Self { features, outputs, taps, is_run } = self;
        let needed = (outputs.max(1) + i64::from(lanes) - 1) / i64::from(lanes);
        let mut all = Vec::new();
        let mut consider = |cost: f64, choice: GradientChoice| all.push((cost, choice));
        for vectors in 1..=needed.min(4) as u32 {
            let (whole, rest) = (needed / i64::from(vectors), (needed % i64::from(vectors)) as u32);
            // Sums wait for one another, and a little more than a full set of them hides that. Each tile reads its pixels anew.
            let latency = |rows: i64, vectors: u32| step(rows as u32, vectors).max(5.0) + 0.7;
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
    /// The cycles of a group, not counting what every choice takes.
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

    /// The cycles of a tile.
    fn tile(&self, pixels: u32, vectors: u32, taps: i64) -> f64 {
        let sums = f64::from(pixels * vectors);
        let split = (f64::from(ENOUGH_SUMS) / sums).floor().clamp(1.0, 4.0);
        // What leaves the first-level cache comes from the next one, at half a line a cycle.
        let panel = f64::from(vectors) * self.vector_bytes as f64;
        let bytes = panel * self.summands as f64;
        // The next panels are on their way while these are in use; so far as both do not fit, they push one another out.
        let crowded = (bytes / (self.l2_bytes as f64 * 0.4)).clamp(1.0, 2.0);
        let streamed = if bytes > self.l1_bytes as f64 / 2.0 { panel / 28.0 * crowded } else { 0.0 };
        let step = step(pixels, vectors).max(4.0 / split).max(streamed);
        let steps = (taps * self.inputs) as f64;
        // The first lines of each pixel are waited for, as far as instructions of the tile before are not out yet.
        let instructions = steps * issued(pixels, vectors);
        let lines = (self.pixel_bytes as f64 / 64.0).clamp(1.0, 2.0) * f64::from(pixels);
        let waited = 3.0 * lines * (1.0 - 400.0 / instructions.max(400.0));
        // The start of the loops, and the end: a sum has a cycle or two of work behind it.
        steps * step + waited + 24.0 + 1.5 * sums
    }
}
