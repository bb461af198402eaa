//! Arithmetic of `f32` that rounds a scaled integer to the same small integer as exact arithmetic
//! does, for every input.
//!
//! Both sides never decrease. They are the same everywhere if each result begins at the same input.

use super::float_rounding::{self, MOST};
use super::steps::{Chain, Line};

/// `round((x + shift) * scale + offset)`; with a mirrored offset, whose shift is 0,
/// `round(x * scale - offset)` for `x < 0`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FloatLine {
    pub(super) shift: i32,
    pub(super) scale: f32,
    pub(super) offset: f32,
    /// Inputs whose results are corrected, and by how much.
    pub(super) exceptions: Vec<(i32, i32)>,
}

/// Maximum number of exceptions. More take longer than the arithmetic that a line replaces.
const MOST_EXCEPTIONS: usize = 3;

/// Number of shifts that are tried. Products round differently after each.
const SHIFTS: i64 = 12;

/// Distances of the scales that are tried, in units of the last place. The last ones are tried for
/// the first shift only.
const ULPS: [i32; 13] = [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6];
const FEW_ULPS: usize = 3;

/// Form of the lines of all channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// True if the offset has the sign of the input.
    pub(super) is_mirrored: bool,
    /// Integer that is added to the rounded number.
    pub(super) zero: i32,
}

impl FloatLine {
    /// The result without exceptions, in the arithmetic of the generated code.
    pub(super) fn rounded(&self, form: Form, x: i64) -> i64 {
        let offset = if form.is_mirrored && x < 0 { -self.offset } else { self.offset };
        let shifted = (x + i64::from(self.shift)) as f32;
        float_rounding::integer(shifted * self.scale + offset) + i64::from(form.zero)
    }
}

/// The least input of each result from the second one on.
#[derive(Debug)]
pub(super) struct Starts {
    /// The first result that has a least input.
    first: i64,
    inputs: Vec<i64>,
    /// The inputs at both ends, and whether their results are the limits of all channels.
    ends: [(i64, i64, bool); 2],
    lines: [Line; 2],
}

impl Starts {
    /// Finds them for inputs in `range`. `limits` holds the least and the largest result of all
    /// channels.
    pub(super) fn of(chain: &Chain, channel: usize, range: [i64; 2], limits: [i64; 2]) -> Option<Self> {
        let [low, high] = range.map(|x| chain.result(channel, x));
        let lines = [true, false].map(|is_negative| chain.line(channel, is_negative));
        let (low, high) = (low?, high?);
        let mut inputs = Vec::new();
        for result in low + 1..=high {
            inputs.push(start(chain, channel, result, range, lines)?);
        }
        let ends = [(range[0], low, low == limits[0]), (range[1], high, high == limits[1])];
        Some(Self { first: low + 1, inputs, ends, lines })
    }

    /// Inputs whose results decide, with the results.
    fn results(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        (self.first..).zip(&self.inputs).map(|(result, &input)| (input, result))
    }

    /// True if all results but the first begin at inputs of this sign.
    fn all_have(&self, is_negative: bool) -> bool {
        self.inputs.iter().all(|&input| (input < 0) == is_negative && (input - 1 < 0) == is_negative)
    }

    /// The form for which a line of this channel can be found.
    pub(super) fn form(&self) -> Form {
        let [below, above] = self.lines.map(|line| line.offset);
        let is_mirrored = below != above && !self.all_have(false) && !self.all_have(true);
        let zero = if is_mirrored { ((below + above - 1.0) / 2.0).round() as i32 } else { 0 };
        Form { is_mirrored, zero }
    }

    /// A line with the same results and with few exceptions. More than `enough` of them are worth
    /// further trials.
    pub(super) fn fit(&self, form: Form, enough: usize) -> Option<FloatLine> {
        let slope = self.lines[0].slope;
        let most = self.ends.iter().map(|end| (end.0 as f64 * slope).abs()).fold(1.0, f64::max);
        if !(slope > 0.0 && slope < 0.5 && most + 2.0 * self.lines[1].offset.abs() < MOST) {
            return None;
        }
        let mut best: Option<FloatLine> = None;
        for (number, shift) in self.shifts(form).into_iter().enumerate() {
            let ulps = if number == 0 { &ULPS[..] } else { &ULPS[..FEW_ULPS] };
            for &ulps in ulps {
                let scale = f32::from_bits((slope as f32).to_bits().checked_add_signed(ulps)?);
                for offset in self.offsets(form, scale, shift) {
                    let mut line = FloatLine { shift, scale, offset, exceptions: Vec::new() };
                    let most = best.as_ref().map_or(MOST_EXCEPTIONS + 1, |best| best.exceptions.len());
                    if form.is_mirrored && offset < 0.0 {
                        continue;
                    }
                    let Some(exceptions) = self.exceptions(form, &line, most) else { continue };
                    line.exceptions = exceptions;
                    if line.exceptions.len() <= enough {
                        return Some(line);
                    }
                    best = Some(line);
                }
            }
        }
        best
    }

    /// Integers that may be added to inputs. Near the first one, inputs whose results are 0 become
    /// 0, so that products are small and their roundings, too. The others differ by up to some
    /// steps of the result.
    fn shifts(&self, form: Form) -> Vec<i32> {
        const SPREAD: i64 = 4;
        if form.is_mirrored {
            return vec![0];
        }
        let [middle, step] = [self.lines[1].offset, 1.0].map(|x| (x / self.lines[1].slope).round() as i64);
        let shift = |number: i64| {
            // Multiples of an irrational number, which spread evenly.
            let part = (number as f64 * 0.618_034).fract() - 0.5;
            let shift = if number == 0 { middle } else { middle + (part * (SPREAD * step) as f64) as i64 };
            let fits = self.ends.iter().all(|end| i32::try_from(end.0 + shift).is_ok());
            i32::try_from(shift).ok().filter(|_| fits)
        };
        (0..SHIFTS).filter_map(shift).collect()
    }

    /// Offsets for which real numbers have the same results, or nearly so.
    fn offsets(&self, form: Form, scale: f32, shift: i32) -> Vec<f32> {
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for (input, result) in self.results() {
            let edge = (result - i64::from(form.zero)) as f64 - 0.5;
            for (x, is_above) in [(input, true), (input - 1, false)] {
                let rest = edge - (x + i64::from(shift)) as f64 * f64::from(scale);
                let is_flipped = form.is_mirrored && x < 0;
                let rest = if is_flipped { -rest } else { rest };
                if is_above == is_flipped {
                    high = high.min(rest);
                } else {
                    low = low.max(rest);
                }
            }
        }
        if !(low.is_finite() && high.is_finite()) {
            let shifted = f64::from(shift) * f64::from(scale);
            return vec![(self.lines[1].offset - 0.5 - f64::from(form.zero) - shifted) as f32];
        }
        [0.5, 0.3, 0.7, 0.1, 0.9].map(|part| (low + (high - low) * part) as f32).to_vec()
    }

    /// The exceptions that a line needs, if they are fewer than `most` and corrections by one.
    fn exceptions(&self, form: Form, line: &FloatLine, most: usize) -> Option<Vec<(i32, i32)>> {
        let at = |x: i64| line.rounded(form, x);
        let mut found = Vec::new();
        for (input, result) in self.results() {
            if at(input) < result {
                (at(input) == result - 1 && at(input + 1) >= result).then_some(())?;
                found.push((i32::try_from(input).ok()?, 1));
            }
            if at(input - 1) >= result {
                (at(input - 1) == result && at(input - 2) < result).then_some(())?;
                found.push((i32::try_from(input - 1).ok()?, -1));
            }
            (found.len() < most).then_some(())?;
        }
        let [(least, low, is_least), (greatest, high, is_greatest)] = self.ends;
        let is_inside = (is_least && at(least) <= low || at(least) == low)
            && (is_greatest && at(greatest) >= high || at(greatest) == high);
        is_inside.then_some(found)
    }
}

/// The least input whose result is at least `result`.
fn start(chain: &Chain, channel: usize, result: i64, range: [i64; 2], lines: [Line; 2]) -> Option<i64> {
    const FAR: usize = 8;
    let guess = |line: Line| ((result as f64 - line.offset) / line.slope).ceil();
    let guess = if guess(lines[0]) < 0.0 { guess(lines[0]) } else { guess(lines[1]).max(0.0) };
    let mut input = (guess as i64).clamp(range[0] + 1, range[1]);
    for _ in 0..FAR {
        if chain.result(channel, input)? < result {
            input += 1;
        } else if chain.result(channel, input - 1)? >= result {
            input -= 1;
        } else {
            return Some(input);
        }
    }
    None
}
