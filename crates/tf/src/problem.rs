//! Problems that prevent a graph from compiling, listed individually so that all can be reported at
//! once.

use support::Error;

/// A reason why a graph cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Name of the node, or empty for the config or the graph as a whole. The name of a node in a
    /// function is prefixed by the names of the calls that lead to it.
    pub node: String,
    /// Op of the node, or empty without a node.
    pub op: String,
    /// The fault, and how to correct it.
    pub error: Error,
}

impl Problem {
    /// A problem of the config or the graph as a whole.
    pub fn of_graph(error: Error) -> Self {
        Self { node: String::new(), op: String::new(), error }
    }

    /// A problem of a node.
    pub fn of_node(node: impl Into<String>, op: impl Into<String>, error: Error) -> Self {
        Self { node: node.into(), op: op.into(), error }
    }
}
