//! States of nodes: the outcomes of predicates under which each node runs.

use super::Assumption;
use super::nodes::{canonical, is_merge, is_switch};
use super::roots::Roots;
use super::weak::WeakEdges;
use crate::{DataType, Graph, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Error, Id, Result};

/// Maximum nesting depth of conditionals.
const MAX_DEPTH: usize = 64;

/// Maximum number of outcomes of a predicate.
const MAX_OUTCOMES: usize = 10_000;

/// A predicate and one of its outcomes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Outcome {
    pub(super) predicate: OutputId,
    /// 0 for false and 1 for true, or the index of the output that `_SwitchN` selects.
    pub(super) number: usize,
}

/// The outcomes that must all hold, in ascending order. `None` if they exclude each other, so that
/// the node never runs.
pub(super) type State = Option<Rc<Vec<Outcome>>>;

/// A predicate, and the index of the input that a `Merge` forwards under each outcome.
pub(super) type Sides = (OutputId, Vec<usize>);

/// The states of all nodes of a graph.
pub(super) struct States {
    states: Vec<State>,
    /// The predicate of each `Switch`, upstream of `Identity` copies.
    predicates: BTreeMap<NodeId, OutputId>,
    /// Number of outcomes of each predicate.
    outcomes: BTreeMap<OutputId, usize>,
    /// Outcomes that hold everywhere.
    assumed: BTreeMap<OutputId, Assumption>,
    /// Outputs that only forward a value, with that value: the first output of each `Merge` with a
    /// single input that can be alive, and the live output of each `Switch` whose outcome is
    /// assumed.
    pub(super) redirects: BTreeMap<OutputId, OutputId>,
    /// Position of each node in the order.
    positions: Vec<usize>,
    /// Nodes whose second output is used or is a result.
    second_used: BTreeSet<NodeId>,
}

impl States {
    /// Computes the states of the nodes in `order`, which lists inputs first. `results` are the
    /// graph's, `outer` contains minimum states of nodes, `weak` the control edges that do not
    /// affect states, and `assumed` the outcomes that hold everywhere.
    pub(super) fn new(
        graph: &Graph,
        order: &[NodeId],
        results: &[OutputId],
        outer: &BTreeMap<NodeId, Rc<Vec<Outcome>>>,
        weak: &WeakEdges,
        assumed: &BTreeMap<OutputId, Assumption>,
    ) -> Result<Self> {
        let mut states = Self {
            states: vec![Some(Rc::default()); graph.nodes.len()],
            predicates: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            assumed: assumed.clone(),
            redirects: BTreeMap::new(),
            positions: vec![0; graph.nodes.len()],
            second_used: results
                .iter()
                .filter(|result| result.index == 1)
                .map(|result| result.node)
                .collect(),
        };
        for (position, &id) in order.iter().enumerate() {
            states.positions[id.index()] = position;
            let inputs = graph.nodes[id].inputs.iter();
            states.second_used.extend(inputs.filter(|input| input.index == 1).map(|input| input.node));
        }
        for &id in order {
            let node = &graph.nodes[id];
            if is_switch(&node.op) {
                states.insert_switch(graph, id)?;
            }
            let state = if is_merge(&node.op) {
                states.merge_state(graph, id, weak)?
            } else {
                states.input_state(graph, id, weak)
            };
            if state.as_ref().is_some_and(|s| s.len() > MAX_DEPTH) {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) is nested in more than {MAX_DEPTH} conditionals",
                    node.name, node.op
                )));
            }
            let state = match outer.get(&id) {
                Some(outer) => join(&state, &Some(outer.clone())),
                None => state,
            };
            states.states[id.index()] = state;
        }
        Ok(states)
    }

    fn insert_switch(&mut self, graph: &Graph, id: NodeId) -> Result<()> {
        let node = &graph.nodes[id];
        let predicate = canonical(graph, node.inputs[1]);
        let outcomes = node.output_types.len();
        let known = *self.outcomes.entry(predicate).or_insert(outcomes);
        if known != outcomes || outcomes > MAX_OUTCOMES {
            return Err(Error::unsupported(format!(
                "node '{}' (op {}) selects one of {outcomes} outputs by '{}'; expected {known}, the number of outputs of \
                 other nodes with this selector, and at most {MAX_OUTCOMES}",
                node.name, node.op, graph.nodes[predicate.node].name
            )));
        }
        self.predicates.insert(id, predicate);
        if let Some(assumed) = self.assumed.get(&predicate) {
            self.redirects.insert(OutputId { node: id, index: assumed.outcome }, node.inputs[0]);
        }
        Ok(())
    }

    /// Number of outcomes of a predicate.
    pub(super) fn outcomes(&self, predicate: OutputId) -> usize {
        self.outcomes.get(&predicate).copied().unwrap_or(2)
    }

    /// Position of a node in the order.
    pub(super) fn position(&self, id: NodeId) -> usize {
        self.positions[id.index()]
    }

    /// True if a node uses the index of the input that a `Merge` forwarded.
    pub(super) fn is_index_used(&self, merge: NodeId) -> bool {
        self.second_used.contains(&merge)
    }

    /// State of a node.
    pub(super) fn node_state(&self, id: NodeId) -> &State {
        &self.states[id.index()]
    }

    /// State of an output. For a `Switch`, includes the outcome that selects the output.
    pub(super) fn output_state(&self, graph: &Graph, output: OutputId) -> State {
        let state = self.node_state(output.node);
        match self.predicates.get(&output.node) {
            Some(&predicate) if is_switch(&graph.nodes[output.node].op) => {
                match self.assumed.get(&predicate) {
                    Some(assumed) if assumed.outcome == output.index => state.clone(),
                    Some(_) => None,
                    None => join(state, &Some(Rc::new(vec![Outcome { predicate, number: output.index }]))),
                }
            }
            _ => state.clone(),
        }
    }

    /// The predicate of a `Switch`.
    pub(super) fn predicate(&self, id: NodeId) -> Option<OutputId> {
        self.predicates.get(&id).copied()
    }

    /// Adds to the effects each node at the start of a weak edge that may not run when the waiting
    /// node does, unless the two never run together.
    pub(super) fn add_effects(&self, weak: &WeakEdges, order: &[NodeId], roots: &mut Roots) {
        let reached: BTreeSet<NodeId> = order.iter().copied().collect();
        let mut effects: BTreeSet<NodeId> = roots.effects.iter().copied().collect();
        for (user, control) in weak.iter().filter(|(user, _)| reached.contains(user)) {
            let empty: Rc<Vec<Outcome>> = Rc::default();
            let user = self.node_state(user).as_ref().unwrap_or(&empty);
            if let Some(state) = self.node_state(control)
                && !includes(user, state)
                && !excludes(user, state)
            {
                effects.insert(control);
            }
        }
        roots.effects = effects.into_iter().collect();
    }

    /// State of a node that runs if all its inputs are alive.
    fn input_state(&self, graph: &Graph, id: NodeId, weak: &WeakEdges) -> State {
        let node = &graph.nodes[id];
        let data = node.inputs.iter().map(|&input| self.output_state(graph, input));
        let strong = node.control_inputs.iter().filter(|&&input| !weak.contains(id, input));
        let control = strong.map(|&input| self.node_state(input).clone());
        let mut state = Some(Rc::default());
        for input in data.chain(control) {
            state = join(&state, &input);
        }
        state
    }

    /// State of a `Merge`, which runs if one of its inputs is alive: the outcomes that the states
    /// of its inputs have in common.
    fn merge_state(&mut self, graph: &Graph, id: NodeId, weak: &WeakEdges) -> Result<State> {
        let node = &graph.nodes[id];
        let inputs: Vec<State> = node.inputs.iter().map(|&input| self.output_state(graph, input)).collect();
        let alive: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].is_some()).collect();
        let state = match alive.as_slice() {
            [] => None,
            [one] if inputs.len() > 1 => {
                self.redirects.insert(OutputId { node: id, index: 0 }, node.inputs[*one]);
                inputs[*one].clone()
            }
            _ => match self.sides(graph, id) {
                Some((outer, _)) => Some(outer),
                None => {
                    let described: Vec<String> = inputs
                        .iter()
                        .zip(&node.inputs)
                        .map(|(state, input)| {
                            format!("'{}' if {}", graph.nodes[input.node].name, self.describe(graph, state))
                        })
                        .collect();
                    return Err(Error::unsupported(format!(
                        "node '{}' (op {}) does not join the branches of one Switch: its inputs are {}",
                        node.name,
                        node.op,
                        described.join(", ")
                    )));
                }
            },
        };
        let mut state = state;
        for &input in node.control_inputs.iter().filter(|&&input| !weak.contains(id, input)) {
            state = join(&state, self.node_state(input));
        }
        Ok(state)
    }

    /// The common part of the states of a `Merge`'s inputs, and its sides. `None` unless the states
    /// differ only in the outcome of one predicate and there is one input for each outcome.
    pub(super) fn sides(&self, graph: &Graph, id: NodeId) -> Option<(Rc<Vec<Outcome>>, Sides)> {
        let inputs = &graph.nodes[id].inputs;
        if !(2..=MAX_OUTCOMES).contains(&inputs.len()) {
            return None;
        }
        let states: Vec<Rc<Vec<Outcome>>> =
            inputs.iter().map(|&input| self.output_state(graph, input)).collect::<Option<_>>()?;
        let (first, second) = (&states[0], &states[1]);
        if states.iter().any(|state| state.len() != first.len()) {
            return None;
        }
        let at = (0..first.len()).find(|&i| first[i] != second[i])?;
        let predicate = first[at].predicate;
        let mut sides = vec![None; self.outcomes(predicate)];
        if sides.len() != inputs.len() {
            return None;
        }
        for (input, state) in states.iter().enumerate() {
            let differs_here_only = (0..first.len()).all(|i| i == at || state[i] == first[i]);
            let side = sides.get_mut(state[at].number)?;
            if state[at].predicate != predicate || !differs_here_only || side.replace(input).is_some() {
                return None;
            }
        }
        let outer = first.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, o)| *o).collect();
        Some((Rc::new(outer), (predicate, sides.into_iter().collect::<Option<_>>()?)))
    }

    /// Describes a state: `'p' is true and 'q' is false`.
    pub(super) fn describe(&self, graph: &Graph, state: &State) -> String {
        match state {
            None => "a condition and its opposite hold".to_owned(),
            Some(outcomes) if outcomes.is_empty() => "anything holds".to_owned(),
            Some(outcomes) => {
                let outcomes: Vec<String> = outcomes.iter().map(|&o| describe(graph, o)).collect();
                outcomes.join(" and ")
            }
        }
    }
}

/// Describes an outcome: `'p' is true`, `'i' is 3`.
pub(super) fn describe(graph: &Graph, outcome: Outcome) -> String {
    let Outcome { predicate, number } = outcome;
    let name = &graph.nodes[predicate.node].name;
    if graph.output_type(predicate).base() == DataType::Bool {
        format!("'{name}' is {}", number == 1)
    } else {
        format!("'{name}' is {number}")
    }
}

/// The state in which both states hold.
fn join(a: &State, b: &State) -> State {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    if b.is_empty() || Rc::ptr_eq(a, b) {
        return Some(a.clone());
    }
    if a.is_empty() {
        return Some(b.clone());
    }
    let mut all: Vec<Outcome> = a.iter().chain(b.iter()).copied().collect();
    all.sort_unstable();
    all.dedup();
    let contradicts = all.windows(2).any(|pair| pair[0].predicate == pair[1].predicate);
    if contradicts { None } else { Some(Rc::new(all)) }
}

/// True if `outer` holds wherever `inner` holds.
pub(super) fn includes(inner: &[Outcome], outer: &[Outcome]) -> bool {
    outer.iter().all(|outcome| inner.contains(outcome))
}

/// True if two states exclude each other.
pub(super) fn excludes(a: &[Outcome], b: &[Outcome]) -> bool {
    a.iter().any(|x| b.iter().any(|y| x.predicate == y.predicate && x.number != y.number))
}
