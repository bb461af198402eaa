//! Rectangles of pixels with the same taps, in tiles of one size.

/// Number of loops around the tiles: images and two spatial dimensions. Tiles follow one another
/// along the third.
pub(super) const LOOPS: usize = 3;

/// Tiles of pixels with the same taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// First input pixel of the first tile, at its first tap.
    pub input: i64,
    /// First output pixel of the first tile.
    pub output: i64,
    /// The first tap, row-major in the window.
    pub tap: i64,
    /// Taps along each dimension.
    pub taps: [i64; 3],
    /// Iterations of each loop around the tiles, outermost first.
    pub counts: [i64; LOOPS],
    /// Input pixels from iteration to iteration.
    pub input_steps: [i64; LOOPS],
    /// Output pixels from iteration to iteration.
    pub output_steps: [i64; LOOPS],
    /// Number of consecutive tiles.
    pub tiles: i64,
    /// Distance of neighboring pixels of a tile, in input pixels.
    pub pixel_input: i64,
    /// Distance of neighboring pixels of a tile, in output pixels.
    pub pixel_output: i64,
    /// Taps of all pixels in preceding tiles, including those of preceding chunks.
    pub before: i64,
}

impl Rectangle {
    /// Number of fields.
    pub const FIELDS: usize = 19;

    /// All fields: input, output, tap, taps, counts, input steps, output steps, tiles, the steps of
    /// a pixel, and the preceding taps.
    pub fn fields(&self) -> [i64; Self::FIELDS] {
        let (t, c, i, o) = (self.taps, self.counts, self.input_steps, self.output_steps);
        [
            self.input,
            self.output,
            self.tap,
            t[0],
            t[1],
            t[2],
            c[0],
            c[1],
            c[2],
            i[0],
            i[1],
            i[2],
            o[0],
            o[1],
            o[2],
            self.tiles,
            self.pixel_input,
            self.pixel_output,
            self.before,
        ]
    }
}

/// The rectangles whose tiles have the same number of pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileSize {
    /// Pixels per tile.
    pub pixels: u32,
    /// The rectangles, chunk by chunk.
    pub rectangles: Vec<Rectangle>,
    /// Chunk `i` has the rectangles from `starts[i]` up to but excluding `starts[i + 1]`.
    pub starts: Vec<usize>,
}

impl TileSize {
    /// The value of a field if it is the same in all rectangles.
    pub fn common(&self, field: usize) -> Option<i64> {
        let first = self.rectangles.first()?.fields()[field];
        self.rectangles.iter().all(|r| r.fields()[field] == first).then_some(first)
    }

    /// The fields that differ between rectangles, which a kernel reads from a table.
    pub fn varying(&self) -> Vec<usize> {
        (0..Rectangle::FIELDS).filter(|&field| self.common(field).is_none()).collect()
    }

    /// Gives loops of one iteration the steps of those that have more, which all have the same, so
    /// that they need not be read from a table.
    pub(super) fn unify_steps(&mut self) {
        for l in 0..LOOPS {
            let steps = |r: &Rectangle| (r.input_steps[l], r.output_steps[l]);
            let mut all = self.rectangles.iter().filter(|r| r.counts[l] > 1).map(steps);
            let Some(common) = all.next().filter(|first| all.all(|steps| steps == *first)) else { continue };
            for rectangle in self.rectangles.iter_mut().filter(|r| r.counts[l] == 1) {
                (rectangle.input_steps[l], rectangle.output_steps[l]) = common;
            }
        }
    }

    /// The minimum and maximum of a field.
    pub fn range(&self, field: usize) -> (i64, i64) {
        let values = || self.rectangles.iter().map(|r| r.fields()[field]);
        (values().min().unwrap_or(0), values().max().unwrap_or(0))
    }
}
