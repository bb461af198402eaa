//! The passes over a graph, in their order.

use crate::before::{clone_small_constants, scope_pipeline_stages};
use crate::body::result;
use crate::candidates::Context;
use crate::constants;
use crate::decluster::decluster;
use crate::encapsulate::{Moved, encapsulate};
use crate::functions::{Work, cluster_callees, may_be_clustered};
use crate::graph::{Edge, Graph, Node, data_input};
use crate::kernels::{Kernels, LikeXla};
use crate::library::Library;
use crate::mark::{CLUSTER, mark, show};
use crate::must_compile::launch_functions;
use crate::options::{JitLevel, Observer, Options, State};
use crate::prune::pruned;
use crate::report::Report;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{FunctionDef, GraphDef, ListValue, NodeDef};

/// The attribute of nodes that `xla.compile` put together.
pub(crate) const COMPILE_ID: &str = "_xla_compile_id";

/// A graph whose clusters are nodes.
#[derive(Clone, Debug)]
pub struct Clustered {
    /// The graph, with the functions of the clusters in its library.
    pub graph: GraphDef,
    /// What the tensors of [`Options::fetches`] are called now.
    pub fetches: Vec<String>,
    /// What the nodes of [`Options::targets`] are called now.
    pub targets: Vec<String>,
    /// What was done.
    pub report: Report,
}

/// Finds clusters in a graph and makes a node of each.
///
/// Every node has a device, or is on [`Options::default_device`]; conditionals and loops may be V1's nodes or functions.
/// Nodes of op `_XlaLaunch` take the place of clusters; their operands are, in this order, what must be constant when the
/// function is compiled (`Tconstants`), what need not be (`Targs`), and resource handles (`Nresources`). Calls of functions
/// that must be compiled become `XlaLaunch`, of the same form. An error if the graph is malformed or a flag is wrong.
pub fn cluster(
    graph: &GraphDef,
    options: &Options,
    kernels: &dyn Kernels,
    state: &mut State,
    observer: &mut dyn Observer,
) -> Result<Clustered> {
    let library = Library::new(graph, &options.default_device)?;
    let mut work_graph = if options.prunes {
        Graph::from_def(&pruned(graph, options, &library)?, &library, &options.default_device)?
    } else {
        Graph::from_def(graph, &library, &options.default_device)?
    };
    let level = level(options, &work_graph);
    let constants = constants::Analysis::new(&library, kernels);
    let like_xla = LikeXla(kernels);
    let constants_of_xla = constants::Analysis::new(&library, &like_xla);
    let pinned: BTreeSet<&str> =
        options.feeds.iter().map(|feed| feed.split(':').next().unwrap_or(feed)).collect();
    let context = Context {
        options,
        library: &library,
        kernels,
        constants: &constants,
        constants_of_xla: &constants_of_xla,
        is_on: level > JitLevel::Default,
        pinned: &pinned,
    };
    let functions: &[FunctionDef] = graph.library.as_ref().map_or(&[], |library| &library.function);
    let used = functions.iter().filter_map(|f| f.signature.as_ref()).map(|s| s.name.clone()).collect();
    let mut report = Report::default();
    let mut work = Work::new(state, &mut report, observer, used);
    let wanted = Wanted::add(&mut work_graph, options)?;
    let wanted_outputs = wanted.outputs.clone();
    let (_, moved) = rewrite(&mut work_graph, &context, "", &mut work)?;
    if options.cluster_functions && may_be_clustered(&context, functions) {
        cluster_callees(&mut work_graph, &context, &mut work, 0)?;
    }
    let made = work.made;
    let (mut fetches, mut targets) = wanted.remove(&mut work_graph, &moved);
    if options.keeps_names {
        keep_names(&mut work_graph, options, &wanted_outputs, &moved)?;
        (fetches, targets) = (options.fetches.clone(), options.targets.clone());
    }
    for id in work_graph.ids().filter(|&id| !matches!(work_graph[id].op(), "_XlaLaunch" | "XlaLaunch")) {
        *report.unclustered.entry(work_graph[id].op().to_owned()).or_default() += 1;
    }
    report.clusters.sort_by(|a, b| a.function.cmp(&b.function));
    let mut all = graph.library.clone().unwrap_or_default();
    all.function.extend(made);
    let library = (graph.library.is_some() || !all.function.is_empty()).then_some(all);
    let graph = GraphDef { node: work_graph.to_nodes(), versions: graph.versions.clone(), library };
    Ok(Clustered { graph, fetches, targets, report })
}

/// The passes over the main graph or a body. Whether anything became a launch, and where nodes went.
pub(crate) fn rewrite(
    graph: &mut Graph,
    context: &Context<'_>,
    function: &str,
    work: &mut Work<'_>,
) -> Result<(bool, Moved)> {
    let (computations, _) = encapsulate(graph, COMPILE_ID, context.constants, &mut work.used)?;
    drop_cluster_outputs(graph)?;
    if context.is_on {
        clone_small_constants(graph)?;
        scope_pipeline_stages(graph);
    }
    mark(graph, context, function, work.state, work.report, work.observer)?;
    if context.options.flags.clustering_debug && work.observer.wants_graphs() {
        // The pass of this name makes sizes of slices known; here begins of slices are operands anyway.
        show(graph, "before_increase_dynamism_for_auto_jit_pass", work.observer, |name, _| name.to_owned());
    }
    decluster(graph, context, work.report)?;
    let (clusters, moved) = encapsulate(graph, CLUSTER, context.constants, &mut work.used)?;
    let whole = launch_functions(graph, context, &mut work.used, work.report)?;
    let has_launches = !(computations.is_empty() && clusters.is_empty() && whole.is_empty());
    work.made.extend(computations.into_iter().chain(clusters).chain(whole));
    Ok((has_launches, moved))
}

/// The level for a graph: the flag's, if it says one, else the session's.
fn level(options: &Options, graph: &Graph) -> JitLevel {
    let session = match options.level {
        JitLevel::Default => JitLevel::Off,
        level => level,
    };
    let flag = options.flags.auto_jit;
    let number = if flag.single_gpu == flag.general {
        flag.general
    } else {
        let mut gpus: BTreeSet<&str> = BTreeSet::new();
        for id in graph.ids() {
            let device = graph[id].def.device.as_str();
            let kind = crate::devices::DeviceName::parse(device).ok().and_then(|name| name.kind);
            if kind.as_deref() == Some("GPU") {
                gpus.insert(device);
            }
        }
        if gpus.len() == 1 { flag.single_gpu } else { flag.general }
    };
    if number == 0 { session } else { JitLevel::from_number(number) }
}

/// Lets users of `XlaClusterOutput`, which only marks what an `xla.compile` returns, take what it gets.
fn drop_cluster_outputs(graph: &mut Graph) -> Result<()> {
    for id in graph.ids().filter(|&id| graph[id].op() == "XlaClusterOutput").collect::<Vec<_>>() {
        let Some(input) = graph.input(id, 0) else { continue };
        for edge_id in graph[id].out_edges.clone() {
            let edge = graph.edge(edge_id);
            graph.disconnect(edge_id);
            if edge.dst == crate::graph::SINK {
                continue;
            }
            match edge.src_output {
                Some(_) => graph.connect(Edge { src: input.src, src_output: input.src_output, ..edge })?,
                None => graph.connect_control(input.src, edge.dst),
            }
        }
        for edge_id in graph[id].in_edges.clone() {
            graph.disconnect(edge_id);
        }
        graph.nodes[id] = None;
    }
    graph.fix_source_and_sink();
    Ok(())
}

/// What the caller wants of the graph: nodes that keep fetched tensors alive while clusters are made.
struct Wanted {
    results: Vec<usize>,
    /// How many of them are of fetches, which come first.
    fetched: usize,
    targets: Vec<usize>,
    /// By name: the node that is wanted, and how many of its outputs are kept.
    outputs: BTreeMap<String, (usize, usize)>,
}

/// Puts nodes in the place of wanted nodes that are in clusters: they hand on what the cluster makes.
fn keep_names(
    graph: &mut Graph,
    options: &Options,
    outputs: &BTreeMap<String, (usize, usize)>,
    moved: &Moved,
) -> Result<()> {
    for (name, &(node, count)) in outputs {
        let Some(&launch) = moved.nodes.get(&node) else { continue };
        let sources: Option<Vec<(usize, usize)>> =
            (0..count).map(|output| moved.outputs.get(&(node, output)).copied()).collect();
        let sources = sources.ok_or_else(|| {
            Error::internal(format!("an output of '{name}', which is wanted, is no result of its cluster"))
        })?;
        let types: Vec<DataType> =
            sources.iter().map(|&(src, output)| graph[src].output_types[output]).collect();
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
            output_arguments: vec![("output".to_owned(), 0)],
            ..Node::default()
        });
        for (dst_input, (src, output)) in sources.into_iter().enumerate() {
            graph.connect(Edge { src, src_output: Some(output), dst: id, dst_input })?;
        }
        if options.targets.contains(name) {
            graph.connect_control(launch, id);
        }
    }
    graph.fix_source_and_sink();
    Ok(())
}

impl Wanted {
    fn add(graph: &mut Graph, options: &Options) -> Result<Self> {
        let by_name: BTreeMap<String, usize> =
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
        let mut outputs: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for fetch in &options.fetches {
            let (name, output) = match fetch.rsplit_once(':') {
                Some((name, output)) => {
                    let output = output.parse();
                    (
                        name,
                        output.map_err(|_| Error::invalid(format!("the fetch '{fetch}' names no output")))?,
                    )
                }
                None => (fetch.as_str(), 0),
            };
            let src = find(name, "fetch")?;
            let Some(&data_type) = graph[src].output_types.get(output) else {
                return Err(Error::invalid(format!(
                    "the fetch '{fetch}' names an output that node '{name}' (op {}) does not have",
                    graph[src].op()
                )));
            };
            results.push(Self::keep(graph, src, output, data_type, results.len(), &by_name)?);
            let (_, kept) = outputs.entry(graph[src].name().to_owned()).or_insert((src, 0));
            *kept = (*kept).max(output + 1);
        }
        let mut targets = Vec::new();
        for name in &options.targets {
            let node = find(name, "target")?;
            outputs.entry(graph[node].name().to_owned()).or_insert((node, 0));
            targets.push(node);
        }
        let fetched = results.len();
        if options.keeps_names {
            // A node that hands on one output hands on those before it.
            for &(src, count) in outputs.values() {
                for output in 0..count {
                    let data_type = graph[src].output_types[output];
                    results.push(Self::keep(graph, src, output, data_type, results.len(), &by_name)?);
                }
            }
        }
        graph.fix_source_and_sink();
        Ok(Self { results, fetched, targets, outputs })
    }

    /// A node that keeps an output alive.
    fn keep(
        graph: &mut Graph,
        src: usize,
        output: usize,
        data_type: DataType,
        index: usize,
        by_name: &BTreeMap<String, usize>,
    ) -> Result<usize> {
        let device = graph[src].def.device.clone();
        let mut unused = format!("_retval_{}_{output}_{index}", graph[src].name());
        while by_name.contains_key(&unused) {
            unused.push('_');
        }
        let node = graph.add(result(&unused, index, data_type.base(), &device));
        graph.connect(Edge { src, src_output: Some(output), dst: node, dst_input: 0 })?;
        Ok(node)
    }

    /// Removes those nodes again: the names of what was wanted.
    fn remove(self, graph: &mut Graph, moved: &Moved) -> (Vec<String>, Vec<String>) {
        let mut fetches = Vec::new();
        for (place, id) in self.results.into_iter().enumerate() {
            if let Some(edge) = graph.input(id, 0).filter(|_| place < self.fetched) {
                fetches.push(data_input(graph[edge.src].name(), edge.src_output.unwrap_or(0)));
            }
            for edge in graph[id].in_edges.iter().chain(&graph[id].out_edges).copied().collect::<Vec<_>>() {
                graph.disconnect(edge);
            }
            graph.nodes[id] = None;
        }
        let name = |id: &usize| graph[*moved.nodes.get(id).unwrap_or(id)].name().to_owned();
        (fetches, self.targets.iter().map(name).collect())
    }
}
