//! The walk over a program in execution order, applying the rule of each node, and the detection of
//! nodes that it rejects.

pub(crate) mod entry;
pub(crate) mod graph_walk;
pub(crate) mod needed_nodes;
pub(crate) mod passed_arguments;
pub(crate) mod problems;
pub(crate) mod rounds;
pub(crate) mod unsupported;
pub(crate) mod writers;
