//! Programs: graphs that are ready to import.

use crate::{DataType, FunctionLibrary, Graph, Node, NodeId, OutputId};
use bytes::Bytes;
use shape::Quantization;
use std::collections::BTreeMap;

/// An argument of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Feed {
    /// Output 0 of an `_Arg` node.
    pub tensor: OutputId,
    /// The node and output of the original graph that the argument replaces.
    pub id: (String, i64),
    /// Name from the config, or empty.
    pub name: String,
    /// Size of each dimension. Those of named dimensions are the largest.
    pub shape: Vec<i64>,
    /// Its named dimensions, each with its position in [`Program::dimensions`].
    pub dimensions: BTreeMap<usize, usize>,
    /// Element type. Has a primitive type and is never a reference.
    pub data_type: DataType,
    /// The real numbers that its integers stand for, if they are quantized with one scale.
    pub quantization: Option<Quantization>,
}

/// A dimension whose size the caller of the program chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Name, which no feed has.
    pub name: String,
    /// Smallest size.
    pub low: i64,
    /// Largest size.
    pub high: i64,
}

/// A result of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    /// The output to return.
    pub tensor: OutputId,
    /// The node and output that the config names.
    pub id: (String, i64),
    /// Name from the config, or empty.
    pub name: String,
    /// The real numbers that its integers stand for, if they are quantized with one scale.
    pub quantization: Option<Quantization>,
}

/// A variable of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Name of the variable's node (op `VarHandleOp`, `VariableV2`, or similar) in the original
    /// graph.
    pub node_name: String,
    /// Name from the config, or empty.
    pub name: String,
    /// Size of each dimension.
    pub shape: Vec<i64>,
    /// Element type. Has a primitive type and is never a reference.
    pub data_type: DataType,
    /// True if the config states that the program does not write the variable.
    pub readonly: bool,
    /// State of the variable before and after a run.
    pub state: VariableState,
    /// The variable's node in the graph, or `None` if no fetch needs it.
    pub node: Option<NodeId>,
    /// Resource of the variable. Every node that names this resource is a handle of the variable.
    pub resource: Resource,
    /// The real numbers that its integers stand for, if they are quantized with one scale.
    pub quantization: Option<Quantization>,
}

/// State of a variable before and after a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VariableState {
    /// The variable has a value before the run. A new value has the same shape and overwrites it in
    /// the same memory.
    #[default]
    InPlace,
    /// The variable has a value before the run. A new value is a separate result of any shape.
    Separate,
    /// The variable has no value before the run, and its shape is unknown. A new value is a
    /// separate result.
    Uninitialized,
}

/// Identity of a variable, shared by nodes with the same container and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Resource {
    /// Container, usually empty.
    pub container: String,
    /// Shared name, or the name of the node if it has no shared name.
    pub name: String,
}

/// Shared name that TensorFlow gives to variables that are never shared.
const ANONYMOUS: &str = "cd2c89b7-88b7-44c8-ad83-06c2a9158347";

impl Resource {
    /// Returns the resource of a node with the given attributes.
    pub fn new(node: &str, container: &[u8], shared_name: &[u8]) -> Self {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let is_own = shared_name.is_empty() || shared_name == ANONYMOUS.as_bytes();
        Self { container: text(container), name: if is_own { node.to_owned() } else { text(shared_name) } }
    }

    /// Returns the resource that a variable's node names.
    pub fn of_node(node: &Node) -> Self {
        let text = |name: &str| node.attributes.string_or(name, Bytes::new()).unwrap_or_default();
        Self::new(&node.name, &text("container"), &text("shared_name"))
    }
}

/// A graph that is ready to import: fed outputs replaced by `_Arg` nodes, pruned backwards from the
/// fetches, control flow functionalized, inputs and types checked. Only this crate constructs
/// programs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Program {
    /// The main graph.
    pub graph: Graph,
    /// The functions that the graph calls.
    pub library: FunctionLibrary,
    /// The arguments, in the order of the config.
    pub feeds: Vec<Feed>,
    /// The named dimensions, in the order of the config.
    pub dimensions: Vec<Dimension>,
    /// The results, in the order of the config.
    pub fetches: Vec<Fetch>,
    /// The variables, in the order of the config.
    pub variables: Vec<Variable>,
    /// User-supplied bounds for loops whose number of iterations is otherwise unbounded: the
    /// maximum number of iterations, keyed by the name of the loop's node or a prefix of it that
    /// ends before `/while_context`.
    pub loop_bounds: BTreeMap<String, i64>,
    /// The number of rows for which rules choose the form of their instructions, if not that of
    /// arrays. A comparison of programs for different sizes needs one form.
    pub form_rows: Option<i64>,
}

impl Program {
    /// Returns the program for the largest size of each named dimension alone.
    #[must_use]
    pub fn of_largest_sizes(&self) -> Self {
        let mut program = Self { dimensions: Vec::new(), ..self.clone() };
        program.feeds.iter_mut().for_each(|feed| feed.dimensions.clear());
        program
    }

    /// Returns the program for the smallest size of each named dimension alone, but for no size 0.
    #[must_use]
    pub fn of_smallest_sizes(&self) -> Self {
        let mut program = self.of_largest_sizes();
        for (feed, ranged) in program.feeds.iter_mut().zip(&self.feeds) {
            for (&d, &name) in &ranged.dimensions {
                feed.shape[d] = self.dimensions[name].low.max(1);
            }
        }
        program
    }
}
