//! Analyses that clustering is based on: required constants, liveness of nodes, variable accesses
//! that must stay apart, and edges whose contraction would create a cycle.

pub(crate) mod constants;
pub(crate) mod cycle_graph;
pub(crate) mod cycles;
pub(crate) mod deadness;
pub(crate) mod resources;
pub(crate) mod slices;
