//! Tests of sessions: placement, state, control flow, and limits.
//!
//! One binary links and compiles the shared code once.

mod checkpoints;
mod control_flow;
mod dynamism;
mod gpu;
mod graph;
mod launches;
mod limits;
mod nodes;
mod ranges;
mod state;
