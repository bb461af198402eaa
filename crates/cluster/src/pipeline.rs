//! The passes over a graph, in order.

use crate::analysis::constants;
use crate::candidates::Context;
use crate::devices::DeviceName;
use crate::fetches::Fetches;
use crate::functions::{cluster_callees, may_be_clustered};
use crate::graph::Graph;
use crate::graph::library::Library;
use crate::kernels::{Kernels, LikeXla};
use crate::options::{JitLevel, Observer, Options, State};
use crate::prune::prune;
use crate::report::Report;
use crate::rewrite::{Work, rewrite};
use std::collections::BTreeSet;
use support::Result;
use tf::proto::{FunctionDef, GraphDef};

/// A graph whose clusters have become single nodes.
#[derive(Clone, Debug)]
pub struct Clustered {
    /// The graph, with the functions of the clusters in its library.
    pub graph: GraphDef,
    /// Current names of the tensors in [`Options::fetches`].
    pub fetches: Vec<String>,
    /// Current names of the nodes in [`Options::targets`].
    pub targets: Vec<String>,
    /// Report about the clusters.
    pub report: Report,
}

/// Finds clusters in a graph and replaces each by a node.
///
/// Nodes without a device are on [`Options::default_device`]. Conditionals and loops may be V1
/// nodes or functions. Nodes of op `_XlaLaunch` replace the clusters. Their operands are, in this
/// order: those that must be compile-time constants (`Tconstants`), other values (`Targs`), and
/// resource handles (`Nresources`). Calls of functions that must be compiled become `XlaLaunch`
/// nodes of the same form. Fails if the graph is malformed or a flag is invalid.
pub fn cluster(
    graph: &GraphDef,
    options: &Options,
    kernels: &dyn Kernels,
    state: &mut State,
    observer: &mut dyn Observer,
) -> Result<Clustered> {
    let library = Library::new(graph, &options.default_device)?;
    let definitions = &library.definitions;
    let mut work_graph = if options.prunes {
        Graph::from_def(&prune(graph, options, definitions)?, definitions, &options.default_device)?
    } else {
        Graph::from_def(graph, definitions, &options.default_device)?
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
    let used_names = functions.iter().filter_map(|f| f.signature.as_ref()).map(|s| s.name.clone()).collect();
    let mut report = Report::default();
    let mut work = Work::new(state, &mut report, observer, used_names);
    let fetches = Fetches::add(&mut work_graph, options)?;
    let (_, replacements) = rewrite(&mut work_graph, &context, "", &mut work)?;
    if options.cluster_functions && may_be_clustered(&context, functions) {
        cluster_callees(&mut work_graph, &context, &mut work, 0)?;
    }
    let new_functions = work.functions;
    let (fetches, targets) = fetches.remove(&mut work_graph, options, &replacements)?;
    for id in work_graph.ids().filter(|&id| !matches!(work_graph[id].op(), "_XlaLaunch" | "XlaLaunch")) {
        *report.unclustered.entry(work_graph[id].op().to_owned()).or_default() += 1;
    }
    report.clusters.sort_by(|a, b| a.function.cmp(&b.function));
    let mut all = graph.library.clone().unwrap_or_default();
    all.function.extend(new_functions);
    let library = (graph.library.is_some() || !all.function.is_empty()).then_some(all);
    let graph = GraphDef { node: work_graph.to_nodes(), versions: graph.versions.clone(), library };
    Ok(Clustered { graph, fetches, targets, report })
}

/// The level for a graph: the flag's if it states one, otherwise the session's.
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
            let kind = DeviceName::parse(device).ok().and_then(|name| name.kind);
            if kind.as_deref() == Some("GPU") {
                gpus.insert(device);
            }
        }
        if gpus.len() == 1 { flag.single_gpu } else { flag.general }
    };
    if number == 0 { session } else { JitLevel::from_number(number) }
}
