//! The walk over a program: nodes in execution order, each by its rule; what it refuses, and all that it would refuse.

pub(crate) mod importer;
pub(crate) mod problems;
pub(crate) mod rounds;
pub(crate) mod unsupported;
pub(crate) mod writers;
