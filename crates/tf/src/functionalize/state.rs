//! Under which outcomes of predicates each node runs.

use super::{is_merge, is_switch};
use crate::{Graph, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Error, Id, Result};

/// The depth to which conditionals may nest.
const MAX_DEPTH: usize = 64;

/// A predicate and its outcome.
pub(super) type Outcome = (OutputId, bool);

/// The outcomes that must all hold, in order; `None` if they exclude each other, so that the node never runs.
pub(super) type State = Option<Rc<Vec<Outcome>>>;

/// A predicate, and which input of a `Merge` is the one under false and the one under true.
pub(super) type Sides = (OutputId, [usize; 2]);

/// The states of all nodes of a graph.
pub(super) struct States {
    states: Vec<State>,
    /// The predicate of each `Switch`, with copies by `Identity` looked through.
    predicates: BTreeMap<NodeId, OutputId>,
    /// First outputs of each `Merge` of which one input only can be alive, and that input.
    pub(super) redirects: BTreeMap<OutputId, OutputId>,
    /// Where each node stands in the order.
    positions: Vec<usize>,
    /// The nodes whose second output is used.
    second_used: BTreeSet<NodeId>,
}

impl States {
    /// Finds the states of the nodes in `order`, which has inputs first. `outer` has states that nodes have at least.
    pub(super) fn new(
        graph: &Graph,
        order: &[NodeId],
        outer: &BTreeMap<NodeId, Rc<Vec<Outcome>>>,
    ) -> Result<Self> {
        let mut states = Self {
            states: vec![Some(Rc::default()); graph.nodes.len()],
            predicates: BTreeMap::new(),
            redirects: BTreeMap::new(),
            positions: vec![0; graph.nodes.len()],
            second_used: BTreeSet::new(),
        };
        for (position, &id) in order.iter().enumerate() {
            states.positions[id.index()] = position;
            let inputs = graph.nodes[id].inputs.iter();
            states.second_used.extend(inputs.filter(|input| input.index == 1).map(|input| input.node));
        }
        for &id in order {
            let node = &graph.nodes[id];
            if is_switch(&node.op) {
                states.predicates.insert(id, canonical(graph, node.inputs[1]));
            }
            let state = if is_merge(&node.op) { states.merged(graph, id)? } else { states.joined(graph, id) };
            if state.as_ref().is_some_and(|s| s.len() > MAX_DEPTH) {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) stands in conditionals more than {MAX_DEPTH} deep",
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

    /// Where a node stands in the order.
    pub(super) fn position(&self, id: NodeId) -> usize {
        self.positions[id.index()]
    }

    /// Whether someone uses the number of the input that a `Merge` took.
    pub(super) fn is_index_used(&self, merge: NodeId) -> bool {
        self.second_used.contains(&merge)
    }

    /// The state of a node.
    pub(super) fn of_node(&self, id: NodeId) -> &State {
        &self.states[id.index()]
    }

    /// The state of an output: for a `Switch`, with its outcome.
    pub(super) fn of_output(&self, graph: &Graph, output: OutputId) -> State {
        let state = self.of_node(output.node);
        match self.predicates.get(&output.node) {
            Some(&predicate) if is_switch(&graph.nodes[output.node].op) => {
                join(state, &Some(Rc::new(vec![(predicate, output.index == 1)])))
            }
            _ => state.clone(),
        }
    }

    /// The predicate of a `Switch`.
    pub(super) fn predicate(&self, id: NodeId) -> Option<OutputId> {
        self.predicates.get(&id).copied()
    }

    /// A node runs if all its inputs are alive.
    fn joined(&self, graph: &Graph, id: NodeId) -> State {
        let node = &graph.nodes[id];
        let data = node.inputs.iter().map(|&input| self.of_output(graph, input));
        let control = node.control_inputs.iter().map(|&input| self.of_node(input).clone());
        let mut state = Some(Rc::default());
        for input in data.chain(control) {
            state = join(&state, &input);
        }
        state
    }

    /// A `Merge` runs if one of its inputs is alive: under what the inputs have in common.
    fn merged(&mut self, graph: &Graph, id: NodeId) -> Result<State> {
        let node = &graph.nodes[id];
        let inputs: Vec<State> = node.inputs.iter().map(|&input| self.of_output(graph, input)).collect();
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
                        "node '{}' (op {}) does not join the two sides of one Switch: it takes {}",
                        node.name,
                        node.op,
                        described.join(", ")
                    )));
                }
            },
        };
        let mut state = state;
        for &input in &node.control_inputs {
            state = join(&state, self.of_node(input));
        }
        Ok(state)
    }

    /// For a `Merge` of two inputs that differ in one predicate's outcome only: the rest of their states, and its sides.
    pub(super) fn sides(&self, graph: &Graph, id: NodeId) -> Option<(Rc<Vec<Outcome>>, Sides)> {
        let &[first, second] = graph.nodes[id].inputs.as_slice() else { return None };
        let (first, second) = (self.of_output(graph, first)?, self.of_output(graph, second)?);
        if first.len() != second.len() {
            return None;
        }
        let mut differing = (0..first.len()).filter(|&i| first[i] != second[i]);
        let at = differing.next()?;
        if differing.next().is_some() || first[at].0 != second[at].0 {
            return None;
        }
        let outer = first.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, o)| *o).collect();
        let inputs = if first[at].1 { [1, 0] } else { [0, 1] };
        Some((Rc::new(outer), (first[at].0, inputs)))
    }

    /// The state in words: `'p' is true and 'q' is false`.
    pub(super) fn describe(&self, graph: &Graph, state: &State) -> String {
        match state {
            None => "a condition and its opposite hold".to_owned(),
            Some(outcomes) if outcomes.is_empty() => "anything holds".to_owned(),
            Some(outcomes) => {
                let outcomes: Vec<String> = outcomes
                    .iter()
                    .map(|(predicate, outcome)| {
                        format!("'{}' is {outcome}", graph.nodes[predicate.node].name)
                    })
                    .collect();
                outcomes.join(" and ")
            }
        }
    }
}

/// What a predicate is a copy of.
fn canonical(graph: &Graph, mut output: OutputId) -> OutputId {
    while let "Identity" | "RefIdentity" = graph.nodes[output.node].op.as_str() {
        output = graph.nodes[output.node].inputs[0];
    }
    output
}

/// Both states at once.
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
    let contradicts = all.windows(2).any(|pair| pair[0].0 == pair[1].0);
    if contradicts { None } else { Some(Rc::new(all)) }
}
