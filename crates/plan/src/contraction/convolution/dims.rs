//! The dimensions of a convolution, and the taps of its window that each output has.

use crate::tasks::features_in_vectors;
use hlo::{ConvolutionForm, Module, Op, Window, WindowDimension};
use shape::ArrayShape;
use support::{Error, Result};

/// The extents of a convolution `[batch, spatial.., features] * [window.., inputs, groups *
/// outputs]`, all row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvolutionDims {
    /// Number of images.
    pub batch: i64,
    /// Number of groups of features; each is a separate convolution.
    pub groups: i64,
    /// Input features per group.
    pub inputs: i64,
    /// Output features per group.
    pub outputs: i64,
    /// Spatial dimensions, slowest first.
    pub spatial: Vec<SpatialDimension>,
    /// Dimensions of the output that may end at a size that is known only at run time.
    pub open: OpenDimensions,
}

/// The dimensions of a convolution's output that may end at a size that is known only at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenDimensions {
    /// No dimension.
    None,
    /// The number of images.
    Images,
    /// All dimensions: tiles must not run from the end of a line into the next one.
    Lines,
}

/// A spatial dimension of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpatialDimension {
    /// Elements of the input.
    pub input: i64,
    /// Elements of the output.
    pub output: i64,
    /// The window.
    pub window: WindowDimension,
}

/// Positions along a dimension, from `begin` up to but excluding `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) begin: i64,
    pub(crate) end: i64,
}

impl Span {
    pub(crate) fn new(begin: i64, end: i64) -> Self {
        Self { begin, end }
    }

    pub(crate) fn length(self) -> i64 {
        self.end - self.begin
    }
}

/// Outputs of a dimension that have the same taps. Output `first + j * step` has taps `tap + k *
/// tap_step`, which read the inputs `input + j * input_step + k * tap_input_step`, for `j < count`
/// and `k < taps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first output.
    pub first: i64,
    /// Distance of consecutive outputs.
    pub step: i64,
    /// Number of outputs.
    pub count: i64,
    /// The first tap.
    pub tap: i64,
    /// Distance of consecutive taps.
    pub tap_step: i64,
    /// Number of taps; 0 if the window lies entirely in the padding.
    pub taps: i64,
    /// First input of the first output.
    pub input: i64,
    /// Distance between the inputs of consecutive outputs.
    pub input_step: i64,
    /// Distance between the inputs of consecutive taps.
    pub tap_input_step: i64,
}

/// Upper bound of positions, including padding and dilation. Arithmetic beyond it could overflow.
const MAX_POSITION: i128 = 1 << 48;

impl ConvolutionDims {
    /// Reads the form and the dimensions of a convolution. Fails for other forms.
    ///
    /// The input features of a [`ConvolutionForm::KernelGradient`] take the place of images: they
    /// are the last dimension of the input and the one before the last of the result. The sum runs
    /// over the images.
    pub fn of(
        op: &Op,
        input: &ArrayShape,
        kernel: &ArrayShape,
        output: &ArrayShape,
    ) -> Result<(ConvolutionForm, Self)> {
        let Op::Convolution { window, feature_group_count, .. } = op else {
            return Err(Error::internal("expected a convolution"));
        };
        let form = ConvolutionForm::of(op).ok_or_else(|| {
            Error::unsupported(
                "convolution that is not in canonical form (features last, one batch group, windows not reversed)",
            )
        })?;
        check_positions(window, input)?;
        let (sizes, kernel, results) = (input.sizes(), kernel.sizes(), output.sizes());
        let (last, groups) = (sizes.len() - 1, *feature_group_count);
        let (batch, inputs, first) = match form {
            ConvolutionForm::Canonical => (sizes[0], kernel[last - 1], 1),
            ConvolutionForm::KernelGradient => (sizes[last], sizes[0], 0),
        };
        let spatial = window.dimensions.iter().enumerate().map(|(d, &window)| SpatialDimension {
            input: sizes[d + 1],
            output: results[d + first],
            window,
        });
        let (spatial, outputs) = (spatial.collect(), kernel[last] / groups);
        Ok((form, Self { batch, groups, inputs, outputs, spatial, open: OpenDimensions::None }))
    }

    /// Output pixels per image, without features.
    pub fn pixels(&self) -> i64 {
        self.spatial.iter().fold(1, |n, d| n.saturating_mul(d.output))
    }

    /// Number of images times the first spatial dimension of the output.
    pub fn lines(&self) -> i64 {
        self.batch.saturating_mul(self.spatial.first().map_or(1, |d| d.output))
    }

    /// True if tiles must not run from the end of a line into the next one.
    pub fn keeps_lines(&self) -> bool {
        self.open == OpenDimensions::Lines
    }

    /// The same dimensions in a module with named sizes. A single size of several images is most
    /// likely their number.
    pub(in crate::contraction) fn within(self, module: &Module) -> Self {
        let open = match module.size_parameters().len() {
            0 => OpenDimensions::None,
            1 if self.batch > 1 => OpenDimensions::Images,
            _ => OpenDimensions::Lines,
        };
        Self { open, ..self }
    }

    /// The same convolution over one row of pixels, if each output depends on one pixel only.
    pub(super) fn as_one_row(&self) -> Option<Self> {
        if self.keeps_lines() {
            return None;
        }
        let one = WindowDimension::of_size(1);
        let is_plain = |d: &SpatialDimension| d.input == d.output && d.window == one;
        let pixels = self.batch.checked_mul(self.pixels()).filter(|_| self.spatial.iter().all(is_plain))?;
        let row = SpatialDimension { input: pixels, output: pixels, window: one };
        Some(Self { batch: 1, spatial: vec![row], ..self.clone() })
    }

    /// Number of taps of the window.
    pub fn taps(&self) -> i64 {
        self.spatial.iter().fold(1, |n, d| n.saturating_mul(d.window.size))
    }

    /// True if no tap of any output is padding.
    pub fn has_all_taps(&self) -> bool {
        self.spatial.iter().all(|d| {
            let w = d.window;
            let last = (d.output - 1)
                .saturating_mul(w.stride)
                .saturating_add((w.size - 1).saturating_mul(w.window_dilation));
            w.padding_low == 0 && w.base_dilation == 1 && last < d.input
        })
    }

    /// Number of multiply-adds, including those with padding.
    pub fn work(&self) -> i64 {
        [self.pixels(), self.taps(), self.groups, self.inputs, self.outputs]
            .into_iter()
            .fold(self.batch, i64::saturating_mul)
    }

    /// The same for a kernel whose vectors run along the output features of a group: a few features
    /// take the time of a vector.
    pub(super) fn work_in_vectors(&self) -> i64 {
        let outputs = features_in_vectors(self.outputs);
        Self { outputs, ..self.clone() }.work()
    }
}

fn check_positions(window: &Window, input: &ArrayShape) -> Result<()> {
    for (d, w) in window.dimensions.iter().enumerate() {
        let base = i128::from(input.size(d + 1)) * i128::from(w.base_dilation);
        let size = i128::from(w.size) * i128::from(w.window_dilation);
        let far = [base, size, i128::from(w.padding_low), i128::from(w.padding_high), i128::from(w.stride)];
        if far.iter().any(|x| x.abs() > MAX_POSITION) {
            return Err(Error::unsupported(format!(
                "window dimension {d} of the convolution spans more than 2^48 elements"
            )));
        }
    }
    Ok(())
}

impl SpatialDimension {
    /// Groups the outputs by their taps; `None` if there are more than `most` segments.
    pub fn segments(&self, most: usize) -> Option<Vec<Segment>> {
        let w = self.window;
        let dilation = w.base_dilation;
        let step = dilation / gcd(w.stride, dilation);
        let tap_step = dilation / gcd(w.window_dilation, dilation);
        if step.min(self.output) > most as i64 || tap_step > 64 {
            return None;
        }
        let mut segments = Vec::new();
        for phase in 0..step.min(self.output) {
            let count = (self.output - phase + step - 1) / step;
            // The first tap that hits an element instead of a gap between two, if any.
            let start = |tap: i64| phase * w.stride + tap * w.window_dilation - w.padding_low;
            let tap = (0..tap_step.min(w.size)).find(|&tap| start(tap).rem_euclid(dilation) == 0);
            let phase = Segment {
                first: phase,
                step,
                count,
                tap: tap.unwrap_or(0),
                tap_step,
                taps: tap.map_or(0, |tap| (w.size - tap + tap_step - 1) / tap_step),
                input: tap.map_or(0, |tap| start(tap).div_euclid(dilation)),
                input_step: step * w.stride / dilation,
                tap_input_step: tap_step * w.window_dilation / dilation,
            };
            phase.cut(self.input, most, &mut segments)?;
        }
        Some(segments)
    }
}

impl Segment {
    /// The outputs within a span, if any.
    pub(super) fn within(&self, span: Span) -> Option<Self> {
        let from = ceil_div(span.begin - self.first, self.step).clamp(0, self.count);
        let to = ceil_div(span.end - self.first, self.step).clamp(0, self.count);
        (from < to).then(|| Self {
            first: self.first + from * self.step,
            count: to - from,
            input: self.input + if self.taps == 0 { 0 } else { from * self.input_step },
            ..*self
        })
    }

    /// Divides outputs whose taps may lie outside the input into segments whose taps do not.
    fn cut(&self, input: i64, most: usize, segments: &mut Vec<Self>) -> Option<()> {
        let mut j = 0;
        while j < self.count {
            if segments.len() >= most {
                return None;
            }
            let start = self.input + j * self.input_step;
            // Taps from `low` up to but excluding `high` are inside.
            let low = ceil_div(-start, self.tap_input_step).clamp(0, self.taps);
            let high = ceil_div(input - start, self.tap_input_step).clamp(0, self.taps);
            // The next output at which either bound changes.
            let mut end = self.count;
            if low > 0 {
                end = end.min(ceil_div(-self.input - (low - 1) * self.tap_input_step, self.input_step));
            }
            if high > 0 {
                end =
                    end.min(ceil_div(input - self.input - (high - 1) * self.tap_input_step, self.input_step));
            }
            let taps = (high - low).max(0);
            let (low, start) = if taps == 0 { (0, 0) } else { (low, start + low * self.tap_input_step) };
            segments.push(Self {
                first: self.first + j * self.step,
                count: end - j,
                tap: self.tap + low * self.tap_step,
                taps,
                input: start,
                ..*self
            });
            j = end;
        }
        Some(())
    }
}

fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dimension(input: i64, window: WindowDimension) -> SpatialDimension {
        let dilated = |size: i64, dilation: i64| (size - 1) * dilation + 1;
        let room = dilated(input, window.base_dilation) + window.padding_low + window.padding_high
            - dilated(window.size, window.window_dilation);
        SpatialDimension { input, output: if room < 0 { 0 } else { room / window.stride + 1 }, window }
    }

    /// The inputs of an output's taps, by definition.
    fn inputs(d: &SpatialDimension, output: i64) -> Vec<(i64, i64)> {
        let w = d.window;
        let at = |tap: i64| output * w.stride + tap * w.window_dilation - w.padding_low;
        (0..w.size)
            .filter(|&tap| {
                at(tap) >= 0 && at(tap) % w.base_dilation == 0 && at(tap) / w.base_dilation < d.input
            })
            .map(|tap| (tap, at(tap) / w.base_dilation))
            .collect()
    }

    #[test]
    fn a_padded_window_has_borders_and_an_interior() {
        let w = WindowDimension { padding_low: 1, padding_high: 1, ..WindowDimension::of_size(3) };
        let segments = dimension(56, w).segments(8).expect("few segments");
        let table: Vec<_> = segments.iter().map(|s| (s.first, s.count, s.tap, s.taps, s.input)).collect();
        assert_eq!(table, [(0, 1, 1, 2, 0), (1, 54, 0, 3, 0), (55, 1, 0, 2, 54)]);
    }

    #[test]
    fn segments_give_each_output_its_taps() {
        let mut checked = 0;
        for size in [1, 2, 3, 5] {
            for (stride, window_dilation, base_dilation) in [
                (1, 1, 1),
                (2, 1, 1),
                (3, 2, 1),
                (1, 3, 1),
                (1, 1, 2),
                (2, 1, 3),
                (3, 2, 2),
                (2, 2, 4),
                (1, 2, 2),
            ] {
                for (padding_low, padding_high) in [(0, 0), (1, 1), (2, 0), (-1, 3), (7, 9), (-2, -1)] {
                    let window = WindowDimension {
                        size,
                        stride,
                        padding_low,
                        padding_high,
                        window_dilation,
                        base_dilation,
                        window_reversal: false,
                    };
                    for input in [1, 2, 4, 9] {
                        let d = dimension(input, window);
                        let mut taps_by_output = vec![None; d.output.max(0) as usize];
                        for s in d.segments(1000).expect("many are allowed") {
                            assert!(s.count > 0);
                            for j in 0..s.count {
                                let taps = (0..s.taps).map(|k| {
                                    (
                                        s.tap + k * s.tap_step,
                                        s.input + j * s.input_step + k * s.tap_input_step,
                                    )
                                });
                                let slot = &mut taps_by_output[(s.first + j * s.step) as usize];
                                assert!(slot.replace(taps.collect::<Vec<_>>()).is_none(), "once each");
                            }
                        }
                        for (output, taps) in taps_by_output.into_iter().enumerate() {
                            assert_eq!(
                                taps.as_ref(),
                                Some(&inputs(&d, output as i64)),
                                "{d:?} output {output}"
                            );
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert!(checked > 1000);
    }

    #[test]
    fn too_many_segments_are_none() {
        let w = WindowDimension { padding_low: 50, padding_high: 50, ..WindowDimension::of_size(101) };
        assert!(dimension(60, w).segments(8).is_none());
    }
}
