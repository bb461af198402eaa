//! Bands of output lines: determines the lines that each stage of a chain of convolutions computes
//! for a band of the last one, and the tiles of these lines.

use super::dims::{ConvolutionDims, Span, SpatialDimension};
use super::tiling::{self, OutputBox, Sharing, Tiling};

/// The lines of one stage in one band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    /// The image.
    pub(crate) image: i64,
    /// The lines of the stage's output.
    pub(crate) output: Span,
    /// The pixel of the stage's input at which its memory begins.
    pub(crate) input_origin: i64,
    /// The pixel of its output at which its memory begins.
    pub(crate) output_origin: i64,
    /// Number of that pixel in the rectangles of the tiling.
    pub(crate) output_number: i64,
}

/// The lines of every stage, by stage, then by band. Bands divide the lines of the last stage,
/// `per_image` from each image. The other stages compute the lines that the next stage reads, so
/// adjacent bands may compute some lines twice. The first stage reads whole images and the last one
/// writes whole images; in between, memory holds only the band. If `keeps_numbers`, pixels have the
/// numbers that they have in whole images, with which sizes of a run are compared; otherwise they
/// are numbered from the beginning of memory.
pub(crate) fn lines(
    stages: &[ConvolutionDims],
    per_image: i64,
    keeps_numbers: bool,
) -> Option<Vec<Vec<Lines>>> {
    let last = stages.last()?;
    let rows = line_dimension(last)?.output;
    let mut all: Vec<Vec<Lines>> = vec![Vec::new(); stages.len()];
    for image in 0..last.batch {
        for band in 0..per_image {
            let mut output = Span::new(rows * band / per_image, rows * (band + 1) / per_image);
            for (k, dims) in stages.iter().enumerate().rev() {
                let line = line_dimension(dims)?;
                let input = inputs(line, output);
                let first_pixel = |d: fn(&SpatialDimension) -> i64, at: i64| -> Option<i64> {
                    let width = d(&dims.spatial[1]);
                    image.checked_mul(d(line))?.checked_add(at)?.checked_mul(width)
                };
                let input_origin = if k == 0 { 0 } else { first_pixel(|d| d.input, input.begin)? };
                let is_last = k + 1 == stages.len();
                let output_origin = if is_last { 0 } else { first_pixel(|d| d.output, output.begin)? };
                let output_number = if keeps_numbers { output_origin } else { 0 };
                all[k].push(Lines { image, output, input_origin, output_origin, output_number });
                output = input;
            }
        }
    }
    Some(all)
}

/// The dimension along which bands are divided: the lines of an image.
fn line_dimension(dims: &ConvolutionDims) -> Option<&SpatialDimension> {
    match &dims.spatial[..] {
        [lines, _] => Some(lines).filter(|d| d.window.base_dilation == 1),
        _ => None,
    }
}

/// The span of inputs that outputs read, gaps included.
fn inputs(d: &SpatialDimension, outputs: Span) -> Span {
    let Span { begin, end } = outputs;
    if begin >= end {
        return Span::new(0, 0);
    }
    let w = d.window;
    let first = begin * w.stride - w.padding_low;
    let end_input = (end - 1) * w.stride - w.padding_low + (w.size - 1) * w.window_dilation + 1;
    let (first, end_input) = (first.clamp(0, d.input), end_input.clamp(0, d.input));
    if first < end_input { Span::new(first, end_input) } else { Span::new(0, 0) }
}

/// Tiles of up to `most` pixels whose chunks are the bands. Input pixels are numbered from the
/// bands' origins.
pub(super) fn tiles(dims: &ConvolutionDims, most: u32, bands: &[Lines], sharing: Sharing) -> Option<Tiling> {
    let row = dims.as_one_row();
    let width = dims.spatial.last()?.output;
    let part = |band: &Lines| -> Vec<OutputBox> {
        let Span { begin, end } = band.output;
        let one = Span::new(0, 1);
        if row.is_some() {
            let first = band.image * dims.pixels();
            return vec![[one, one, one, Span::new(first + begin * width, first + end * width)]];
        }
        vec![[Span::new(band.image, band.image + 1), one, band.output, Span::new(0, width)]]
    };
    let parts: Vec<Vec<OutputBox>> = bands.iter().map(part).collect();
    let mut tiling = tiling::tiles_of(row.as_ref().unwrap_or(dims), most, &parts, sharing)?;
    for size in &mut tiling.sizes {
        for (band, range) in bands.iter().zip(size.starts.windows(2)) {
            for rectangle in &mut size.rectangles[range[0]..range[1]] {
                rectangle.input -= band.input_origin;
                rectangle.output -= band.output_origin - band.output_number;
            }
        }
    }
    for (bounds, band) in tiling.bounds.iter_mut().zip(bands) {
        *bounds = bounds.map(|pixel| pixel - (band.output_origin - band.output_number));
    }
    if bands.iter().any(|band| band.output_number != 0) {
        tiling.origins = bands.iter().map(|band| band.output_number).collect();
    }
    Some(tiling)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contraction::convolution::OpenDimensions;
    use hlo::WindowDimension;

    fn dimension(input: i64, size: i64, stride: i64, low: i64, high: i64) -> SpatialDimension {
        let window = WindowDimension {
            stride,
            padding_low: low,
            padding_high: high,
            ..WindowDimension::of_size(size)
        };
        let output = (input + low + high - size) / stride + 1;
        SpatialDimension { input, output, window }
    }

    fn square(batch: i64, input: i64, size: i64, stride: i64, low: i64, high: i64) -> ConvolutionDims {
        let spatial = vec![dimension(input, size, stride, low, high); 2];
        ConvolutionDims { batch, groups: 1, inputs: 1, outputs: 1, spatial, open: OpenDimensions::None }
    }

    #[test]
    fn each_stage_has_the_lines_that_the_next_one_reads() {
        // Expand, 3x3 with stride 2, project.
        let stages = [square(2, 12, 1, 1, 0, 0), square(2, 12, 3, 2, 0, 1), square(2, 6, 1, 1, 0, 0)];
        let lines = lines(&stages, 2, false).expect("two dimensions");
        let outputs =
            |k: usize| lines[k].iter().map(|l| (l.image, (l.output.begin, l.output.end))).collect::<Vec<_>>();
        assert_eq!(outputs(2), [(0, (0, 3)), (0, (3, 6)), (1, (0, 3)), (1, (3, 6))]);
        assert_eq!(outputs(1), outputs(2));
        assert_eq!(outputs(0), [(0, (0, 7)), (0, (6, 12)), (1, (0, 7)), (1, (6, 12))]);
        let origins =
            |k: usize| lines[k].iter().map(|l| (l.input_origin, l.output_origin)).collect::<Vec<_>>();
        assert_eq!(origins(0), [(0, 0), (0, 72), (0, 144), (0, 216)]);
        assert_eq!(origins(1), [(0, 0), (72, 18), (144, 36), (216, 54)]);
        assert_eq!(origins(2), [(0, 0), (18, 0), (36, 0), (54, 0)]);
    }

    #[test]
    fn tiles_of_bands_are_those_of_the_whole_moved_to_the_origins() {
        let stages = [square(1, 9, 3, 1, 1, 1), square(1, 9, 3, 1, 1, 1)];
        let [moved, kept] = [false, true].map(|kept| lines(&stages, 3, kept).expect("two dimensions"));
        assert!(kept[0].iter().all(|band| band.output_number == band.output_origin));
        for (dims, bands) in stages.iter().chain(&stages).zip(moved.iter().chain(&kept)) {
            let all = |overlaps| Sharing::All { overlaps };
            for sharing in [all(false), all(true), Sharing::Interior] {
                let tiling = tiles(dims, 6, bands, sharing).expect("regular");
                assert_eq!(tiling.chunks, 3);
                let origins: Vec<i64> = bands.iter().map(|band| band.output_number).collect();
                let is_moved = origins.iter().all(|&origin| origin == 0);
                assert_eq!(tiling.origins, if is_moved { vec![] } else { origins });
                for (chunk, band) in bands.iter().enumerate() {
                    let mut written = vec![false; (band.output.length() * 9) as usize];
                    let begin = band.output.begin * 9 - band.output_origin + band.output_number;
                    for size in &tiling.sizes {
                        for r in &size.rectangles[size.starts[chunk]..size.starts[chunk + 1]] {
                            assert!(r.counts[0] == 1 && r.counts[1] == 1);
                            for line in 0..r.counts[2] {
                                for pixel in 0..r.tiles * i64::from(size.pixels) {
                                    let at = r.output + line * r.output_steps[2] + pixel * r.pixel_output;
                                    written[(at - begin) as usize] = true;
                                }
                            }
                            let least = r.input + band.input_origin;
                            assert!((0..81).contains(&least));
                        }
                    }
                    assert!(written.iter().all(|&w| w), "all pixels of band {chunk}");
                }
            }
        }
    }

    #[test]
    fn bands_within_the_padding_read_no_line() {
        let dims = square(1, 2, 1, 1, 3, 0);
        let stages = [square(1, 2, 1, 1, 0, 0), dims];
        let lines = lines(&stages, 5, false).expect("two dimensions");
        let outputs: Vec<_> = lines[0].iter().map(|l| (l.output.begin, l.output.end)).collect();
        assert_eq!(outputs, [(0, 0), (0, 0), (0, 0), (0, 1), (1, 2)]);
    }
}
