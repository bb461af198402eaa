//! The report as text and as JSON.

use super::{BenchReport, KernelTime, ThreadsTime};
use crate::latency::Latency;
use hlo::analysis::Cost;
use serde_json::{Value, json};
use std::fmt::Write;
use terminal::{Column, Screen, Style, Table, bytes, count, percent, seconds};

impl BenchReport {
    /// A summary of the program, a table of times, and a table of kernels.
    pub fn to_text(&self, screen: &Screen) -> String {
        let cost = &self.cost;
        let run = if self.is_largest { "one run" } else { "a run of the largest sizes" };
        let summary = format!(
            "{run}: {} kernels, {} flops, {} transcendentals, {} moved; constants {}, temporaries {}",
            self.kernel_count,
            count(cost.flops as f64),
            count(cost.transcendentals as f64),
            bytes(cost.bytes()),
            bytes(self.constants_bytes),
            bytes(self.temps_bytes)
        );
        let mut text = screen.paragraph(Style::Plain, &summary) + "\n";
        let mut table = Table::new([
            Column::numbers("threads"),
            Column::numbers("min").optional(),
            Column::numbers("p50"),
            Column::numbers("p90").optional(),
            Column::numbers("p99"),
            Column::numbers("max").optional(),
            Column::numbers("best half"),
            Column::numbers("runs").optional(),
        ]);
        for time in &self.times {
            let l = &time.latency;
            let times = [l.min, l.p50, l.p90, l.p99, l.max, l.best_half].map(seconds);
            table.row([time.threads.to_string()].into_iter().chain(times).chain([l.runs.to_string()]));
        }
        text += &table.render(screen);
        text += &screen.paragraph(
            Style::Faint,
            "p50: median; best half: mean of the faster half of the runs, which other programs disturb least",
        );
        text + &self.peaks(screen) + &self.kernel_table(screen)
    }

    fn peaks(&self, screen: &Screen) -> String {
        if !self.is_largest || self.times.iter().all(|time| time.peak.is_none()) {
            return String::new();
        }
        let mut table = Table::new([
            Column::numbers("threads"),
            Column::numbers("arithmetic"),
            Column::numbers("machine's peak"),
            Column::numbers("share"),
            Column::numbers("memory").optional(),
            Column::numbers("machine's peak").optional(),
        ]);
        for ThreadsTime { threads, latency, peak } in &self.times {
            let Some(peak) = peak else { continue };
            let flops = self.cost.flops as f64 / latency.best_half;
            let moved = self.cost.bytes() as f64 / latency.best_half;
            table.row([
                threads.to_string(),
                format!("{}flop/s", count(flops)),
                format!("{}flop/s", count(peak.flops)),
                percent(flops / peak.flops),
                format!("{}/s", bytes(moved as u64)),
                format!("{}/s", bytes(peak.bytes as u64)),
            ]);
        }
        let legend = screen.paragraph(
            Style::Faint,
            "arithmetic, memory: flops and bytes of a run divided by the time of the best half; peaks were measured just \
             now, that of memory in main memory, which caches surpass",
        );
        format!("\n{}{legend}", table.render(screen))
    }

    fn kernel_table(&self, screen: &Screen) -> String {
        if self.kernels.is_empty() {
            return String::new();
        }
        let total: f64 = self.kernels.iter().map(KernelTime::total).sum();
        let best = self.times.iter().find(|time| time.threads == 1).and_then(|time| time.peak);
        let mut table = Table::new([
            Column::numbers("share"),
            Column::numbers("each"),
            Column::numbers("times"),
            Column::numbers("flop/s").optional(),
            Column::numbers("peak"),
            Column::numbers("bytes/s").optional(),
            Column::names("kernel"),
        ]);
        for kernel in &self.kernels {
            let share = if total > 0.0 { kernel.total() / total } else { 0.0 };
            let numbers = match &kernel.latency {
                None => ["-", "-", "-", "-", "-"].map(str::to_owned),
                Some(latency) => {
                    let flops = kernel.cost.flops as f64 / latency.p50;
                    let moved = kernel.cost.bytes() as f64 / latency.p50;
                    [
                        percent(share),
                        seconds(latency.p50),
                        count(flops),
                        best.map_or("-".to_owned(), |best| percent(flops / best.flops)),
                        bytes(moved as u64),
                    ]
                }
            };
            let [share, each, flops, peak, moved] = numbers;
            table.row([share, each, kernel.instances.to_string(), flops, peak, moved, label(kernel)]);
        }
        let legend = screen.paragraph(
            Style::Faint,
            "share: of the time of all kernels; each: median of one call; times: number of calls in a run; peak: flop/s \
             as a share of the machine's",
        );
        let title = format!("kernels alone, on one thread: {} in total", seconds(total));
        format!("\n{}{}{legend}", screen.paragraph(Style::Plain, &title), table.render(screen))
    }

    /// Returns the whole report, with times in seconds.
    pub fn to_json(&self) -> Value {
        let times = self.times.iter().map(|ThreadsTime { threads, latency, peak }| {
            let rate = |amount: u64| self.is_largest.then_some(amount as f64 / latency.best_half);
            json!({
                "threads": threads,
                "latency": latency_json(latency),
                "flops_per_second": rate(self.cost.flops),
                "bytes_per_second": rate(self.cost.bytes()),
                "peak": peak.map(|peak| json!({
                    "flops_per_second": peak.flops,
                    "bytes_per_second": peak.bytes,
                    "share_of_flops": rate(self.cost.flops).map(|rate| rate / peak.flops),
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

#[cfg(test)]
mod tests {
    use super::*;

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
            is_largest: true,
            kernel_count: 2,
            temps_bytes: 64,
            constants_bytes: 4096,
            times: vec![ThreadsTime { threads: 1, latency, peak }],
            kernels: vec![kernel],
        };
        let text = report.to_text(&Screen::PLAIN);
        assert!(text.contains("2 kernels, 3.00 M flops, 5 transcendentals, 1.0 kB moved"), "{text}");
        assert!(text.contains("2.00 Gflop/s") && text.contains("25.0%"), "{text}");
        assert!(text.contains("dot fusion.1 (dense/MatMul)"), "{text}");
        for column in ["p50", "best half", "arithmetic, memory", "share", "each", "times", "peak"] {
            let explained = |line: &str| line.starts_with(column) || line.contains(&format!("; {column}:"));
            assert!(text.lines().any(explained), "missing explanation of {column}:\n{text}");
        }
        assert_eq!(report.to_json()["times"][0]["peak"]["share_of_flops"], 0.25);
        assert_eq!(report.to_json()["kernel_times"][0]["instances"], 2);
        // The amounts are not those of a run of a smaller size.
        let report = BenchReport { is_largest: false, ..report };
        let (text, times) = (report.to_text(&Screen::PLAIN), report.to_json()["times"][0].clone());
        assert!(
            text.contains("a run of the largest sizes: 2 kernels") && !text.contains("arithmetic, memory"),
            "{text}"
        );
        assert!(times["flops_per_second"].is_null() && times["peak"]["share_of_flops"].is_null(), "{times}");
    }
}
