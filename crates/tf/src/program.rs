//! A graph that is ready to import.

use crate::{DataType, FunctionLibrary, Graph, Node, NodeId, OutputId};
use bytes::Bytes;
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
    /// Output to return.
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
    /// True if the config promises that the program does not write the variable.
    pub readonly: bool,
    /// State of the variable before and after a run.
    pub state: VariableState,
    /// Its node in the graph; `None` if nothing that is fetched needs it.
    pub node: Option<NodeId>,
    /// Resource of the variable. Every node that names this resource is a handle of it.
    pub resource: Resource,
}

/// State of a variable before and after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VariableState {
    /// It has a value, and a new one, of the same shape, takes its memory.
    #[default]
    Kept,
    /// It has a value; a new one is a result of its own, whatever its shape.
    Replaced,
    /// It has no value before the program gives it one, a result of its own; its shape is not
    /// known.
    Unset,
}

/// Identity of a variable, shared by nodes with the same container and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Resource {
    /// The container; mostly empty.
    pub container: String,
    /// The shared name, or that of the node if it states none.
    pub name: String,
}

/// The shared name of variables that TensorFlow never shares.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

impl Resource {
    /// The resource of a node with these attributes.
    pub fn new(node: &str, container: &[u8], shared_name: &[u8]) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let is_own = shared_name.is_empty() || shared_name == ANONYMOUS.as_bytes();
        Self { container: text(container), name: if is_own { node.to_owned() } else { text(shared_name) } }
    }

    /// The resource that a node of a variable names.
    pub fn of_node(node: &Node) -> Self {
        let text = |name: &str| node.attributes.string_or(name, Bytes::new()).unwrap_or_default();
        Self::new(&node.name, &text("container"), &text("shared_name"))
    }
}

/// A graph that is ready to import: fed outputs replaced by `_Arg` nodes, pruned backwards from the
/// fetches, control flow functionalised, inputs and types checked. Only this crate constructs
/// programs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
    /// User-supplied bounds for loops whose number of iterations is otherwise unbounded: the
    /// maximum number of iterations, keyed by the name of the loop's node or a prefix of it that
    /// ends before `/while_context`.
    pub loop_bounds: BTreeMap<String, i64>,
}
