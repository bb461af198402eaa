//! Tests of clustering: candidates, merging, slices, and launches.
//!
//! One binary links and compiles the shared code once.

mod build;
mod candidates;
mod launches;
mod merging;
mod recorded;
mod scale;
mod slices;
