//! The difference between two reports.

use crate::correspondence::{correspondence, key, without_number};
use crate::data::{Layer, Report};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

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
    /// It also computes other nodes.
    FusedWith,
    /// Another layer computes some of its nodes.
    SplitFrom,
}

/// Number of nodes that [`LayerChange::words`] lists.
const LISTED_NODES: usize = 3;

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
            Self::FusedWith => "fused with",
            Self::SplitFrom => "split from",
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LayerChange {
    /// Node, or name of a layer without one.
    pub name: String,
    /// Name of the old layer, if it differs.
    pub old_name: Option<String>,
    /// Number of the old layer.
    pub old: Option<usize>,
    /// Number of the new layer.
    pub new: Option<usize>,
    /// Changes of the layer.
    pub changes: Vec<Change>,
    /// Nodes that only the new layer computes.
    pub fused_with: Vec<String>,
    /// Nodes that only the old layer computes. Another layer of the new program computes them.
    pub split_from: Vec<String>,
    /// For a layer of one program, the layer of the other program that computes its main node.
    pub part_of: Option<String>,
}

impl LayerChange {
    /// The changes in words, with the first of the nodes that were fused or split.
    pub fn words(&self) -> String {
        let words = self.changes.iter().map(|change| {
            let nodes = match change {
                Change::FusedWith => &self.fused_with,
                Change::SplitFrom => &self.split_from,
                _ => {
                    let part = self.part_of.as_deref().map(|layer| part(*change, layer));
                    return change.name().to_owned() + &part.unwrap_or_default();
                }
            };
            let more = nodes.len().saturating_sub(LISTED_NODES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("{} {}{more}", change.name(), nodes[..nodes.len().min(LISTED_NODES)].join(", "))
        });
        words.collect::<Vec<_>>().join(", ")
    }
}

/// Words for the layer of the other program that computes the main node of a layer.
fn part(change: Change, layer: &str) -> String {
    match change {
        Change::Added => format!(": was part of {layer}"),
        Change::Removed => format!(": now part of {layer}"),
        _ => String::new(),
    }
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
    /// Compares two reports. Layers correspond if they have the same main node, or without one the
    /// same name; several of one node correspond in order, and to those of their kind first. Of the
    /// others, layers correspond if one computes the main node of the other.
    pub fn new(old: &Report, new: &Report) -> Self {
        let mut diff = Self { figures: figures(old, new), ..Self::default() };
        let sources = (old.time.map(|time| time.source), new.time.map(|time| time.source));
        let are_times_alike = sources.0.is_some() && sources.0 == sources.1;
        if !are_times_alike && (sources.0.is_some() || sources.1.is_some()) {
            diff.notes.push("the times are not compared: one is measured and the other is not".to_owned());
        }
        let are_nodes_known = ![old, new].iter().any(|report| report.layers.iter().any(is_older));
        if !are_nodes_known {
            diff.notes.push(
                "fused nodes are not compared: an older version of the tool wrote one of the reports; \
                 write it again"
                    .to_owned(),
            );
        }
        let before = correspondence(&old.layers, &new.layers);
        let (in_old, in_new) = (by_node(&old.layers), by_node(&new.layers));
        // A layer of the same name is no other layer.
        let part_of = |layers: &BTreeMap<&str, &str>, layer: &Layer| {
            let other = layers.get(key(layer)).filter(|&&other| are_nodes_known && other != key(layer));
            other.map(|&other| other.to_owned())
        };
        let present: BTreeSet<&str> =
            new.layers.iter().flat_map(|layer| &layer.nodes).map(String::as_str).collect();
        for (number, (layer, &before)) in new.layers.iter().zip(&before).enumerate() {
            let mut change =
                LayerChange { name: key(layer).to_owned(), new: Some(number), ..LayerChange::default() };
            match before {
                Some(before) => {
                    compare(&mut change, before, &old.layers[before], layer, are_times_alike, &present)
                }
                None => {
                    change.changes.push(Change::Added);
                    change.part_of = part_of(&in_old, layer);
                }
            }
            diff.layers.push(change);
        }
        let kept: BTreeSet<usize> = before.into_iter().flatten().collect();
        let removed = old.layers.iter().enumerate().filter(|(number, _)| !kept.contains(number));
        diff.layers.extend(removed.map(|(number, layer)| LayerChange {
            name: key(layer).to_owned(),
            old: Some(number),
            changes: vec![Change::Removed],
            part_of: part_of(&in_new, layer),
            ..LayerChange::default()
        }));
        diff
    }
}

/// The first layer that computes each node.
fn by_node(layers: &[Layer]) -> BTreeMap<&str, &str> {
    let mut first = BTreeMap::new();
    for layer in layers {
        for node in &layer.nodes {
            first.entry(node.as_str()).or_insert_with(|| key(layer));
        }
    }
    first
}

/// True if an older version of the tool wrote the layer: it has a main node but no list of nodes.
fn is_older(layer: &Layer) -> bool {
    layer.nodes.is_empty() && !layer.node.is_empty()
}

/// Adds what changed in a layer of both programs. `present` contains all nodes of the new program.
fn compare(
    change: &mut LayerChange,
    number: usize,
    old: &Layer,
    new: &Layer,
    are_times_alike: bool,
    present: &BTreeSet<&str>,
) {
    change.old = Some(number);
    change.old_name = (key(old) != key(new)).then(|| key(old).to_owned());
    change.changes = changes(old, new, are_times_alike);
    if old.nodes.is_empty() || new.nodes.is_empty() {
        return;
    }
    let only_of = |these: &Layer, those: &Layer| -> Vec<String> {
        let others: BTreeSet<&String> = those.nodes.iter().collect();
        these.nodes.iter().filter(|node| !others.contains(node)).cloned().collect()
    };
    change.fused_with = only_of(new, old);
    // A main node of which only the number changed was there before.
    let is_renamed = |node: &str| old.nodes.iter().any(|old| without_number(old) == without_number(node));
    change.fused_with.retain(|node| node != key(new) || !is_renamed(node));
    change.split_from = only_of(old, new);
    // A node that is not in the new program is in no other layer.
    change.split_from.retain(|node| present.contains(node.as_str()));
    if !change.fused_with.is_empty() {
        change.changes.push(Change::FusedWith);
    }
    if !change.split_from.is_empty() {
        change.changes.push(Change::SplitFrom);
    }
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
