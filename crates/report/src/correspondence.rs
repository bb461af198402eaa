//! Pairs of corresponding layers in two reports.

use crate::data::Layer;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Upper bound of the layers with one main node that are compared with another layer. Reports are
/// untrusted, and a node may be the main one of many layers.
const MOST_OF_ONE_NODE: usize = 16;

/// Main node of a layer, or its name if it has none.
pub(crate) fn key(layer: &Layer) -> &str {
    if layer.node.is_empty() { &layer.name } else { &layer.node }
}

/// For each new layer, the number of the old layer that corresponds to it.
///
/// Layers with the same key come first, in order, those of one kind before others: padding and the
/// convolution that reads it may have one node. The others are fused in another way, or only one
/// program has them: a pair of them corresponds if one computes the main node of the other. Pairs
/// of one kind come first, then those with the most common nodes. If only the main node was
/// renamed, neither layer computes that of the other, unless the new name differs in a number at
/// the end, by which converters keep names apart.
pub(crate) fn correspondence(old: &[Layer], new: &[Layer]) -> Vec<Option<usize>> {
    let mut pairing = Pairing { old, new, before: vec![None; new.len()], taken: BTreeSet::new() };
    pairing.in_order(|layer| (key(layer), layer.kind.as_str()));
    pairing.in_order(key);
    pairing.by_nodes(|_, _| true, |node| node);
    pairing.by_nodes(|old, new| old.kind == new.kind, without_number);
    pairing.before
}

/// The correspondence found so far.
struct Pairing<'a> {
    old: &'a [Layer],
    new: &'a [Layer],
    /// For each new layer, its old one.
    before: Vec<Option<usize>>,
    /// Old layers with a new one.
    taken: BTreeSet<usize>,
}

/// Numbers of layers, by their main nodes.
type Waiting<'a> = BTreeMap<&'a str, VecDeque<usize>>;

impl<'a> Pairing<'a> {
    fn pair(&mut self, then: usize, now: usize) {
        if self.before[now].is_none() && self.taken.insert(then) {
            self.before[now] = Some(then);
        }
    }

    /// Pairs layers with equal keys.
    fn in_order<K: Ord>(&mut self, key: impl Fn(&'a Layer) -> K) {
        let mut waiting: BTreeMap<K, VecDeque<usize>> = BTreeMap::new();
        for (number, layer) in self.old.iter().enumerate().filter(|(number, _)| !self.taken.contains(number))
        {
            waiting.entry(key(layer)).or_default().push_back(number);
        }
        for (now, layer) in self.new.iter().enumerate() {
            if self.before[now].is_none()
                && let Some(then) = waiting.get_mut(&key(layer)).and_then(VecDeque::pop_front)
            {
                self.pair(then, now);
            }
        }
    }

    /// Pairs layers of which one computes the main node of the other, with these forms of names.
    fn by_nodes(&mut self, may: impl Fn(&Layer, &Layer) -> bool, form: impl Fn(&str) -> &str) {
        let by_main_node = |layers: &'a [Layer], is_left: &dyn Fn(usize) -> bool| {
            let mut waiting = Waiting::new();
            for (number, layer) in layers.iter().enumerate().filter(|&(number, _)| is_left(number)) {
                waiting.entry(form(key(layer))).or_default().push_back(number);
            }
            waiting
        };
        let then = by_main_node(self.old, &|number| !self.taken.contains(&number));
        let now = by_main_node(self.new, &|number| self.before[number].is_none());
        let mut pairs = BTreeSet::new();
        for &number in now.values().flatten() {
            pairs.extend(with_main_node(&self.new[number], &then, &form).map(|then| (number, then)));
        }
        for &number in then.values().flatten() {
            pairs.extend(with_main_node(&self.old[number], &now, &form).map(|now| (now, number)));
        }
        let rank = |(now, then): (usize, usize)| {
            let (new, old) = (&self.new[now], &self.old[then]);
            (old.kind != new.kind, Reverse(common(old, new)), now, then)
        };
        let pairs = pairs.into_iter().filter(|&(now, then)| may(&self.old[then], &self.new[now]));
        let mut ranked: Vec<_> = pairs.map(rank).collect();
        ranked.sort_unstable();
        for (_, _, now, then) in ranked {
            self.pair(then, now);
        }
    }
}

/// A name without a number at its end: `conv` of `conv_1`.
pub(crate) fn without_number(node: &str) -> &str {
    match node.rsplit_once('_') {
        Some((name, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => node,
    }
}

/// The layers whose main nodes this layer computes.
fn with_main_node<'a>(
    layer: &'a Layer,
    layers: &'a Waiting<'_>,
    form: impl Fn(&str) -> &str + 'a,
) -> impl Iterator<Item = usize> + 'a {
    let of_node = layer.nodes.iter().filter_map(move |node| layers.get(form(node)));
    of_node.flat_map(|numbers| numbers.iter().take(MOST_OF_ONE_NODE)).copied()
}

/// Number of nodes that both layers compute.
fn common(old: &Layer, new: &Layer) -> usize {
    let nodes: BTreeSet<&String> = old.nodes.iter().collect();
    new.nodes.iter().collect::<BTreeSet<_>>().intersection(&nodes).count()
}
