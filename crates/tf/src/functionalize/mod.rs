//! From control flow by `Switch` and `Merge` to functional `If`.
//!
//! In TensorFlow 1 a conditional is no node: `Switch` sends its data to one of two outputs, what is computed from the
//! other is dead, and `Merge` takes the input that is alive. So each node has a [state](state): the outcomes of
//! predicates under which it runs. Where a `Merge` joins the two outcomes of one predicate, the nodes that run under each
//! become the branches of an `If`. Inner conditionals are replaced before outer ones, because then a branch has no
//! control flow left when it becomes a function.

mod conditional;
mod state;

use crate::proto::attr_value::Value;
use crate::{Attributes, FunctionLibrary, Graph, Node, NodeId, OutputId, Program};
use conditional::Conditional;
use state::{Outcome, States};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Error, Id, Result};

/// The most nodes visited over all steps; it bounds the time that a hostile graph can take.
const MAX_VISITS: usize = 20_000_000;

/// Replaces V1 conditionals in the program's graph and in its functions. V1 loops are refused.
pub(crate) fn functionalize(program: &mut Program) -> Result<()> {
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
        let kept = compact(&mut function.graph, &roots, &function.arguments);
        function.arguments.iter_mut().for_each(|id| *id = kept[id]);
        function.results = roots.results.iter().map(|o| OutputId { node: kept[&o.node], ..*o }).collect();
        function.control_results = roots.effects.iter().map(|id| kept[id]).collect();
        program.library.insert(function);
    }
    if has_control_flow(&program.graph) {
        let results = program.fetches.iter().map(|f| f.tensor).collect();
        let roots = Roots { results, effects: Vec::new(), name: "fetch" };
        let roots = replace(&mut program.graph, &mut program.library, roots)?;
        let arguments: Vec<NodeId> = program.feeds.iter().map(|f| f.tensor.node).collect();
        let kept = compact(&mut program.graph, &roots, &arguments);
        for (fetch, root) in program.fetches.iter_mut().zip(&roots.results) {
            fetch.tensor = OutputId { node: kept[&root.node], ..*root };
        }
        program.feeds.iter_mut().for_each(|f| f.tensor.node = kept[&f.tensor.node]);
        for variable in &mut program.variables {
            variable.node = variable.node.and_then(|id| kept.get(&id).copied());
        }
    }
    Ok(())
}

/// What must be computed.
struct Roots {
    results: Vec<OutputId>,
    /// Nodes that run for their effect.
    effects: Vec<NodeId>,
    /// What a result is called in messages.
    name: &'static str,
}

impl Roots {
    fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.results.iter().map(|output| output.node).chain(self.effects.iter().copied())
    }
}

fn has_control_flow(graph: &Graph) -> bool {
    graph.nodes.values().any(|n| is_switch(&n.op) || is_merge(&n.op) || is_loop(&n.op))
}

fn is_switch(op: &str) -> bool {
    matches!(op, "Switch" | "RefSwitch")
}

fn is_merge(op: &str) -> bool {
    matches!(op, "Merge" | "RefMerge")
}

fn is_loop(op: &str) -> bool {
    matches!(
        op,
        "Enter" | "RefEnter" | "Exit" | "RefExit" | "NextIteration" | "RefNextIteration" | "LoopCond"
    )
}

/// Replaces all conditionals, the innermost first.
fn replace(graph: &mut Graph, library: &mut FunctionLibrary, mut roots: Roots) -> Result<Roots> {
    wait_for_inputs_of_switches(graph);
    let mut visits = 0usize;
    let mut done = Done::default();
    loop {
        let order = reachable(graph, &roots)?;
        refuse_loops(graph, &order)?;
        visits = visits.saturating_add(order.len());
        if visits > MAX_VISITS {
            return Err(Error::unsupported("the graph has too many conditionals by Switch and Merge"));
        }
        let states = States::new(graph, &order, &done.outer)?;
        if !states.redirects.is_empty() {
            refuse_index_of_dead(graph, &order, &states)?;
            redirect(graph, &mut roots, &states.redirects);
            continue;
        }
        let conditionals = Conditional::innermost(graph, &order, &states, &roots.effects);
        if conditionals.is_empty() {
            check_roots(graph, &roots, &states)?;
            return Ok(roots);
        }
        let mut redirects = BTreeMap::new();
        for conditional in &conditionals {
            let node = graph.nodes.next_id();
            redirects.extend(conditional.build(graph, library, &states, &mut done.moved)?);
            done.outer.insert(node, conditional.outer.clone());
            if !conditional.effects.is_empty() {
                roots.effects.retain(|id| !conditional.effects.contains(id));
                roots.effects.push(node);
            }
        }
        redirect(graph, &mut roots, &redirects);
    }
}

/// What the steps before have done.
#[derive(Default)]
struct Done {
    /// The state of each `If` made.
    outer: BTreeMap<NodeId, Rc<Vec<Outcome>>>,
    /// The nodes with effects that stand in a branch now.
    moved: BTreeSet<NodeId>,
}

/// Control inputs on a `Switch` become control inputs on copies of its inputs, which say the same: that it runs. A
/// variable waits for nothing, wherever it was created.
fn wait_for_inputs_of_switches(graph: &mut Graph) {
    let is_switch_at = |graph: &Graph, id: NodeId| is_switch(&graph.nodes[id].op);
    let mut copies: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for id in graph.nodes.ids() {
        if matches!(graph.nodes[id].op.as_str(), "VarHandleOp" | "VariableV2" | "Variable") {
            graph.nodes[id].control_inputs.clear();
        }
        let controls = graph.nodes[id].control_inputs.clone();
        for &switch in controls.iter().filter(|&&control| is_switch_at(graph, control)) {
            copies.entry(switch).or_default();
        }
    }
    for (switch, copies) in &mut copies {
        let node = graph.nodes[*switch].clone();
        for (input, what) in node.inputs.iter().zip(["data", "pred"]) {
            copies.push(push_identity(graph, &format!("{}/{what}", node.name), *input));
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

fn push_identity(graph: &mut Graph, name: &str, input: OutputId) -> NodeId {
    let data_type = graph.output_type(input).base();
    let values = BTreeMap::from([("T".to_owned(), Value::Type(data_type.number()).into())]);
    graph.nodes.push(Node {
        name: name.to_owned(),
        op: "Identity".to_owned(),
        inputs: vec![input],
        control_inputs: Vec::new(),
        attributes: Attributes::new(name, "Identity", values),
        output_types: vec![data_type],
    })
}

/// A `Merge` of which one input can be alive is that input, but the number of the input has no node to come from.
fn refuse_index_of_dead(graph: &Graph, order: &[NodeId], states: &States) -> Result<()> {
    let mut inputs = order.iter().flat_map(|&id| &graph.nodes[id].inputs);
    match inputs.find(|i| i.index == 1 && states.redirects.contains_key(&OutputId { index: 0, ..**i })) {
        Some(input) => Err(Error::unsupported(format!(
            "node '{}' (op {}) has inputs that never are alive, and its second output is used",
            graph.nodes[input.node].name, graph.nodes[input.node].op
        ))),
        None => Ok(()),
    }
}

/// The nodes that the roots need, inputs first.
fn reachable(graph: &Graph, roots: &Roots) -> Result<Vec<NodeId>> {
    let mut seen = vec![false; graph.nodes.len()];
    let mut work: Vec<NodeId> = roots.nodes().collect();
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut seen[id.index()], true) {
            let node = &graph.nodes[id];
            work.extend(
                node.inputs.iter().map(|input| input.node).chain(node.control_inputs.iter().copied()),
            );
        }
    }
    let order = graph.topological_order()?;
    Ok(order.into_iter().filter(|id| seen[id.index()]).collect())
}

fn refuse_loops(graph: &Graph, order: &[NodeId]) -> Result<()> {
    let mut frames: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut others = Vec::new();
    for &id in order.iter().filter(|&&id| is_loop(&graph.nodes[id].op)) {
        let node = &graph.nodes[id];
        match node.attributes.string("frame_name") {
            Ok(frame) => frames
                .entry(String::from_utf8_lossy(&frame).into_owned())
                .or_default()
                .push(format!("'{}'", node.name)),
            Err(_) => others.push(format!("'{}' (op {})", node.name, node.op)),
        }
    }
    if frames.is_empty() && others.is_empty() {
        return Ok(());
    }
    let frames: Vec<String> = frames
        .iter()
        .map(|(frame, enters)| {
            let more = if enters.len() > 4 { ", ..." } else { "" };
            let first: Vec<&str> = enters.iter().take(4).map(String::as_str).collect();
            format!("frame '{frame}' ({} Enter nodes: {}{more})", enters.len(), first.join(", "))
        })
        .collect();
    let culprits = if frames.is_empty() { others } else { frames };
    Err(Error::unsupported(format!(
        "while loops of TensorFlow 1 are not supported yet: {}; build the graph with control flow V2, which makes While \
         nodes",
        culprits.join("; ")
    )))
}

/// Makes every user of an output use another instead. A control input on a node that is gone moves to its replacement.
fn redirect(graph: &mut Graph, roots: &mut Roots, redirects: &BTreeMap<OutputId, OutputId>) {
    let follow = |mut output: OutputId| {
        // Replacements may be replaced too; a chain is never longer than their number.
        for _ in 0..redirects.len() {
            match redirects.get(&output) {
                Some(&next) => output = next,
                None => break,
            }
        }
        output
    };
    let merges: BTreeMap<NodeId, NodeId> = redirects
        .iter()
        .filter(|(from, to)| from.index == 0 && is_merge(&graph.nodes[from.node].op) && from.node != to.node)
        .map(|(from, _)| (from.node, follow(*from).node))
        .collect();
    for node in graph.nodes.values_mut() {
        node.inputs.iter_mut().for_each(|input| *input = follow(*input));
        if node.control_inputs.iter().any(|id| merges.contains_key(id)) {
            node.control_inputs.iter_mut().for_each(|id| *id = merges.get(id).copied().unwrap_or(*id));
            node.control_inputs.sort_unstable();
            node.control_inputs.dedup();
        }
    }
    roots.results.iter_mut().for_each(|output| *output = follow(*output));
    roots.effects.iter_mut().for_each(|id| *id = merges.get(id).copied().unwrap_or(*id));
}

/// What is computed in one branch only cannot be a result, because there is none in the other.
fn check_roots(graph: &Graph, roots: &Roots, states: &States) -> Result<()> {
    for output in &roots.results {
        let state = states.of_output(graph, *output);
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
    match roots.effects.iter().find(|&&id| states.of_node(id).as_ref().is_none_or(|s| !s.is_empty())) {
        Some(&id) => Err(Error::invalid(format!(
            "node '{}' (op {}) runs only if {}, which no Switch and Merge bring together again",
            graph.nodes[id].name,
            graph.nodes[id].op,
            states.describe(graph, states.of_node(id))
        ))),
        None => Ok(()),
    }
}

/// Drops nodes that neither roots nor arguments are or need. The answer is the new id of each node kept.
fn compact(graph: &mut Graph, roots: &Roots, arguments: &[NodeId]) -> BTreeMap<NodeId, NodeId> {
    let mut kept: BTreeSet<NodeId> = arguments.iter().copied().collect();
    let mut work: Vec<NodeId> = roots.nodes().collect();
    while let Some(id) = work.pop() {
        let node = &graph.nodes[id];
        if kept.insert(id) {
            work.extend(
                node.inputs.iter().map(|input| input.node).chain(node.control_inputs.iter().copied()),
            );
        }
    }
    let ids: BTreeMap<NodeId, NodeId> =
        kept.iter().enumerate().map(|(i, &id)| (id, NodeId::from_index(i))).collect();
    let mut nodes = std::mem::take(&mut graph.nodes);
    for (i, node) in nodes.values_mut().enumerate() {
        if !kept.contains(&NodeId::from_index(i)) {
            continue;
        }
        let mut node = node.clone();
        node.inputs.iter_mut().for_each(|input| input.node = ids[&input.node]);
        node.control_inputs.iter_mut().for_each(|id| *id = ids[id]);
        graph.nodes.push(node);
    }
    ids
}
