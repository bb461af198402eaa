//! One page about where the time of a program or a step goes: timeline, kernels, roofline, memory. Nothing is fetched, so it can be
//! sent and opened anywhere.

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

/// What the page shows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What was measured: a model's name.
    pub title: String,
    /// How: steps, threads, machine.
    pub subtitle: String,
    /// The rows of the timeline.
    pub lanes: Vec<Lane>,
    /// Everything that takes time, in any order.
    pub kernels: Vec<Kernel>,
    /// What the machine can do at best, if that was measured.
    pub peak: Option<Roof>,
    /// What is held over the time of the timeline.
    pub memory: Vec<Series>,
}

/// A row of bars that do not overlap.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// What the row stands for.
    pub name: String,
    /// By their beginnings.
    pub bars: Vec<Bar>,
}

/// Something that took time.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// An instruction's or a node's name.
    pub name: String,
    /// What it does; bars of a kind have a colour.
    pub kind: String,
    /// Nanoseconds since the beginning of the timeline.
    pub start: f64,
    /// Nanoseconds.
    pub duration: f64,
    /// More to say of it: its text, its inputs.
    pub detail: String,
}

/// A kernel, or all executions of an op.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// An instruction's or a node's name, as the bars have it.
    pub name: String,
    /// What it does.
    pub kind: String,
    /// The node of the graph that it comes from.
    pub node: String,
    /// Nanoseconds in a step.
    pub duration: f64,
    /// Simple arithmetic in a step; 0 where it is not known.
    pub flops: f64,
    /// Bytes read and written in a step; 0 where they are not known.
    pub bytes: f64,
}

/// A machine's best.
#[derive(Clone, Copy, Debug)]
pub struct Roof {
    /// Operations in a second.
    pub flops: f64,
    /// Bytes from memory in a second.
    pub bytes: f64,
}

/// Bytes over time; each point holds until the next.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// What holds them.
    pub name: String,
    /// Nanoseconds since the beginning of the timeline, bytes.
    pub points: Vec<(f64, f64)>,
}

/// The page. Same report, same bytes.
pub fn html(report: &Report) -> String {
    // `</script>` and comments cannot begin without `<`.
    let data = data(report).to_string().replace('<', "\\u003c");
    // The data last, for its names may look like the places of the others.
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
