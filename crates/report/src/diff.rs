//! The difference between two reports.

use crate::data::{Layer, Report};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// A layer is slower or faster if its time changes by more than this share, and by more than
/// [`MIN_SECONDS`]: measured times vary.
const TIME_SHARE: f64 = 0.1;
/// See [`TIME_SHARE`].
const MIN_SECONDS: f64 = 1e-6;
/// A layer is less accurate if its share of the limit grows by more than this.
const ACCURACY_SHARE: f64 = 0.05;

/// Way in which a layer changed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Only the new program has it.
    Added,
    /// Only the old program has it.
    Removed,
    /// It takes longer.
    Slower,
    /// It takes less time.
    Faster,
    /// Code and weights take more bytes.
    Larger,
    /// Code and weights take fewer bytes.
    Smaller,
    /// Its errors are larger, as a share of what rounding explains.
    LessAccurate,
    /// It computes with other element types.
    Precision,
    /// It is computed in another way.
    Strategy,
}

impl Change {
    /// The change in words.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Slower => "slower",
            Self::Faster => "faster",
            Self::Larger => "larger",
            Self::Smaller => "smaller",
            Self::LessAccurate => "less accurate",
            Self::Precision => "precision",
            Self::Strategy => "strategy",
        }
    }
}

/// A figure of both programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name of the figure.
    pub name: String,
    /// `s`, `bytes`, or `relative`.
    pub unit: String,
    /// Value of the old program.
    pub old: Option<f64>,
    /// Value of the new program.
    pub new: Option<f64>,
}

/// A layer of one or both programs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerChange {
    /// Node, or name of a layer without one.
    pub name: String,
    /// Number of the old layer.
    pub old: Option<usize>,
    /// Number of the new layer.
    pub new: Option<usize>,
    /// Changes of the layer.
    pub changes: Vec<Change>,
}

/// The difference between two reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Diff {
    /// Figures of the whole programs.
    pub figures: Vec<Figure>,
    /// Layers of the new program in its order, then those that only the old one has.
    pub layers: Vec<LayerChange>,
    /// Notes on figures that could not be compared.
    pub notes: Vec<String>,
}

impl Diff {
    /// Compares two reports. Layers correspond if they have the same node, or without one the same
    /// name; several of one node correspond in order.
    pub fn new(old: &Report, new: &Report) -> Self {
        let mut diff = Self { figures: figures(old, new), ..Self::default() };
        let sources = (old.time.map(|time| time.source), new.time.map(|time| time.source));
        let are_times_alike = sources.0.is_some() && sources.0 == sources.1;
        if !are_times_alike && (sources.0.is_some() || sources.1.is_some()) {
            diff.notes.push("the times are not compared: one is measured and the other is not".to_owned());
        }
        let mut waiting: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
        for (number, layer) in old.layers.iter().enumerate() {
            waiting.entry(key(layer)).or_default().push_back(number);
        }
        for (number, layer) in new.layers.iter().enumerate() {
            let before = waiting.get_mut(key(layer)).and_then(VecDeque::pop_front);
            let changes = match before {
                Some(before) => changes(&old.layers[before], layer, are_times_alike),
                None => vec![Change::Added],
            };
            diff.layers.push(LayerChange {
                name: key(layer).to_owned(),
                old: before,
                new: Some(number),
                changes,
            });
        }
        let mut removed: Vec<usize> = waiting.into_values().flatten().collect();
        removed.sort_unstable();
        diff.layers.extend(removed.into_iter().map(|number| LayerChange {
            name: key(&old.layers[number]).to_owned(),
            old: Some(number),
            new: None,
            changes: vec![Change::Removed],
        }));
        diff
    }
}

fn key(layer: &Layer) -> &str {
    if layer.node.is_empty() { &layer.name } else { &layer.node }
}

fn changes(old: &Layer, new: &Layer, are_times_alike: bool) -> Vec<Change> {
    let mut changes = Vec::new();
    if let (Some(before), Some(now), true) = (old.seconds, new.seconds, are_times_alike)
        && (before - now).abs() > MIN_SECONDS
        && (before - now).abs() > TIME_SHARE * before
    {
        changes.push(if now > before { Change::Slower } else { Change::Faster });
    }
    // Code that is shared with another layer has no size of its own.
    let code = old.code_bytes.zip(new.code_bytes).unwrap_or((0, 0));
    let size = |code: u64, layer: &Layer| code.saturating_add(layer.weight_bytes);
    match size(code.1, new).cmp(&size(code.0, old)) {
        std::cmp::Ordering::Greater => changes.push(Change::Larger),
        std::cmp::Ordering::Less => changes.push(Change::Smaller),
        std::cmp::Ordering::Equal => {}
    }
    if let (Some(before), Some(now)) = (&old.accuracy, &new.accuracy)
        && now.share_of_limit > before.share_of_limit + ACCURACY_SHARE
    {
        changes.push(Change::LessAccurate);
    }
    if old.precision != new.precision {
        changes.push(Change::Precision);
    }
    if old.strategy != new.strategy {
        changes.push(Change::Strategy);
    }
    changes
}

fn figures(old: &Report, new: &Report) -> Vec<Figure> {
    let figure =
        |name: &str, unit: &str, old, new| Figure { name: name.to_owned(), unit: unit.to_owned(), old, new };
    let time = |report: &Report| report.time.map(|time| time.seconds);
    let alike = old.time.map(|time| time.source) == new.time.map(|time| time.source);
    let mut figures = Vec::new();
    if alike && old.time.is_some() {
        figures.push(figure("latency", "s", time(old), time(new)));
    }
    let sizes = [
        ("size", old.sizes.size(), new.sizes.size()),
        ("code", old.sizes.code, new.sizes.code),
        ("constants", old.sizes.constants, new.sizes.constants),
        ("ram", old.sizes.ram(), new.sizes.ram()),
        ("arena", old.sizes.arena, new.sizes.arena),
    ];
    figures.extend(sizes.map(|(name, old, new)| figure(name, "bytes", Some(old as f64), Some(new as f64))));
    let error = |report: &Report, name: &str| {
        report.results.iter().find(|result| result.name == name).map(|result| result.relative)
    };
    for result in &new.results {
        let name = format!("error of {}", result.name);
        figures.push(figure(&name, "relative", error(old, &result.name), Some(result.relative)));
    }
    figures
}
