//! Problems of nodes, collected instead of returned at the first.

use support::Error;
use tf::Problem;

/// The most problems that are collected.
pub(crate) const MAX_PROBLEMS: usize = 1000;

/// The problems of the nodes while they are translated one after another, without those that depend on one that failed.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) problems: Vec<Problem>,
    /// How many nodes have failed, with or without a problem of their own.
    pub(crate) failures: usize,
}

impl Collected {
    /// Whether no more problems are wanted.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    pub(crate) fn add(&mut self, node: &str, op: &str, error: Error) {
        if !self.is_full() {
            self.problems.push(Problem::of_node(node, op, error));
        }
    }
}
