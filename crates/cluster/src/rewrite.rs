//! The passes over one graph, the main one or a function's body, that make its clusters launches.

mod decluster;
pub(crate) mod encapsulate;
mod mark;
mod merge;
mod must_compile;
mod preparation;

use crate::candidates::Context;
use crate::graph::{Edge, Graph, SINK};
use crate::options::{Observer, State};
use crate::report::Report;
use decluster::decluster;
use encapsulate::{Moved, encapsulate};
use mark::{CLUSTER, mark, show};
use must_compile::launch_functions;
use preparation::{clone_small_constants, scope_pipeline_stages};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;
use tf::proto::FunctionDef;

/// The attribute of nodes that `xla.compile` put together.
pub(crate) const COMPILE_ID: &str = "_xla_compile_id";

/// State that all graphs and functions share while they are clustered.
pub(crate) struct Work<'w> {
    pub(crate) state: &'w mut State,
    pub(crate) report: &'w mut Report,
    pub(crate) observer: &'w mut dyn Observer,
    /// Names of functions that exist.
    pub(crate) used: BTreeSet<String>,
    /// Functions that were made.
    pub(crate) made: Vec<FunctionDef>,
    /// The clustered copy of a function for values of its attributes; `None` where nothing is clustered, or while it is made.
    pub(crate) copies: BTreeMap<Vec<u8>, Option<String>>,
}

impl<'w> Work<'w> {
    pub(crate) fn new(
        state: &'w mut State,
        report: &'w mut Report,
        observer: &'w mut dyn Observer,
        used: BTreeSet<String>,
    ) -> Self {
        Self { state, report, observer, used, made: Vec::new(), copies: BTreeMap::new() }
    }
}

/// Runs the passes over the main graph or a body. Returns whether anything became a launch, and where nodes went.
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

/// Lets users of `XlaClusterOutput`, which only marks what an `xla.compile` returns, take what it gets.
fn drop_cluster_outputs(graph: &mut Graph) -> Result<()> {
    for id in graph.ids().filter(|&id| graph[id].op() == "XlaClusterOutput").collect::<Vec<_>>() {
        let Some(input) = graph.input(id, 0) else { continue };
        for edge_id in graph[id].out_edges.clone() {
            let edge = graph.edge(edge_id);
            graph.disconnect(edge_id);
            if edge.dst == SINK {
                continue;
            }
            match edge.input() {
                Some(index) => graph.connect(Edge::data(input, edge.dst, index))?,
                None => graph.connect_control(input.node, edge.dst),
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
