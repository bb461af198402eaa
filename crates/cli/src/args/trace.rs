//! Flags that trace a step of a session.

use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// TensorFlow's levels of tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceLevel {
    /// Record nothing
    #[value(name = "NO_TRACE")]
    None,
    /// Same as FULL_TRACE
    #[value(name = "SOFTWARE_TRACE")]
    Software,
    /// Record the times and the outputs of each node
    #[value(name = "FULL_TRACE")]
    Full,
}

/// Flags for the traced step and its files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Trace a step at this level and write its RunMetadata
    #[arg(long, value_name = "LEVEL", requires = "session", ignore_case = true)]
    trace: Option<TraceLevel>,
    /// File for the RunMetadata in binary; the same in text goes to FILE with "txt" appended
    /// [default: run_metadata.pb]
    #[arg(long, value_name = "FILE", requires = "trace", alias = "run_metadata")]
    run_metadata: Option<PathBuf>,
    /// Trace a step and write its timeline for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE.json", requires = "session")]
    pub(crate) timeline: Option<PathBuf>,
    /// Number of the step to trace, starting at 0 [default: the last step]
    #[arg(long, value_name = "N", requires = "session", alias = "trace_step")]
    trace_step: Option<u64>,
    /// Show the lifetimes of tensors and the memory of allocators in the timeline
    #[arg(long, requires = "timeline", alias = "show_memory")]
    pub(crate) show_memory: bool,
}

impl TraceArgs {
    /// Returns the number of the step to trace, out of `steps`, or `None` if no step is traced.
    pub(crate) fn step(&self, steps: u64) -> Result<Option<u64>> {
        let is_traced = self.metadata_file().is_some() || self.timeline.is_some();
        match self.trace_step {
            Some(step) if step >= steps => Err(Error::invalid(format!(
                "--trace-step {step}: expected a step from 0 to {}; trace an earlier step, or increase --steps",
                steps - 1
            ))),
            Some(step) if !is_traced => Err(Error::invalid(format!(
                "--trace-step {step} has no effect without a trace: add --timeline FILE or --trace FULL_TRACE"
            ))),
            step => Ok(is_traced.then(|| step.unwrap_or(steps - 1))),
        }
    }

    /// File for the RunMetadata, if it is written.
    pub(crate) fn metadata_file(&self) -> Option<&Path> {
        let is_traced = self.trace.is_some_and(|level| level != TraceLevel::None);
        is_traced.then(|| self.run_metadata.as_deref().unwrap_or(Path::new("run_metadata.pb")))
    }
}
