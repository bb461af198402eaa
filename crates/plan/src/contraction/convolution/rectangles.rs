//! Rectangles of pixels with the same taps, in tiles of one size.

/// Loops around a tile: images, and two spatial dimensions; and the tiles along the third.
pub(super) const LOOPS: usize = 3;

/// Tiles of pixels with the same taps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    /// The first tile's first input pixel, at its first tap.
    pub input: i64,
    /// The first tile's first output pixel.
    pub output: i64,
    /// The first tap, row-major in the window.
    pub tap: i64,
    /// Taps of each dimension.
    pub taps: [i64; 3],
    /// How often each loop around the tiles runs, the outermost first.
    pub counts: [i64; LOOPS],
    /// Input pixels from iteration to iteration.
    pub input_steps: [i64; LOOPS],
    /// Output pixels from iteration to iteration.
    pub output_steps: [i64; LOOPS],
    /// How many tiles follow one another.
    pub tiles: i64,
    /// Input pixels between neighbouring pixels of a tile.
    pub pixel_input: i64,
    /// Output pixels between neighbouring pixels of a tile.
    pub pixel_output: i64,
    /// Taps of the pixels in the tiles before these, those of the chunks before included.
    pub before: i64,
}

impl Rectangle {
    /// How many numbers describe one.
    pub const FIELDS: usize = 19;

    /// All of them: input, output, tap, taps, counts, input steps, output steps, tiles, the steps of a pixel, and
    /// the taps before.
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

/// The rectangles whose tiles have so many pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileSize {
    /// Pixels of a tile.
    pub pixels: u32,
    /// The rectangles, chunk by chunk.
    pub rectangles: Vec<Rectangle>,
    /// Chunk `i` has the rectangles from `starts[i]` to before `starts[i + 1]`.
    pub starts: Vec<usize>,
}

impl TileSize {
    /// What a field is in all rectangles, if it is the same.
    pub fn common(&self, field: usize) -> Option<i64> {
        let first = self.rectangles.first()?.fields()[field];
        self.rectangles.iter().all(|r| r.fields()[field] == first).then_some(first)
    }

    /// The least and the greatest value of a field.
    pub fn range(&self, field: usize) -> (i64, i64) {
        let values = || self.rectangles.iter().map(|r| r.fields()[field]);
        (values().min().unwrap_or(0), values().max().unwrap_or(0))
    }
}
