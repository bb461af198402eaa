//! A self-contained page that shows where a program or a step spends its time: timeline, kernels,
//! roofline, and memory. The page loads no external resources.

use serde_json::{Value, json};

const PAGE: &str = include_str!("report/page.html");
const STYLE: &str = include_str!("report/style.css");
const SCRIPTS: [&str; 5] = [
    include_str!("report/words.js"),
    include_str!("report/timeline.js"),
    include_str!("report/table.js"),
    include_str!("report/charts.js"),
    include_str!("report/main.js"),
];

/// Content of the page.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Subject of the measurement, such as a model's name.
    pub title: String,
    /// Conditions of the measurement: steps, threads, and machine.
    pub subtitle: String,
    /// Time of a run or step in nanoseconds.
    pub step: f64,
    /// Rows of the timeline.
    pub lanes: Vec<Lane>,
    /// Kernels that take time, in any order.
    pub kernels: Vec<Kernel>,
    /// Measured peak performance of the machine, if known.
    pub peak: Option<Roof>,
    /// Memory use over the time of the timeline.
    pub memory: Vec<Series>,
}

/// A row of bars that do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Label of the row.
    pub name: String,
    /// Bars, sorted by start time.
    pub bars: Vec<Bar>,
}

/// An instruction or a node with its time.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// Name of an instruction or a node.
    pub name: String,
    /// Kind of work. Bars of one kind have the same color.
    pub kind: String,
    /// Start in nanoseconds since the beginning of the timeline.
    pub start: f64,
    /// Duration in nanoseconds.
    pub duration: f64,
    /// Additional details, such as instruction text and inputs.
    pub detail: String,
}

/// A kernel, or all executions of an op.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// Name of an instruction or a node, as in the bars.
    pub name: String,
    /// Kind of work.
    pub kind: String,
    /// Graph node that the kernel comes from.
    pub node: String,
    /// Time per step in nanoseconds.
    pub duration: f64,
    /// Number of simple arithmetic operations per step, or 0 if unknown.
    pub flops: f64,
    /// Bytes read and written per step, or 0 if unknown.
    pub bytes: f64,
}

/// Peak performance of a machine.
#[derive(Clone, Copy, Debug)]
pub struct Roof {
    /// Operations per second.
    pub flops: f64,
    /// Bytes from memory per second.
    pub bytes: f64,
}

/// Bytes over time. Each value holds until the next point.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// Holder of the memory.
    pub name: String,
    /// Pairs of time, in nanoseconds since the beginning of the timeline, and bytes.
    pub points: Vec<(f64, f64)>,
}

impl Report {
    /// The kernels and the peak, with times in seconds and the slowest kernel first.
    pub fn to_json(&self) -> Value {
        let kernel = |kernel: &Kernel| {
            json!({
                "name": kernel.name,
                "kind": kernel.kind,
                "node": kernel.node,
                "seconds": kernel.duration / 1e9,
                "flops": kernel.flops,
                "bytes": kernel.bytes,
            })
        };
        json!({
            "conditions": self.subtitle,
            "seconds": self.step / 1e9,
            "peak": self.peak.map(|roof| json!({"flops_per_second": roof.flops, "bytes_per_second": roof.bytes})),
            "kernels": self.slowest().into_iter().map(kernel).collect::<Vec<_>>(),
        })
    }

    /// The kernels, the slowest first.
    pub fn slowest(&self) -> Vec<&Kernel> {
        let mut kernels: Vec<&Kernel> = self.kernels.iter().collect();
        kernels.sort_by(|a, b| b.duration.total_cmp(&a.duration));
        kernels
    }
}

/// Renders the page. Deterministic: the same report gives the same bytes.
pub fn html(report: &Report) -> String {
    // Without `<`, neither `</script>` nor a comment can begin.
    let data = data(report).to_string().replace('<', "\\u003c");
    // The data comes last, because its names may look like the other placeholders.
    PAGE.replacen("{{title}}", &escaped(&report.title), 1)
        .replacen("{{style}}", STYLE, 1)
        .replacen("{{scripts}}", &SCRIPTS.concat(), 1)
        .replacen("{{data}}", &data, 1)
}

fn data(report: &Report) -> Value {
    let bar = |bar: &Bar| json!([bar.name, bar.kind, bar.start, bar.duration, bar.detail]);
    let lanes: Vec<Value> = report
        .lanes
        .iter()
        .map(|lane| json!({"name": lane.name, "bars": lane.bars.iter().map(bar).collect::<Vec<_>>()}))
        .collect();
    let kernels: Vec<Value> = report
        .kernels
        .iter()
        .map(|k| {
            json!({
                "name": k.name, "kind": k.kind, "node": k.node, "duration": k.duration, "flops": k.flops, "bytes": k.bytes,
            })
        })
        .collect();
    let memory: Vec<Value> =
        report.memory.iter().map(|s| json!({"name": s.name, "points": s.points})).collect();
    json!({
        "title": report.title,
        "subtitle": report.subtitle,
        "lanes": lanes,
        "kernels": kernels,
        "peak": report.peak.map(|roof| json!({"flops": roof.flops, "bytes": roof.bytes})),
        "memory": memory,
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
