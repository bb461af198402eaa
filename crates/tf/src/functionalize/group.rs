//! The conditionals of one predicate at one place.

use super::branch::Branch;
use super::conditional::Conditional;
use super::nodes::{is_merge, is_stateful, is_switch, is_variable};
use super::state::{Outcome, States};
use crate::{Graph, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use support::{Id, Result};

/// Every `Merge` and effect of a predicate at a place.
pub(super) struct Group {
    predicate: OutputId,
    /// The state of the place.
    pub(super) outer: Rc<Vec<Outcome>>,
    merges: BTreeMap<NodeId, Vec<usize>>,
    effects: BTreeSet<NodeId>,
    /// True if the branches may contain conditionals.
    nests: bool,
}

/// Those of a group that need equally many of its own `Merge` nodes, one after the other; and what
/// must not be there twice.
struct Level {
    conditional: Conditional,
    once: BTreeSet<NodeId>,
}

impl Group {
    /// Groups every `Merge` and effect by predicate and place.
    pub(super) fn all(graph: &Graph, order: &[NodeId], states: &States, effects: &[NodeId]) -> Vec<Self> {
        type Place = (Rc<Vec<Outcome>>, OutputId);
        let mut groups: BTreeMap<Place, Self> = BTreeMap::new();
        let empty = |(outer, predicate): &Place| Self {
            predicate: *predicate,
            outer: outer.clone(),
            merges: BTreeMap::new(),
            effects: BTreeSet::new(),
            nests: false,
        };
        for &id in order.iter().filter(|&&id| is_merge(&graph.nodes[id].op)) {
            let Some((outer, (predicate, inputs))) = states.sides(graph, id) else { continue };
            let place = (outer, predicate);
            groups.entry(place.clone()).or_insert_with(|| empty(&place)).merges.insert(id, inputs);
        }
        for &id in effects {
            let Some(state) = states.of_node(id) else { continue };
            // The innermost predicate is the one decided last, which is the one computed last.
            let Some(last) = (0..state.len()).max_by_key(|&i| states.position(state[i].predicate.node))
            else {
                continue;
            };
            let outer = state.iter().enumerate().filter(|(i, _)| *i != last).map(|(_, o)| *o).collect();
            let place = (Rc::new(outer), state[last].predicate);
            groups.entry(place.clone()).or_insert_with(|| empty(&place)).effects.insert(id);
        }
        groups.into_values().collect()
    }

    fn conditional(&self) -> Conditional {
        Conditional {
            predicate: self.predicate,
            outer: self.outer.clone(),
            merges: BTreeMap::new(),
            effects: BTreeSet::new(),
            between: BTreeSet::new(),
            nests: self.nests,
        }
    }

    /// A group of this predicate that stands in no conditional, with the effects that stand
    /// anywhere in it.
    pub(super) fn outermost(
        self,
        predicates: &BTreeSet<OutputId>,
        states: &States,
        effects: &[NodeId],
    ) -> Option<Self> {
        let mut group = self;
        if !group.outer.is_empty() || !predicates.contains(&group.predicate) {
            return None;
        }
        let whole = group.conditional();
        group.effects.extend(effects.iter().filter(|&&id| whole.outcome_of(states, id).is_some()));
        group.nests = true;
        Some(group)
    }

    /// Adds the conditionals that the group is to those that can be replaced now, or to those that
    /// must wait for others.
    pub(super) fn conditionals(
        self,
        graph: &Graph,
        order: &[NodeId],
        states: &States,
        ready: &mut Vec<Conditional>,
        blocked: &mut Vec<Conditional>,
    ) -> Result<()> {
        let mut levels = self.levels(graph, order);
        if levels.len() == 1 {
            ready.extend(levels.pop());
            return Ok(());
        }
        let levels: Vec<Level> = levels
            .into_iter()
            .map(|conditional| {
                let once = once(&conditional, graph, states)?;
                Ok(Level { conditional, once })
            })
            .collect::<Result<_>>()?;
        let mut levels: VecDeque<Level> = levels.into();
        while let Some(mut first) = levels.pop_front() {
            let shares = |level: &Level, once: &BTreeSet<NodeId>| !once.is_disjoint(&level.once);
            let mut joined = false;
            // A level between two that are joined is joined too.
            while let Some(last) = levels.iter().rposition(|level| shares(level, &first.once)) {
                for level in levels.drain(..=last) {
                    first.conditional.merges.extend(level.conditional.merges);
                    first.conditional.effects.extend(level.conditional.effects);
                    first.once.extend(level.once);
                }
                joined = true;
            }
            if !joined || fill_between(&mut first.conditional, graph, order, states)? {
                ready.push(first.conditional);
            } else {
                blocked.push(first.conditional);
            }
        }
        Ok(())
    }

    /// Parts the group by how many of its own `Merge` nodes, one after the other, each end needs.
    fn levels(&self, graph: &Graph, order: &[NodeId]) -> Vec<Conditional> {
        let mut levels = vec![0u32; graph.nodes.len()];
        if self.merges.len() + self.effects.len() > 1 {
            for &id in order {
                let node = &graph.nodes[id];
                let inputs = node.inputs.iter().map(|i| i.node).chain(node.control_inputs.iter().copied());
                // A `Merge` adds one for those who need it.
                let level = |id: NodeId| levels[id.index()] + u32::from(self.merges.contains_key(&id));
                levels[id.index()] = inputs.map(level).max().unwrap_or(0);
            }
        }
        let mut parts: BTreeMap<u32, Conditional> = BTreeMap::new();
        for (&id, inputs) in &self.merges {
            let part = parts.entry(levels[id.index()]).or_insert_with(|| self.conditional());
            part.merges.insert(id, inputs.clone());
        }
        for &id in &self.effects {
            parts.entry(levels[id.index()]).or_insert_with(|| self.conditional()).effects.insert(id);
        }
        parts.into_values().collect()
    }
}

/// The deepest conditionals of the graph, as many as can be replaced in one step. Of several that
/// have the same predicate and place, those that don't need each other's results are one, and those
/// that share what must run once.
pub(super) fn innermost(
    graph: &Graph,
    order: &[NodeId],
    states: &States,
    effects: &[NodeId],
) -> Result<Vec<Conditional>> {
    let groups = Group::all(graph, order, states, effects);
    let depth = groups.iter().map(|group| group.outer.len()).max();
    let (mut ready, mut blocked) = (Vec::new(), Vec::new());
    for group in groups.into_iter().filter(|group| Some(group.outer.len()) == depth) {
        group.conditionals(graph, order, states, &mut ready, &mut blocked)?;
    }
    // Blocked ones wait for others to go first. When there are none, their outermost conditionals
    // go first: in a branch of those, what is between the parts of an inner one has no conditional
    // around it.
    if ready.is_empty() {
        let around = blocked.iter().flat_map(|conditional| conditional.outer.iter());
        let around: BTreeSet<OutputId> = around.map(|outcome| outcome.predicate).collect();
        let mut waiting = Vec::new();
        for group in Group::all(graph, order, states, effects) {
            if let Some(group) = group.outermost(&around, states, effects) {
                group.conditionals(graph, order, states, &mut ready, &mut waiting)?;
            }
        }
    }
    // When there are none either, the error about them comes out of trying.
    let chosen = if ready.is_empty() { blocked } else { ready };
    let mut all: Vec<(usize, usize, Conditional)> = chosen
        .into_iter()
        .map(|conditional| {
            let positions: Vec<usize> = conditional.ends().map(|id| states.position(id)).collect();
            let first = positions.iter().min().copied().unwrap_or(0);
            (first, positions.iter().max().copied().unwrap_or(0), conditional)
        })
        .collect();
    // Conditionals whose ends don't interleave can't need each other both ways, so they become
    // nodes of no cycle.
    all.sort_by_key(|(first, last, _)| (*first, *last));
    let mut end = None;
    let apart = all.into_iter().filter(|(first, last, _)| {
        let follows = end.is_none_or(|end| end < *first);
        end = if follows { Some(*last) } else { end };
        follows
    });
    Ok(apart.map(|(_, _, conditional)| conditional).collect())
}

/// The nodes of all branches that must not run in another conditional too: those with effects, and
/// loops.
fn once(conditional: &Conditional, graph: &Graph, states: &States) -> Result<BTreeSet<NodeId>> {
    let mut once = BTreeSet::new();
    for outcome in 0..states.outcomes(conditional.predicate) {
        let branch = Branch::new(conditional, graph, states, outcome)?;
        once.extend(branch.nodes.into_iter().filter(|&id| {
            let op = graph.nodes[id].op.as_str();
            (is_stateful(op) && !is_variable(op)) || op == "StatelessWhile"
        }));
    }
    Ok(once)
}

/// Finds the nodes that need a `Merge` of the conditional and that a branch of it needs. They will
/// run in every branch. Whether that can be: they must have no control flow.
fn fill_between(
    conditional: &mut Conditional,
    graph: &Graph,
    order: &[NodeId],
    states: &States,
) -> Result<bool> {
    let inputs = |id: NodeId| {
        let node = &graph.nodes[id];
        node.inputs.iter().map(|input| input.node).chain(node.control_inputs.iter().copied())
    };
    let mut after = vec![false; graph.nodes.len()];
    for &id in order {
        after[id.index()] =
            conditional.merges.contains_key(&id) || inputs(id).any(|input| after[input.index()]);
    }
    let mut work = Vec::new();
    for outcome in 0..states.outcomes(conditional.predicate) {
        let branch = Branch::new(conditional, graph, states, outcome)?;
        work.extend(branch.captures.iter().map(|output| output.node));
        work.extend(branch.waits_for);
    }
    let mut is_ready = true;
    while let Some(id) = work.pop() {
        let is_ours = conditional.merges.contains_key(&id) || conditional.outcome_of(states, id).is_some();
        if !after[id.index()] || is_ours || !conditional.between.insert(id) {
            continue;
        }
        let op = graph.nodes[id].op.as_str();
        let is_here = states.of_node(id).as_ref().is_some_and(|s| **s == *conditional.outer);
        is_ready &= is_here && !is_switch(op) && !is_merge(op);
        work.extend(inputs(id));
    }
    Ok(is_ready)
}
