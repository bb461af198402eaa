//! Passes that convert the clusters of one graph, the main one or a function's body, to launches.

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
use encapsulate::{Replacements, encapsulate};
use mark::{CLUSTER, mark, show};
use must_compile::launch_functions;
use preparation::{clone_small_constants, scope_pipeline_stages};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;
use tf::proto::FunctionDef;

/// Attribute of the nodes of one `xla.compile` call.
pub(crate) const COMPILE_ID: &str = "_xla_compile_id";

/// State shared by all graphs and functions during clustering.
pub(crate) struct Work<'w> {
    pub(crate) state: &'w mut State,
    pub(crate) report: &'w mut Report,
    pub(crate) observer: &'w mut dyn Observer,
    /// Names of existing functions.
    pub(crate) used_names: BTreeSet<String>,
    /// New functions.
    pub(crate) functions: Vec<FunctionDef>,
    /// Clustered copy of a function, by function and attribute values. `None` if nothing in it is
    /// clustered, or while it is being created.
    pub(crate) copies: BTreeMap<Vec<u8>, Option<String>>,
}

impl<'w> Work<'w> {
    pub(crate) fn new(
        state: &'w mut State,
        report: &'w mut Report,
        observer: &'w mut dyn Observer,
        used_names: BTreeSet<String>,
    ) -> Self {
        Self { state, report, observer, used_names, functions: Vec::new(), copies: BTreeMap::new() }
    }
}

/// Runs the passes over the main graph or a body. Returns true if anything became a launch, and the
/// replacements of nodes.
pub(crate) fn rewrite(
    graph: &mut Graph,
    context: &Context<'_>,
    function: &str,
    work: &mut Work<'_>,
) -> Result<(bool, Replacements)> {
    let (computations, _) = encapsulate(graph, COMPILE_ID, context.constants, &mut work.used_names)?;
    drop_cluster_outputs(graph)?;
    if context.is_on {
        clone_small_constants(graph)?;
        scope_pipeline_stages(graph);
    }
    mark(graph, context, function, work.state, work.report, work.observer)?;
    if context.options.flags.clustering_debug && work.observer.wants_graphs() {
        // In TensorFlow, the pass of this name makes slice sizes static. Here slice starts are
        // operands anyway.
        show(graph, "before_increase_dynamism_for_auto_jit_pass", work.observer, |name, _| name.to_owned());
    }
    decluster(graph, context, work.report)?;
    let (clusters, replacements) = encapsulate(graph, CLUSTER, context.constants, &mut work.used_names)?;
    let whole = launch_functions(graph, context, &mut work.used_names, work.report)?;
    let has_launches = !(computations.is_empty() && clusters.is_empty() && whole.is_empty());
    work.functions.extend(computations.into_iter().chain(clusters).chain(whole));
    Ok((has_launches, replacements))
}

/// Replaces uses of `XlaClusterOutput`, which only marks a result of `xla.compile`, by its operand.
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
