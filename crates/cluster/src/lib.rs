//! Clusters: parts of a TensorFlow graph that are compiled just in time, each of which becomes one
//! node.
//!
//! [`cluster()`] takes a placed graph and returns one in which each cluster is a node of op
//! `_XlaLaunch` that runs a function. It follows TensorFlow's passes step by step. `candidates`
//! selects the nodes that may be clustered. `analysis` determines when each is live, which reads
//! and writes of variables must stay apart, and where a cycle would arise. `rewrite` contracts
//! edges, keeps the profitable clusters, and converts them to functions. [`Kernels`] tells what can
//! be compiled. This crate compiles nothing, runs nothing, and does not depend on HLO.
//!
//! Work is bounded: the search for cycles, deadness formulas, and pairs of variable users have
//! budgets. Edges beyond the budget are not contracted, which only results in more clusters than
//! necessary.

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
