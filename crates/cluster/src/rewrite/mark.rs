//! Marks the nodes of each profitable cluster with the cluster's name.

use crate::candidates::{Candidates, Context, must_skip};
use crate::graph::attributes::string_attribute;
use crate::graph::scalars;
use crate::graph::{Graph, Node, NodeId};
use crate::options::{Observer, State};
use crate::report::{ClusterReport, Report};
use crate::rewrite::merge::{Clusters, Members};
use prost::Message;
use std::collections::BTreeSet;
use support::Result;
use tf::proto::GraphDef;
use tf::proto::attr_value::Value;

/// Attribute with the name of a node's cluster.
pub(crate) const CLUSTER: &str = "_XlaCluster";
/// Attribute of nodes that have been clustered.
const ALREADY_CLUSTERED: &str = "_XlaAlreadyClustered";

/// Larger constants stay outside clusters if an outside node uses them.
const LARGE_CONSTANT: i64 = 16384;

/// Warning for users who enabled the JIT, but whose nodes are on a CPU.
const CPU_LEFT_OUT: &str = "(One-time warning): Not using XLA:CPU for clusters. If you want XLA:CPU, do one of the following: set \
                            TF_XLA_FLAGS to include --tf_xla_cpu_global_jit, set cpu_global_jit in the session's \
                            OptimizerOptions, use experimental_jit_scope, or use tf.function(jit_compile=True).";

/// A profitable cluster.
struct NamedCluster {
    name: String,
    members: Vec<NodeId>,
}

/// Finds clusters and marks their nodes. A graph that was clustered before stays unchanged.
pub(crate) fn mark(
    graph: &mut Graph,
    context: &Context<'_>,
    function: &str,
    state: &mut State,
    report: &mut Report,
    observer: &mut dyn Observer,
) -> Result<()> {
    if must_skip(graph) {
        return Ok(());
    }
    let mut candidates = context.candidates(graph, state, report)?;
    if candidates.excluded_cpu && !state.has_warned {
        state.has_warned = true;
        observer.warning(CPU_LEFT_OUT);
    }
    let dumps = context.options.flags.clustering_debug && observer.wants_graphs();
    if dumps {
        show(graph, "before_mark_for_compilation", observer, |name, _| name.to_owned());
    }
    let clusters = find(graph, context, function, &mut candidates, state, report)?;
    for cluster in &clusters {
        for &id in &cluster.members {
            let attributes = &mut graph[id].def.attr;
            attributes.insert(CLUSTER.to_owned(), Value::S(cluster.name.clone().into()).into());
            attributes.insert(ALREADY_CLUSTERED.to_owned(), Value::B(true).into());
        }
    }
    if dumps {
        show(graph, "mark_for_compilation", observer, |name, _| name.to_owned());
        show(graph, "mark_for_compilation_annotated", observer, annotated_name);
    }
    Ok(())
}

/// Passes a graph with renamed nodes to the observer.
pub(crate) fn show(
    graph: &Graph,
    name: &str,
    observer: &mut dyn Observer,
    rename: impl Fn(&str, &Node) -> String,
) {
    let mut renamed = graph.clone();
    for id in renamed.ids().collect::<Vec<_>>() {
        let new = rename(graph[id].name(), &graph[id]);
        renamed[id].def.name = new;
    }
    observer.graph(name, &GraphDef { node: renamed.to_nodes(), versions: None, library: None });
}

/// Prefixes a node's name with that of its cluster.
fn annotated_name(name: &str, node: &Node) -> String {
    match string_attribute(&node.def.attr, CLUSTER) {
        "" if node.op() == "VarHandleOp" => format!("varhandle/{name}"),
        "" => format!("unclustered/{name}"),
        cluster => format!("{cluster}/{name}"),
    }
}

fn find(
    graph: &Graph,
    context: &Context<'_>,
    function: &str,
    candidates: &mut Candidates,
    state: &mut State,
    report: &mut Report,
) -> Result<Vec<NamedCluster>> {
    if candidates.nodes.is_empty() {
        return Ok(Vec::new());
    }
    let Some(mut clusters) = Clusters::new(graph, context, candidates, context.options.reports_refusals)?
    else {
        return Ok(Vec::new());
    };
    clusters.grow(report)?;
    let members = clusters.members(&candidates.nodes);
    let outside = excluded_nodes(graph, &clusters, &members);
    let flags = &context.options.flags;
    let fingerprint = if flags.deterministic_cluster_names { fingerprint(graph) } else { 0 };
    let mut named = Vec::new();
    for Members { cluster: id, nodes: mut members } in members {
        members.retain(|node| !outside.contains(node));
        let cluster = clusters.get(id);
        let device = clusters.device(id)?;
        let kind = clusters.devices.kind(device);
        let is_large = cluster.effective_size as i64 >= i64::from(flags.min_cluster_size);
        let should_compile = context
            .registration(kind)
            .is_some_and(|registration| context.should_compile(cluster.is_asked_for, kind, registration));
        let is_kept =
            should_compile && (is_large || cluster.has_functional_control_flow || cluster.is_asked_for);
        if !is_kept || members.is_empty() {
            continue;
        }
        let name = next_name(context, fingerprint, state);
        report.clusters.push(ClusterReport {
            name: name.clone(),
            function: function.to_owned(),
            device: clusters.devices.name(device).to_owned(),
            nodes: members.iter().map(|&node| graph[node].name().to_owned()).collect(),
            effective_size: cluster.effective_size,
        });
        named.push(NamedCluster { name, members });
    }
    Ok(named)
}

/// Name of the next cluster: `cluster_3`, or a name with the graph's fingerprint.
fn next_name(context: &Context<'_>, fingerprint: u64, state: &mut State) -> String {
    let prefix = match context.options.name_prefix.as_str() {
        "" => "cluster",
        prefix => prefix,
    };
    let number = state.sequence.entry(fingerprint).or_default();
    let name = if context.options.flags.deterministic_cluster_names {
        format!("{prefix}_{fingerprint}_{number}")
    } else {
        format!("{prefix}_{number}")
    };
    *number += 1;
    name
}

/// Nodes that should not be in their cluster: large constants that are also used outside, and
/// `Fill` nodes that are only used outside. Clustering them would only extend their lifetime.
fn excluded_nodes(graph: &Graph, clusters: &Clusters<'_>, members: &[Members]) -> BTreeSet<NodeId> {
    let mut outside = BTreeSet::new();
    for Members { cluster, nodes } in members {
        let is_elsewhere = |user: NodeId| clusters.of_node(user) != Some(*cluster);
        for &id in nodes {
            let mut users = graph.out_edges(id).map(|edge| edge.dst);
            let is_large = || scalars::elements(&graph[id].def).is_some_and(|n| n > LARGE_CONSTANT);
            let is_excluded = match graph[id].op() {
                "Const" => is_large() && users.any(is_elsewhere),
                "Fill" => users.all(is_elsewhere),
                _ => false,
            };
            if is_excluded {
                outside.insert(id);
            }
        }
    }
    outside
}

/// A number that depends only on the graph (FNV-1a hash of its encoding).
fn fingerprint(graph: &Graph) -> u64 {
    let bytes = GraphDef { node: graph.to_nodes(), versions: None, library: None }.encode_to_vec();
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
