//! Tests the compiler against recorded answers. This library serves two binaries, the conformance
//! runner and the oracle runner.
//!
//! * Conformance: thousands of small cases, each one graph with inputs and the answers of
//!   TensorFlow and of XLA. They run in-process through the whole compiler, in child processes
//!   ([`pool`]), so that a crash or a hang affects only one case.
//! * Oracle: whole programs through the actual tool: object, header, C++ compiler, run, compare.
//!
//! No expected value is computed here; all of them were recorded.

pub mod arguments;
pub mod assemble;
pub mod c_source;
pub mod engine;
pub mod export;
pub mod forms;
pub mod hlo_texts;
pub mod known_failures;
pub mod models;
pub mod oracle;
pub mod pack;
pub mod pool;
pub mod programs;
pub mod report;
pub mod select;
pub mod web;
pub mod worker;

pub use programs::symbolic;
pub use recorded::{case, compare, tolerance};
