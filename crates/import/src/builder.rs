//! HLO under construction: computations, the building blocks of rules, values known at compile time.

pub(crate) mod composite_call;
pub(crate) mod counted_loop;
pub(crate) mod fold;
pub(crate) mod operations;
pub(crate) mod reducer;
pub(crate) mod scope;
