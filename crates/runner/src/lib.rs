//! Compiled programs at work in this process: run them, measure them, compare them with the evaluator.
//!
//! - [`Signature`] and [`assign`]: which arrays a program takes and makes, by name, and what is given for them, or made up.
//! - [`summary`]: an array in a few lines, as NumPy prints it.
//! - [`program_cost()`]: what an optimised program computes and moves; from the HLO alone.
//! - [`bench()`]: how long runs take, kernel by kernel too, and which part of the machine's peak that is.
//! - [`autotune()`]: which of the ways to compute a kernel is fastest here.
//! - [`verify()`]: whether the code computes what the HLO says.
//!
//! Nothing here reads or writes files. The clock is read, to measure; no result of a program depends on it.

mod arguments;
mod autotune;
mod bench;
mod fill;
mod hlo_profile;
mod kernels;
mod latency;
mod limits;
mod peak;
mod profile;
mod signature;
pub mod summary;
mod verify;

pub use arguments::{Given, Inputs, Source, assign, assign_steps};
pub use autotune::{Autotuned, Tuned, autotune};
pub use bench::{BenchOptions, BenchReport, KernelTime, ThreadsTime, bench};
pub use fill::{Fill, Random};
pub use hlo_profile::hlo_profile;
pub use kernels::{Extracted, Kernel, extract, kernels, program_cost};
pub use latency::Latency;
pub use limits::index_limits;
pub use peak::{Peak, Probe, measure_peak};
pub use profile::{ProfileOptions, profile};
pub use signature::Signature;
pub use verify::{
    Comparison, Compile, KernelCheck, Mismatch, ProgramCheck, Subject, VerifyOptions, VerifyReport,
    compare_run, verify,
};
