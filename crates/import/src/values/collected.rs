//! Problems of nodes, collected instead of returned one at a time.

use support::Error;
use tf::Problem;

/// Maximum number of collected problems.
pub(crate) const MAX_PROBLEMS: usize = 1000;

/// Problems of the nodes, translated one after another. Nodes that depend on a failed one have
/// none.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) problems: Vec<Problem>,
    /// Number of nodes that failed, with or without a problem of their own.
    pub(crate) failures: usize,
}

impl Collected {
    /// True if the limit on problems is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(crate) fn add(&mut self, node: &str, op: &str, error: Error) {
        if !self.is_full() {
            self.problems.push(Problem::of_node(node, op, error));
        }
    }
}
