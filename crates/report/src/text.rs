//! Reports and differences as text for a terminal.

use crate::data::{Report, Source};
use crate::diff::{Change, Diff};
use std::fmt::Write as _;
use terminal::{Column, Screen, Style, Table, bytes, percent, printable, seconds};

/// Number of layers that the text lists.
const LISTED: usize = 10;

/// Changes in the order in which the text lists them, what a reader must know first.
const ORDER: [Change; 11] = [
    Change::Slower,
    Change::LessAccurate,
    Change::Larger,
    Change::Precision,
    Change::Strategy,
    Change::SplitFrom,
    Change::FusedWith,
    Change::Added,
    Change::Removed,
    Change::Faster,
    Change::Smaller,
];

/// Describes a figure as a share of an older one: `+12.0%`, or `40 times` if it is far larger.
pub(crate) fn growth(old: f64, new: f64) -> String {
    let ratio = new / old;
    if ratio < 10.0 { format!("{:+.1}%", 100.0 * (ratio - 1.0)) } else { format!("{ratio:.0} times") }
}

impl Report {
    /// The summary and the slowest layers.
    pub fn to_text(&self, screen: &Screen) -> String {
        let title = format!("{}: {}", printable(&self.name), printable(&self.target));
        let mut text = screen.heading(&title);
        let mut facts = Table::new([Column::words(""), Column::words("")]);
        let mut fact = |name: &str, value: String| facts.row([name.to_owned(), value]);
        if let Some(time) = self.time {
            let how = match (time.source, time.threads) {
                (Source::Measured, 1) => format!("measured, median of {} runs, 1 thread", time.runs),
                (Source::Measured, threads) => {
                    format!("measured, median of {} runs, {threads} threads", time.runs)
                }
                (Source::Modeled, _) => "modeled: one core with wide vectors, at best".to_owned(),
            };
            fact("latency", format!("{} ({how})", seconds(time.seconds)));
        }
        if let Some(share) = self.share_of_peak() {
            fact("peak", format!("{} of the machine's operations", percent(share)));
        }
        let sizes = &self.sizes;
        let (code, constants) = (bytes(sizes.code), bytes(sizes.constants));
        fact("size", format!("{} (code {code}, constants {constants})", bytes(sizes.size())));
        fact("ram", format!("{} (arena {})", bytes(sizes.ram()), bytes(sizes.arena)));
        if !self.precision.is_empty() {
            fact("precision", self.precision.join(", "));
        }
        for result in &self.results {
            let (name, relative, largest) = (&result.name, result.relative, result.largest);
            fact("error", format!("{name}: {relative:.2e} relative, at most {largest:.2e}"));
        }
        text += &facts.render(screen);
        text += &self.slowest(screen);
        self.missing
            .iter()
            .for_each(|what| text += &screen.paragraph(Style::Faint, &format!("note: {what}")));
        text
    }

    fn slowest(&self, screen: &Screen) -> String {
        let mut layers: Vec<_> =
            self.layers.iter().filter_map(|layer| Some((layer, layer.seconds?))).collect();
        if layers.is_empty() {
            return String::new();
        }
        let total: f64 = layers.iter().map(|(_, time)| time).sum();
        layers.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut table = Table::new([
            Column::numbers("share"),
            Column::numbers("time"),
            Column::words("kind").optional(),
            Column::names("layer"),
        ]);
        for (layer, time) in layers.into_iter().take(LISTED) {
            let share = if total > 0.0 { time / total } else { 0.0 };
            let name = if layer.node.is_empty() { &layer.name } else { &layer.node };
            table.row([percent(share), seconds(time), layer.kind.clone(), name.clone()]);
        }
        format!("\n{}", table.render(screen))
    }
}

impl Diff {
    /// The figures and the layers that changed.
    pub fn to_text(&self, screen: &Screen) -> String {
        let mut figures = Table::new([
            Column::names("figure"),
            Column::numbers("old"),
            Column::numbers("new"),
            Column::numbers("change"),
        ]);
        for figure in &self.figures {
            let words = |value: Option<f64>| match (value, figure.unit.as_str()) {
                (None, _) => "-".to_owned(),
                (Some(value), "s") => seconds(value),
                (Some(value), "bytes") => bytes(value as u64),
                (Some(value), _) => format!("{value:.2e}"),
            };
            let change = match (figure.old, figure.new) {
                (Some(old), Some(new)) if old > 0.0 => growth(old, new),
                _ => "-".to_owned(),
            };
            figures.row([figure.name.clone(), words(figure.old), words(figure.new), change]);
        }
        let mut text = figures.render(screen);
        let mut changed: Vec<_> = self.layers.iter().filter(|layer| !layer.changes.is_empty()).collect();
        changed.sort_by_key(|layer| ORDER.iter().position(|change| layer.changes.contains(change)));
        let counts = ORDER.iter().filter_map(|change| {
            let count = changed.iter().filter(|layer| layer.changes.contains(change)).count();
            (count > 0).then(|| format!("{count} {}", change.name()))
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        let colon = if counts.is_empty() { "" } else { ": " };
        let title = format!("{} of {} layers changed{colon}{counts}", changed.len(), self.layers.len());
        text += &format!("\n{}", screen.paragraph(Style::Plain, &title));
        let mut layers = Table::new([Column::names("layer"), Column::words("changes")]).indented();
        for layer in changed.iter().take(LISTED) {
            let was = layer.old_name.as_ref().map(|name| format!(" (was {name})")).unwrap_or_default();
            layers.row([format!("{}{was}", layer.name), layer.words()]);
        }
        if !layers.is_empty() {
            text += &layers.render(screen);
        }
        if changed.len() > LISTED {
            let _ = writeln!(text, "  and {} more (the page and --json list all)", changed.len() - LISTED);
        }
        self.notes.iter().for_each(|note| text += &screen.paragraph(Style::Faint, &format!("note: {note}")));
        text
    }
}
