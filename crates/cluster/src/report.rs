//! Report about the clusters, and about refused nodes and edges.

use std::collections::BTreeMap;

/// A cluster that became one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterReport {
    /// Name of the node and of the function that it runs.
    pub name: String,
    /// Function whose body contains the cluster; empty for the main graph.
    pub function: String,
    /// Device that the cluster runs on.
    pub device: String,
    /// Nodes of the graph that the cluster contains.
    pub nodes: Vec<String>,
    /// Number of these nodes except constants and identities.
    pub effective_size: usize,
}

/// A node that is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedNode {
    /// Name of the node.
    pub node: String,
    /// Op of the node.
    pub op: String,
    /// Reason for the refusal.
    pub reason: String,
}

/// An edge between different clusters whose ends could both be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedEdge {
    /// A node of the source cluster, and the number of other nodes in it.
    pub from: String,
    /// A node of the destination cluster, and the number of other nodes in it.
    pub to: String,
    /// Reason for the refusal.
    pub reason: String,
}

/// Maximum number of refusals listed of each kind.
pub(crate) const MAX_REFUSALS: usize = 10_000;

/// Report about a graph and its functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Clusters, sorted by the function that contains them, then in the order of naming.
    pub clusters: Vec<ClusterReport>,
    /// Functions compiled as a whole because of `_XlaMustCompile`: the calling node and the
    /// function.
    pub must_compile: Vec<(String, String)>,
    /// Nodes that could not be clustered, if requested.
    pub refused_nodes: Vec<RefusedNode>,
    /// Edges that were not contracted, if requested.
    pub refused_edges: Vec<RefusedEdge>,
    /// Number of nodes outside clusters, by op.
    pub unclustered: BTreeMap<String, usize>,
    /// True if the search for cycles exceeded its budget, which can result in more clusters than
    /// necessary.
    pub gave_up: bool,
}

impl Report {
    /// A summary: one line per cluster, then the ops outside.
    pub fn summary(&self) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let clustered: usize = self.clusters.iter().map(|cluster| cluster.nodes.len()).sum();
        let outside: usize = self.unclustered.values().sum();
        let _ =
            writeln!(out, "{} clusters with {clustered} nodes; {outside} nodes outside", self.clusters.len());
        for cluster in &self.clusters {
            let place = match cluster.function.as_str() {
                "" => String::new(),
                function => format!(" in {function}"),
            };
            let _ = writeln!(
                out,
                "  {}{place}: {} nodes, effective size {}, on {}",
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
