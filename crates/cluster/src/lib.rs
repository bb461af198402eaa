//! Clusters: parts of a TensorFlow graph that are compiled just in time, each of which becomes one node.
//!
//! [`cluster()`] takes a placed graph and returns one in which each cluster is a node of op `_XlaLaunch` that runs a
//! function. It follows TensorFlow's passes step by step: `candidates` decides which nodes may be clustered, `analysis` when
//! each is live, which reads and writes of variables stay apart, and where a cycle would arise, and `rewrite` contracts edges,
//! keeps the clusters that are worth it, and makes them functions. What can be compiled is asked through [`Kernels`]. Nothing
//! here compiles, runs, or knows HLO.
//!
//! Work is bounded: searches for cycles, formulas of deadness and pairs of variables' users have budgets, beyond which edges
//! are left alone. That only makes for more clusters than there need be.

mod analysis;
mod candidates;
mod devices;
mod fetches;
mod flags;
mod functions;
mod graph;
mod kernels;
mod options;
mod pipeline;
mod prune;
mod report;
mod rewrite;

pub use devices::{DeviceName, Policy, Registration, registrations};
pub use flags::{AutoJit, Flags};
pub use kernels::{Candidate, Kernels, compile_time_constant_inputs};
pub use options::{JitLevel, Observer, Options, Silent, State};
pub use pipeline::{Clustered, cluster};
pub use report::{ClusterReport, RefusedEdge, RefusedNode, Report};
