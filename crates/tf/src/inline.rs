//! Prepares graphs for node-by-node execution: replaces each call by the body of its function, then
//! keeps only the needed nodes.
//!
//! A call is replaced by a start node that waits for everything that the call waits for, an
//! `Identity` for each argument, the body, and an end node that waits for all of it. Nodes that
//! wait for the call wait for the end node instead. Because of the start node, nodes of the body
//! without inputs run when the call would, and are dead if the call is dead.

use crate::proto::attr_value::Value as Attr;
use crate::{Attributes, DataType, Function, FunctionLibrary, Graph, Node, NodeId, OutputId};
use std::collections::BTreeMap;
use support::{Error, Id, Result};

/// Op of the nodes that consume the results of a graph. The attribute `index` is the result's
/// index.
pub const RETVAL: &str = "_Retval";

/// Limit for the nesting depth of calls.
const MAX_DEPTH: usize = 100;

/// Limit for the number of nodes after inlining.
const MAX_NODES: usize = 2_000_000;

/// Limit for the approximate size of inlined nodes. Names grow with the depth of calls.
const MAX_BYTES: usize = 256 << 20;

/// Approximate size of a node in bytes without its name, which is also stored in its attributes.
const NODE_BYTES: usize = 600;

/// New location of a node.
enum Place {
    Node(NodeId),
    Call(Box<Call>),
    /// Dropped, because no result and no effect of its function needs it.
    Unneeded,
}

struct Call {
    start: NodeId,
    arguments: Vec<NodeId>,
    results: Vec<OutputId>,
    done: NodeId,
    places: Vec<Place>,
}

fn resolve(places: &[Place], output: OutputId) -> OutputId {
    match &places[output.node.index()] {
        Place::Node(node) => OutputId { node: *node, index: output.index },
        Place::Call(call) => resolve(&call.places, call.results[output.index]),
        Place::Unneeded => unreachable!("an input of a needed node was dropped"),
    }
}

fn control(places: &[Place], node: NodeId) -> NodeId {
    match &places[node.index()] {
        Place::Node(node) => *node,
        Place::Call(call) => call.done,
        Place::Unneeded => unreachable!("a control input of a needed node was dropped"),
    }
}

/// Returns a graph with the same results and effects and without calls, except for those that
/// `is_kept` retains. It contains only the nodes that `fetches` and `targets` need, those of bodies
/// with effects, and a node of op [`RETVAL`] after each fetched output.
pub fn inline(
    graph: &Graph,
    library: &FunctionLibrary,
    fetches: &[OutputId],
    targets: &[NodeId],
    is_kept: fn(&Node) -> bool,
) -> Result<Graph> {
    let mut inliner = Inliner { library, is_kept, graph: Graph::new(), effects: Vec::new(), bytes: 0 };
    let places = inliner.place(graph, None, "", 0)?;
    inliner.connect(graph, &places, None)?;
    let fetches: Vec<OutputId> = fetches.iter().map(|&fetch| resolve(&places, fetch)).collect();
    let mut roots: Vec<NodeId> = targets.iter().map(|&target| control(&places, target)).collect();
    roots.extend(&inliner.effects);
    Ok(compact(inliner.graph, &fetches, roots))
}

/// Returns the function whose body replaces a node, or `None` if the node is not inlined.
fn callee<'l>(
    node: &Node,
    library: &'l FunctionLibrary,
    is_kept: fn(&Node) -> bool,
) -> Result<Option<&'l Function>> {
    if is_kept(node) {
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
            "node '{}' (op {}) calls function '{name}', which is missing from the graph's library",
            node.name, node.op
        ))),
    }
}

struct Inliner<'l> {
    library: &'l FunctionLibrary,
    is_kept: fn(&Node) -> bool,
    graph: Graph,
    effects: Vec<NodeId>,
    /// Approximate size of the nodes of inlined calls.
    bytes: usize,
}

/// Body of a function that replaces a call.
#[derive(Clone, Copy)]
struct Body<'b> {
    function: &'b Function,
    /// The nodes that replace the arguments.
    arguments: &'b BTreeMap<NodeId, NodeId>,
}

impl Inliner<'_> {
    /// Adds the nodes of a graph without their inputs. Adds only the needed nodes of a function's
    /// body.
    fn place(
        &mut self,
        graph: &Graph,
        body: Option<Body<'_>>,
        prefix: &str,
        depth: usize,
    ) -> Result<Vec<Place>> {
        if depth > MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "functions call each other more than {MAX_DEPTH} levels deep at '{prefix}'"
            )));
        }
        let needed = body.map(|body| needed(body.function));
        let mut places = Vec::with_capacity(graph.nodes.len());
        for (id, node) in graph.nodes.iter() {
            if let Some(&argument) = body.and_then(|body| body.arguments.get(&id)) {
                places.push(Place::Node(argument));
                continue;
            }
            if needed.as_ref().is_some_and(|needed| !needed[id.index()]) {
                places.push(Place::Unneeded);
                continue;
            }
            let name = format!("{prefix}{}", node.name);
            let Some(function) = callee(node, self.library, self.is_kept)? else {
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
            let replacements = function.arguments.iter().copied().zip(arguments.iter().copied()).collect();
            let body = Some(Body { function, arguments: &replacements });
            let inner = self.place(&function.graph, body, &format!("{name}/"), depth + 1)?;
            let done = self.push(no_op(format!("{name}/done")))?;
            let results = function.results.clone();
            places.push(Place::Call(Box::new(Call { start, arguments, results, done, places: inner })));
        }
        Ok(places)
    }

    /// Adds a node of a call to the total size.
    fn count(&mut self, name: &str) -> Result<()> {
        self.bytes += NODE_BYTES + 2 * name.len();
        if self.bytes <= MAX_BYTES {
            Ok(())
        } else {
            Err(Error::unsupported(format!(
                "the graph takes more than {} MiB after inlining its calls, at '{name}': call functions fewer times, or \
             call them in a loop",
                MAX_BYTES >> 20
            )))
        }
    }

    fn push(&mut self, node: Node) -> Result<NodeId> {
        if self.graph.nodes.len() >= MAX_NODES {
            return Err(Error::unsupported(format!(
                "the graph has more than {MAX_NODES} nodes after inlining its calls, at '{}'",
                node.name
            )));
        }
        Ok(self.graph.nodes.push(node))
    }

    /// Connects the inputs of a graph's nodes. Nodes without inputs wait for `start`.
    fn connect(&mut self, graph: &Graph, places: &[Place], start: Option<NodeId>) -> Result<()> {
        for (id, node) in graph.nodes.iter() {
            if matches!(places[id.index()], Place::Unneeded) {
                continue;
            }
            let inputs: Vec<OutputId> = node.inputs.iter().map(|&input| resolve(places, input)).collect();
            let mut waits: Vec<NodeId> = node.control_inputs.iter().map(|&id| control(places, id)).collect();
            match &places[id.index()] {
                // An argument of the body, which `connect_call` has already connected.
                Place::Node(_) if node.op == "_Arg" && start.is_some() => {}
                Place::Node(at) => {
                    if inputs.is_empty() && waits.is_empty() {
                        waits.extend(start);
                    }
                    let new_node = &mut self.graph.nodes[*at];
                    new_node.inputs = inputs;
                    new_node.control_inputs = waits;
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
            let new_node = &mut self.graph.nodes[argument];
            new_node.inputs = vec![input];
            new_node.control_inputs.clone_from(&waits);
        }
        waits.extend(&call.arguments);
        self.graph.nodes[call.start].control_inputs = waits;
        let function = callee(node, self.library, self.is_kept)?
            .ok_or_else(|| Error::internal(format!("node '{}' is no longer a call", node.name)))?;
        self.connect(&function.graph, &call.places, Some(call.start))?;
        let mut ends: Vec<NodeId> = vec![call.start];
        ends.extend(call.results.iter().map(|&result| resolve(&call.places, result).node));
        let effects: Vec<NodeId> =
            function.effects().into_iter().map(|id| control(&call.places, id)).collect();
        self.effects.extend(&effects);
        ends.extend(effects);
        ends.sort_unstable();
        ends.dedup();
        self.graph.nodes[call.done].control_inputs = ends;
        Ok(())
    }
}

/// Returns for each node of a body whether its results or effects need it.
fn needed(function: &Function) -> Vec<bool> {
    let mut needed = vec![false; function.graph.nodes.len()];
    let mut roots = function.effects();
    roots.extend(function.results.iter().map(|output| output.node));
    function.graph.mark_needed(roots, &mut needed);
    needed
}

fn no_op(name: String) -> Node {
    Node::unconnected(name, "NoOp", [], Vec::new())
}

fn identity(name: String, data_type: DataType) -> Node {
    Node::unconnected(name, "Identity", [("T", Attr::Type(data_type.number()))], vec![data_type])
}

/// Keeps only the nodes upstream of fetches and roots, and adds one node after each fetched output.
fn compact(mut graph: Graph, fetches: &[OutputId], mut roots: Vec<NodeId>) -> Graph {
    let mut needed = vec![false; graph.nodes.len()];
    roots.extend(fetches.iter().map(|fetch| fetch.node));
    graph.mark_needed(roots, &mut needed);
    let new_ids = graph.keep_marked(&needed);
    for node in graph.nodes.values_mut() {
        node.control_inputs.sort_unstable();
        node.control_inputs.dedup();
    }
    for (k, fetch) in fetches.iter().enumerate() {
        let output = OutputId { node: new_ids[&fetch.node], index: fetch.index };
        let data_type = graph.output_type(output).base();
        let values = [("T", Attr::Type(data_type.number())), ("index", Attr::I(k as i64))];
        let retval = Node::unconnected(format!("{RETVAL}_{k}"), RETVAL, values, Vec::new());
        graph.nodes.push(Node { inputs: vec![output], ..retval });
    }
    graph
}
