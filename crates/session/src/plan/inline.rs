//! Calls replaced by the bodies of the functions that they call.
//!
//! A call becomes: a node that waits for all that the call waits for, so that what a body makes of nothing runs when the
//! call would, and is dead where the call is; an `Identity` for each argument; the body; and a node that waits for all of it,
//! for whoever waits for the call.

use std::collections::BTreeMap;
use support::{Error, Id, Result};
use tf::proto::{AttrValue, attr_value::Value as Attr};
use tf::{Attributes, Function, FunctionLibrary, Graph, Node, NodeId, OutputId};

/// How deep calls may nest.
const MAX_DEPTH: usize = 100;

/// How many nodes there may be when all calls are inlined.
const MAX_NODES: usize = 2_000_000;

/// How many bytes the nodes of inlined calls may take, about: names grow with the depth of calls.
const MAX_BYTES: usize = 256 << 20;

/// What a node takes beside its name, which stands in its attributes, too.
const NODE_BYTES: usize = 600;

/// A graph without calls.
pub(super) struct Inlined {
    pub(super) graph: Graph,
    /// Nodes of bodies that run although nobody may need them.
    pub(super) effects: Vec<NodeId>,
    places: Vec<Place>,
}

/// Where a node went.
enum Place {
    Node(NodeId),
    Call(Box<Call>),
    /// Nowhere: no result and no effect of its function needs it.
    Unneeded,
}

struct Call {
    start: NodeId,
    arguments: Vec<NodeId>,
    results: Vec<OutputId>,
    done: NodeId,
    places: Vec<Place>,
}

impl Inlined {
    /// Where an output went.
    pub(super) fn output(&self, output: OutputId) -> OutputId {
        resolve(&self.places, output)
    }

    /// The node to wait for instead of a node.
    pub(super) fn control(&self, node: NodeId) -> NodeId {
        control(&self.places, node)
    }
}

fn resolve(places: &[Place], output: OutputId) -> OutputId {
    match &places[output.node.index()] {
        Place::Node(node) => OutputId { node: *node, index: output.index },
        Place::Call(call) => resolve(&call.places, call.results[output.index]),
        Place::Unneeded => unreachable!("what is needed needs its inputs"),
    }
}

fn control(places: &[Place], node: NodeId) -> NodeId {
    match &places[node.index()] {
        Place::Node(node) => *node,
        Place::Call(call) => call.done,
        Place::Unneeded => unreachable!("what is needed needs its inputs"),
    }
}

/// The function that a node calls by being inlined; not if it is to be compiled as one.
pub(super) fn called<'l>(node: &Node, library: &'l FunctionLibrary) -> Result<Option<&'l Function>> {
    if crate::op_kind::must_compile(node) {
        return Ok(None);
    }
    let name = match node.op.as_str() {
        "PartitionedCall" | "StatefulPartitionedCall" => node.attributes.func("f")?.0,
        op => op,
    };
    match (library.get(name), name == node.op) {
        (Some(function), _) => Ok(Some(function)),
        (None, true) => Ok(None),
        (None, false) => Err(Error::invalid(format!(
            "node '{}' (op {}) calls the function '{name}', which the graph's library does not have",
            node.name, node.op
        ))),
    }
}

/// Replaces all calls of a graph, and the calls in what they call.
pub(super) fn inline(graph: &Graph, library: &FunctionLibrary) -> Result<Inlined> {
    let mut inliner = Inliner { library, graph: Graph::default(), effects: Vec::new(), bytes: 0 };
    let places = inliner.place(graph, None, "", 0)?;
    inliner.connect(graph, &places, None)?;
    Ok(Inlined { graph: inliner.graph, effects: inliner.effects, places })
}

struct Inliner<'l> {
    library: &'l FunctionLibrary,
    graph: Graph,
    effects: Vec<NodeId>,
    /// What the nodes of calls take, about.
    bytes: usize,
}

impl Inliner<'_> {
    /// Adds the nodes of a graph without their inputs. Of a function's body, only what a call needs; the map is what its
    /// arguments become.
    fn place(
        &mut self,
        graph: &Graph,
        body: Option<(&Function, &BTreeMap<NodeId, NodeId>)>,
        prefix: &str,
        depth: usize,
    ) -> Result<Vec<Place>> {
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "functions call each other more than {MAX_DEPTH} levels deep at '{prefix}'"
            )));
        }
        let needed = body.map(|(function, _)| needed(function));
        let mut places = Vec::with_capacity(graph.nodes.len());
        for (id, node) in graph.nodes.iter() {
            if let Some(&argument) = body.and_then(|(_, arguments)| arguments.get(&id)) {
                places.push(Place::Node(argument));
                continue;
            }
            if needed.as_ref().is_some_and(|needed| !needed[id.index()]) {
                places.push(Place::Unneeded);
                continue;
            }
            let name = format!("{prefix}{}", node.name);
            let Some(function) = called(node, self.library)? else {
                let mut copy = node.clone();
                if !prefix.is_empty() {
                    self.count(&name)?;
                    copy.attributes = Attributes::new(&name, &node.op, node.attributes.values().clone());
                    copy.name = name;
                }
                copy.inputs.clear();
                copy.control_inputs.clear();
                places.push(Place::Node(self.push(copy)?));
                continue;
            };
            if function.arguments.len() != node.inputs.len()
                || function.results.len() != node.output_types.len()
            {
                return Err(Error::invalid(format!(
                    "node '{name}' (op {}) has {} inputs and {} outputs, but the function '{}' has {} and {}",
                    node.op,
                    node.inputs.len(),
                    node.output_types.len(),
                    function.name,
                    function.arguments.len(),
                    function.results.len()
                )));
            }
            (0..2 + function.arguments.len()).try_for_each(|_| self.count(&name))?;
            let start = self.push(no_op(format!("{name}/call")))?;
            let mut arguments = Vec::new();
            for (k, &argument) in function.arguments.iter().enumerate() {
                let data_type = function.graph.output_type(OutputId { node: argument, index: 0 });
                arguments.push(self.push(identity(format!("{name}/argument_{k}"), data_type))?);
            }
            let known = function.arguments.iter().copied().zip(arguments.iter().copied()).collect();
            let body = Some((function, &known));
            let inner = self.place(&function.graph, body, &format!("{name}/"), depth + 1)?;
            let done = self.push(no_op(format!("{name}/done")))?;
            let results = function.results.clone();
            places.push(Place::Call(Box::new(Call { start, arguments, results, done, places: inner })));
        }
        Ok(places)
    }

    /// Counts a node of a call.
    fn count(&mut self, name: &str) -> Result<()> {
        self.bytes += NODE_BYTES + 2 * name.len();
        if self.bytes <= MAX_BYTES {
            Ok(())
        } else {
            Err(Error::unsupported(format!(
                "the graph takes more than {} MiB once its calls are inlined, at '{name}': have fewer functions call others \
             twice, or call them in a loop",
                MAX_BYTES >> 20
            )))
        }
    }

    fn push(&mut self, node: Node) -> Result<NodeId> {
        if self.graph.nodes.len() >= MAX_NODES {
            return Err(Error::unsupported(format!(
                "the graph has more than {MAX_NODES} nodes once its calls are inlined, at '{}'",
                node.name
            )));
        }
        Ok(self.graph.nodes.push(node))
    }

    /// Gives the nodes of a graph their inputs. What has none waits for `start`.
    fn connect(&mut self, graph: &Graph, places: &[Place], start: Option<NodeId>) -> Result<()> {
        for (id, node) in graph.nodes.iter() {
            if matches!(places[id.index()], Place::Unneeded) {
                continue;
            }
            let inputs: Vec<OutputId> = node.inputs.iter().map(|&input| resolve(places, input)).collect();
            let mut waits: Vec<NodeId> = node.control_inputs.iter().map(|&id| control(places, id)).collect();
            match &places[id.index()] {
                // An argument of the body: the call has connected it.
                Place::Node(_) if node.op == "_Arg" && start.is_some() => {}
                Place::Node(at) => {
                    if inputs.is_empty() && waits.is_empty() {
                        waits.extend(start);
                    }
                    let made = &mut self.graph.nodes[*at];
                    made.inputs = inputs;
                    made.control_inputs = waits;
                }
                Place::Call(call) => self.connect_call(node, call, inputs, waits, start)?,
                Place::Unneeded => {}
            }
        }
        Ok(())
    }

    fn connect_call(
        &mut self,
        node: &Node,
        call: &Call,
        inputs: Vec<OutputId>,
        mut waits: Vec<NodeId>,
        start: Option<NodeId>,
    ) -> Result<()> {
        if inputs.is_empty() && waits.is_empty() {
            waits.extend(start);
        }
        for (&argument, &input) in call.arguments.iter().zip(&inputs) {
            let made = &mut self.graph.nodes[argument];
            made.inputs = vec![input];
            made.control_inputs.clone_from(&waits);
        }
        waits.extend(&call.arguments);
        self.graph.nodes[call.start].control_inputs = waits;
        let function = called(node, self.library)?
            .ok_or_else(|| Error::internal(format!("'{}' is no call any more", node.name)))?;
        self.connect(&function.graph, &call.places, Some(call.start))?;
        let mut ends: Vec<NodeId> = vec![call.start];
        ends.extend(call.results.iter().map(|&result| resolve(&call.places, result).node));
        let effects: Vec<NodeId> =
            effects(function).into_iter().map(|id| control(&call.places, id)).collect();
        self.effects.extend(&effects);
        ends.extend(effects);
        ends.sort_unstable();
        ends.dedup();
        self.graph.nodes[call.done].control_inputs = ends;
        Ok(())
    }
}

/// The nodes of a body that run although no result may need them: those that the function states, and in functions of
/// TensorFlow 1, which state none, all that have effects.
pub(super) fn effects(function: &Function) -> Vec<NodeId> {
    let mut nodes = function.control_results.clone();
    if nodes.is_empty() {
        let stateful = |node: &Node| tf::op_signature(&node.op).is_some_and(|op| op.is_stateful);
        let all = function.graph.nodes.iter();
        nodes.extend(all.filter(|(_, node)| node.op != "_Arg" && stateful(node)).map(|(id, _)| id));
    }
    nodes
}

/// The nodes of a body that its results and effects need.
fn needed(function: &Function) -> Vec<bool> {
    let graph = &function.graph;
    let mut needed = vec![false; graph.nodes.len()];
    let mut work = effects(function);
    work.extend(function.results.iter().map(|output| output.node));
    while let Some(id) = work.pop() {
        if !std::mem::replace(&mut needed[id.index()], true) {
            let node = &graph.nodes[id];
            work.extend(node.inputs.iter().map(|input| input.node));
            work.extend(&node.control_inputs);
        }
    }
    needed
}

fn no_op(name: String) -> Node {
    Node {
        attributes: Attributes::new(&name, "NoOp", BTreeMap::new()),
        name,
        op: "NoOp".to_owned(),
        inputs: Vec::new(),
        control_inputs: Vec::new(),
        output_types: Vec::new(),
    }
}

fn identity(name: String, data_type: tf::DataType) -> Node {
    let values = BTreeMap::from([("T".to_owned(), AttrValue::from(Attr::Type(data_type.number())))]);
    Node {
        attributes: Attributes::new(&name, "Identity", values),
        name,
        op: "Identity".to_owned(),
        inputs: Vec::new(),
        control_inputs: Vec::new(),
        output_types: vec![data_type],
    }
}
