//! One branch of a conditional.

use super::conditional::Conditional;
use super::nodes::{is_merge, is_stateful, is_switch, is_variable};
use super::state::{Outcome, States, describe, includes};
use crate::{Graph, NodeId, OutputId};
use std::collections::BTreeSet;
use support::{Error, Result};

/// A branch, before it becomes a function.
pub(super) struct Branch {
    /// Outcome of the predicate under which the branch runs.
    pub(super) outcome: usize,
    /// The nodes of the body, inputs first.
    pub(super) nodes: Vec<NodeId>,
    /// Values from outside that the body reads.
    pub(super) captures: BTreeSet<OutputId>,
    /// Outside nodes that must run first.
    pub(super) waits_for: BTreeSet<NodeId>,
}

impl Branch {
    /// Collects the nodes of a branch backwards from its results and effects.
    pub(super) fn new(
        conditional: &Conditional,
        graph: &Graph,
        states: &States,
        outcome: usize,
    ) -> Result<Self> {
        let mut branch =
            Self { outcome, nodes: Vec::new(), captures: BTreeSet::new(), waits_for: BTreeSet::new() };
        let is_inside = |id: NodeId| branch_has(conditional, states, outcome, id);
        let mut nodes = BTreeSet::new();
        let mut work: Vec<NodeId> = conditional.effects.iter().copied().filter(|&id| is_inside(id)).collect();
        work.extend(&conditional.between);
        for &merge in conditional.merges.keys() {
            branch.visit(conditional, graph, states, OutputId { node: merge, index: 0 }, &mut work)?;
        }
        while let Some(id) = work.pop() {
            if !nodes.insert(id) {
                continue;
            }
            for &input in &graph.nodes[id].inputs {
                branch.visit(conditional, graph, states, input, &mut work)?;
            }
            for &control in &graph.nodes[id].control_inputs {
                match conditional.outcome_of(states, control) {
                    _ if is_inside(control) => work.push(control),
                    // The control input never runs when this branch does.
                    Some(other) if other != outcome => {}
                    _ => {
                        branch.waits_for.insert(control);
                    }
                }
            }
        }
        branch.nodes = nodes.into_iter().collect();
        branch.nodes.sort_by_key(|&id| states.position(id));
        Ok(branch)
    }

    /// Records what an output requires: a node of the branch, or a value from outside.
    fn visit(
        &mut self,
        conditional: &Conditional,
        graph: &Graph,
        states: &States,
        output: OutputId,
        work: &mut Vec<NodeId>,
    ) -> Result<()> {
        let mut at = output;
        while let Some(next) = self.step(conditional, graph, states, at) {
            let node = &graph.nodes[at.node];
            if is_switch(&node.op) {
                if at.index != self.outcome {
                    return Err(Error::unsupported(format!(
                        "the branch for {} uses another output of node '{}' (op {}), which is dead there",
                        describe(graph, Outcome { predicate: conditional.predicate, number: self.outcome }),
                        node.name,
                        node.op
                    )));
                }
                self.waits_for.extend(node.control_inputs.iter().copied().filter(|&control| {
                    conditional.outcome_of(states, control).is_none_or(|o| o == self.outcome)
                }));
            }
            at = next;
        }
        // A node that also runs under other outcomes is copied into the branch, because it cannot
        // be captured from outside.
        let is_partial = || {
            let state = states.output_state(graph, at);
            conditional.nests && state.is_none_or(|state| !includes(&conditional.outer, &state))
        };
        if branch_has(conditional, states, self.outcome, at.node) || is_partial() {
            work.push(at.node);
        } else {
            self.captures.insert(at);
        }
        Ok(())
    }

    /// Replacement of an output within the branch.
    pub(super) fn source(
        &self,
        conditional: &Conditional,
        graph: &Graph,
        states: &States,
        mut output: OutputId,
    ) -> OutputId {
        while let Some(next) = self.step(conditional, graph, states, output) {
            output = next;
        }
        output
    }

    /// Input that an output forwards in this branch: the data input of a `Switch` on the predicate,
    /// or the branch's input of a `Merge` of the conditional.
    fn step(
        &self,
        conditional: &Conditional,
        graph: &Graph,
        states: &States,
        output: OutputId,
    ) -> Option<OutputId> {
        let node = &graph.nodes[output.node];
        if let Some(inputs) = conditional.merges.get(&output.node) {
            return Some(node.inputs[inputs[self.outcome]]);
        }
        let is_on_predicate =
            is_switch(&node.op) && states.predicate(output.node) == Some(conditional.predicate);
        is_on_predicate.then(|| node.inputs[0])
    }

    /// Rejects a branch that still contains control flow. If the conditional nests others, rejects
    /// a branch that would run a node of another conditional a second time.
    pub(super) fn check(&self, conditional: &Conditional, graph: &Graph, states: &States) -> Result<()> {
        if conditional.nests {
            let is_own = |id: NodeId| branch_has(conditional, states, self.outcome, id);
            let runs_once = |id: NodeId| {
                let op = graph.nodes[id].op.as_str();
                (is_stateful(op) && !is_variable(op)) || op == "StatelessWhile"
            };
            return match self.nodes.iter().find(|&&id| !is_own(id) && runs_once(id)) {
                Some(&id) => Err(Error::unsupported(format!(
                    "node '{}' (op {}) runs in one conditional, but a branch of the conditional on '{}' also needs it",
                    graph.nodes[id].name, graph.nodes[id].op, graph.nodes[conditional.predicate.node].name
                ))),
                None => Ok(()),
            };
        }
        let is_unreplaced =
            |id: &&NodeId| is_switch(&graph.nodes[**id].op) || is_merge(&graph.nodes[**id].op);
        match self.nodes.iter().find(is_unreplaced) {
            Some(&id) => Err(Error::unsupported(format!(
                "node '{}' (op {}) is in a branch of the conditional on '{}', but no Merge in that branch joins its outputs, \
                 for example because the gradient of a loop in a nested conditional needs that loop: build the graph with \
                 functional control flow by calling tf.compat.v1.enable_control_flow_v2()",
                graph.nodes[id].name, graph.nodes[id].op, graph.nodes[conditional.predicate.node].name
            ))),
            None => Ok(()),
        }
    }
}

/// True if a node belongs in the branch.
fn branch_has(conditional: &Conditional, states: &States, outcome: usize, id: NodeId) -> bool {
    conditional.outcome_of(states, id) == Some(outcome) || conditional.between.contains(&id)
}
