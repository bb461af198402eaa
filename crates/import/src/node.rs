//! The node being translated and the rule that translates it: the interface that all families are
//! written against.

pub(crate) mod accepted;
pub(crate) mod aligned;
pub(crate) mod batched;
pub(crate) mod composite_call;
pub(crate) mod context;
pub(crate) mod counted_loop;
pub(crate) mod data_types;
pub(crate) mod equal_sizes;
pub(crate) mod functions;
pub(crate) mod inputs;
pub(crate) mod name;
pub(crate) mod rule;
pub(crate) mod sizes;
pub(crate) mod trial;
