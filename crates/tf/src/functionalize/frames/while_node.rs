//! The `While` of a loop, its functions, and what is computed after it.

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

/// A node of the frame whose inputs are known, to be copied.
struct Copied {
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

/// A function on its way.
struct Draft {
    nodes: Vec<Copied>,
    results: Vec<Input>,
    effects: Vec<NodeId>,
    /// Nodes that only read, and that run before all others that have effects.
    reads_first: Vec<NodeId>,
}

/// Graph that the replacement of a loop is added to.
pub(super) struct Target<'a> {
    pub(super) graph: &'a mut Graph,
    pub(super) library: &'a mut FunctionLibrary,
    pub(super) frames: &'a mut Frames,
    /// The names of all nodes of the graph.
    pub(super) names: &'a mut BTreeSet<String>,
}

impl Target<'_> {
    /// A name that no node has yet, made from `base`.
    fn unused_name(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 0;
        while !self.names.insert(name.clone()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }

    /// Value that enters a frame. References are read where a value is expected.
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

/// All that replaces a frame.
pub(super) struct Plan {
    frame: FrameId,
    /// The nodes of the frame, and when each runs.
    sides: BTreeMap<NodeId, Side>,
    /// The value of each loop variable before the loop, with its type inside, and its name.
    initial: Vec<(Capture, String)>,
    /// Loop invariants, with their names.
    invariants: Vec<(Capture, String)>,
    waits_for: BTreeSet<NodeId>,
    cond: Draft,
    body: Draft,
    after: Draft,
    /// Each `Exit` with its value.
    exits: Vec<(NodeId, Input)>,
}

impl Plan {
    /// Parts the nodes of a loop.
    pub(super) fn new(of: &Loop<'_>) -> Result<Self> {
        let graph = of.graph;
        let input = |id: &NodeId| graph.nodes[*id].inputs[0];
        let next: Vec<OutputId> = of.variables.iter().map(|v| input(&v.next)).collect();
        let left: Vec<OutputId> = of.exits.iter().map(input).collect();
        let cond = Part::new(of, Side::Always, &[of.predicate])?;
        let body = Part::new(of, Side::Continue, &next)?;
        let after = Part::new(of, Side::Leave, &left)?;
        let mut waits_for: BTreeSet<NodeId> = cond.waits_for.union(&body.waits_for).copied().collect();
        let mut initial = Vec::new();
        for variable in &of.variables {
            let (merge, enter) = (&graph.nodes[variable.merge], &graph.nodes[variable.enter]);
            let capture = Capture { output: enter.inputs[0], data_type: merge.output_types[0] };
            initial.push((capture, merge.name.clone()));
            let controls = enter.control_inputs.iter().chain(&merge.control_inputs).copied();
            waits_for.extend(controls.filter(|&control| of.frames.of(control) != Some(of.frame)));
        }
        let captures: BTreeSet<Capture> = cond.captures.union(&body.captures).copied().collect();
        let name = |output: OutputId| match (&graph.nodes[output.node].name, output.index) {
            (name, 0) => name.clone(),
            (name, index) => format!("{name}:{index}"),
        };
        Ok(Self {
            frame: of.frame,
            sides: of.nodes.iter().map(|&id| (id, of.side(id))).collect(),
            initial,
            invariants: captures.into_iter().map(|capture| (capture, name(capture.output))).collect(),
            waits_for,
            cond: draft(of, &cond, &[of.predicate])?,
            body: draft(of, &body, &next)?,
            exits: of
                .exits
                .iter()
                .map(|exit| Ok((*exit, source(of, input(exit))?)))
                .collect::<Result<_>>()?,
            after: draft(of, &after, &[])?,
        })
    }

    /// Adds the `While`, and after it what is computed when it ends. The answer is what stands
    /// where the nodes of the frame stood, for those that wait for them.
    pub(super) fn build(self, target: &mut Target<'_>) -> Result<BTreeMap<NodeId, NodeId>> {
        let frame = &target.frames[self.frame];
        let (parent, name) = (frame.parent, frame.name.clone());
        let name = target.unused_name(match name.trim_end_matches('/') {
            "" => "while",
            name => name,
        });
        let arguments: Vec<&(Capture, String)> = self.initial.iter().chain(&self.invariants).collect();
        let types: Vec<DataType> = arguments.iter().map(|(capture, _)| capture.data_type).collect();
        let mut entered = Vec::new();
        for (capture, argument) in &arguments {
            entered.push(target.enter(parent, &format!("{name}/{argument}"), *capture));
        }
        let mut assumed = BTreeMap::new();
        let cond = self.function(&self.cond, target.library, &format!("{name}_cond"), false, &mut assumed)?;
        let body = self.function(&self.body, target.library, &format!("{name}_body"), true, &mut assumed)?;
        let mut control_inputs: Vec<NodeId> = self.waits_for.iter().copied().collect();
        for (&argument, &assumption) in &assumed {
            let pivot = target.unused_name(&format!("{name}/pivot"));
            let pivot = push_pivot(target.graph, &pivot, entered[argument], assumption);
            pivot.iter().for_each(|&id| target.frames.set(id, parent));
            control_inputs.push(pivot[1]);
        }
        let has_effects = [&cond, &body].iter().any(|f| !f.control_results.is_empty());
        let repetition = Repetition {
            name,
            inputs: entered,
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

    /// Copies the nodes that run when the loop ends to a place after the `While`, and turns each
    /// `Exit` into a copy of its value.
    fn finish(
        &self,
        target: &mut Target<'_>,
        node: NodeId,
        parent: Option<FrameId>,
    ) -> BTreeMap<NodeId, NodeId> {
        let mut stands_for: BTreeMap<NodeId, NodeId> = self.sides.keys().map(|&id| (id, node)).collect();
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
        let wait = |controls: &[NodeId], stands_for: &BTreeMap<NodeId, NodeId>| -> BTreeSet<NodeId> {
            controls.iter().map(|control| stands_for.get(control).copied().unwrap_or(*control)).collect()
        };
        for copied in &self.after.nodes {
            let mut made = copied.node.clone();
            made.inputs = copied.inputs.iter().map(|&input| resolve(target, &copies, input)).collect();
            let mut controls = wait(&made.control_inputs, &stands_for);
            if is_stateful(&copied.node.op) {
                controls.insert(node);
            }
            made.control_inputs = controls.into_iter().collect();
            let copy = target.graph.nodes.push(made);
            target.frames.set(copy, parent);
            copies.insert(copied.id, copy);
            if self.sides[&copied.id] == Side::Leave {
                stands_for.insert(copied.id, copy);
            }
        }
        for &(exit, input) in &self.exits {
            let value = resolve(target, &copies, input);
            let mut controls = wait(&target.graph.nodes[exit].control_inputs, &stands_for);
            controls.insert(node);
            become_identity(target.graph, exit, value);
            target.graph.nodes[exit].control_inputs = controls.into_iter().collect();
        }
        stands_for
    }

    /// Makes one of the two functions. Both take loop variables and invariants; the body returns
    /// them too. `assumed` gets what must hold of arguments that are predicates for the loop to run
    /// at all.
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
        let wanted: Vec<(String, DataType)> =
            all.map(|(capture, name)| (name.clone(), capture.data_type)).collect();
        let arguments = push_arguments(&mut graph, &wanted);
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
            let mut made = copied.node.clone();
            made.inputs = copied.inputs.iter().map(|&input| resolve(&ids, input)).collect();
            let mut controls: BTreeSet<NodeId> =
                made.control_inputs.iter().filter_map(|control| ids.get(control).copied()).collect();
            if is_stateful(&made.op) && !draft.reads_first.contains(&copied.id) {
                controls.extend(draft.reads_first.iter().filter_map(|read| ids.get(read)));
            }
            made.control_inputs = controls.into_iter().collect();
            ids.insert(copied.id, graph.nodes.push(made));
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
            let found = assumptions.outcomes.get(&OutputId { node: argument, index: 0 });
            assumed.extend(found.map(|&assumption| (number, assumption)));
        }
        let kept = compact(&mut graph, &roots, &arguments);
        Ok(Function {
            name: library.unused_name(name),
            control_results: effects_of(&graph),
            graph,
            arguments: arguments.iter().map(|id| kept[id]).collect(),
            results: roots.results.iter().map(|o| OutputId { node: kept[&o.node], ..*o }).collect(),
        })
    }
}

/// Takes a part out of its graph.
fn draft(of: &Loop<'_>, part: &Part, results: &[OutputId]) -> Result<Draft> {
    // Nodes that always run depend only on nodes that always run, so they can come first.
    let (first, rest): (Vec<NodeId>, Vec<NodeId>) =
        part.nodes.iter().partition(|&&id| of.side(id) == Side::Always);
    let is_first_read = |id: &NodeId| part.side != Side::Always && is_read(&of.graph.nodes[*id].op);
    let reads_first = first.iter().copied().filter(is_first_read).collect();
    let copied = |id: NodeId| {
        let node = of.graph.nodes[id].clone();
        let inputs = node.inputs.iter().map(|&input| source(of, input)).collect::<Result<_>>()?;
        Ok(Copied { id, node, inputs })
    };
    Ok(Draft {
        nodes: first.into_iter().chain(rest).map(copied).collect::<Result<_>>()?,
        results: results.iter().map(|&output| source(of, output)).collect::<Result<_>>()?,
        effects: part.effects.clone(),
        reads_first,
    })
}

fn source(of: &Loop<'_>, output: OutputId) -> Result<Input> {
    Ok(match of.source(output)? {
        Source::Variable(index) => Input::Variable(index),
        Source::Outside(capture) => Input::Outside(capture),
        Source::Node(output) => Input::Copy(output),
    })
}
