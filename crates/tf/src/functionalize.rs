//! Converts control flow by `Switch` and `Merge` to functional `While`, `If`, and `Case`.
//!
//! In TensorFlow 1, a conditional is not a node. `Switch` sends its data to one of two outputs,
//! everything computed from the other output is dead, and `Merge` forwards the input that is alive.
//! Each node therefore has a [state](state): the outcomes of predicates under which it runs. Where
//! a `Merge` joins all outcomes of one predicate, the nodes that run under each outcome become the
//! branches of an `If` or a `Case`. Inner conditionals are replaced before outer ones, so that a
//! branch has no control flow left when it becomes a function.
//!
//! A while loop is not a node either. Its nodes belong to a [frame](frames), which values enter
//! through `Enter` and leave through `Exit`. Loops are replaced before conditionals, and inner
//! loops before outer ones. Conditionals in a loop are replaced in the loop's functions.

mod branch;
mod conditional;
mod frames;
mod group;
mod nodes;
mod replacement;
mod roots;
mod state;
mod weak;

use crate::{FunctionLibrary, Graph, NodeId, OutputId, Program};
use nodes::{is_loop, is_merge, is_switch, is_variable, push_identity};
use replacement::Place;
use roots::{Redirects, Roots, compact, reachable};
use state::{Outcome, States, includes};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Error, Result};
use weak::WeakEdges;

/// Maximum number of nodes visited over all steps. Bounds the time spent on a hostile graph.
const MAX_VISITS: usize = 20_000_000;

/// Replaces V1 conditionals and loops in the program's graph and in its functions.
pub fn functionalize(program: &mut Program) -> Result<()> {
    let names: Vec<String> = program.library.functions().map(|f| f.name.clone()).collect();
    for name in names {
        let Some(function) = program.library.get(&name) else { continue };
        if !has_control_flow(&function.graph) {
            continue;
        }
        let mut function = function.clone();
        let at_function = |e: Error| e.context(format!("function '{name}'"));
        let roots = Roots { results: function.results, effects: function.control_results, name: "result" };
        let roots = replace(&mut function.graph, &mut program.library, roots).map_err(at_function)?;
        let new_ids = compact(&mut function.graph, &roots, &function.arguments);
        function.arguments.iter_mut().for_each(|id| *id = new_ids[id]);
        function.results = roots.results.iter().map(|o| OutputId { node: new_ids[&o.node], ..*o }).collect();
        function.control_results = roots.effects.iter().map(|id| new_ids[id]).collect();
        program.library.insert(function);
    }
    if has_control_flow(&program.graph) {
        let results = program.fetches.iter().map(|f| f.tensor).collect();
        let roots = Roots { results, effects: Vec::new(), name: "fetch" };
        let roots = replace(&mut program.graph, &mut program.library, roots)?;
        let arguments: Vec<NodeId> = program.feeds.iter().map(|f| f.tensor.node).collect();
        let new_ids = compact(&mut program.graph, &roots, &arguments);
        for (fetch, root) in program.fetches.iter_mut().zip(&roots.results) {
            fetch.tensor = OutputId { node: new_ids[&root.node], ..*root };
        }
        program.feeds.iter_mut().for_each(|f| f.tensor.node = new_ids[&f.tensor.node]);
        for variable in &mut program.variables {
            variable.node = variable.node.and_then(|id| new_ids.get(&id).copied());
        }
    }
    Ok(())
}

fn has_control_flow(graph: &Graph) -> bool {
    graph.nodes.values().any(|node| is_control_flow(&node.op))
}

/// True if an op belongs to the TensorFlow 1 control flow that this module replaces.
pub(crate) fn is_control_flow(op: &str) -> bool {
    is_switch(op) || is_merge(op) || is_loop(op)
}

/// Replaces all loops, then all conditionals outside of loops.
fn replace(graph: &mut Graph, library: &mut FunctionLibrary, mut roots: Roots) -> Result<Roots> {
    wait_for_inputs_of_switches(graph);
    frames::replace(graph, library, &mut roots)?;
    replace_conditionals(graph, library, roots, &mut Assumptions::default())
}

/// Outcomes that hold whenever a graph runs.
#[derive(Default)]
struct Assumptions {
    /// Predicates that come from outside. If a result has a value under only one outcome of such a
    /// predicate, then the graph runs only when that outcome holds.
    from_outside: BTreeSet<OutputId>,
    /// Outcomes known to hold.
    outcomes: BTreeMap<OutputId, Assumption>,
}

/// An outcome that holds, and the number of outcomes of its predicate.
#[derive(Clone, Copy)]
struct Assumption {
    outcome: usize,
    count: usize,
}

impl Assumptions {
    /// Adds the outcomes that results require. Returns true if there are new ones.
    fn extend(&mut self, graph: &Graph, roots: &Roots, states: &States) -> bool {
        let before = self.outcomes.len();
        let results = roots.results.iter().filter_map(|&result| states.output_state(graph, result));
        for Outcome { predicate, number } in results.flat_map(|state| state.to_vec()) {
            if self.from_outside.contains(&predicate) {
                let count = states.outcomes(predicate);
                self.outcomes.entry(predicate).or_insert(Assumption { outcome: number, count });
            }
        }
        self.outcomes.len() > before
    }
}

/// Replaces all conditionals, innermost first.
fn replace_conditionals(
    graph: &mut Graph,
    library: &mut FunctionLibrary,
    roots: Roots,
    assumptions: &mut Assumptions,
) -> Result<Roots> {
    replace_within(graph, library, roots, assumptions, Inherited::default(), &mut 0)
}

/// Facts about a branch's nodes, known from the graph that they come from.
#[derive(Default)]
struct Inherited {
    /// Weak control edges: each node that waits for another, but runs even if that one does not.
    weak: Vec<(NodeId, NodeId)>,
    /// State of each `If` added so far, within the branch.
    outer: BTreeMap<NodeId, Rc<Vec<Outcome>>>,
}

fn replace_within(
    graph: &mut Graph,
    library: &mut FunctionLibrary,
    mut roots: Roots,
    assumptions: &mut Assumptions,
    inherited: Inherited,
    visits: &mut usize,
) -> Result<Roots> {
    roots.reduce(graph)?;
    let order = reachable(graph, &roots)?;
    let mut weak = WeakEdges::new(graph, &order, &mut roots)?;
    inherited.weak.into_iter().for_each(|(node, control)| weak.insert(node, control));
    let mut progress = Progress { outer: inherited.outer, ..Progress::default() };
    loop {
        let order = reachable(graph, &roots)?;
        *visits = visits.saturating_add(order.len());
        if *visits > MAX_VISITS {
            return Err(Error::unsupported("the graph has too many conditionals of Switch and Merge nodes"));
        }
        let states =
            States::new(graph, &order, &roots.results, &progress.outer, &weak, &assumptions.outcomes)?;
        if assumptions.extend(graph, &roots, &states) {
            continue;
        }
        if !states.redirects.is_empty() {
            reject_index_of_dead(graph, &order, &roots, &states)?;
            let redirects = Redirects::of_merges(graph, states.redirects);
            redirects.apply(graph, &mut roots);
            weak.redirect(&redirects);
            continue;
        }
        states.add_effects(&weak, &order, &mut roots);
        let conditionals = group::innermost(graph, &order, &states, &roots.effects)?;
        if conditionals.is_empty() {
            check_roots(graph, &roots, &states)?;
            return Ok(roots);
        }
        let mut redirects = Redirects::default();
        for conditional in &conditionals {
            let at = Place { order: &order, results: &roots.results, weak: &weak, outer: &progress.outer };
            let (node, replacements) =
                conditional.build(graph, library, &states, &mut progress.moved, &at, visits)?;
            progress.outer.insert(node, conditional.outer.clone());
            for &control in &graph.nodes[node].control_inputs {
                let runs =
                    states.node_state(control).as_ref().is_some_and(|s| includes(&conditional.outer, s));
                if !runs {
                    weak.insert(node, control);
                }
            }
            redirects.outputs.extend(replacements.outputs);
            redirects.nodes.extend(replacements.nodes);
        }
        redirects.apply(graph, &mut roots);
        weak.redirect(&redirects);
    }
}

/// Results of the preceding steps.
#[derive(Default)]
struct Progress {
    /// State of each `If` added so far.
    outer: BTreeMap<NodeId, Rc<Vec<Outcome>>>,
    /// Nodes with effects that are already part of a branch.
    moved: BTreeSet<NodeId>,
}

/// Replaces control inputs from a `Switch` by control inputs from copies of its inputs, which are
/// alive exactly when the `Switch` runs. Also removes the control inputs of variables, whose
/// creation does not depend on its position.
fn wait_for_inputs_of_switches(graph: &mut Graph) {
    let is_switch_at = |graph: &Graph, id: NodeId| is_switch(&graph.nodes[id].op);
    let mut copies: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for id in graph.nodes.ids() {
        if is_variable(&graph.nodes[id].op) {
            graph.nodes[id].control_inputs.clear();
        }
        let controls = graph.nodes[id].control_inputs.clone();
        for &switch in controls.iter().filter(|&&control| is_switch_at(graph, control)) {
            copies.entry(switch).or_default();
        }
    }
    for (switch, copies) in &mut copies {
        let node = graph.nodes[*switch].clone();
        for (input, role) in node.inputs.iter().zip(["data", "pred"]) {
            copies.push(push_identity(graph, &format!("{}/{role}", node.name), *input));
        }
        copies.extend(node.control_inputs.iter().filter(|&&control| !is_switch_at(graph, control)));
    }
    for node in graph.nodes.values_mut() {
        if node.control_inputs.iter().any(|control| copies.contains_key(control)) {
            let controls: BTreeSet<NodeId> = node
                .control_inputs
                .iter()
                .flat_map(|control| copies.get(control).cloned().unwrap_or_else(|| vec![*control]))
                .collect();
            node.control_inputs = controls.into_iter().collect();
        }
    }
}

/// Rejects a use of the `value_index` output of a `Merge` with a single input that can be alive.
/// Such a `Merge` is replaced by that input, so no node computes the index.
fn reject_index_of_dead(graph: &Graph, order: &[NodeId], roots: &Roots, states: &States) -> Result<()> {
    let inputs = order.iter().flat_map(|&id| &graph.nodes[id].inputs);
    let mut uses = inputs.chain(&roots.results);
    match uses.find(|i| i.index == 1 && states.redirects.contains_key(&OutputId { index: 0, ..**i })) {
        Some(input) => Err(Error::unsupported(format!(
            "node '{}' (op {}) has inputs that are never alive, and its second output is used",
            graph.nodes[input.node].name, graph.nodes[input.node].op
        ))),
        None => Ok(()),
    }
}

/// Rejects results and effects that are computed only under some outcomes: they have no value, or
/// do not run, under the others.
fn check_roots(graph: &Graph, roots: &Roots, states: &States) -> Result<()> {
    for output in &roots.results {
        let state = states.output_state(graph, *output);
        if state.as_ref().is_some_and(|s| s.is_empty()) {
            continue;
        }
        let node = &graph.nodes[output.node];
        return Err(Error::invalid(format!(
            "{} '{}:{}' is computed only if {}: use the output of the Merge that joins both branches instead",
            roots.name,
            node.name,
            output.index,
            states.describe(graph, &state)
        )));
    }
    match roots.effects.iter().find(|&&id| states.node_state(id).as_ref().is_none_or(|s| !s.is_empty())) {
        Some(&id) => Err(Error::invalid(format!(
            "node '{}' (op {}) runs only if {}, but no Merge joins the branches",
            graph.nodes[id].name,
            graph.nodes[id].op,
            states.describe(graph, states.node_state(id))
        ))),
        None => Ok(()),
    }
}
