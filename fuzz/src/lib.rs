//! Compiles random graphs and compares their results with the evaluator.
//!
//! - [`Draw`]: random choices from a seed.
//! - [`hlo_graph`]: HLO modules over the opcodes with code. [`tf_graph`]: graphs of TensorFlow's
//!   ops, imported to HLO. [`edit`]: file tests with random edits. [`subject`]: maps a seed to a
//!   graph.
//! - [`Setup`]: the processor and the plan's choices for a graph. They are random, too, so that
//!   rare strategies are tested.
//! - [`check()`]: compiles, runs twice in the same memory, with one thread and with two, and
//!   compares: equal bits for any number of threads, and values within the bounds that `runner`
//!   estimates for each element.
//! - [`named`]: graphs whose feeds have named dimensions, compiled once and run at several sizes.
//! - [`translation`]: runs the passes one by one, and compares before and after each.
//! - [`minimize()`]: shrinks a failing module while it keeps failing.
//!
//! A seed yields the same graph on every machine. A failure is printed as a file test.

pub mod check;
mod draw;
pub mod edit;
pub mod firings;
pub mod hlo_graph;
mod minimize;
pub mod named;
mod report;
pub mod subject;
pub mod tf_graph;
pub mod translation;

pub use check::{Outcome, Setup, check};
pub use draw::{Draw, Numbers};
pub use minimize::minimize;
pub use report::file_test;
