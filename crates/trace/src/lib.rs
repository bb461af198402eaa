//! Statistics of session steps: collected per node as TensorFlow's `StepStats`, and rendered as a
//! timeline for browsers.
//!
//! [`html`] renders a [`Report`], which shows where a program or a step spends its time.
//!
//! A [`Collector`] records each execution of a node and returns the step's `StepStats`.
//! [`chrome_trace`] renders these as TensorFlow's `timeline` module does. This crate never reads
//! the clock.

mod chrome_trace;
mod collector;
mod execution;
mod gpu;
mod lanes;
mod report;
mod step_report;

pub use chrome_trace::{TimelineOptions, chrome_trace};
pub use collector::Collector;
pub use execution::{Execution, GpuEvent, GpuEventKind, GpuKernel, Instruction, Output};
pub use report::{Bar, Kernel, Lane, Report, Roof, Series, html};
pub use step_report::step_report;
