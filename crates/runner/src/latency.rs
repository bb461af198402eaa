//! Measures repeated runs.

use std::time::{Duration, Instant};
use support::Result;

/// The distribution of the times of many runs, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Number of timed runs.
    pub runs: usize,
    /// Shortest time.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest time.
    pub max: f64,
    /// Mean of the faster half, which other work on the machine disturbs least.
    pub best_half: f64,
}

/// Maximum number of recorded runs.
const MAX_RUNS: usize = 1 << 20;

/// Shorter measurements are dominated by the clock.
const MIN_SAMPLE: Duration = Duration::from_nanos(500);

impl Latency {
    /// Computes the distribution of at least one time.
    pub fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        let runs = seconds.len();
        // Smallest time not exceeded by the given percentage of runs.
        let percentile = |percent: usize| seconds[(runs * percent).div_ceil(100).max(1) - 1];
        let half = &seconds[..runs.div_ceil(2)];
        Self {
            runs,
            min: seconds[0],
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: seconds[runs - 1],
            best_half: half.iter().sum::<f64>() / half.len() as f64,
        }
    }

    /// Times runs for about `seconds`, after some warm-up runs. Runs too short for the clock are
    /// timed in groups.
    pub fn measure(seconds: f64, mut run: impl FnMut() -> Result<()>) -> Result<Self> {
        // Warm up the caches, the branch predictor, and the processor's clock.
        let warm = Instant::now();
        let mut warming = 0u32;
        while warming < 3 || (warm.elapsed().as_secs_f64() < seconds / 5.0 && warming < 1_000_000) {
            run()?;
            warming += 1;
        }
        let each = warm.elapsed().as_secs_f64() / f64::from(warming);
        let group = (MIN_SAMPLE.as_secs_f64() / each.max(1e-12)).ceil().clamp(1.0, 1e6) as u32;

        let mut times = Vec::new();
        let start = Instant::now();
        while times.len() < MAX_RUNS && (times.len() < 3 || start.elapsed().as_secs_f64() < seconds) {
            let begin = Instant::now();
            for _ in 0..group {
                run()?;
            }
            times.push(begin.elapsed().as_secs_f64() / f64::from(group));
        }
        Ok(Self::of(times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let latency = Latency::of((1..=200).rev().map(f64::from).collect());
        assert_eq!((latency.min, latency.p50, latency.p90), (1.0, 100.0, 180.0));
        assert_eq!((latency.p99, latency.max, latency.runs), (198.0, 200.0, 200));
        assert_eq!(latency.best_half, 50.5);
        let one = Latency::of(vec![3.0]);
        assert_eq!((one.min, one.p50, one.p99, one.max, one.best_half), (3.0, 3.0, 3.0, 3.0, 3.0));
    }

    #[test]
    fn measuring_takes_about_as_long_as_asked() {
        let latency = Latency::measure(0.05, || {
            std::thread::sleep(Duration::from_millis(2));
            Ok(())
        });
        let latency = latency.unwrap();
        assert!(latency.min >= 0.002 && latency.runs >= 3 && latency.runs <= 26, "{latency:?}");
    }
}
