//! The `If` or `Case` that replaces a conditional.

use super::branch::Branch;
use super::conditional::Conditional;
use super::nodes::{Choice, canonical, is_stateful, is_variable, push_arguments, push_index};
use super::roots::{Redirects, Roots, compact, effects_of};
use super::state::{Outcome, States};
use super::weak::WeakEdges;
use super::{Assumptions, Inherited, replace_within};
use crate::{Function, FunctionLibrary, Graph, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Error, Result};

/// The graph around a conditional.
pub(super) struct Place<'a> {
    /// All needed nodes, inputs first.
    pub(super) order: &'a [NodeId],
    /// Outputs that must be computed.
    pub(super) results: &'a [OutputId],
    pub(super) weak: &'a WeakEdges,
    /// State of each `If` added so far.
    pub(super) outer: &'a BTreeMap<NodeId, Rc<Vec<Outcome>>>,
}

/// Results of a conditional.
enum Output {
    /// An output of a `Merge`, or of a node in `Conditional::between`.
    Value(OutputId),
    /// Index of the input that a `Merge` forwards.
    Index(NodeId),
}

impl Conditional {
    /// Adds the `If` or `Case` and its branches. `moved` contains the nodes with effects that are
    /// already part of a branch. Returns the new node and the redirects to it.
    pub(super) fn build(
        &self,
        graph: &mut Graph,
        library: &mut FunctionLibrary,
        states: &States,
        moved: &mut BTreeSet<NodeId>,
        at: &Place<'_>,
        visits: &mut usize,
    ) -> Result<(NodeId, Redirects)> {
        let branches: Vec<Branch> = (0..states.outcomes(self.predicate))
            .map(|outcome| Branch::new(self, graph, states, outcome))
            .collect::<Result<_>>()?;
        for branch in &branches {
            branch.check(self, graph, states)?;
        }
        self.move_effects(graph, &branches, moved)?;
        let captures: BTreeSet<OutputId> = branches.iter().flat_map(|b| b.captures.iter().copied()).collect();
        let captures: Vec<OutputId> = captures.into_iter().collect();
        let mut waits_for: BTreeSet<NodeId> =
            branches.iter().flat_map(|b| b.waits_for.iter().copied()).collect();
        for merge in self.merges.keys() {
            let outside = |id: &&NodeId| !branches.iter().any(|b| b.nodes.contains(id));
            waits_for.extend(graph.nodes[*merge].control_inputs.iter().filter(outside));
        }
        waits_for.remove(&self.predicate.node);
        waits_for.retain(|id| !self.merges.contains_key(id) && !self.between.contains(id));
        let base = match (self.merges.first_key_value(), self.effects.first()) {
            (Some((merge, _)), _) => graph.nodes[*merge].name.clone(),
            (None, Some(effect)) => format!("{}/cond", graph.nodes[*effect].name),
            (None, None) => return Err(Error::internal("the conditional has neither a Merge nor an effect")),
        };
        let outputs = self.outputs(graph, states, &branches, at);
        let mut functions = Vec::new();
        let mut has_effects = false;
        for branch in &branches {
            let side = match (branches.len(), branch.outcome) {
                (2, 0) => "else".to_owned(),
                (2, _) => "then".to_owned(),
                (_, outcome) => format!("branch{outcome}"),
            };
            let name = library.unused_name(&format!("{base}_{side}"));
            let (mut function, inherited) = self.function(graph, states, branch, &captures, &outputs, at)?;
            function.name.clone_from(&name);
            if self.nests {
                function = replace_nested(function, library, inherited, visits)?;
            }
            has_effects |= !function.control_results.is_empty();
            library.insert(function);
            functions.push(name);
        }
        let output_types = outputs
            .iter()
            .map(|output| match output {
                Output::Value(value) => graph.output_type(*value),
                Output::Index(_) => crate::DataType::Int32,
            })
            .collect();
        let choice = Choice {
            name: base,
            selector: self.predicate,
            inputs: captures,
            control_inputs: waits_for.into_iter().collect(),
            output_types,
            functions: &functions,
            has_effects,
        };
        let node = choice.push(graph);
        let outputs = outputs.iter().enumerate().map(|(index, output)| match output {
            Output::Value(value) => (*value, OutputId { node, index }),
            Output::Index(merge) => (OutputId { node: *merge, index: 1 }, OutputId { node, index }),
        });
        let mut redirects = Redirects { outputs: outputs.collect(), nodes: BTreeMap::new() };
        redirects.nodes.extend(self.ends().chain(self.between.iter().copied()).map(|id| (id, node)));
        Ok((node, redirects))
    }

    /// Every `Merge`, and the outputs of nodes in `between` that are used outside of the branches.
    fn outputs(&self, graph: &Graph, states: &States, branches: &[Branch], at: &Place<'_>) -> Vec<Output> {
        let mut outputs = Vec::new();
        for &merge in self.merges.keys() {
            outputs.push(Output::Value(OutputId { node: merge, index: 0 }));
            if states.is_index_used(merge) {
                outputs.push(Output::Index(merge));
            }
        }
        if self.between.is_empty() {
            return outputs;
        }
        let inside: BTreeSet<NodeId> = branches.iter().flat_map(|b| b.nodes.iter().copied()).collect();
        let is_on_predicate = |id: NodeId| states.predicate(id) == Some(self.predicate);
        let is_outside =
            |id: &&NodeId| !inside.contains(id) && !self.merges.contains_key(id) && !is_on_predicate(**id);
        let users = at.order.iter().filter(is_outside).flat_map(|&id| graph.nodes[id].inputs.iter().copied());
        let mut exported = BTreeSet::new();
        for mut output in users.chain(at.results.iter().copied()) {
            while is_on_predicate(output.node) {
                output = graph.nodes[output.node].inputs[0];
            }
            if self.between.contains(&output.node) {
                exported.insert(output);
            }
        }
        outputs.extend(exported.into_iter().map(Output::Value));
        outputs
    }

    /// Marks the nodes with effects as moved into a branch. Rejects a node that is already part of
    /// one: a node with an effect runs only once.
    fn move_effects(&self, graph: &Graph, branches: &[Branch], moved: &mut BTreeSet<NodeId>) -> Result<()> {
        let body: BTreeSet<NodeId> = branches.iter().flat_map(|b| b.nodes.iter().copied()).collect();
        for id in body.into_iter().filter(|&id| is_stateful(&graph.nodes[id].op)) {
            let node = &graph.nodes[id];
            if !moved.insert(id) && !is_variable(&node.op) {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) has an effect, but two conditionals on '{}' need it, and one of them depends on \
                     the result of the other",
                    node.name, node.op, graph.nodes[self.predicate.node].name
                )));
            }
        }
        Ok(())
    }

    /// Converts a branch to a function without a name. Also returns the facts known about its
    /// nodes.
    fn function(
        &self,
        graph: &Graph,
        states: &States,
        branch: &Branch,
        captures: &[OutputId],
        outputs: &[Output],
        at: &Place<'_>,
    ) -> Result<(Function, Inherited)> {
        let mut body = Graph::new();
        let parameters: Vec<_> =
            captures.iter().enumerate().map(|(i, &o)| (format!("arg{i}"), graph.output_type(o))).collect();
        let arguments = push_arguments(&mut body, &parameters);
        let argument_of: BTreeMap<OutputId, NodeId> =
            captures.iter().copied().zip(arguments.iter().copied()).collect();
        let mut ids: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let find = |ids: &BTreeMap<NodeId, NodeId>, output: OutputId| {
            let output = branch.source(self, graph, states, output);
            match (ids.get(&output.node), argument_of.get(&output)) {
                (Some(&node), _) => Some(OutputId { node, index: output.index }),
                (None, argument) => argument.map(|&node| OutputId { node, index: 0 }),
            }
        };
        let resolve = |ids: &BTreeMap<NodeId, NodeId>, output: OutputId| {
            find(ids, output).expect("the output is neither in the branch nor captured")
        };
        for &id in &branch.nodes {
            let mut node = graph.nodes[id].clone();
            node.inputs.iter_mut().for_each(|input| *input = resolve(&ids, *input));
            node.control_inputs = node.control_inputs.iter().filter_map(|c| ids.get(c).copied()).collect();
            ids.insert(id, body.nodes.push(node));
        }
        let results = outputs
            .iter()
            .map(|output| match output {
                Output::Value(value) => resolve(&ids, *value),
                Output::Index(merge) => {
                    let name = format!("{}/value_index", graph.nodes[*merge].name);
                    let input = self.merges[merge][branch.outcome];
                    OutputId { node: push_index(&mut body, &name, input), index: 0 }
                }
            })
            .collect();
        let mut control_results = effects_of(&body);
        control_results.extend(self.effects.iter().filter_map(|id| ids.get(id)));
        control_results.sort_unstable();
        control_results.dedup();
        let mut inherited = Inherited::default();
        if self.nests {
            let edge_inside = |(node, control)| Some((*ids.get(&node)?, *ids.get(&control)?));
            inherited.weak = at.weak.iter().filter_map(edge_inside).collect();
            for (id, outcomes) in at.outer.iter().filter_map(|(id, outcomes)| Some((*ids.get(id)?, outcomes)))
            {
                let rest = outcomes.iter().filter(|outcome| outcome.predicate != self.predicate);
                let mut rest: Vec<Outcome> = rest
                    .map(|outcome| {
                        let predicate = canonical(&body, find(&ids, outcome.predicate)?);
                        Some(Outcome { predicate, ..*outcome })
                    })
                    .collect::<Option<_>>()
                    .ok_or_else(|| {
                        Error::unsupported(format!(
                            "the predicate that decides if node '{}' (op {}) runs is not available in the branch of '{}'",
                            body.nodes[id].name, body.nodes[id].op, graph.nodes[self.predicate.node].name
                        ))
                    })?;
                rest.sort_unstable();
                inherited.outer.insert(id, Rc::new(rest));
            }
        }
        Ok((Function { name: String::new(), graph: body, arguments, results, control_results }, inherited))
    }
}

/// Replaces the conditionals inside a branch.
fn replace_nested(
    function: Function,
    library: &mut FunctionLibrary,
    inherited: Inherited,
    visits: &mut usize,
) -> Result<Function> {
    let Function { name, mut graph, arguments, results, control_results } = function;
    let roots = Roots { results, effects: control_results, name: "result" };
    let roots = replace_within(&mut graph, library, roots, &mut Assumptions::default(), inherited, visits)?;
    let new_ids = compact(&mut graph, &roots, &arguments);
    Ok(Function {
        name,
        control_results: effects_of(&graph),
        graph,
        arguments: arguments.iter().map(|id| new_ids[id]).collect(),
        results: roots.results.iter().map(|o| OutputId { node: new_ids[&o.node], ..*o }).collect(),
    })
}
