//! Divides the output of a convolution into rectangles whose pixels have the same taps, and these
//! into tiles.
//!
//! Pixels are numbered `((image * planes + plane) * lines + line) * columns + column`, in the input
//! and in the output. Everything here is arithmetic on extents. A kernel walks lists of rectangles,
//! so that padding needs neither copies nor masks.

use super::area::{Area, best_size, cut, few, overlapping, size_of_line};
use super::dims::{ConvolutionDims, OpenDimensions, Segment, Span, SpatialDimension};
use super::rectangles::TileSize;
use hlo::WindowDimension;

/// The output of a convolution in tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiling {
    /// Tile sizes by descending number of pixels.
    pub sizes: Vec<TileSize>,
    /// Number of parts into which the pixels are divided.
    pub chunks: i64,
    /// Total number of taps of all pixels.
    pub taps_of_pixels: i64,
    /// Distance of consecutive taps in the row-major window, by dimension.
    pub tap_steps: [i64; 3],
    /// Distance of consecutive taps in input pixels, by dimension.
    pub tap_input_steps: [i64; 3],
    /// For each chunk the number of the output pixel at which memory begins, or nothing if it is 0.
    pub origins: Vec<i64>,
    /// For each chunk the numbers of its first and last output pixel, if a run may need fewer
    /// pixels.
    pub bounds: Vec<[i64; 2]>,
}

impl Tiling {
    /// Counts the taps of the pixels before each rectangle, in the order of execution, chunk by
    /// chunk.
    fn number(&mut self) {
        let mut before = 0i64;
        for chunk in 0..self.chunks as usize {
            for size in &mut self.sizes {
                for rectangle in &mut size.rectangles[size.starts[chunk]..size.starts[chunk + 1]] {
                    rectangle.before = before;
                    let pixels =
                        rectangle.counts.iter().product::<i64>() * rectangle.tiles * i64::from(size.pixels);
                    before += pixels * rectangle.taps.iter().product::<i64>();
                }
            }
        }
        self.taps_of_pixels = before;
    }

    /// True if a kernel needs the lists at run time, that is, unless each list is one rectangle.
    pub fn needs_table(&self) -> bool {
        self.chunks > 1 || self.sizes.iter().any(|size| size.rectangles.len() > 1)
    }

    /// The lists as 64-bit numbers: for each size the varying fields of its rectangles, then its
    /// starts. The origins and the bounds come last.
    pub fn table(&self) -> Vec<u8> {
        let mut numbers = Vec::new();
        for size in &self.sizes {
            let varying = size.varying();
            for rectangle in &size.rectangles {
                let fields = rectangle.fields();
                numbers.extend(varying.iter().map(|&field| fields[field]));
            }
            numbers.extend(size.starts.iter().map(|&start| start as i64));
        }
        numbers.extend(&self.origins);
        numbers.extend(self.bounds.iter().flatten());
        numbers.into_iter().flat_map(i64::to_le_bytes).collect()
    }

    /// Positions in the table of a size's rectangles and of its starts, in numbers.
    pub fn table_positions(&self, size: usize) -> (usize, usize) {
        let at = self.numbers_before(size);
        (at, at + self.sizes[size].rectangles.len() * self.sizes[size].varying().len())
    }

    /// Position in the table of the origins, in numbers.
    pub fn position_of_origins(&self) -> usize {
        self.numbers_before(self.sizes.len())
    }

    /// Position in the table of the bounds, in numbers.
    pub fn position_of_bounds(&self) -> usize {
        self.position_of_origins() + self.origins.len()
    }

    fn numbers_before(&self, size: usize) -> usize {
        let count = |size: &TileSize| size.rectangles.len() * size.varying().len() + size.starts.len();
        self.sizes[..size].iter().map(count).sum()
    }
}

/// Upper bound of the segments per dimension for which the lists are worthwhile.
pub(super) const MAX_SEGMENTS: usize = 256;
/// Upper bound of the rectangles for which the lists are worthwhile.
const MAX_RECTANGLES: usize = 4096;

/// Pads to three spatial dimensions: missing ones have one element and come first.
pub(super) fn three_dimensions(dims: &ConvolutionDims) -> Option<[SpatialDimension; 3]> {
    let none = SpatialDimension { input: 1, output: 1, window: WindowDimension::of_size(1) };
    let missing = 3usize.checked_sub(dims.spatial.len())?;
    let mut spatial = [none; 3];
    spatial[missing..].copy_from_slice(&dims.spatial);
    Some(spatial)
}

/// The rectangles that share the code of their tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sharing {
    /// All rectangles with the same number of pixels per tile. If `overlaps`, the last tile of a
    /// line may overlap the previous one, where that costs little, so that fewer sizes suffice.
    All { overlaps: bool },
    /// Rectangles with all taps of the last dimension whose tiles run along it, and separately all
    /// others. Tiles of each group have one size, or one pixel, so the last tile of a line may
    /// overlap the previous one.
    Interior,
}

/// Ranges of output images and of outputs of the three spatial dimensions.
pub(super) type OutputBox = [Span; 4];
/// The segments of each spatial dimension; `None` if the shape is too irregular.
fn segments_of(spatial: &[SpatialDimension; 3]) -> Option<Vec<Vec<Segment>>> {
    let segments = spatial.iter().map(|d| d.segments(MAX_SEGMENTS)).collect::<Option<Vec<_>>>()?;
    let rectangles = segments.iter().map(Vec::len).product::<usize>();
    (rectangles <= MAX_RECTANGLES).then_some(segments)
}

/// All areas of pixels with the same taps; `None` if the shape is too irregular.
pub(super) fn areas(dims: &ConvolutionDims) -> Option<Vec<Area>> {
    let row = dims.as_one_row();
    let dims = row.as_ref().unwrap_or(dims);
    let spatial = three_dimensions(dims)?;
    let segments = segments_of(&spatial)?;
    for extent in [|d: &SpatialDimension| d.input, |d: &SpatialDimension| d.output] {
        spatial.iter().try_fold(dims.batch, |n, d| n.checked_mul(extent(d)))?;
    }
    let outputs = spatial.map(|d| d.output);
    let all = [dims.batch, outputs[0], outputs[1], outputs[2]].map(|size| Span::new(0, size));
    let combinations = combinations(&segments, &all).into_iter();
    Some(combinations.map(|rows| Area::new(dims, &spatial, all[0], rows)).collect())
}

/// Tiles of up to `most` pixels in about `chunks` parts; `None` if the shape is too irregular.
pub(super) fn tiles(dims: &ConvolutionDims, most: u32, chunks: i64, sharing: Sharing) -> Option<Tiling> {
    let row = dims.as_one_row();
    let dims = row.as_ref().unwrap_or(dims);
    let spatial = three_dimensions(dims)?;
    let sizes = [dims.batch, spatial[0].output, spatial[1].output, spatial[2].output];
    let order = if runs_along_images(dims, most) { ALONG_IMAGES } else { ALONG_LINES };
    let row = sizes[order[3]];
    let rows = order[..3].iter().try_fold(1i64, |n, &d| n.checked_mul(sizes[d]))?;
    let tile = size_of_line(row, i64::from(most), sharing == Sharing::All { overlaps: true });
    let unit = unit(row, rows, chunks, order, tile);
    let counts = [sizes[order[0]], sizes[order[1]], sizes[order[2]], (row + unit - 1) / unit];
    let all = counts.iter().try_fold(1i64, |n, &count| n.checked_mul(count))?;
    let chunks = chunks.clamp(1, all.max(1));
    let part = |chunk: i64| {
        let (begin, end) = (all * chunk / chunks, all * (chunk + 1) / chunks);
        let within = |part: OutputBox| {
            let mut range = [Span::new(0, 1); 4];
            for (&dimension, part) in order.iter().zip(part) {
                range[dimension] = part;
            }
            let innermost = &mut range[order[3]];
            *innermost = Span::new(innermost.begin * unit, (innermost.end * unit).min(row));
            range
        };
        boxes(&counts, begin, end).into_iter().map(within).collect()
    };
    let parts: Vec<Vec<OutputBox>> = (0..chunks).map(part).collect();
    tiles_of(dims, most, &parts, sharing)
}

/// Tiles of up to `most` pixels for each part of the output; each part is a chunk.
pub(super) fn tiles_of(
    dims: &ConvolutionDims,
    most: u32,
    parts: &[Vec<OutputBox>],
    sharing: Sharing,
) -> Option<Tiling> {
    let spatial = three_dimensions(dims)?;
    let segments = segments_of(&spatial)?;
    let first = |d: usize| segments[d].first();
    let mut tiling = Tiling {
        sizes: Vec::new(),
        chunks: 0,
        taps_of_pixels: 0,
        tap_steps: [1; 3],
        tap_input_steps: [1; 3],
        origins: Vec::new(),
        bounds: Vec::new(),
    };
    let (mut taps, mut pixels, mut outputs) = (1i64, 1i64, 1i64);
    for d in (0..3).rev() {
        tiling.tap_steps[d] = taps * first(d).map_or(1, |s| s.tap_step);
        tiling.tap_input_steps[d] = pixels * first(d).map_or(1, |s| s.tap_input_step);
        taps = taps.checked_mul(spatial[d].window.size)?;
        pixels = pixels.checked_mul(spatial[d].input)?;
        outputs = outputs.checked_mul(spatial[d].output)?;
    }
    // An overflow is possible here only for an empty convolution, in which another dimension is 0.
    pixels.checked_mul(dims.batch)?;
    outputs.checked_mul(dims.batch)?;
    let (mut lists, mut rectangles) = (Vec::new(), 0);
    for part in parts {
        let mut list = Vec::new();
        for range in part {
            for rows in combinations(&segments, range) {
                list.push(Area::new(dims, &spatial, range[0], rows));
            }
        }
        rectangles += list.len();
        if rectangles > MAX_RECTANGLES {
            return None;
        }
        lists.push(list);
    }
    tiling.chunks = parts.len() as i64;
    if dims.open != OpenDimensions::None && parts.len() > 1 {
        tiling.bounds = parts.iter().map(|part| bounds(part, spatial.map(|d| d.output))).collect();
    }
    let most = i64::from(most);
    let last = spatial[2].window;
    let is_interior = |area: &Area| {
        area.taps[2] == last.size && area.loops[area.along(most)].1 == last.stride && last.base_dilation == 1
    };
    let pick = |interior: bool| -> Vec<Vec<Area>> {
        let is_selected = |area: &&Area| is_interior(area) == interior;
        lists.iter().map(|list| list.iter().filter(is_selected).cloned().collect()).collect()
    };
    match sharing {
        Sharing::All { overlaps: false } => tiling.sizes = cut(&lists, most)?,
        Sharing::All { overlaps: true } => tiling.sizes = few(&lists, most)?,
        Sharing::Interior => {
            let (interior, border) = (pick(true), pick(false));
            let size = best_size(&interior, most).unwrap_or(1);
            tiling.sizes = overlapping(&interior, size);
            tiling.sizes.extend(overlapping(&border, size));
        }
    }
    if dims.open != OpenDimensions::None {
        // Elsewhere, the registers for constant steps are worth more than the bytes of the table.
        tiling.sizes.iter_mut().for_each(TileSize::unify_steps);
    }
    tiling.number();
    Some(tiling)
}

/// Returns the numbers of the first and last pixel of a chunk, given the sizes of the output.
fn bounds(part: &[OutputBox], sizes: [i64; 3]) -> [i64; 2] {
    let number = |index: [i64; 4]| (1..4).fold(index[0], |n, d| n * sizes[d - 1] + index[d]);
    let first = part.iter().map(|range| number(range.map(|span| span.begin))).min();
    let last = part.iter().map(|range| number(range.map(|span| span.end - 1))).max();
    [first.unwrap_or(0), last.unwrap_or(0)]
}

/// Images and spatial dimensions, outermost first, for tiles along lines.
const ALONG_LINES: [usize; 4] = [0, 1, 2, 3];
/// The same for tiles across images.
const ALONG_IMAGES: [usize; 4] = [1, 2, 3, 0];

/// True if tiles run across images, because lines are too short and there are more images than
/// neighbors with the same taps. An example is a kernel gradient, whose images are the input
/// features.
pub(super) fn runs_along_images(dims: &ConvolutionDims, most: u32) -> bool {
    let longest = |d: &SpatialDimension| {
        let segments = d.segments(MAX_SEGMENTS).unwrap_or_default();
        segments.iter().map(|s| s.count).max().unwrap_or(0)
    };
    let is_short = dims.spatial.last().is_some_and(|d| longest(d).saturating_mul(2) <= i64::from(most));
    is_short && dims.spatial.iter().all(|d| longest(d) < dims.batch)
}

/// The smallest part of the innermost dimension of `order` that a chunk may have. Chunks are ranges
/// of the output's rows, or of tiles if there are fewer rows than chunks or the tiles run across
/// images.
fn unit(row: i64, rows: i64, chunks: i64, order: [usize; 4], tile: i64) -> i64 {
    let is_whole = rows > 1 && rows >= chunks && order == ALONG_LINES;
    if is_whole { row.max(1) } else { tile.max(1) }
}

/// A range of row-major indices as boxes of ranges by dimension.
fn boxes(sizes: &[i64], begin: i64, end: i64) -> Vec<OutputBox> {
    let mut all = Vec::new();
    let mut at = begin;
    while at < end {
        // The largest block of whole inner dimensions that begins here.
        let mut unit = 1;
        let mut d = 3;
        while d > 0 && at % (unit * sizes[d]) == 0 && at + unit * sizes[d] <= end {
            unit *= sizes[d];
            d -= 1;
        }
        let index = at / unit % sizes[d];
        let count = ((end - at) / unit).min(sizes[d] - index);
        let mut ranges = [Span::new(0, 1); 4];
        let mut rest = at / unit / sizes[d];
        ranges[d] = Span::new(index, index + count);
        for outer in (0..d).rev() {
            let index = rest % sizes[outer];
            ranges[outer] = Span::new(index, index + 1);
            rest /= sizes[outer];
        }
        for inner in d + 1..4 {
            ranges[inner] = Span::new(0, sizes[inner]);
        }
        all.push(ranges);
        at += count * unit;
    }
    all
}

/// All triples of segments within a box.
fn combinations(segments: &[Vec<Segment>], range: &OutputBox) -> Vec<[Segment; 3]> {
    let within =
        |d: usize| -> Vec<Segment> { segments[d].iter().filter_map(|s| s.within(range[d + 1])).collect() };
    let (planes, lines, columns) = (within(0), within(1), within(2));
    let mut all = Vec::new();
    for &plane in &planes {
        for &line in &lines {
            all.extend(columns.iter().map(|&column| [plane, line, column]));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rectangle;
    use crate::contraction::convolution::area::MAX_SIZES;

    const NEVER: Sharing = Sharing::All { overlaps: false };
    const SOMETIMES: Sharing = Sharing::All { overlaps: true };

    fn same(input: i64, size: i64, stride: i64) -> SpatialDimension {
        let padding_low = (size - 1) / 2;
        let window = WindowDimension {
            stride,
            padding_low,
            padding_high: size - 1 - padding_low,
            ..WindowDimension::of_size(size)
        };
        SpatialDimension { input, output: (input - 1) / stride + 1, window }
    }

    /// A kernel gradient, whose window is as large as the image was.
    fn gradient(input: i64, size: i64) -> SpatialDimension {
        let low = (size - 1) / 2;
        let window = WindowDimension {
            padding_low: low,
            padding_high: size - 1 - low,
            ..WindowDimension::of_size(input)
        };
        SpatialDimension { input, output: size, window }
    }

    fn dims(batch: i64, spatial: &[SpatialDimension]) -> ConvolutionDims {
        ConvolutionDims {
            batch,
            groups: 1,
            inputs: 1,
            outputs: 1,
            spatial: spatial.to_vec(),
            open: OpenDimensions::None,
        }
    }

    /// Records the taps and input pixels of each output pixel that the tiles of a chunk visit.
    fn visit(tiling: &Tiling, chunk: usize, overlap: bool, visits: &mut [Option<Vec<(i64, i64)>>]) {
        for size in &tiling.sizes {
            for r in &size.rectangles[size.starts[chunk]..size.starts[chunk + 1]] {
                let each = |counts: [i64; 3]| {
                    (0..counts[0]).flat_map(move |a| {
                        (0..counts[1]).flat_map(move |b| (0..counts[2]).map(move |c| [a, b, c]))
                    })
                };
                let dot = |a: [i64; 3], b: [i64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
                for at in each(r.counts) {
                    for pixel in 0..r.tiles * i64::from(size.pixels) {
                        let input = r.input + dot(at, r.input_steps) + pixel * r.pixel_input;
                        let output = r.output + dot(at, r.output_steps) + pixel * r.pixel_output;
                        let taps = each(r.taps).map(|t| {
                            (r.tap + dot(t, tiling.tap_steps), input + dot(t, tiling.tap_input_steps))
                        });
                        let slot = &mut visits[output as usize];
                        let taps: Vec<_> = taps.collect();
                        let before = slot.replace(taps.clone());
                        assert!(
                            before.is_none() || overlap && before == Some(taps),
                            "pixel {output} once only"
                        );
                    }
                }
            }
        }
    }

    /// The same by definition.
    fn expected(dims: &ConvolutionDims, pixel: i64) -> Vec<(i64, i64)> {
        let spatial = three_dimensions(dims).expect("three at most");
        let (mut rest, mut at) = (pixel, [0; 3]);
        for d in (0..3).rev() {
            at[d] = rest % spatial[d].output;
            rest /= spatial[d].output;
        }
        let mut taps = vec![(0, rest)];
        for d in 0..3 {
            let (s, w) = (spatial[d], spatial[d].window);
            let inside = |tap: &i64| {
                let p = at[d] * w.stride + tap * w.window_dilation - w.padding_low;
                (p >= 0 && p % w.base_dilation == 0 && p / w.base_dilation < s.input)
                    .then_some(p / w.base_dilation)
            };
            taps = taps
                .iter()
                .flat_map(|&(number, input)| {
                    (0..w.size).filter_map(move |tap| {
                        inside(&tap).map(|p| (number * w.size + tap, input * s.input + p))
                    })
                })
                .collect();
        }
        taps
    }

    #[test]
    fn bounds_are_the_first_and_the_last_pixel_of_a_chunk() {
        let cases = [
            dims(64, &[same(8, 3, 1), same(8, 3, 1)]),
            dims(2, &[same(13, 7, 2), same(15, 7, 2)]),
            dims(4, &[same(7, 1, 1), same(7, 1, 1)]),
            dims(1, &[same(30, 3, 1), same(5, 3, 1)]),
        ];
        for dims in cases {
            for open in [OpenDimensions::Images, OpenDimensions::Lines] {
                let dims = ConvolutionDims { open, ..dims.clone() };
                let tiling = tiles(&dims, 6, 10, SOMETIMES).expect("regular shapes");
                let of_chunk = |chunk: i64| {
                    let mut visits = vec![None; (dims.batch * dims.pixels()) as usize];
                    visit(&tiling, chunk as usize, true, &mut visits);
                    let mut visited = (0..).zip(&visits).filter(|(_, taps)| taps.is_some());
                    let first = visited.next().expect("a chunk has pixels").0;
                    [first, visited.last().map_or(first, |(pixel, _)| pixel)]
                };
                let expected: Vec<_> = (0..tiling.chunks).map(of_chunk).collect();
                assert_eq!(tiling.bounds, expected, "{dims:?}");
            }
            assert_eq!(
                tiles(&dims, 6, 10, SOMETIMES).expect("regular shapes").bounds,
                Vec::<[i64; 2]>::new()
            );
        }
    }

    #[test]
    fn every_pixel_is_in_one_tile_with_its_taps() {
        let dilated = |mut s: SpatialDimension| {
            s.window.base_dilation = 2;
            s.window.padding_low = 3;
            s.output = (s.input - 1) * 2 + 1 + 3 + s.window.padding_high - s.window.size + 1;
            s
        };
        let cases = [
            dims(1, &[]),
            dims(3, &[same(9, 3, 1)]),
            dims(1, &[same(56, 3, 1), same(56, 3, 1)]),
            dims(2, &[same(7, 3, 1), same(7, 3, 1)]),
            dims(2, &[same(13, 7, 2), same(15, 7, 2)]),
            dims(4, &[same(7, 1, 1), same(7, 1, 1)]),
            dims(2, &[same(8, 1, 2), same(9, 1, 2)]),
            dims(2, &[same(3, 3, 1), same(4, 3, 1), same(5, 3, 2)]),
            dims(2, &[dilated(same(4, 4, 1)), dilated(same(5, 4, 1))]),
            dims(1, &[same(2, 5, 1), same(30, 5, 3)]),
            dims(19, &[gradient(8, 3), gradient(9, 3)]),
            dims(9, &[gradient(1, 1), gradient(11, 2)]),
        ];
        for dims in cases {
            let all = [
                (6, 1, NEVER),
                (8, 4, Sharing::Interior),
                (1, 2, NEVER),
                (5, 64, Sharing::Interior),
                (6, 1, SOMETIMES),
                (13, 5, SOMETIMES),
            ];
            for (most, chunks, sharing) in all {
                let tiling = tiles(&dims, most, chunks, sharing).expect("regular shapes");
                assert!(tiling.chunks >= 1 && tiling.chunks <= chunks);
                assert!(tiling.sizes.len() <= 2 * MAX_SIZES);
                let mut visits = vec![None; (dims.batch * dims.pixels()) as usize];
                for chunk in 0..tiling.chunks as usize {
                    // Only tiles of one chunk may overlap, because different chunks run at the same
                    // time.
                    let done = visits.clone();
                    visit(&tiling, chunk, sharing != NEVER, &mut visits);
                    let mut alone = vec![None; visits.len()];
                    visit(&tiling, chunk, sharing != NEVER, &mut alone);
                    assert!(done.iter().zip(&alone).all(|(a, b)| a.is_none() || b.is_none()));
                }
                for (pixel, taps) in visits.into_iter().enumerate() {
                    let taps = taps.unwrap_or_else(|| panic!("pixel {pixel} of {dims:?} is in no tile"));
                    let expected = expected(&dims, pixel as i64);
                    assert_eq!(taps, expected, "pixel {pixel} of {dims:?}, {most} at once, {chunks} chunks");
                }
            }
        }
    }

    #[test]
    fn one_by_one_is_one_row_of_pixels() {
        let tiling = tiles(&dims(4, &[same(7, 1, 1), same(7, 1, 1)]), 6, 1, NEVER).expect("regular");
        let table: Vec<_> = tiling.sizes.iter().map(|s| (s.pixels, s.rectangles[0].tiles)).collect();
        assert_eq!(table, [(6, 31), (5, 2)]);
    }

    #[test]
    fn gradients_of_kernels_are_tiled_across_images() {
        let tiling = tiles(&dims(16, &[gradient(32, 3); 2]), 8, 6, NEVER).expect("regular");
        let all = |f: fn(&Rectangle) -> i64| tiling.sizes[0].rectangles.iter().map(f).collect::<Vec<_>>();
        assert_eq!((tiling.sizes.len(), tiling.sizes[0].pixels, tiling.chunks), (1, 8, 6));
        assert_eq!(all(|r| r.tiles * r.counts.iter().product::<i64>()).iter().sum::<i64>(), 18);
        assert!(all(|r| r.pixel_output).iter().all(|&step| step == 9));
    }

    #[test]
    fn borders_are_tiled_along_their_longer_side() {
        let tiling = tiles(&dims(1, &[same(56, 3, 1), same(56, 3, 1)]), 6, 1, NEVER).expect("regular");
        let table: Vec<_> = tiling.sizes.iter().map(|s| (s.pixels, s.rectangles.len())).collect();
        // Four corners, and four edges with the interior.
        assert_eq!(table, [(6, 5), (1, 4)]);
        let interior = tiling.sizes[0].rectangles.iter().find(|r| r.taps == [1, 3, 3]).expect("an interior");
        assert_eq!((interior.counts, interior.tiles), ([1, 1, 54], 9));
    }
}
