//! Runs compiled programs in this process, measures them, and compares them with the evaluator.
//!
//! - [`Signature`] and [`assign`]: a program's arguments and results by name, and the values given
//!   or generated for them.
//! - [`summary`]: an array in a few lines, in NumPy's style.
//! - [`program_cost()`]: operations and memory traffic of an optimized program, from the HLO alone.
//! - [`bench()`]: the time of runs and of individual kernels, and their share of the machine's
//!   peak.
//! - [`autotune()`]: finds the fastest way to compute each kernel on this machine.
//! - [`quantize()`]: turns a program into one of integers, with scales from examples of its inputs.
//! - [`verify()`]: checks that the code computes the results that the HLO specifies.
//!
//! This crate does not read or write files. It reads the clock only to measure; no result of a
//! program depends on it.

mod arguments;
mod autotune;
mod bench;
mod device_profile;
mod difference;
mod fill;
mod hlo_profile;
mod kernels;
mod latency;
mod limits;
mod peak;
mod precision;
mod profile;
mod profile_options;
mod quantization;
mod report;
mod signature;
pub mod summary;
mod verify;

pub use arguments::{Given, Inputs, Source, assign, assign_steps};
pub use autotune::{Autotuned, Tuned, autotune};
pub use bench::{BenchOptions, BenchReport, KernelTime, ThreadsTime, bench};
pub use device_profile::{device_peak, profile_device};
pub use fill::{Fill, Random};
pub use hlo_profile::hlo_profile;
pub use kernels::{Extracted, Kernel, extract, kernels, program_cost};
pub use latency::Latency;
pub use limits::index_limits;
pub use peak::{Peak, Probe, measure_peak};
pub use precision::{Distance, Movement, PrecisionReport, measure_precision};
pub use profile::profile;
pub use profile_options::ProfileOptions;
pub use quantization::{
    CompileModule, LayerReport, QuantizationOptions, QuantizationReport, ResultReport, Scheme,
    example_program, has_layers, quantize,
};
pub use quantize::Method;
pub use report::{ReportOptions, add_accuracy, add_result_errors, measure_report, report};
pub use signature::Signature;
pub use verify::{
    Comparison, Compile, KernelCheck, Mismatch, ProgramCheck, Subject, VerifyOptions, VerifyReport,
    compare_run, verify, verify_kernels,
};

/// Receiver of an activity, the number of its parts that are done, and the number of all, or 0 if
/// that is unknown.
pub type Progress<'a> = dyn FnMut(&str, usize, usize) + 'a;
