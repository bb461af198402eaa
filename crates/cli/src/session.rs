//! Running a model in a session, node by node.

pub(crate) mod batches;
pub(crate) mod clustering;
pub(crate) mod mnist;
pub(crate) mod model;
pub(crate) mod trace;
