//! A graph that is ready to import.

use crate::{DataType, FunctionLibrary, Graph, NodeId, OutputId};
use std::collections::BTreeMap;

/// An argument of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Feed {
    /// Output 0 of a node of op `_Arg`.
    pub tensor: OutputId,
    /// The node and output of the original graph that the argument replaces.
    pub id: (String, i64),
    /// The name that the config gives, else empty.
    pub name: String,
    /// The sizes.
    pub shape: Vec<i64>,
    /// Never a reference; has a primitive type.
    pub data_type: DataType,
}

/// A result of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    /// What to return.
    pub tensor: OutputId,
    /// The node and output as the config has them.
    pub id: (String, i64),
    /// The name that the config gives, else empty.
    pub name: String,
}

/// A variable of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The node of op `VarHandleOp` (or `VariableV2` and the like) in the original graph.
    pub node_name: String,
    /// The name that the config gives, else empty.
    pub name: String,
    /// The sizes.
    pub shape: Vec<i64>,
    /// Never a reference; has a primitive type.
    pub data_type: DataType,
    /// Whether the config promises that the program does not write it.
    pub readonly: bool,
    /// Its node in the graph; `None` if nothing that is fetched needs it.
    pub node: Option<NodeId>,
}

/// A graph that is ready to import: fed outputs replaced by `_Arg` nodes, pruned backwards from the fetches, control
/// flow functionalised, inputs and types checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The nodes.
    pub graph: Graph,
    /// The functions they call.
    pub library: FunctionLibrary,
    /// The arguments, in the order of the config.
    pub feeds: Vec<Feed>,
    /// The results, in the order of the config.
    pub fetches: Vec<Fetch>,
    /// The variables, in the order of the config.
    pub variables: Vec<Variable>,
    /// What the user promises of loops whose number of iterations nothing else bounds: the most iterations, by the
    /// name of the loop's node, or a prefix of it that ends before `/while_context`.
    pub loop_bounds: BTreeMap<String, i64>,
}
