//! The `While` of a loop, its functions, and the nodes that run after it.

use super::parts::{Capture, Part, Source};
use super::sides::{Loop, Side};
use super::tree::{FrameId, Frames};
use crate::functionalize::nodes::{
    Repetition, become_identity, is_read, is_stateful, push_arguments, push_identity, push_pivot,
};
use crate::functionalize::roots::{Roots, compact, effects_of};
use crate::functionalize::{Assumption, Assumptions, replace_conditionals};
use crate::{DataType, Function, FunctionLibrary, Graph, Node, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// A node of the frame to copy, with its inputs.
struct NodeCopy {
    id: NodeId,
    node: Node,
    inputs: Vec<Input>,
}

/// Kinds of inputs of a copied node.
#[derive(Clone, Copy)]
enum Input {
    Variable(usize),
    Outside(Capture),
    Copy(OutputId),
}

/// A part of the loop, taken out of the graph but not yet a function.
struct Draft {
    nodes: Vec<NodeCopy>,
    results: Vec<Input>,
    effects: Vec<NodeId>,
    /// Nodes that only read variables and run before all other stateful nodes.
    reads_first: Vec<NodeId>,
}

/// The graph to which the replacement of a loop is added.
pub(super) struct Target<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) library: &'a mut FunctionLibrary,
    pub(super) frames: &'a mut Frames,
    /// The names of all nodes of the graph.
    pub(super) names: &'a mut BTreeSet<String>,
}

impl Target<'_> {
    /// Returns a name derived from `base` that no node has yet.
    fn unused_name(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 0;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    /// The value that enters a frame. Adds an `Identity` that reads a reference where the frame
    /// expects a value.
    fn enter(&mut self, parent: Option<FrameId>, name: &str, capture: Capture) -> OutputId {
        let Capture { output, data_type } = capture;
        if !self.graph.output_type(output).is_ref() || data_type.is_ref() {
            return output;
        }
        let name = self.unused_name(name);
        let node = push_identity(self.graph, &name, output);
        self.frames.set(node, parent);
        OutputId { node, index: 0 }
    }
}

/// Everything needed to replace a frame.
pub(super) struct Plan {
    frame: FrameId,
    /// The nodes of the frame, with their sides.
    sides: BTreeMap<NodeId, Side>,
    /// Initial value of each loop variable, with its type inside the frame, and its name.
    initial: Vec<(Capture, String)>,
    /// Loop invariants, with their names.
    invariants: Vec<(Capture, String)>,
    /// Outside nodes that must run before the loop.
    waits_for: BTreeSet<NodeId>,
    cond: Draft,
    body: Draft,
    after: Draft,
    /// Each `Exit` with its value.
    exits: Vec<(NodeId, Input)>,
}

impl Plan {
    /// Partitions the nodes of a loop.
    pub(super) fn new(source_loop: &Loop<'_>) -> Result<Self> {
        let graph = source_loop.graph;
        let input = |id: &NodeId| graph.nodes[*id].inputs[0];
        let next: Vec<OutputId> = source_loop.variables.iter().map(|v| input(&v.next)).collect();
        let exit_values: Vec<OutputId> = source_loop.exits.iter().map(input).collect();
        let cond = Part::new(source_loop, Side::Always, &[source_loop.predicate])?;
        let body = Part::new(source_loop, Side::Continue, &next)?;
        let after = Part::new(source_loop, Side::Leave, &exit_values)?;
        let mut waits_for: BTreeSet<NodeId> = cond.waits_for.union(&body.waits_for).copied().collect();
        let mut initial = Vec::new();
        for variable in &source_loop.variables {
            let (merge, enter) = (&graph.nodes[variable.merge], &graph.nodes[variable.enter]);
            let capture = Capture { output: enter.inputs[0], data_type: merge.output_types[0] };
            initial.push((capture, merge.name.clone()));
            let controls = enter.control_inputs.iter().chain(&merge.control_inputs).copied();
            waits_for.extend(
                controls.filter(|&control| source_loop.frames.frame_of(control) != Some(source_loop.frame)),
            );
        }
        let captures: BTreeSet<Capture> = cond.captures.union(&body.captures).copied().collect();
        let name = |output: OutputId| match (&graph.nodes[output.node].name, output.index) {
            (name, 0) => name.clone(),
            (name, index) => format!("{name}:{index}"),
        };
        Ok(Self {
            frame: source_loop.frame,
            sides: source_loop.nodes.iter().map(|&id| (id, source_loop.side(id))).collect(),
            initial,
            invariants: captures.into_iter().map(|capture| (capture, name(capture.output))).collect(),
            waits_for,
            cond: draft(source_loop, &cond, &[source_loop.predicate])?,
            body: draft(source_loop, &body, &next)?,
            exits: source_loop
                .exits
                .iter()
                .map(|exit| Ok((*exit, source(source_loop, input(exit))?)))
                .collect::<Result<_>>()?,
            after: draft(source_loop, &after, &[])?,
        })
    }

    /// Adds the `While` and the nodes that run after it. Returns the replacement of each node of
    /// the frame, for redirecting control inputs.
    pub(super) fn build(self, target: &mut Target<'_>) -> Result<BTreeMap<NodeId, NodeId>> {
        let frame = &target.frames[self.frame];
        let (parent, name) = (frame.parent, frame.name.clone());
        let name = target.unused_name(match name.trim_end_matches('/') {
            "" => "while",
            name => name,
        });
        let arguments: Vec<&(Capture, String)> = self.initial.iter().chain(&self.invariants).collect();
        let types: Vec<DataType> = arguments.iter().map(|(capture, _)| capture.data_type).collect();
        let mut inputs = Vec::new();
        for (capture, argument) in &arguments {
            inputs.push(target.enter(parent, &format!("{name}/{argument}"), *capture));
        }
        let mut assumed = BTreeMap::new();
        let cond = self.function(&self.cond, target.library, &format!("{name}_cond"), false, &mut assumed)?;
        let body = self.function(&self.body, target.library, &format!("{name}_body"), true, &mut assumed)?;
        let mut control_inputs: Vec<NodeId> = self.waits_for.iter().copied().collect();
        for (&argument, &assumption) in &assumed {
            let pivot = target.unused_name(&format!("{name}/pivot"));
            let pivot = push_pivot(target.graph, &pivot, inputs[argument], assumption);
            pivot.iter().for_each(|&id| target.frames.set(id, parent));
            control_inputs.push(pivot[1]);
        }
        let has_effects = [&cond, &body].iter().any(|f| !f.control_results.is_empty());
        let repetition = Repetition {
            name,
            inputs,
            control_inputs,
            output_types: types,
            cond: cond.name.clone(),
            body: body.name.clone(),
            has_effects,
        };
        target.library.insert(cond);
        target.library.insert(body);
        let node = repetition.push(target.graph);
        target.frames.set(node, parent);
        Ok(self.finish(target, node, parent))
    }

    /// Copies the nodes that run when the loop ends to after the `While`, and turns each `Exit`
    /// into an `Identity` of its value.
    fn finish(
        &self,
        target: &mut Target<'_>,
        node: NodeId,
        parent: Option<FrameId>,
    ) -> BTreeMap<NodeId, NodeId> {
        let mut replacements: BTreeMap<NodeId, NodeId> = self.sides.keys().map(|&id| (id, node)).collect();
        let mut copies: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let mut outside: BTreeMap<Capture, OutputId> = BTreeMap::new();
        for (k, (capture, _)) in self.invariants.iter().enumerate() {
            outside.insert(*capture, OutputId { node, index: self.initial.len() + k });
        }
        let mut resolve = |target: &mut Target<'_>, copies: &BTreeMap<NodeId, NodeId>, input| match input {
            Input::Variable(index) => OutputId { node, index },
            Input::Copy(output) => OutputId { node: copies[&output.node], ..output },
            Input::Outside(capture) => *outside.entry(capture).or_insert_with(|| {
                let name = format!("{}/left", target.graph.nodes[capture.output.node].name);
                target.enter(parent, &name, capture)
            }),
        };
        let redirect = |controls: &[NodeId], replacements: &BTreeMap<NodeId, NodeId>| -> BTreeSet<NodeId> {
            controls.iter().map(|control| replacements.get(control).copied().unwrap_or(*control)).collect()
        };
        for copied in &self.after.nodes {
            let mut new_node = copied.node.clone();
            new_node.inputs = copied.inputs.iter().map(|&input| resolve(target, &copies, input)).collect();
            let mut controls = redirect(&new_node.control_inputs, &replacements);
            if is_stateful(&copied.node.op) {
                controls.insert(node);
            }
            new_node.control_inputs = controls.into_iter().collect();
            let copy = target.graph.nodes.push(new_node);
            target.frames.set(copy, parent);
            copies.insert(copied.id, copy);
            if self.sides[&copied.id] == Side::Leave {
                replacements.insert(copied.id, copy);
            }
        }
        for &(exit, input) in &self.exits {
            let value = resolve(target, &copies, input);
            let mut controls = redirect(&target.graph.nodes[exit].control_inputs, &replacements);
            controls.insert(node);
            become_identity(target.graph, exit, value);
            target.graph.nodes[exit].control_inputs = controls.into_iter().collect();
        }
        replacements
    }

    /// Builds one of the two functions. The arguments of both are the loop variables and the
    /// invariants; the body also returns them. Adds to `assumed` the outcomes that arguments used
    /// as predicates must have for the loop to run at all.
    fn function(
        &self,
        draft: &Draft,
        library: &mut FunctionLibrary,
        name: &str,
        returns_invariants: bool,
        assumed: &mut BTreeMap<usize, Assumption>,
    ) -> Result<Function> {
        let mut graph = Graph::new();
        let all = self.initial.iter().chain(&self.invariants);
        let parameters: Vec<(String, DataType)> =
            all.map(|(capture, name)| (name.clone(), capture.data_type)).collect();
        let arguments = push_arguments(&mut graph, &parameters);
        let first_invariant = self.initial.len();
        let invariants: BTreeMap<Capture, NodeId> = self
            .invariants
            .iter()
            .zip(&arguments[first_invariant..])
            .map(|((capture, _), &argument)| (*capture, argument))
            .collect();
        let mut ids: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let resolve = |ids: &BTreeMap<NodeId, NodeId>, input: Input| match input {
            Input::Variable(index) => OutputId { node: arguments[index], index: 0 },
            Input::Outside(capture) => OutputId { node: invariants[&capture], index: 0 },
            Input::Copy(output) => OutputId { node: ids[&output.node], ..output },
        };
        for copied in &draft.nodes {
            let mut new_node = copied.node.clone();
            new_node.inputs = copied.inputs.iter().map(|&input| resolve(&ids, input)).collect();
            let mut controls: BTreeSet<NodeId> =
                new_node.control_inputs.iter().filter_map(|control| ids.get(control).copied()).collect();
            if is_stateful(&new_node.op) && !draft.reads_first.contains(&copied.id) {
                controls.extend(draft.reads_first.iter().filter_map(|read| ids.get(read)));
            }
            new_node.control_inputs = controls.into_iter().collect();
            ids.insert(copied.id, graph.nodes.push(new_node));
        }
        let mut results: Vec<OutputId> = draft.results.iter().map(|&input| resolve(&ids, input)).collect();
        if returns_invariants {
            results.extend(arguments[first_invariant..].iter().map(|&node| OutputId { node, index: 0 }));
        }
        let effects = draft.effects.iter().map(|id| ids[id]).collect();
        let roots = Roots { results, effects, name: "result" };
        let argument = |number: usize| OutputId { node: arguments[number], index: 0 };
        let mut assumptions = Assumptions {
            from_outside: (first_invariant..arguments.len()).map(argument).collect(),
            outcomes: assumed.iter().map(|(&number, &assumption)| (argument(number), assumption)).collect(),
        };
        let roots = replace_conditionals(&mut graph, library, roots, &mut assumptions)?;
        for (number, &argument) in arguments.iter().enumerate() {
            let assumption = assumptions.outcomes.get(&OutputId { node: argument, index: 0 });
            assumed.extend(assumption.map(|&assumption| (number, assumption)));
        }
        let new_ids = compact(&mut graph, &roots, &arguments);
        Ok(Function {
            name: library.unused_name(name),
            control_results: effects_of(&graph),
            graph,
            arguments: arguments.iter().map(|id| new_ids[id]).collect(),
            results: roots.results.iter().map(|o| OutputId { node: new_ids[&o.node], ..*o }).collect(),
        })
    }
}

/// Copies a part out of its graph.
fn draft(source_loop: &Loop<'_>, part: &Part, results: &[OutputId]) -> Result<Draft> {
    // Nodes that always run depend only on nodes that always run, so they can come first.
    let (first, rest): (Vec<NodeId>, Vec<NodeId>) =
        part.nodes.iter().partition(|&&id| source_loop.side(id) == Side::Always);
    let is_first_read = |id: &NodeId| part.side != Side::Always && is_read(&source_loop.graph.nodes[*id].op);
    let reads_first = first.iter().copied().filter(is_first_read).collect();
    let copied = |id: NodeId| {
        let node = source_loop.graph.nodes[id].clone();
        let inputs = node.inputs.iter().map(|&input| source(source_loop, input)).collect::<Result<_>>()?;
        Ok(NodeCopy { id, node, inputs })
    };
    Ok(Draft {
        nodes: first.into_iter().chain(rest).map(copied).collect::<Result<_>>()?,
        results: results.iter().map(|&output| source(source_loop, output)).collect::<Result<_>>()?,
        effects: part.effects.clone(),
        reads_first,
    })
}

fn source(source_loop: &Loop<'_>, output: OutputId) -> Result<Input> {
    Ok(match source_loop.source(output)? {
        Source::Variable(index) => Input::Variable(index),
        Source::Outside(capture) => Input::Outside(capture),
        Source::Node(output) => Input::Copy(output),
    })
}
