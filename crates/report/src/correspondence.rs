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
/// Layers with the same key come first, in order. The others are fused in another way, or only one
/// program has them: a pair of them corresponds if one computes the main node of the other. Pairs
/// with the most common nodes come first. If only the main node was renamed, neither layer computes
/// that of the other.
pub(crate) fn correspondence(old: &[Layer], new: &[Layer]) -> Vec<Option<usize>> {
    let mut waiting: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (number, layer) in old.iter().enumerate() {
        waiting.entry(key(layer)).or_default().push_back(number);
    }
    let mut before: Vec<Option<usize>> =
        new.iter().map(|layer| waiting.get_mut(key(layer)).and_then(VecDeque::pop_front)).collect();
    let mut left: BTreeMap<&str, VecDeque<usize>> = BTreeMap::new();
    for (number, layer) in new.iter().enumerate().filter(|&(number, _)| before[number].is_none()) {
        left.entry(key(layer)).or_default().push_back(number);
    }
    let mut pairs = BTreeSet::new();
    for &now in left.values().flatten() {
        pairs.extend(with_main_node(&new[now], &waiting).map(|then| (now, then)));
    }
    for &then in waiting.values().flatten() {
        pairs.extend(with_main_node(&old[then], &left).map(|now| (now, then)));
    }
    let mut ranked: Vec<(Reverse<usize>, usize, usize)> =
        pairs.into_iter().map(|(now, then)| (Reverse(common(&old[then], &new[now])), now, then)).collect();
    ranked.sort_unstable();
    let mut taken = BTreeSet::new();
    for (_, now, then) in ranked {
        if before[now].is_none() && taken.insert(then) {
            before[now] = Some(then);
        }
    }
    before
}

/// The layers whose main nodes this layer computes.
fn with_main_node<'a>(
    layer: &'a Layer,
    layers: &'a BTreeMap<&str, VecDeque<usize>>,
) -> impl Iterator<Item = usize> + 'a {
    let of_node = layer.nodes.iter().filter_map(|node| layers.get(node.as_str()));
    of_node.flat_map(|numbers| numbers.iter().take(MOST_OF_ONE_NODE)).copied()
}

/// Number of nodes that both layers compute.
fn common(old: &Layer, new: &Layer) -> usize {
    let nodes: BTreeSet<&String> = old.nodes.iter().collect();
    new.nodes.iter().collect::<BTreeSet<_>>().intersection(&nodes).count()
}
