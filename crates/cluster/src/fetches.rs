//! Keeps the caller's fetches and targets alive during clustering.

use crate::graph::body::result;
use crate::graph::{Edge, Graph, Node, NodeId, OutputArgument, OutputTensor};
use crate::options::Options;
use crate::rewrite::encapsulate::Replacements;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{ListValue, NodeDef};

/// Node named by a fetch or a target.
#[derive(Clone, Copy)]
struct NamedNode {
    id: NodeId,
    /// Number of leading outputs up to the last one fetched.
    outputs: usize,
}

/// Nodes that keep fetched tensors alive during clustering.
pub(crate) struct Fetches {
    results: Vec<NodeId>,
    /// Number of `results` that belong to fetches. These come first.
    fetch_count: usize,
    targets: Vec<NodeId>,
    /// Named nodes by name.
    named_nodes: BTreeMap<String, NamedNode>,
}

/// Adds nodes with the original names in place of named nodes that are now in clusters. They
/// forward the cluster's results.
fn keep_names(
    graph: &mut Graph,
    options: &Options,
    named_nodes: &BTreeMap<String, NamedNode>,
    replacements: &Replacements,
) -> Result<()> {
    for (name, &NamedNode { id: node, outputs }) in named_nodes {
        let Some(&launch) = replacements.nodes.get(&node) else { continue };
        let sources: Option<Vec<OutputTensor>> = (0..outputs)
            .map(|output| replacements.outputs.get(&OutputTensor { node, output }).copied())
            .collect();
        let sources = sources.ok_or_else(|| {
            Error::internal(format!("a required output of '{name}' is not a result of its cluster"))
        })?;
        let types: Vec<DataType> =
            sources.iter().map(|source| graph[source.node].output_types[source.output]).collect();
        let number = |t: &DataType| t.number();
        let (op, attr) = match types[..] {
            [] => ("NoOp", BTreeMap::new()),
            [data_type] => {
                ("Identity", BTreeMap::from([("T".to_owned(), Value::Type(data_type.number()).into())]))
            }
            _ => {
                let list = ListValue { r#type: types.iter().map(number).collect(), ..ListValue::default() };
                ("IdentityN", BTreeMap::from([("T".to_owned(), Value::List(Box::new(list)).into())]))
            }
        };
        let device = graph[launch].def.device.clone();
        let def = NodeDef { name: name.clone(), op: op.to_owned(), input: Vec::new(), device, attr };
        let id = graph.add(Node {
            def,
            input_types: types.clone(),
            output_types: types,
            output_arguments: vec![OutputArgument { name: "output".to_owned(), start: 0 }],
            ..Node::default()
        });
        for (input, source) in sources.into_iter().enumerate() {
            graph.connect(Edge::data(source, id, input))?;
        }
        if options.targets.contains(name) {
            graph.connect_control(launch, id);
        }
    }
    graph.fix_source_and_sink();
    Ok(())
}

impl Fetches {
    /// Adds the nodes that keep fetches alive to a graph.
    pub(crate) fn add(graph: &mut Graph, options: &Options) -> Result<Self> {
        let by_name: BTreeMap<String, NodeId> =
            graph.ids().map(|id| (graph[id].name().to_owned(), id)).collect();
        let find = |text: &str, what: &str| {
            let name = text.strip_prefix('^').unwrap_or(text);
            by_name.get(name).copied().ok_or_else(|| {
                Error::invalid(format!(
                    "the {what} '{text}' names the node '{name}', which the graph does not have"
                ))
            })
        };
        let mut results = Vec::new();
        let mut named_nodes: BTreeMap<String, NamedNode> = BTreeMap::new();
        for fetch in &options.fetches {
            let (name, output) = match fetch.rsplit_once(':') {
                Some((name, output)) => {
                    let output = output.parse();
                    (
                        name,
                        output.map_err(|_| {
                            Error::invalid(format!("the fetch '{fetch}' has an invalid output number"))
                        })?,
                    )
                }
                None => (fetch.as_str(), 0),
            };
            let id = find(name, "fetch")?;
            if output >= graph[id].output_types.len() {
                return Err(Error::invalid(format!(
                    "the fetch '{fetch}' names an output that node '{name}' (op {}) does not have",
                    graph[id].op()
                )));
            }
            results.push(Self::keep(graph, OutputTensor { node: id, output }, results.len(), &by_name)?);
            let node = named_nodes.entry(graph[id].name().to_owned()).or_insert(NamedNode { id, outputs: 0 });
            node.outputs = node.outputs.max(output + 1);
        }
        let mut targets = Vec::new();
        for name in &options.targets {
            let id = find(name, "target")?;
            named_nodes.entry(graph[id].name().to_owned()).or_insert(NamedNode { id, outputs: 0 });
            targets.push(id);
        }
        let fetch_count = results.len();
        if options.keeps_names {
            // A node that forwards one output also forwards all outputs before it.
            for &NamedNode { id, outputs } in named_nodes.values() {
                for output in 0..outputs {
                    let tensor = OutputTensor { node: id, output };
                    results.push(Self::keep(graph, tensor, results.len(), &by_name)?);
                }
            }
        }
        graph.fix_source_and_sink();
        Ok(Self { results, fetch_count, targets, named_nodes })
    }

    /// Adds a node that keeps an output alive.
    fn keep(
        graph: &mut Graph,
        tensor: OutputTensor,
        index: usize,
        by_name: &BTreeMap<String, NodeId>,
    ) -> Result<NodeId> {
        let source = &graph[tensor.node];
        let data_type = source.output_types[tensor.output].base();
        let device = source.def.device.clone();
        let mut unused = format!("_retval_{}_{}_{index}", source.name(), tensor.output);
        while by_name.contains_key(&unused) {
            unused.push('_');
        }
        let node = graph.add(result(&unused, index, data_type, &device));
        graph.connect(Edge::data(tensor, node, 0))?;
        Ok(node)
    }

    /// Removes these nodes again. Returns the current names of the fetches and the targets.
    pub(crate) fn remove(
        self,
        graph: &mut Graph,
        options: &Options,
        replacements: &Replacements,
    ) -> Result<(Vec<String>, Vec<String>)> {
        let mut fetches = Vec::new();
        for (place, id) in self.results.into_iter().enumerate() {
            if let Some(tensor) = graph.input(id, 0).filter(|_| place < self.fetch_count) {
                fetches.push(graph.tensor_name(tensor));
            }
            for edge in graph[id].in_edges.iter().chain(&graph[id].out_edges).copied().collect::<Vec<_>>() {
                graph.disconnect(edge);
            }
            graph.nodes[id] = None;
        }
        if options.keeps_names {
            keep_names(graph, options, &self.named_nodes, replacements)?;
            return Ok((options.fetches.clone(), options.targets.clone()));
        }
        let name = |&id: &NodeId| graph[replacements.node(id)].name().to_owned();
        Ok((fetches, self.targets.iter().map(name).collect()))
    }
}
