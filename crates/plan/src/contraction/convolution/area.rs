//! Areas of pixels with the same taps, divided into tiles of few sizes.

use super::dims::{ConvolutionDims, Segment, Span, SpatialDimension};
use super::rectangles::{LOOPS, Rectangle, TileSize};
use std::collections::BTreeMap;

/// Upper bound of the tile sizes; each has code of its own.
pub(super) const MAX_SIZES: usize = 3;

/// Pixels with the same taps, before they are divided into tiles.
#[derive(Clone, Debug)]
pub(super) struct Area {
    pub(super) input: i64,
    pub(super) output: i64,
    pub(super) tap: i64,
    pub(super) taps: [i64; 3],
    /// Count, input step, and output step of each loop, outermost first. Adjacent loops that form
    /// one are merged, unless lines stay apart.
    pub(super) loops: Vec<(i64, i64, i64)>,
}

impl Area {
    pub(super) fn new(
        dims: &ConvolutionDims,
        spatial: &[SpatialDimension; 3],
        images: Span,
        segments: [Segment; 3],
    ) -> Self {
        let (mut input_unit, mut output_unit, mut tap_unit) = (1, 1, 1);
        let (mut input, mut output, mut tap) = (0, 0, 0);
        let mut loops = Vec::new();
        for d in (0..3).rev() {
            let s = &segments[d];
            input += s.input * input_unit;
            output += s.first * output_unit;
            tap += s.tap * tap_unit;
            loops.push((s.count, s.input_step * input_unit, s.step * output_unit));
            input_unit *= spatial[d].input;
            output_unit *= spatial[d].output;
            tap_unit *= spatial[d].window.size;
        }
        debug_assert!(images.end <= dims.batch);
        input += images.begin * input_unit;
        output += images.begin * output_unit;
        loops.push((images.length(), input_unit, output_unit));
        loops.reverse();
        Self { input, output, tap, taps: segments.map(|s| s.taps), loops: merged(&loops, dims.keeps_lines()) }
    }

    /// Index of the loop along which tiles run: the innermost one if it is long enough, otherwise
    /// the longest, and the innermost of several.
    pub(super) fn along(&self, most: i64) -> usize {
        let last = self.loops.len() - 1;
        if self.loops[last].0 >= most {
            return last;
        }
        (0..self.loops.len()).max_by_key(|&l| self.loops[l].0).unwrap_or(last)
    }

    /// Length of the loop along which tiles run, in pixels.
    pub(super) fn length(&self, most: i64) -> i64 {
        self.loops[self.along(most)].0
    }

    /// Input pixels from pixel to pixel of a tile.
    pub(super) fn step(&self, most: i64) -> i64 {
        self.loops[self.along(most)].1
    }

    /// Number of its pixels.
    pub(super) fn pixels(&self) -> i64 {
        self.loops.iter().map(|l| l.0).product()
    }

    /// A rectangle of tiles of `pixels` pixels, which begins `first` pixels into the loop along
    /// which they run.
    fn rectangle(&self, along: usize, first: i64, pixels: i64, tiles: i64) -> Rectangle {
        let (_, pixel_input, pixel_output) = self.loops[along];
        let mut around: Vec<_> = self.loops.clone();
        around.remove(along);
        while around.len() < LOOPS {
            around.insert(0, (1, 0, 0));
        }
        let pick = |f: fn(&(i64, i64, i64)) -> i64| [f(&around[0]), f(&around[1]), f(&around[2])];
        debug_assert!(pixels * tiles + first <= self.loops[along].0);
        Rectangle {
            input: self.input + first * pixel_input,
            output: self.output + first * pixel_output,
            tap: self.tap,
            taps: self.taps,
            counts: pick(|l| l.0),
            input_steps: pick(|l| l.1),
            output_steps: pick(|l| l.2),
            tiles,
            pixel_input,
            pixel_output,
            before: 0,
        }
    }
}

/// Removes loops of one iteration and merges adjacent loops that form one, unless lines stay apart.
fn merged(loops: &[(i64, i64, i64)], keeps_lines: bool) -> Vec<(i64, i64, i64)> {
    let mut out: Vec<(i64, i64, i64)> = Vec::new();
    for &(count, input, output) in loops.iter().filter(|l| l.0 != 1) {
        match out.last_mut() {
            Some(last) if !keeps_lines && last.1 == count * input && last.2 == count * output => {
                *last = (last.0 * count, input, output);
            }
            _ => out.push((count, input, output)),
        }
    }
    if out.is_empty() {
        out.push((1, 0, 0));
    }
    out
}

/// Divides the areas of each chunk into tiles of few different sizes.
pub(super) fn cut(lists: &[Vec<Area>], most: i64) -> Option<Vec<TileSize>> {
    let mut pixels_by_size: BTreeMap<i64, i64> = BTreeMap::new();
    for area in lists.iter().flatten() {
        let pixels: i64 = area.loops.iter().map(|l| l.0).product();
        let length = area.loops[area.along(most)].0;
        for (size, tiles) in even(length, most) {
            *pixels_by_size.entry(size).or_default() += pixels / length * tiles * size;
        }
    }
    // Keeps the sizes that cover the most pixels. Tiles of one pixel make every length possible.
    let mut by_pixels: Vec<(i64, i64)> =
        pixels_by_size.iter().map(|(&size, &pixels)| (pixels, size)).collect();
    by_pixels.sort_unstable();
    let few = by_pixels.len() <= MAX_SIZES;
    let mut chosen: Vec<i64> = by_pixels.iter().rev().take(MAX_SIZES).map(|&(_, size)| size).collect();
    if !few && !chosen.contains(&1) {
        chosen.pop();
        chosen.push(1);
    }
    chosen.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    let mut sizes: Vec<TileSize> = chosen
        .iter()
        .map(|&size| TileSize { pixels: size as u32, rectangles: Vec::new(), starts: vec![0] })
        .collect();
    for list in lists {
        for area in list {
            let along = area.along(most);
            let length = area.loops[along].0;
            let parts = if few { even(length, most) } else { covered(length, &chosen) };
            let mut first = 0;
            for (pixels, tiles) in parts {
                let size = sizes.iter_mut().find(|s| i64::from(s.pixels) == pixels)?;
                size.rectangles.push(area.rectangle(along, first, pixels, tiles));
                first += pixels * tiles;
            }
            debug_assert_eq!(first, length);
        }
        sizes.iter_mut().for_each(|s| s.starts.push(s.rectangles.len()));
    }
    Some(sizes)
}

/// The tile size that covers the areas at the least cost, where each tile costs one extra pixel;
/// the largest size among equals.
pub(super) fn best_size(lists: &[Vec<Area>], most: i64) -> Option<i64> {
    let cost = |size: i64| -> i64 {
        let areas = lists.iter().flatten();
        areas
            .map(|area| {
                let length = area.loops[area.along(most)].0;
                let lines = area.loops.iter().map(|l| l.0).product::<i64>() / length;
                // Single pixels cost several times as much as pixels in a tile.
                lines * if length < size { length * 4 } else { (length + size - 1) / size * (size + 1) }
            })
            .sum()
    };
    (1..=most).rev().min_by_key(|&size| cost(size)).filter(|_| !lists.is_empty())
}

/// Divides the areas of each chunk into tiles of one size, the last of which overlap, and shorter
/// lines into pixels.
pub(super) fn overlapping(lists: &[Vec<Area>], size: i64) -> Vec<TileSize> {
    let new = |pixels: i64| TileSize { pixels: pixels as u32, rectangles: Vec::new(), starts: vec![0] };
    let (mut tiles, mut single) = (new(size), new(1));
    for list in lists {
        for area in list {
            let along = area.along(size);
            let length = area.loops[along].0;
            if length < size {
                single.rectangles.push(area.rectangle(along, 0, 1, length));
                continue;
            }
            tiles.rectangles.push(area.rectangle(along, 0, size, length / size));
            if length % size != 0 {
                tiles.rectangles.push(area.rectangle(along, length - size, size, 1));
            }
        }
        tiles.starts.push(tiles.rectangles.len());
        single.starts.push(single.rectangles.len());
    }
    [tiles, single].into_iter().filter(|s| !s.rectangles.is_empty()).collect()
}

/// Share of the time that tiles of one size, the last of which overlap, may cost in comparison with
/// tiles of several sizes: their code takes a third to a half of the bytes.
const MOST_OVERLAP: f64 = 0.02;

/// Divides the areas of each chunk into tiles of one size, the last of which overlap, if that costs
/// little; otherwise into tiles of few sizes.
pub(super) fn few(lists: &[Vec<Area>], most: i64) -> Option<Vec<TileSize>> {
    let apart = cut(lists, most)?;
    let Some(size) = best_size(lists, most) else { return Some(apart) };
    let one = overlapping(lists, size);
    let is_cheap = cost(&one) as f64 <= cost(&apart) as f64 * (1.0 + MOST_OVERLAP);
    Some(if one.len() < apart.len() && is_cheap { one } else { apart })
}

/// Time of all tiles in pixels, where each tile costs one more, and single pixels wait for their
/// sums.
fn cost(sizes: &[TileSize]) -> i64 {
    let tiles = |size: &TileSize| -> i64 {
        size.rectangles.iter().map(|r| r.counts.iter().product::<i64>() * r.tiles).sum()
    };
    sizes.iter().map(|size| tiles(size) * if size.pixels == 1 { 4 } else { i64::from(size.pixels) + 1 }).sum()
}

/// The size of the tiles of a line of pixels, at the ends of which chunks begin.
pub(super) fn size_of_line(length: i64, most: i64, overlaps: bool) -> i64 {
    let parts = even(length, most);
    let tiles = |size: i64| (length + size - 1) / size;
    let apart: i64 = parts.iter().map(|&(size, tiles)| tiles * (size + 1)).sum();
    let one = (1..=most.min(length)).rev().min_by_key(|&size| tiles(size) * (size + 1)).filter(|_| overlaps);
    let is_cheap = |&size: &i64| (tiles(size) * (size + 1)) as f64 <= apart as f64 * (1.0 + MOST_OVERLAP);
    one.filter(is_cheap).or(parts.first().map(|part| part.0)).unwrap_or(1)
}

/// The fewest possible tiles, of two sizes that differ by one.
pub(super) fn even(length: i64, most: i64) -> Vec<(i64, i64)> {
    let tiles = (length + most - 1) / most;
    if tiles == 0 {
        return Vec::new();
    }
    let size = (length + tiles - 1) / tiles;
    let smaller = tiles * size - length;
    [(size, tiles - smaller), (size - 1, smaller)].into_iter().filter(|p| p.1 > 0).collect()
}

/// Covers a length with tiles of the given sizes (in descending order, 1 included) at the least
/// cost.
fn covered(length: i64, sizes: &[i64]) -> Vec<(i64, i64)> {
    // All but the end of a long length is covered by the largest tiles.
    const END: i64 = 256;
    let largest = sizes.first().copied().unwrap_or(1).max(1);
    let whole = (length - END).max(0) / largest;
    let end = (length - whole * largest) as usize;
    // A tile costs one or two extra pixels; single pixels wait for their sums.
    let cost = |size: i64| if size == 1 { 5 } else { size + 2 };
    let mut best: Vec<(i64, i64)> = vec![(0, 0)];
    for covered in 1..=end {
        let fits = sizes.iter().filter(|&&size| size as usize <= covered);
        let least = fits.map(|&size| (best[covered - size as usize].0 + cost(size), size)).min();
        best.push(least.unwrap_or((i64::MAX / 2, 1)));
    }
    let mut counts: BTreeMap<i64, i64> = BTreeMap::from([(largest, whole)]);
    let mut remaining = end;
    while remaining > 0 {
        let size = best[remaining].1;
        *counts.entry(size).or_default() += 1;
        remaining -= size as usize;
    }
    counts.into_iter().rev().filter(|&(_, count)| count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_covered_by_few_tiles_of_the_given_sizes() {
        assert_eq!(covered(33, &[9, 8, 1]), [(9, 1), (8, 3)]);
        assert_eq!(covered(33, &[6, 5, 1]), [(6, 3), (5, 3)]);
        assert_eq!(covered(7, &[9, 8, 1]), [(1, 7)]);
        assert_eq!(covered(1000, &[14, 1]), [(14, 71), (1, 6)]);
        assert_eq!(covered(0, &[4, 1]), []);
    }
}
