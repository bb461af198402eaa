//! Ranges of observed values, and the choice of the range that integers cover.

use shape::Quantization;

/// Method of choosing a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Method {
    /// From the least to the greatest value.
    MinMax,
    /// Without the outermost values on both sides: this percentage of the values is at most the
    /// upper end, and at least the lower end.
    Percentile(f64),
    /// The distribution of the quantized values has the least Kullback-Leibler divergence from that
    /// of the values.
    Entropy,
    /// The quantized values have the least squared error.
    Mse,
}

/// Least and greatest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// The least.
    pub low: f32,
    /// The greatest.
    pub high: f32,
}

impl Range {
    /// The range of no values.
    pub const EMPTY: Self = Self { low: f32::INFINITY, high: f32::NEG_INFINITY };

    /// Includes values. Returns false if one of them is not a finite number.
    #[must_use]
    pub fn include(&mut self, values: impl IntoIterator<Item = f32>) -> bool {
        let mut is_finite = true;
        for value in values {
            is_finite &= value.is_finite();
            self.low = self.low.min(value);
            self.high = self.high.max(value);
        }
        is_finite
    }

    /// The integers from -128 to 127 for the values of the range and zero.
    pub fn quantization(self) -> Quantization {
        let (low, high) = (f64::from(self.low.min(0.0)), f64::from(self.high.max(0.0)));
        let scale = ((high - low) / 255.0) as f32;
        if scale < f32::MIN_POSITIVE || !scale.is_finite() {
            return Quantization { scale: 1.0, zero_point: 0 };
        }
        let zero_point = (-128.0 - low / f64::from(scale)).round_ties_even().clamp(-128.0, 127.0);
        Quantization { scale, zero_point: zero_point as i32 }
    }
}

/// Number of bins of a histogram.
const BINS: usize = 2048;

/// Number of ends that are tried on each side of a range.
const ENDS: u32 = 100;

/// Counts of values in equal parts of a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    range: Range,
    /// Values in each bin, except for zeros.
    counts: Vec<u64>,
    /// Values that are exactly zero. Every range has a step for them, so their number must not
    /// affect what rounding costs: after an activation such as ReLU, most values are zeros.
    zeros: u64,
}

impl Histogram {
    /// The histogram of no values, for values in the range.
    pub fn new(range: Range) -> Self {
        Self { range, counts: vec![0; BINS], zeros: 0 }
    }

    /// Counts values.
    pub fn include(&mut self, values: impl IntoIterator<Item = f32>) {
        for value in values {
            if value == 0.0 {
                self.zeros += 1;
            } else {
                let bin = self.bin(value);
                self.counts[bin] += 1;
            }
        }
    }

    fn bin(&self, value: f32) -> usize {
        let (low, high) = (f64::from(self.range.low), f64::from(self.range.high));
        let bin = ((f64::from(value) - low) * BINS as f64 / (high - low)) as usize;
        bin.min(BINS - 1)
    }

    /// Chooses the range that integers cover.
    pub fn choose(&self, method: Method) -> Range {
        if self.range.high <= self.range.low {
            return self.range;
        }
        match method {
            Method::MinMax => self.range,
            Method::Percentile(percentage) => self.percentile(percentage),
            Method::Entropy => self.search(Self::divergence),
            Method::Mse => self.search(Self::squared_error),
        }
    }

    /// Position on the axis of values: 0 for the low end of the first bin, 1 for its high end.
    fn value(&self, position: f64) -> f64 {
        let (low, high) = (f64::from(self.range.low), f64::from(self.range.high));
        low + (high - low) * position / BINS as f64
    }

    fn percentile(&self, percentage: f64) -> Range {
        let mut counts = self.counts.clone();
        if self.zeros > 0 {
            counts[self.bin(0.0)] += self.zeros;
        }
        let total: u64 = counts.iter().sum();
        let outside = total as f64 * (1.0 - percentage / 100.0);
        // Position at which `outside` values have been passed, in the order of the bins.
        let position = |counts: &mut dyn Iterator<Item = u64>| {
            let mut passed = 0.0;
            for (bin, count) in counts.enumerate() {
                let count = count as f64;
                if passed + count > outside {
                    return bin as f64 + (outside - passed) / count;
                }
                passed += count;
            }
            0.0
        };
        let low = position(&mut counts.iter().copied());
        let high = BINS as f64 - position(&mut counts.iter().rev().copied());
        Range { low: self.value(low) as f32, high: self.value(high) as f32 }
    }

    /// The range around zero with the least cost. One end moves at a time, twice each.
    fn search(&self, cost: impl Fn(&Self, Range) -> f64) -> Range {
        let whole = Range { low: self.range.low.min(0.0), high: self.range.high.max(0.0) };
        let mut best = (cost(self, whole), whole);
        for round in 0..4 {
            let start = best.1;
            for part in (1..ENDS).rev().map(|part| part as f32 / ENDS as f32) {
                let range = match round % 2 {
                    0 => Range { high: whole.high * part, ..start },
                    _ => Range { low: whole.low * part, ..start },
                };
                if range.high <= range.low || (range == whole) {
                    continue;
                }
                let cost = cost(self, range);
                if cost < best.0 {
                    best = (cost, range);
                }
            }
        }
        best.1
    }

    /// Centers and counts of the bins that are not empty, without zeros.
    fn bins(&self) -> impl Iterator<Item = (f64, f64)> {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bin, &count)| (self.value(bin as f64 + 0.5), count as f64))
    }

    fn squared_error(&self, range: Range) -> f64 {
        let steps = Steps::of(range);
        let error = |(center, count): (f64, f64)| count * (steps.value(steps.step(center)) - center).powi(2);
        self.bins().map(error).sum()
    }

    /// Kullback-Leibler divergence of the quantized values from the values. Values outside of the
    /// range count as its ends. Each step spreads its values evenly over its bins.
    fn divergence(&self, range: Range) -> f64 {
        let steps = Steps::of(range);
        let (low, high) = (f64::from(range.low), f64::from(range.high));
        let mut inside: Vec<(usize, f64)> = Vec::new();
        let (mut below, mut above) = (0.0, 0.0);
        for (center, count) in self.bins() {
            match center {
                center if center < low => below += count,
                center if center > high => above += count,
                center => inside.push(((steps.step(center) + 128.0) as usize, count)),
            }
        }
        let (mut totals, mut filled) = ([0f64; 256], [0f64; 256]);
        for &(step, count) in &inside {
            totals[step] += count;
            filled[step] += 1.0;
        }
        let last = inside.len().saturating_sub(1);
        let sum: f64 = inside.iter().map(|(_, count)| count).sum();
        if sum == 0.0 {
            return f64::INFINITY;
        }
        let all = sum + below + above;
        let terms = inside.iter().enumerate().map(|(k, &(step, count))| {
            let clipped = if k == 0 { below } else { 0.0 } + if k == last { above } else { 0.0 };
            let (p, q) = ((count + clipped) / all, totals[step] / filled[step] / sum);
            p * (p / q).ln()
        });
        terms.sum()
    }
}

/// The steps of a range, as numbers of `f64`.
struct Steps {
    scale: f64,
    zero_point: f64,
}

impl Steps {
    fn of(range: Range) -> Self {
        let Quantization { scale, zero_point } = range.quantization();
        Self { scale: scale.into(), zero_point: zero_point.into() }
    }

    fn step(&self, value: f64) -> f64 {
        ((value / self.scale).round_ties_even() + self.zero_point).clamp(-128.0, 127.0)
    }

    fn value(&self, step: f64) -> f64 {
        (step - self.zero_point) * self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: &[f32]) -> Histogram {
        let mut range = Range::EMPTY;
        assert!(range.include(values.iter().copied()));
        let mut histogram = Histogram::new(range);
        histogram.include(values.iter().copied());
        histogram
    }

    #[test]
    fn zero_is_a_step_and_the_ends_are_reached() {
        let of = |low, high| Range { low, high }.quantization();
        assert_eq!(of(0.0, 2.55), Quantization { scale: 0.01, zero_point: -128 });
        assert_eq!(of(-1.275, 1.275), Quantization { scale: 0.01, zero_point: 0 });
        assert_eq!(of(-2.55, -1.0), Quantization { scale: 0.01, zero_point: 127 });
        // Ranges without zero are extended to it.
        assert_eq!(of(1.0, 2.55), of(0.0, 2.55));
        assert_eq!(of(0.0, 0.0), Quantization { scale: 1.0, zero_point: 0 });
    }

    #[test]
    fn values_that_are_not_finite_are_reported() {
        for value in [f32::NAN, f32::INFINITY] {
            let mut range = Range::EMPTY;
            assert!(!range.include([1.0, value]));
        }
    }

    /// 1000 values from 0 to 999, and one of 2047, in 2,048 bins: one bin for each value. The 99th
    /// percentile is the 991st of 1001 values, and the first one the 11th.
    #[test]
    fn a_percentile_drops_outliers() {
        let mut values: Vec<f32> = (0..1000).map(|v| v as f32).collect();
        values.push(2047.0);
        let range = histogram(&values).choose(Method::Percentile(99.0));
        assert!((988.0..993.0).contains(&range.high), "{range:?}");
        assert!((8.0..12.0).contains(&range.low), "{range:?}");
        assert_eq!(histogram(&values).choose(Method::MinMax), Range { low: 0.0, high: 2047.0 });
    }

    /// The width of the range is infinite in `f32`.
    #[test]
    fn the_largest_numbers_have_bins() {
        let values: Vec<f32> = (-100..=100i16).map(|k| f32::from(k) * 3e36).collect();
        for method in [Method::Percentile(100.0), Method::Mse, Method::Entropy] {
            let range = histogram(&values).choose(method);
            assert!(range.low < -2.9e38 && range.high > 2.9e38, "{method:?}: {range:?}");
        }
    }

    /// Half a million values up to 1 and one of 4. With the whole range, values have an error of
    /// up to 4 / 255 / 2, so the squared errors sum to (4 / 255)^2 / 12 x 500,000 = 10.25. With
    /// the range to 1 they sum to 0.64, and the clipped value adds 9. An end between is better.
    #[test]
    fn the_least_squared_error_is_between_rounding_and_clipping() {
        let mut values: Vec<f32> = (0..500_000u32).map(|k| (k % 9973) as f32 / 9973.0).collect();
        values.push(4.0);
        let range = histogram(&values).choose(Method::Mse);
        // Minimizes 500,000 / 12 x (h / 255)^2 + (4 - h)^2 over h: h = 4 / (1 + 0.6408) = 2.438.
        assert!((2.3..2.6).contains(&range.high), "{range:?}");
    }

    /// The positive half of a logistic distribution, as ReLU leaves it. Zeros are exact in every
    /// range, so no number of them changes the range with the least error; but they are some of the
    /// values of which a percentile drops a part.
    #[test]
    fn zeros_change_no_range_but_that_of_percentiles() {
        let value = |k: u32| -> f32 { (f64::from(k) / f64::from(100_001 - k)).ln() as f32 };
        let mut values: Vec<f32> = (50_001..=100_000).map(value).collect();
        values.push(0.0);
        let one = histogram(&values);
        values.resize(500_001, 0.0);
        let most = histogram(&values);
        for method in [Method::Entropy, Method::Mse] {
            assert_eq!(most.choose(method), one.choose(method), "{method:?}");
        }
        // One of 100 values is larger, and one of 1000 if there are ten times as many values.
        let high = |histogram: &Histogram, percentage| histogram.choose(Method::Percentile(percentage)).high;
        assert!((high(&one, 99.0) - high(&most, 99.9)).abs() < 1e-4);
    }

    #[test]
    fn entropy_clips_a_rare_outlier_and_keeps_a_uniform_distribution() {
        let uniform: Vec<f32> = (0..200_000u32).map(|k| (k % 9973) as f32 / 9973.0).collect();
        let whole = histogram(&uniform).choose(Method::Entropy);
        assert!(whole.high > 0.97, "{whole:?}");
        let mut values = uniform;
        values.push(50.0);
        // Bins are 50 / 2048 wide. Up to 256 of them have a step each, so 6.25 loses nothing.
        let clipped = histogram(&values).choose(Method::Entropy);
        assert!(clipped.high <= 6.25, "{clipped:?}");
    }
}
