//! Clusters: parts of a TensorFlow graph that are compiled just in time, each of which becomes one node.
//!
//! [`cluster()`] takes a placed graph and answers with one in which each cluster is a node of op `_XlaLaunch` that runs a
//! function. Which nodes go together is what TensorFlow's passes would say, step by step: which nodes may be clustered
//! (`candidates`, `compilability`), when each is live (`deadness`), which reads and writes of variables stay apart
//! (`resources`), where a cycle would arise (`cycles`), which edges are contracted (`merge`), what is worth a cluster
//! (`mark`). What the compiler can compile it says itself, through [`Kernels`]. Nothing here compiles, runs, or knows HLO.
//!
//! Work is bounded: searches for cycles, formulas of deadness and pairs of variables' users have budgets, beyond which edges
//! are left alone. That only makes for more clusters than there need be.

mod before;
mod body;
mod candidates;
mod compilability;
mod constant_inputs;
mod constants;
mod cycle_graph;
mod cycles;
mod deadness;
mod decluster;
mod devices;
mod encapsulate;
mod flags;
mod frames;
mod functions;
mod graph;
mod kernels;
mod library;
mod mark;
mod merge;
mod must_compile;
mod op_groups;
mod options;
mod pipeline;
mod prune;
mod report;
mod resources;
mod scalars;
mod slices;

pub use constant_inputs::compile_time_constant_inputs;
pub use devices::{DeviceName, Policy, Registration, registrations};
pub use flags::{AutoJit, Flags};
pub use kernels::{Candidate, Kernels};
pub use options::{JitLevel, Observer, Options, Silent, State};
pub use pipeline::{Clustered, cluster};
pub use report::{ClusterReport, RefusedEdge, RefusedNode, Report};
