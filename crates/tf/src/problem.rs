//! Problems that prevent a graph from compiling, listed individually so that all can be reported at
//! once.

use support::Error;

/// Something that has to change before a graph can be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The node it is about; empty if it is about the config or the graph as a whole. Nodes of
    /// functions have the names of the calls that lead to them before theirs.
    pub node: String,
    /// The node's op; empty where there is none.
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
