//! Reports and differences as text for a terminal.

use crate::data::{Report, Source};
use crate::diff::{Change, Diff};
use std::fmt;

/// Number of layers that the text lists.
const LISTED: usize = 10;

/// Formats a size with a unit.
pub(crate) fn human_bytes(bytes: u64) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

/// Formats a time with a unit.
pub(crate) fn human_nanoseconds(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} us", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

/// Escapes the control characters of an untrusted name and omits the middle of a long one.
fn printable(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let safe = |part: &[char]| -> String {
        let escape = |c: &char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
        part.iter().map(escape).collect()
    };
    match chars.len() {
        0..=160 => safe(&chars),
        length => format!("{} ... {}", safe(&chars[..80]), safe(&chars[length - 80..])),
    }
}

impl fmt::Display for Report {
    /// Writes the summary and the slowest layers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", printable(&self.name), printable(&self.target))?;
        match self.time {
            Some(time) if time.source == Source::Measured => {
                let threads = if time.threads == 1 { "1 thread" } else { "several threads" };
                let (now, runs) = (human_nanoseconds(time.nanoseconds), time.runs);
                writeln!(f, "latency    {now} (measured, median of {runs} runs, {threads})")?;
            }
            Some(time) => {
                let now = human_nanoseconds(time.nanoseconds);
                writeln!(f, "latency    {now} (modeled: one core with wide vectors, at best)")?;
            }
            None => {}
        }
        if let Some(share) = self.share_of_peak() {
            writeln!(f, "peak       {:.1}% of the machine's operations", 100.0 * share)?;
        }
        let sizes = &self.sizes;
        let (size, code, constants) =
            (human_bytes(sizes.size()), human_bytes(sizes.code), human_bytes(sizes.constants));
        writeln!(f, "size       {size} (code {code}, constants {constants})")?;
        let (ram, arena) = (human_bytes(sizes.ram()), human_bytes(sizes.arena));
        writeln!(f, "ram        {ram} (arena {arena})")?;
        if !self.precision.is_empty() {
            writeln!(f, "precision  {}", printable(&self.precision.join(", ")))?;
        }
        for result in &self.results {
            let name = printable(&result.name);
            writeln!(
                f,
                "error      {name}: {:.2e} relative, at most {:.2e}",
                result.relative, result.largest
            )?;
        }
        let total: f64 = self.layers.iter().filter_map(|layer| layer.nanoseconds).sum();
        let mut layers: Vec<_> =
            self.layers.iter().filter_map(|layer| Some((layer, layer.nanoseconds?))).collect();
        layers.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (layer, time) in layers.into_iter().take(LISTED) {
            let share = if total > 0.0 { 100.0 * time / total } else { 0.0 };
            let name = printable(if layer.node.is_empty() { &layer.name } else { &layer.node });
            writeln!(f, "{share:5.1}%  {:>9}  {} {name}", human_nanoseconds(time), layer.kind)?;
        }
        self.missing.iter().try_for_each(|what| writeln!(f, "note: {what}"))
    }
}

impl fmt::Display for Diff {
    /// Writes the figures and the layers that changed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for figure in &self.figures {
            let words = |value: Option<f64>| match (value, figure.unit.as_str()) {
                (None, _) => "-".to_owned(),
                (Some(value), "ns") => human_nanoseconds(value),
                (Some(value), "bytes") => human_bytes(value as u64),
                (Some(value), _) => format!("{value:.2e}"),
            };
            let change = match (figure.old, figure.new) {
                (Some(old), Some(new)) if old > 0.0 => format!("{:+.1}%", 100.0 * (new / old - 1.0)),
                _ => String::new(),
            };
            let (name, old, new) = (printable(&figure.name), words(figure.old), words(figure.new));
            writeln!(f, "{name:<24} {old:>10} -> {new:>10}  {change}")?;
        }
        let changed: Vec<_> = self.layers.iter().filter(|layer| !layer.changes.is_empty()).collect();
        writeln!(f, "{} of {} layers changed", changed.len(), self.layers.len())?;
        for layer in changed.iter().take(LISTED) {
            let words: Vec<&str> = layer.changes.iter().map(Change::name).collect();
            writeln!(f, "  {}: {}", printable(&layer.name), words.join(", "))?;
        }
        if changed.len() > LISTED {
            writeln!(f, "  and {} more (the page and --json list all)", changed.len() - LISTED)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))
    }
}
