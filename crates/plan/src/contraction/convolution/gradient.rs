//! The gradient of a convolution with respect to its kernel: products of input pixels with pixels
//! of the result's gradient, summed over images and pixels.
//!
//! Input and gradient keep their layout, `[image, spatial.., features]`. For each pair of pixels,
//! adjacent input features times a vector of output features are added to sums in registers. The
//! sums of a block of pixels that fits the caches are added to the task's part of the result, in
//! scratch. A block covers all rows `[tap, input feature]` of the result in turn, so that each
//! array is read once per task.

use super::cost;
use super::dims::{ConvolutionDims, SpatialDimension};
use super::tiling::three_dimensions;
use crate::candidate::Candidate;
use crate::contraction::tile::{self, Tile};
use crate::tasks::Work;
use shape::PrimitiveType;
use target::Target;

/// Rows of the result by vectors of output features, summed over pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct GradientPlan {
    /// Rows of most tiles, and vectors of features.
    pub tile: Tile,
    /// Number of neighboring taps of the last dimension whose rows share one tile.
    pub taps_at_once: i64,
    /// The sums, by descending number of rows per tile.
    pub sizes: Vec<GradientSize>,
    /// Task `i` computes the rows from `rows[i]` up to but excluding `rows[i + 1]`.
    pub rows: Vec<i64>,
    /// Images per block.
    pub images: i64,
    /// Lines per block.
    pub lines: i64,
}

/// The sums whose tiles have the same number of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GradientSize {
    /// Rows per tile.
    pub rows: u32,
    /// The sums, task by task.
    pub strips: Vec<Strip>,
    /// Task `i` has the strips from `starts[i]` up to but excluding `starts[i + 1]`.
    pub starts: Vec<usize>,
}

/// Consecutive tiles of rows, and the pixels over which they sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strip {
    /// Position of the first row's input elements for the first pixel, in elements of an image.
    pub input: i64,
    /// The first pixel of the gradient, in pixels of an image.
    pub gradient: i64,
    /// The gradient line of that pixel: its position in the second of three spatial dimensions.
    pub line: i64,
    /// Pixels of the gradient along each spatial dimension.
    pub counts: [i64; 3],
    /// The first row.
    pub row: i64,
    /// Number of tiles.
    pub tiles: i64,
}

impl Strip {
    /// Number of fields.
    pub const FIELDS: usize = 8;

    /// All fields: input, gradient, line, counts, row, tiles.
    pub fn fields(&self) -> [i64; Self::FIELDS] {
        let [planes, lines, columns] = self.counts;
        [self.input, self.gradient, self.line, planes, lines, columns, self.row, self.tiles]
    }
}

impl GradientSize {
    /// The minimum and maximum of a field.
    pub fn range(&self, field: usize) -> (i64, i64) {
        let values = || self.strips.iter().map(|strip| strip.fields()[field]);
        (values().min().unwrap_or(0), values().max().unwrap_or(0))
    }
}

impl GradientPlan {
    /// Number of tasks of the kernel.
    pub fn tasks(&self) -> i64 {
        self.rows.len() as i64 - 1
    }

    /// The candidate that this plan implements.
    pub(crate) fn candidate(&self) -> Candidate {
        let Tile { rows, vectors, .. } = self.tile;
        Candidate::Gradient { rows, vectors, taps: self.taps_at_once as u32 }
    }

    /// Distance of two rows of the scratch, in elements.
    pub fn scratch_row(&self, dims: &ConvolutionDims) -> i64 {
        let lanes = i64::from(self.tile.lanes);
        (dims.outputs + lanes - 1) / lanes * lanes
    }

    /// Upper bound of the rows per task.
    pub fn most_rows(&self) -> i64 {
        self.rows.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// The lists as 64-bit numbers: the tasks' first rows, then for each size the fields of its
    /// strips and its starts.
    pub fn table(&self) -> Vec<u8> {
        let mut numbers = self.rows.clone();
        for size in &self.sizes {
            numbers.extend(size.strips.iter().flat_map(Strip::fields));
            numbers.extend(size.starts.iter().map(|&start| start as i64));
        }
        numbers.into_iter().flat_map(i64::to_le_bytes).collect()
    }

    /// Positions in the table of a size's strips and of its starts, in numbers.
    pub fn table_positions(&self, size: usize) -> (usize, usize) {
        let mut at = self.rows.len();
        for before in &self.sizes[..size] {
            at += before.strips.len() * Strip::FIELDS + before.starts.len();
        }
        (at, at + self.sizes[size].strips.len() * Strip::FIELDS)
    }
}

/// Taps that are summed together, and their position.
struct Group {
    /// The first tap's index, and the number of taps along the last dimension.
    tap: i64,
    taps: i64,
    /// The first pixel of the input and of the gradient.
    input: i64,
    gradient: i64,
    line: i64,
    counts: [i64; 3],
}

/// Minimum number of pixels whose sum justifies its addition to the scratch.
const ENOUGH_PIXELS: i64 = 40;

/// Maximum scratch of a task, if there are enough rows for more tasks.
const SCRATCH_BYTES: i64 = 1 << 20;

/// Chooses tiles, strips, and blocks of a kernel gradient; `None` if it has more than three spatial
/// dimensions.
pub(super) fn choose(
    dims: &ConvolutionDims,
    accumulator: PrimitiveType,
    candidate: Option<Candidate>,
    target: &Target,
) -> Option<GradientPlan> {
    let size = accumulator.byte_size();
    let spatial = three_dimensions(dims)?;
    let features = dims.batch;
    let panel = tile::panel(dims.outputs, size) as u32;
    let lanes = target.lanes(size).min(panel);
    let last = spatial[2];
    // Neighboring taps of few features are contiguous in the input.
    let is_run = last.window.stride == 1;
    let choice = match candidate {
        Some(Candidate::Gradient { rows, vectors, taps }) => {
            cost::GradientChoice { rows: i64::from(rows), vectors, taps: i64::from(taps) }
        }
        _ => {
            let outputs = dims.outputs;
            cost::GradientShape { features, outputs, taps: last.output, is_run }.choose(lanes, target)
        }
    };
    let cost::GradientChoice { rows, vectors, taps: taps_at_once } = choice;
    let mut units: Vec<(i64, i64, Vec<Group>)> = Vec::new();
    for plane in 0..spatial[0].output {
        for line in 0..spatial[1].output {
            let mut column = 0;
            while column < last.output {
                let taps = taps_at_once.min(last.output - column);
                let tap = (plane * spatial[1].output + line) * last.output + column;
                units.push((tap, taps, groups(&spatial, [plane, line, column], taps, tap)));
                column += taps;
            }
        }
    }
    let of_unit =
        |taps: i64| if taps_at_once > 1 { vec![(0, taps * features)] } else { tiles_of(features, rows) };
    let pieces: Vec<(usize, i64, i64)> = units
        .iter()
        .enumerate()
        .flat_map(|(unit, (_, taps, _))| {
            of_unit(*taps).into_iter().map(move |(first, rows)| (unit, first, rows))
        })
        .collect();
    let arrays = input_bytes(dims, &spatial, size).saturating_add(gradient_bytes(dims, size));
    let tasks = tasks(dims, pieces.len() as i64, arrays, size);
    let mut plan = GradientPlan {
        tile: Tile { rows: rows as u32, vectors, lanes, k_split: 1 },
        taps_at_once,
        sizes: Vec::new(),
        rows: vec![0],
        images: 1,
        lines: spatial[1].window.size.max(1),
    };
    (plan.images, plan.lines) = block(dims, &spatial, size, target);
    for task in 0..tasks {
        let part = pieces.len() as i64;
        let (begin, end) = ((part * task / tasks) as usize, (part * (task + 1) / tasks) as usize);
        for &(unit, first, rows) in &pieces[begin..end] {
            let (tap, _, groups) = &units[unit];
            for group in groups {
                let of_group = if taps_at_once > 1 { group.taps * features } else { rows };
                plan.add(
                    task as usize,
                    of_group as u32,
                    Strip {
                        input: group.input * features + first,
                        gradient: group.gradient,
                        line: group.line,
                        counts: group.counts,
                        row: group.tap * features + first,
                        tiles: 1,
                    },
                );
            }
            let next = if taps_at_once > 1 { tap * features + rows } else { tap * features + first + rows };
            if plan.rows.len() == task as usize + 1 {
                plan.rows.push(next);
            }
            plan.rows[task as usize + 1] = next;
        }
    }
    for size in &mut plan.sizes {
        size.starts.resize(tasks as usize + 1, size.strips.len());
    }
    plan.sizes.sort_by_key(|size| std::cmp::Reverse(size.rows));
    Some(plan)
}

impl GradientPlan {
    /// Adds a strip of tiles with this many rows. Tiles that continue the last strip are merged
    /// into it.
    fn add(&mut self, task: usize, rows: u32, strip: Strip) {
        let known = self.sizes.iter().position(|size| size.rows == rows);
        let at = known.unwrap_or_else(|| {
            self.sizes.push(GradientSize { rows, strips: Vec::new(), starts: vec![0] });
            self.sizes.len() - 1
        });
        let size = &mut self.sizes[at];
        size.starts.resize(task + 1, size.strips.len());
        let is_first = size.starts[task] == size.strips.len();
        if let Some(last) = size.strips.last_mut().filter(|_| !is_first) {
            let done = last.tiles * i64::from(rows);
            let follows = Strip { input: last.input + done, row: last.row + done, tiles: 1, ..*last };
            if follows == strip {
                last.tiles += 1;
                return;
            }
        }
        size.strips.push(strip);
    }
}

/// Divides the rows of a tap into tiles of at most two sizes: (first row, number of rows) of each.
fn tiles_of(features: i64, most: i64) -> Vec<(i64, i64)> {
    let mut first = 0;
    let mut tiles = Vec::new();
    for (rows, count) in super::area::even(features, most) {
        for _ in 0..count {
            tiles.push((first, rows));
            first += rows;
        }
    }
    tiles
}

/// Number of tasks into which the rows are divided. Each task reads both arrays, from memory if
/// they exceed a core's cache.
fn tasks(dims: &ConvolutionDims, pieces: i64, arrays: i64, size: usize) -> i64 {
    const CACHE: i64 = 1 << 20;
    let task_limit = Work { operations: dims.work().max(0) as u64, bytes: 0 }.tasks_of_processor();
    let products_per_byte = if arrays > CACHE { 8 } else { 1 };
    let worth = dims.work() / arrays.saturating_mul(products_per_byte).max(1);
    let result =
        dims.pixels().saturating_mul(dims.batch).saturating_mul(dims.outputs).saturating_mul(size as i64);
    let needed = (result / SCRATCH_BYTES).max(1);
    task_limit.min(worth.max(1)).max(needed).clamp(1, pieces.max(1))
}

fn input_bytes(dims: &ConvolutionDims, spatial: &[SpatialDimension; 3], size: usize) -> i64 {
    let pixels = spatial.iter().fold(dims.inputs, |n, d| n.saturating_mul(d.input));
    pixels.saturating_mul(dims.batch).saturating_mul(size as i64)
}

fn gradient_bytes(dims: &ConvolutionDims, size: usize) -> i64 {
    dims.taps().saturating_mul(dims.inputs).saturating_mul(dims.outputs).saturating_mul(size as i64)
}

/// Images and lines per block: as many pixels as fill three quarters of the first-level cache, or
/// of the second-level one if the former holds too few.
fn block(
    dims: &ConvolutionDims,
    spatial: &[SpatialDimension; 3],
    size: usize,
    target: &Target,
) -> (i64, i64) {
    let images = dims.inputs.max(1);
    let image = input_bytes(dims, spatial, size).saturating_add(gradient_bytes(dims, size)) / images;
    let lines = spatial[1].window.size.max(1);
    let pixels = dims.taps().max(1);
    let of_pixels = |bytes: u64| ((bytes / 4 * 3) as i64).saturating_mul(pixels) / image.max(1);
    let limit = match of_pixels(target.l1_bytes) {
        few if few < ENOUGH_PIXELS => of_pixels(target.l2_bytes).max(ENOUGH_PIXELS),
        enough => enough,
    };
    if limit >= pixels {
        return ((limit / pixels).min(images), lines);
    }
    let blocks = (pixels + limit - 1) / limit;
    (1, (lines + blocks - 1) / blocks)
}

/// The pixels that neighboring taps of the last dimension share, and those of single taps.
fn groups(spatial: &[SpatialDimension; 3], at: [i64; 3], taps: i64, first_tap: i64) -> Vec<Group> {
    let range = |d: usize, position: i64| -> (i64, i64) {
        let w = spatial[d].window;
        // Gradient pixel `t` meets input pixel `start + t * dilation`.
        let start = position * w.stride - w.padding_low;
        let low = -(start.div_euclid(w.window_dilation));
        let high = -((start - spatial[d].input).div_euclid(w.window_dilation));
        (low.clamp(0, w.size), high.clamp(0, w.size))
    };
    let outer = [range(0, at[0]), range(1, at[1])];
    let columns: Vec<(i64, i64)> = (0..taps).map(|tap| range(2, at[2] + tap)).collect();
    let shared = columns.iter().fold((0, i64::MAX), |a, c| (a.0.max(c.0), a.1.min(c.1)));
    let mut all = Vec::new();
    let mut add = |tap: i64, taps: i64, (low, high): (i64, i64)| {
        let ranges = [outer[0], outer[1], (low, high)];
        if ranges.iter().any(|r| r.0 >= r.1) {
            return;
        }
        let (mut input, mut gradient) = (0, 0);
        for d in 0..3 {
            let w = spatial[d].window;
            let position = if d == 2 { at[2] + tap } else { at[d] };
            let pixel = position * w.stride - w.padding_low + ranges[d].0 * w.window_dilation;
            input = input * spatial[d].input + pixel;
            gradient = gradient * w.size + ranges[d].0;
        }
        let counts = ranges.map(|r| r.1 - r.0);
        all.push(Group { tap: first_tap + tap, taps, input, gradient, line: ranges[1].0, counts });
    };
    add(0, taps, shared);
    for (tap, &(low, high)) in columns.iter().enumerate().filter(|_| taps > 1) {
        if shared.0 >= shared.1 {
            add(tap as i64, 1, (low, high));
            continue;
        }
        add(tap as i64, 1, (low, shared.0));
        add(tap as i64, 1, (shared.1, high));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contraction::convolution::OpenDimensions;
    use hlo::WindowDimension;

    /// A kernel gradient with 3x3 taps, padded so that the number of pixels stays the same.
    fn three(images: i64, pixels: i64, inputs: i64, outputs: i64) -> ConvolutionDims {
        let window = WindowDimension { padding_low: 1, padding_high: 1, ..WindowDimension::of_size(pixels) };
        let spatial = SpatialDimension { input: pixels, output: 3, window };
        ConvolutionDims {
            batch: inputs,
            groups: 1,
            inputs: images,
            outputs,
            spatial: vec![spatial; 2],
            open: OpenDimensions::None,
        }
    }

    #[test]
    fn tiles_fill_the_registers_and_blocks_the_caches() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        let avx2 = Target::new("x86_64-pc-linux", "x86-64-v3", "").expect("a valid triple");
        let table = [
            // (target, (images, pixels, inputs, outputs)), (rows of the tiles, vectors, images and
            // lines per block, tasks)
            (&avx512, (32, 32, 3, 16), (vec![9, 3], 1, (1, 8), 1)),
            (&avx512, (32, 32, 16, 16), (vec![16], 1, (1, 6), 2)),
            (&avx512, (32, 16, 32, 32), (vec![11, 10], 2, (1, 6), 4)),
            (&avx512, (32, 8, 64, 64), (vec![13, 12], 2, (1, 4), 45)),
            (&avx2, (32, 16, 32, 32), (vec![6, 5], 2, (1, 6), 4)),
        ];
        for (target, (images, pixels, inputs, outputs), expected) in table {
            let dims = three(images, pixels, inputs, outputs);
            let plan = choose(&dims, PrimitiveType::F32, None, target).expect("three dimensions at most");
            let rows: Vec<u32> = plan.sizes.iter().map(|s| s.rows).collect();
            let actual = (rows, plan.tile.vectors, (plan.images, plan.lines), plan.tasks());
            assert_eq!(actual, expected, "{images}x{pixels}x{inputs} to {outputs} for {}", target.cpu);
        }
    }

    /// Every product of a tap occurs once, in the task that has its row.
    #[test]
    fn strips_hold_each_product_once() {
        let avx512 = Target::new("x86_64-pc-linux", "x86-64-v4", "").expect("a valid triple");
        for (pixels, inputs, outputs) in [(5, 1, 4), (9, 3, 16), (6, 40, 24), (32, 16, 16)] {
            let dims = three(2, pixels, inputs, outputs);
            let plan = choose(&dims, PrimitiveType::F32, None, &avx512).expect("three dimensions at most");
            let mut products = std::collections::BTreeMap::new();
            for size in &plan.sizes {
                for (task, range) in size.starts.windows(2).enumerate() {
                    for strip in &size.strips[range[0]..range[1]] {
                        let rows = i64::from(size.rows) * strip.tiles;
                        assert!(plan.rows[task] <= strip.row && strip.row + rows <= plan.rows[task + 1]);
                        for (row, line, column) in (0..rows)
                            .flat_map(|r| (0..strip.counts[1]).map(move |l| (r, l)))
                            .flat_map(|(r, l)| (0..strip.counts[2]).map(move |c| (r, l, c)))
                        {
                            let input = strip.input + (line * pixels + column) * inputs + row;
                            let gradient = strip.gradient + line * pixels + column;
                            assert_eq!(strip.line + line, gradient / pixels);
                            *products.entry((strip.row + row, input, gradient)).or_insert(0) += 1;
                        }
                    }
                }
            }
            let mut expected = std::collections::BTreeMap::new();
            for (tap, y, x) in (0..9)
                .flat_map(|t| (0..pixels).map(move |y| (t, y)))
                .flat_map(|(t, y)| (0..pixels).map(move |x| (t, y, x)))
            {
                let (iy, ix) = (y + tap / 3 - 1, x + tap % 3 - 1);
                if (0..pixels).contains(&iy) && (0..pixels).contains(&ix) {
                    for feature in 0..inputs {
                        let input = (iy * pixels + ix) * inputs + feature;
                        expected.insert((tap * inputs + feature, input, y * pixels + x), 1);
                    }
                }
            }
            assert_eq!(products, expected, "{pixels} pixels, {inputs} features");
        }
    }
}
