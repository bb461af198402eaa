//! Random graphs, compiled and compared with the evaluator.
//!
//! - [`Draw`]: random choices from a seed.
//! - [`hlo_graph`]: HLO modules over the opcodes that have code. [`tf_graph`]: graphs of TensorFlow's ops, by way of the import;
//!   [`subject`]: what a seed stands for.
//! - [`Setup`]: for which processor and with which of the plan's choices a graph is compiled; drawn too, so that rare
//!   strategies have their turn.
//! - [`check`]: compiles, runs twice in the same memory, on one thread and on two, and compares: equal bits for different
//!   threads, values within the bounds that `runner` estimates for each element.
//! - [`minimize()`]: makes a module that fails smaller as long as it fails.
//!
//! What a seed stands for is the same on every machine; what fails is printed as a file test.

pub mod check;
mod draw;
pub mod hlo_graph;
mod minimize;
mod report;
pub mod subject;
pub mod tf_graph;

pub use check::{Outcome, Setup, check};
pub use draw::{Draw, Numbers};
pub use minimize::minimize;
pub use report::file_test;
