//! A node while it is translated, and the rule that translates it: what all families are written against.

pub(crate) mod context;
pub(crate) mod data_types;
pub(crate) mod rule;
