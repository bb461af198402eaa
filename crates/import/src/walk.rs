//! The walk over a program: nodes in execution order, each by its rule; what it refuses, and all that it would refuse.

pub(crate) mod entry;
pub(crate) mod graph_walk;
pub(crate) mod needed_nodes;
pub(crate) mod passed_arguments;
pub(crate) mod problems;
pub(crate) mod rounds;
pub(crate) mod unsupported;
pub(crate) mod writers;
