//! Groups of conditionals with the same predicate and the same outer state.

use super::branch::Branch;
use super::conditional::Conditional;
use super::nodes::{is_merge, is_stateful, is_switch, is_variable};
use super::state::{Outcome, States};
use crate::{Graph, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use support::{Id, Result};

/// Every `Merge` and effect of one predicate under one outer state.
pub(super) struct Group {
    predicate: OutputId,
    /// State in which the conditionals as a whole run.
    pub(super) outer: Rc<Vec<Outcome>>,
    merges: BTreeMap<NodeId, Vec<usize>>,
    effects: BTreeSet<NodeId>,
    /// True if the branches may contain conditionals.
    nests: bool,
}

/// The part of a group whose ends have the same number of the group's `Merge` nodes upstream, along
/// the longest chain.
struct Level {
    conditional: Conditional,
    /// Nodes of the branches that must not be duplicated.
    single_run: BTreeSet<NodeId>,
}

impl Group {
    /// Groups every `Merge` and effect by predicate and outer state.
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
            let Some(state) = states.node_state(id) else { continue };
            // The innermost predicate is the one computed last.
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

    /// Converts the group to an outermost conditional that contains all effects nested in it.
    /// `None` if the group is inside another conditional or its predicate is not one of
    /// `predicates`.
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

    /// Splits the group into conditionals. Adds each to `ready` if it can be replaced now, or to
    /// `blocked` if others must be replaced first.
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
                let single_run = single_run_nodes(&conditional, graph, states)?;
                Ok(Level { conditional, single_run })
            })
            .collect::<Result<_>>()?;
        let mut levels: VecDeque<Level> = levels.into();
        while let Some(mut first) = levels.pop_front() {
            let shares = |level: &Level, nodes: &BTreeSet<NodeId>| !nodes.is_disjoint(&level.single_run);
            let mut joined = false;
            // Levels between two joined levels are joined too.
            while let Some(last) = levels.iter().rposition(|level| shares(level, &first.single_run)) {
                for level in levels.drain(..=last) {
                    first.conditional.merges.extend(level.conditional.merges);
                    first.conditional.effects.extend(level.conditional.effects);
                    first.single_run.extend(level.single_run);
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

    /// Partitions the group by the length of the longest chain of its own `Merge` nodes upstream of
    /// each end.
    fn levels(&self, graph: &Graph, order: &[NodeId]) -> Vec<Conditional> {
        let mut levels = vec![0u32; graph.nodes.len()];
        if self.merges.len() + self.effects.len() > 1 {
            for &id in order {
                let node = &graph.nodes[id];
                let inputs = node.inputs.iter().map(|i| i.node).chain(node.control_inputs.iter().copied());
                // Each `Merge` adds one level for its consumers.
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

/// The deepest conditionals of the graph, as many as can be replaced in one step. Conditionals with
/// the same predicate and outer state are combined if they don't need each other's results, or if
/// they share nodes that must run only once.
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
    // A blocked conditional has to wait for others. If no conditional is ready, replace the
    // outermost conditionals around the blocked ones first: in a branch of those, the nodes between
    // the parts of an inner conditional are outside of any conditional.
    if ready.is_empty() {
        let outer = blocked.iter().flat_map(|conditional| conditional.outer.iter());
        let outer_predicates: BTreeSet<OutputId> = outer.map(|outcome| outcome.predicate).collect();
        let mut waiting = Vec::new();
        for group in Group::all(graph, order, states, effects) {
            if let Some(group) = group.outermost(&outer_predicates, states, effects) {
                group.conditionals(graph, order, states, &mut ready, &mut waiting)?;
            }
        }
    }
    // If still none is ready, try the blocked ones: the attempt produces the error.
    let chosen = if ready.is_empty() { blocked } else { ready };
    let mut all: Vec<(usize, usize, Conditional)> = chosen
        .into_iter()
        .map(|conditional| {
            let positions: Vec<usize> = conditional.ends().map(|id| states.position(id)).collect();
            let first = positions.iter().min().copied().unwrap_or(0);
            (first, positions.iter().max().copied().unwrap_or(0), conditional)
        })
        .collect();
    // Conditionals whose ends don't interleave can't depend on each other in both directions, so
    // their replacements can't form a cycle.
    all.sort_by_key(|(first, last, _)| (*first, *last));
    let mut end = None;
    let disjoint = all.into_iter().filter(|(first, last, _)| {
        let follows = end.is_none_or(|end| end < *first);
        end = if follows { Some(*last) } else { end };
        follows
    });
    Ok(disjoint.map(|(_, _, conditional)| conditional).collect())
}

/// The nodes of all branches that must not run in another conditional as well: nodes with effects,
/// and loops.
fn single_run_nodes(conditional: &Conditional, graph: &Graph, states: &States) -> Result<BTreeSet<NodeId>> {
    let mut nodes = BTreeSet::new();
    for outcome in 0..states.outcomes(conditional.predicate) {
        let branch = Branch::new(conditional, graph, states, outcome)?;
        nodes.extend(branch.nodes.into_iter().filter(|&id| {
            let op = graph.nodes[id].op.as_str();
            (is_stateful(op) && !is_variable(op)) || op == "StatelessWhile"
        }));
    }
    Ok(nodes)
}

/// Finds the nodes downstream of a `Merge` of the conditional that a branch of it needs. They will
/// run in every branch. Returns true if they can: they must have the conditional's outer state and
/// contain no control flow.
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
        let is_own = conditional.merges.contains_key(&id) || conditional.outcome_of(states, id).is_some();
        if !after[id.index()] || is_own || !conditional.between.insert(id) {
            continue;
        }
        let op = graph.nodes[id].op.as_str();
        let is_here = states.node_state(id).as_ref().is_some_and(|s| **s == *conditional.outer);
        is_ready &= is_here && !is_switch(op) && !is_merge(op);
        work.extend(inputs(id));
    }
    Ok(is_ready)
}
