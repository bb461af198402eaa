//! One conditional, and the `If` that replaces it.

use super::state::{Outcome, States};
use super::{is_merge, is_switch};
use crate::op_def;
use crate::prepare::push_argument;
use crate::proto::{ListValue, NameAttrList, TensorProto, TensorShapeProto, attr_value::Value};
use crate::{Attributes, DataType, Function, FunctionLibrary, Graph, Node, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use support::{Error, Id, Result};

/// The nodes that end a conditional: they become the results of one `If`.
pub(super) struct Conditional {
    predicate: OutputId,
    /// The state of the place where it stands.
    pub(super) outer: Rc<Vec<Outcome>>,
    /// Each `Merge` with its input under false and its input under true.
    merges: Vec<(NodeId, [usize; 2])>,
    /// Nodes that run for their effect under the predicate being false, or being true.
    pub(super) effects: BTreeSet<NodeId>,
}

/// A branch on its way to a function.
struct Branch {
    outcome: bool,
    /// The nodes of the body, inputs first.
    body: Vec<NodeId>,
    /// What the body takes from outside.
    captures: BTreeSet<OutputId>,
    /// Outside nodes that must run first.
    waits_for: BTreeSet<NodeId>,
}

impl Conditional {
    /// The deepest conditionals of the graph, as many as can be replaced in one step. Of several that have the same
    /// predicate and place, those that don't need each other's results are one.
    pub(super) fn innermost(
        graph: &Graph,
        order: &[NodeId],
        states: &States,
        effects: &[NodeId],
    ) -> Vec<Self> {
        let groups = Self::by_place(graph, order, states, effects);
        let depth = groups.iter().map(|group| group.outer.len()).max();
        let deepest = groups.into_iter().filter(|group| Some(group.outer.len()) == depth);
        let mut all: Vec<(usize, usize, Self)> = deepest
            .flat_map(|group| group.by_level(graph, order))
            .map(|conditional| {
                let ends = conditional.merges.iter().map(|(id, _)| id).chain(&conditional.effects);
                let positions: Vec<usize> = ends.map(|&id| states.position(id)).collect();
                let first = positions.iter().min().copied().unwrap_or(0);
                (first, positions.iter().max().copied().unwrap_or(0), conditional)
            })
            .collect();
        // Conditionals whose ends don't interleave can't need each other both ways, so they become nodes of no cycle.
        all.sort_by_key(|(first, last, _)| (*first, *last));
        let mut end = None;
        all.into_iter()
            .filter(|(first, last, _)| {
                let follows = end.is_none_or(|end| end < *first);
                end = if follows { Some(*last) } else { end };
                follows
            })
            .map(|(_, _, conditional)| conditional)
            .collect()
    }

    /// Groups every `Merge` and effect by predicate and place.
    fn by_place(graph: &Graph, order: &[NodeId], states: &States, effects: &[NodeId]) -> Vec<Self> {
        type Place = (Rc<Vec<Outcome>>, OutputId);
        let mut groups: BTreeMap<Place, Self> = BTreeMap::new();
        let empty = |(outer, predicate): &Place| Self {
            predicate: *predicate,
            outer: outer.clone(),
            merges: Vec::new(),
            effects: BTreeSet::new(),
        };
        for &id in order.iter().filter(|&&id| is_merge(&graph.nodes[id].op)) {
            let Some((outer, (predicate, inputs))) = states.sides(graph, id) else { continue };
            let place = (outer, predicate);
            groups.entry(place.clone()).or_insert_with(|| empty(&place)).merges.push((id, inputs));
        }
        for &id in effects {
            let Some(state) = states.of_node(id) else { continue };
            // The innermost predicate is the one decided last, which is the one computed last.
            let Some(last) = (0..state.len()).max_by_key(|&i| states.position(state[i].0.node)) else {
                continue;
            };
            let outer = state.iter().enumerate().filter(|(i, _)| *i != last).map(|(_, o)| *o).collect();
            let place = (Rc::new(outer), state[last].0);
            groups.entry(place.clone()).or_insert_with(|| empty(&place)).effects.insert(id);
        }
        groups.into_values().collect()
    }

    /// Parts the group by how many of its own `Merge` nodes, one after the other, each end needs.
    fn by_level(self, graph: &Graph, order: &[NodeId]) -> Vec<Self> {
        if self.merges.len() + self.effects.len() == 1 {
            return vec![self];
        }
        let merges: BTreeSet<NodeId> = self.merges.iter().map(|(id, _)| *id).collect();
        let mut levels = vec![0u32; graph.nodes.len()];
        for &id in order {
            let node = &graph.nodes[id];
            let inputs = node.inputs.iter().map(|i| i.node).chain(node.control_inputs.iter().copied());
            // A `Merge` adds one for those who need it.
            let level = |id: NodeId| levels[id.index()] + u32::from(merges.contains(&id));
            levels[id.index()] = inputs.map(level).max().unwrap_or(0);
        }
        let mut parts: BTreeMap<u32, Self> = BTreeMap::new();
        let empty = || Self {
            predicate: self.predicate,
            outer: self.outer.clone(),
            merges: Vec::new(),
            effects: BTreeSet::new(),
        };
        for &(id, inputs) in &self.merges {
            parts.entry(levels[id.index()]).or_insert_with(empty).merges.push((id, inputs));
        }
        for &id in &self.effects {
            parts.entry(levels[id.index()]).or_insert_with(empty).effects.insert(id);
        }
        parts.into_values().collect()
    }

    /// Adds the `If` and its branches. `moved` are the nodes with effects that stand in a branch already. The answer
    /// maps the outputs of each `Merge` to those of the `If`.
    pub(super) fn build(
        &self,
        graph: &mut Graph,
        library: &mut FunctionLibrary,
        states: &States,
        moved: &mut BTreeSet<NodeId>,
    ) -> Result<BTreeMap<OutputId, OutputId>> {
        let branches = [self.branch(graph, states, false)?, self.branch(graph, states, true)?];
        self.move_effects(graph, &branches, moved)?;
        let captures: Vec<OutputId> = branches[0].captures.union(&branches[1].captures).copied().collect();
        let mut waits_for: BTreeSet<NodeId> =
            branches.iter().flat_map(|b| b.waits_for.iter().copied()).collect();
        for (merge, _) in &self.merges {
            waits_for.extend(graph.nodes[*merge].control_inputs.iter().copied());
        }
        let base = match (self.merges.first(), self.effects.first()) {
            (Some((merge, _)), _) => graph.nodes[*merge].name.clone(),
            (None, Some(effect)) => format!("{}/cond", graph.nodes[*effect].name),
            (None, None) => return Err(Error::internal("a conditional without an end")),
        };
        let index_used: Vec<bool> =
            self.merges.iter().map(|(merge, _)| states.is_index_used(*merge)).collect();
        let mut functions = Vec::new();
        let mut has_effects = false;
        for (branch, side) in branches.iter().zip(["else", "then"]) {
            let name = library.unused_name(&format!("{base}_{side}"));
            let function = self.function(graph, states, branch, &captures, &index_used, name.clone());
            has_effects |= !function.control_results.is_empty();
            library.insert(function);
            functions.push(name);
        }
        let mut redirects = BTreeMap::new();
        let node = graph.nodes.next_id();
        let mut types = Vec::new();
        for (k, (merge, _)) in self.merges.iter().enumerate() {
            redirects.insert(OutputId { node: *merge, index: 0 }, OutputId { node, index: types.len() });
            types.push(graph.nodes[*merge].output_types[0]);
            if index_used[k] {
                redirects.insert(OutputId { node: *merge, index: 1 }, OutputId { node, index: types.len() });
                types.push(DataType::Int32);
            }
        }
        let predicate = self.predicate;
        let input_types: Vec<DataType> = captures.iter().map(|&o| graph.output_type(o)).collect();
        let op = if has_effects { "If" } else { "StatelessIf" };
        let attributes = if_attributes(graph, (&base, op), predicate, &input_types, &types, &functions);
        waits_for.remove(&predicate.node);
        graph.nodes.push(Node {
            name: base,
            op: op.to_owned(),
            inputs: std::iter::once(predicate).chain(captures).collect(),
            control_inputs: waits_for.into_iter().collect(),
            attributes,
            output_types: types,
        });
        Ok(redirects)
    }

    /// Collects the nodes of a branch backwards from its results and effects.
    fn branch(&self, graph: &Graph, states: &States, outcome: bool) -> Result<Branch> {
        let here = (self.predicate, outcome);
        let runs_here = |id: NodeId| states.of_node(id).as_ref().is_some_and(|s| s.contains(&here));
        let mut branch =
            Branch { outcome, body: Vec::new(), captures: BTreeSet::new(), waits_for: BTreeSet::new() };
        let mut body = BTreeSet::new();
        let mut work: Vec<NodeId> = self.effects.iter().copied().filter(|&id| runs_here(id)).collect();
        let visit = |output: OutputId, work: &mut Vec<NodeId>, branch: &mut Branch| -> Result<()> {
            if runs_here(output.node) {
                work.push(output.node);
            } else if let Some(source) = self.switched(graph, states, output) {
                if output.index != usize::from(outcome) {
                    return Err(Error::unsupported(format!(
                        "what runs if '{}' is {outcome} uses the other side of node '{}' (op Switch)",
                        graph.nodes[self.predicate.node].name, graph.nodes[output.node].name
                    )));
                }
                branch.captures.insert(source);
                branch.waits_for.extend(graph.nodes[output.node].control_inputs.iter().copied());
            } else {
                branch.captures.insert(output);
            }
            Ok(())
        };
        for (merge, inputs) in &self.merges {
            visit(graph.nodes[*merge].inputs[inputs[usize::from(outcome)]], &mut work, &mut branch)?;
        }
        while let Some(id) = work.pop() {
            if !body.insert(id) {
                continue;
            }
            for &input in &graph.nodes[id].inputs {
                visit(input, &mut work, &mut branch)?;
            }
            for &control in &graph.nodes[id].control_inputs {
                if runs_here(control) {
                    work.push(control);
                } else {
                    branch.waits_for.insert(control);
                }
            }
        }
        branch.body = body.into_iter().collect();
        branch.body.sort_by_key(|&id| states.position(id));
        if let Some(&id) =
            branch.body.iter().find(|&&id| is_switch(&graph.nodes[id].op) || is_merge(&graph.nodes[id].op))
        {
            return Err(Error::unsupported(format!(
                "node '{}' (op {}) stands in a branch of the conditional on '{}', but no Merge there joins its two \
                 sides",
                graph.nodes[id].name, graph.nodes[id].op, graph.nodes[self.predicate.node].name
            )));
        }
        Ok(branch)
    }

    /// A node with an effect runs once, so it cannot stand in two conditionals.
    fn move_effects(&self, graph: &Graph, branches: &[Branch], moved: &mut BTreeSet<NodeId>) -> Result<()> {
        let body = branches.iter().flat_map(|branch| &branch.body);
        for &id in body.filter(|&&id| is_stateful(graph, id)) {
            let node = &graph.nodes[id];
            if !moved.insert(id) && !matches!(node.op.as_str(), "VarHandleOp" | "VariableV2" | "Variable") {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) has an effect, and two conditionals on '{}' of which one needs the other's \
                     result both need it",
                    node.name, node.op, graph.nodes[self.predicate.node].name
                )));
            }
        }
        Ok(())
    }

    /// What a `Switch` on this predicate passes on.
    fn switched(&self, graph: &Graph, states: &States, output: OutputId) -> Option<OutputId> {
        let node = &graph.nodes[output.node];
        (is_switch(&node.op) && states.predicate(output.node) == Some(self.predicate)).then(|| node.inputs[0])
    }

    fn function(
        &self,
        graph: &Graph,
        states: &States,
        branch: &Branch,
        captures: &[OutputId],
        index_used: &[bool],
        name: String,
    ) -> Function {
        let mut body = Graph::default();
        let mut arguments = Vec::new();
        let mut outputs: BTreeMap<OutputId, OutputId> = BTreeMap::new();
        for (i, &capture) in captures.iter().enumerate() {
            let node = push_argument(&mut body, &format!("arg{i}"), i, graph.output_type(capture));
            arguments.push(node);
            outputs.insert(capture, OutputId { node, index: 0 });
        }
        let mut ids: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let resolve = |ids: &BTreeMap<NodeId, NodeId>, mut output: OutputId| loop {
            match (ids.get(&output.node), outputs.get(&output)) {
                (Some(&node), _) => return OutputId { node, index: output.index },
                (None, Some(&argument)) => return argument,
                // A Switch on this predicate passes its data on, inside of the branch too.
                (None, None) => {
                    output = self.switched(graph, states, output).expect("what is no node here was captured");
                }
            }
        };
        for &id in branch.body.iter().filter(|&&id| !is_switch(&graph.nodes[id].op)) {
            let mut node = graph.nodes[id].clone();
            node.inputs.iter_mut().for_each(|input| *input = resolve(&ids, *input));
            node.control_inputs = node.control_inputs.iter().filter_map(|c| ids.get(c).copied()).collect();
            ids.insert(id, body.nodes.push(node));
        }
        let control_results: Vec<NodeId> = branch
            .body
            .iter()
            .filter(|&&id| is_stateful(graph, id) || self.effects.contains(&id))
            .filter_map(|id| ids.get(id).copied())
            .collect();
        let mut results = Vec::new();
        for ((merge, inputs), &index_used) in self.merges.iter().zip(index_used) {
            let input = inputs[usize::from(branch.outcome)];
            results.push(resolve(&ids, graph.nodes[*merge].inputs[input]));
            if index_used {
                let name = format!("{}/value_index", graph.nodes[*merge].name);
                results.push(OutputId { node: push_index(&mut body, &name, input), index: 0 });
            }
        }
        Function { name, graph: body, arguments, results, control_results }
    }
}

/// Whether a node has an effect or a state, so that it must run once and only once.
fn is_stateful(graph: &Graph, id: NodeId) -> bool {
    let op = graph.nodes[id].op.as_str();
    // What is not registered is a library function.
    op_def::lookup(op).is_none_or(|op| op.is_stateful) && op != "_Arg"
}

/// Adds a constant `int32` scalar.
fn push_index(graph: &mut Graph, name: &str, value: usize) -> NodeId {
    let tensor = TensorProto {
        dtype: DataType::Int32.number(),
        tensor_shape: Some(TensorShapeProto::default()),
        int_val: vec![value as i32],
        ..TensorProto::default()
    };
    let values = BTreeMap::from([
        ("dtype".to_owned(), Value::Type(DataType::Int32.number()).into()),
        ("value".to_owned(), Value::Tensor(Box::new(tensor)).into()),
    ]);
    graph.nodes.push(Node {
        name: name.to_owned(),
        op: "Const".to_owned(),
        inputs: Vec::new(),
        control_inputs: Vec::new(),
        attributes: Attributes::new(name, "Const", values),
        output_types: vec![DataType::Int32],
    })
}

fn if_attributes(
    graph: &Graph,
    (name, op): (&str, &str),
    predicate: OutputId,
    inputs: &[DataType],
    outputs: &[DataType],
    functions: &[String],
) -> Attributes {
    let types = |types: &[DataType]| {
        let r#type = types.iter().map(|t| t.number()).collect();
        Value::List(Box::new(ListValue { r#type, ..ListValue::default() }))
    };
    let function =
        |name: &String| Value::Func(NameAttrList { name: name.clone(), ..NameAttrList::default() });
    let predicate_type = graph.output_type(predicate).base();
    let values = [
        ("Tcond", Value::Type(predicate_type.number())),
        ("Tin", types(inputs)),
        ("Tout", types(outputs)),
        ("else_branch", function(&functions[0])),
        ("then_branch", function(&functions[1])),
        ("output_shapes", Value::List(Box::default())),
    ];
    let values = values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    Attributes::new(name, op, values)
}
