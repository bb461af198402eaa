//! Facts about a graph that clustering decides by: what must be constant, when nodes are live, which accesses to variables must
//! stay apart, and where contracting an edge would close a cycle.

pub(crate) mod constants;
pub(crate) mod cycle_graph;
pub(crate) mod cycles;
pub(crate) mod deadness;
pub(crate) mod resources;
pub(crate) mod slices;
