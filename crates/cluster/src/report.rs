//! What clustering did, and why not more.

use std::collections::BTreeMap;

/// A cluster that became one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterReport {
    /// The name of the node, and of the function that it runs.
    pub name: String,
    /// The graph: empty for the main graph, else the function in whose body the cluster is.
    pub function: String,
    /// The device that it runs on.
    pub device: String,
    /// The nodes of the graph that it holds.
    pub nodes: Vec<String>,
    /// How many of them count: constants and identities do not.
    pub effective_size: usize,
}

/// A node that is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedNode {
    /// Its name.
    pub node: String,
    /// Its op.
    pub op: String,
    /// Why.
    pub reason: String,
}

/// An edge whose ends are in different clusters although both could be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEdge {
    /// A node of the cluster that the edge leaves, and how many others the cluster holds.
    pub from: String,
    /// The same of the one that it reaches.
    pub to: String,
    /// Why.
    pub reason: String,
}

/// The most refusals of each kind that are listed.
pub(crate) const MAX_REFUSALS: usize = 10_000;

/// What was done to a graph and its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The clusters, by name of the function that they are in, then in the order in which they were named.
    pub clusters: Vec<ClusterReport>,
    /// Functions that are compiled as a whole because `_XlaMustCompile` says so: the node, and the function.
    pub must_compile: Vec<(String, String)>,
    /// Nodes that could not be clustered, if that was asked for.
    pub refused_nodes: Vec<RefusedNode>,
    /// Edges that were not contracted, if that was asked for.
    pub refused_edges: Vec<RefusedEdge>,
    /// How many nodes are in no cluster, by op.
    pub unclustered: BTreeMap<String, usize>,
    /// Whether the search for cycles was given up: then there may be more clusters than there need be.
    pub gave_up: bool,
}

impl Report {
    /// A summary: a line for each cluster, then the ops outside.
    pub fn summary(&self) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let clustered: usize = self.clusters.iter().map(|cluster| cluster.nodes.len()).sum();
        let outside: usize = self.unclustered.values().sum();
        let _ =
            writeln!(out, "{} clusters of {clustered} nodes; {outside} nodes outside", self.clusters.len());
        for cluster in &self.clusters {
            let place = match cluster.function.as_str() {
                "" => String::new(),
                function => format!(" in {function}"),
            };
            let _ = writeln!(
                out,
                "  {}{place}: {} nodes, {} that count, on {}",
                cluster.name,
                cluster.nodes.len(),
                cluster.effective_size,
                cluster.device
            );
        }
        for (op, count) in &self.unclustered {
            let _ = writeln!(out, "  outside: {count} {op}");
        }
        out
    }
}
