//! The report as text and as JSON.

use super::{BenchReport, KernelTime, ThreadsTime};
use crate::latency::Latency;
use hlo::analysis::Cost;
use serde_json::{Value, json};
use std::fmt::{self, Write};

impl fmt::Display for BenchReport {
    /// Writes a summary of the program, a table of times, and a table of kernels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cost = &self.cost;
        writeln!(
            f,
            "one run: {} kernels, {} flops, {} transcendentals, {} moved; constants {}, temporaries {}",
            self.kernel_count,
            count(cost.flops as f64),
            count(cost.transcendentals as f64),
            bytes(cost.bytes() as f64),
            bytes(self.constants_bytes as f64),
            bytes(self.temps_bytes as f64)
        )?;
        writeln!(
            f,
            "\n{:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>8}",
            "threads", "min", "p50", "p90", "p99", "max", "best half", "runs"
        )?;
        for time in &self.times {
            let l = &time.latency;
            write!(f, "{:>7}", time.threads)?;
            for value in [l.min, l.p50, l.p90, l.p99, l.max, l.best_half] {
                write!(f, " {:>10}", seconds(value))?;
            }
            writeln!(f, " {:>8}", l.runs)?;
        }
        writeln!(
            f,
            "p50: median; best half: mean of the faster half of the runs, which other programs disturb least"
        )?;
        self.write_peaks(f)?;
        self.write_kernels(f)
    }
}

impl BenchReport {
    fn write_peaks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.times.iter().all(|time| time.peak.is_none()) {
            return Ok(());
        }
        writeln!(
            f,
            "\n{:>7} {:>14} {:>14} {:>8} {:>14} {:>14}",
            "threads", "arithmetic", "machine's peak", "share", "memory", "machine's peak"
        )?;
        for ThreadsTime { threads, latency, peak } in &self.times {
            let Some(peak) = peak else { continue };
            let flops = self.cost.flops as f64 / latency.best_half;
            let moved = self.cost.bytes() as f64 / latency.best_half;
            writeln!(
                f,
                "{threads:>7} {:>14} {:>14} {:>8} {:>14} {:>14}",
                format!("{}flop/s", count(flops)),
                format!("{}flop/s", count(peak.flops)),
                percent(flops / peak.flops),
                format!("{}/s", bytes(moved)),
                format!("{}/s", bytes(peak.bytes)),
            )?;
        }
        writeln!(
            f,
            "arithmetic, memory: flops and bytes of a run divided by the time of the best half; peaks were measured just now, \
             that of\nmemory in main memory, which caches surpass"
        )
    }

    fn write_kernels(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kernels.is_empty() {
            return Ok(());
        }
        let total: f64 = self.kernels.iter().map(KernelTime::total).sum();
        let best = self.times.iter().find(|time| time.threads == 1).and_then(|time| time.peak);
        writeln!(
            f,
            "\nkernels alone, on one thread: {} in total\n{:>6} {:>9} {:>6} {:>12} {:>6} {:>12}  kernel",
            seconds(total),
            "share",
            "each",
            "times",
            "flop/s",
            "peak",
            "bytes/s"
        )?;
        for kernel in &self.kernels {
            let share = if total > 0.0 { kernel.total() / total } else { 0.0 };
            let Some(latency) = &kernel.latency else {
                writeln!(
                    f,
                    "{:>6} {:>9} {:>6} {:>12} {:>6} {:>12}  {}",
                    "-",
                    "-",
                    kernel.instances,
                    "-",
                    "-",
                    "-",
                    label(kernel)
                )?;
                continue;
            };
            let flops = kernel.cost.flops as f64 / latency.p50;
            writeln!(
                f,
                "{:>6} {:>9} {:>6} {:>12} {:>6} {:>12}  {}",
                percent(share),
                seconds(latency.p50),
                kernel.instances,
                count(flops),
                best.map_or("-".to_owned(), |best| percent(flops / best.flops)),
                bytes(kernel.cost.bytes() as f64 / latency.p50),
                label(kernel)
            )?;
        }
        writeln!(
            f,
            "share: of the time of all kernels; each: median of one call; times: number of calls in a run; peak: \
             flop/s as a\nshare of the machine's"
        )
    }

    /// Returns the whole report, with times in seconds.
    pub fn to_json(&self) -> Value {
        let times = self.times.iter().map(|ThreadsTime { threads, latency, peak }| {
            json!({
                "threads": threads,
                "latency": latency_json(latency),
                "flops_per_second": self.cost.flops as f64 / latency.best_half,
                "bytes_per_second": self.cost.bytes() as f64 / latency.best_half,
                "peak": peak.map(|peak| json!({
                    "flops_per_second": peak.flops,
                    "bytes_per_second": peak.bytes,
                    "share_of_flops": self.cost.flops as f64 / latency.best_half / peak.flops,
                })),
            })
        });
        let kernels = self.kernels.iter().map(|kernel| {
            json!({
                "name": kernel.name,
                "kind": kernel.kind,
                "nodes": kernel.nodes,
                "instances": kernel.instances,
                "cost": cost_json(&kernel.cost),
                "latency": kernel.latency.as_ref().map(latency_json),
            })
        });
        json!({
            "cost": cost_json(&self.cost),
            "kernels": self.kernel_count,
            "temps_bytes": self.temps_bytes,
            "constants_bytes": self.constants_bytes,
            "times": times.collect::<Vec<_>>(),
            "kernel_times": kernels.collect::<Vec<_>>(),
        })
    }
}

fn label(kernel: &KernelTime) -> String {
    let mut text = format!("{} {}", kernel.kind, kernel.name);
    if let Some(node) = kernel.nodes.first() {
        let _ = write!(text, " ({node})");
    }
    text
}

fn cost_json(cost: &Cost) -> Value {
    json!({
        "flops": cost.flops,
        "transcendentals": cost.transcendentals,
        "bytes_read": cost.bytes_read,
        "bytes_written": cost.bytes_written,
    })
}

fn latency_json(latency: &Latency) -> Value {
    json!({
        "runs": latency.runs,
        "min": latency.min,
        "p50": latency.p50,
        "p90": latency.p90,
        "p99": latency.p99,
        "max": latency.max,
        "best_half_mean": latency.best_half,
    })
}

/// Formats a time with three digits and a suitable unit.
pub(crate) fn seconds(value: f64) -> String {
    match value {
        v if v < 1e-6 => format!("{:.0} ns", v * 1e9),
        v if v < 1e-3 => format!("{} us", digits(v * 1e6)),
        v if v < 1.0 => format!("{} ms", digits(v * 1e3)),
        v => format!("{} s", digits(v)),
    }
}

/// Formats a number with three digits and a decimal prefix.
pub(crate) fn count(value: f64) -> String {
    match value {
        v if v < 1e3 => format!("{v:.0} "),
        v if v < 1e6 => format!("{} k", digits(v / 1e3)),
        v if v < 1e9 => format!("{} M", digits(v / 1e6)),
        v if v < 1e12 => format!("{} G", digits(v / 1e9)),
        v => format!("{} T", digits(v / 1e12)),
    }
    .trim_end()
    .to_owned()
}

/// Formats a size with three digits and a suitable unit.
pub(crate) fn bytes(value: f64) -> String {
    let text = count(value);
    if text.contains(' ') { format!("{text}B") } else { format!("{text} B") }
}

fn digits(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

fn percent(value: f64) -> String {
    format!("{:.1}%", value * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(seconds(3.4567e-6), "3.46 us");
        assert_eq!(seconds(0.0456), "45.6 ms");
        assert_eq!(seconds(12e-9), "12 ns");
        assert_eq!(count(612345678.0), "612 M");
        assert_eq!(count(7.0), "7");
        assert_eq!(bytes(2048.0), "2.05 kB");
        assert_eq!(bytes(7.0), "7 B");
    }

    #[test]
    fn the_report_names_times_peaks_and_kernels() {
        let latency =
            Latency { runs: 5, min: 1e-3, p50: 2e-3, p90: 3e-3, p99: 4e-3, max: 5e-3, best_half: 1.5e-3 };
        let cost = Cost { flops: 3_000_000, transcendentals: 5, bytes_read: 900, bytes_written: 100 };
        let peak = Some(crate::Peak { threads: 1, flops: 8e9, bytes: 1e10 });
        let kernel = KernelTime {
            name: "fusion.1".into(),
            kind: "dot",
            nodes: vec!["dense/MatMul".into()],
            instances: 2,
            cost,
            latency: Some(latency),
        };
        let report = BenchReport {
            cost,
            kernel_count: 2,
            temps_bytes: 64,
            constants_bytes: 4096,
            times: vec![ThreadsTime { threads: 1, latency, peak }],
            kernels: vec![kernel],
        };
        let text = report.to_string();
        assert!(text.contains("2 kernels, 3.00 M flops, 5 transcendentals, 1.00 kB moved"), "{text}");
        assert!(text.contains("2.00 Gflop/s") && text.contains("25.0%"), "{text}");
        assert!(text.contains("dot fusion.1 (dense/MatMul)"), "{text}");
        for column in ["p50", "best half", "arithmetic, memory", "share", "each", "times", "peak"] {
            let explained = |line: &str| line.starts_with(column) || line.contains(&format!("; {column}:"));
            assert!(text.lines().any(explained), "missing explanation of {column}:\n{text}");
        }
        assert_eq!(report.to_json()["times"][0]["peak"]["share_of_flops"], 0.25);
        assert_eq!(report.to_json()["kernel_times"][0]["instances"], 2);
    }
}
