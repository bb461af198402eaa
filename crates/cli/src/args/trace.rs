//! Flags that trace a step of a session.

use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// TensorFlow's levels of tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceLevel {
    /// Nothing
    #[value(name = "NO_TRACE")]
    None,
    /// The same as FULL_TRACE
    #[value(name = "SOFTWARE_TRACE")]
    Software,
    /// When each node ran, and what it made
    #[value(name = "FULL_TRACE")]
    Full,
}

/// What is traced, and where it goes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TraceArgs {
    /// Trace a step and write its RunMetadata
    #[arg(long, value_name = "LEVEL", requires = "session", ignore_case = true)]
    trace: Option<TraceLevel>,
    /// Where the RunMetadata goes: FILE in binary, FILE.pbtxt as text [default: run_metadata.pb]
    #[arg(long, value_name = "FILE", requires = "trace", alias = "run_metadata")]
    run_metadata: Option<PathBuf>,
    /// Trace a step and write its timeline, for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE.json", requires = "session")]
    pub(crate) timeline: Option<PathBuf>,
    /// The step that is traced, counted from 0 [default: the last one]
    #[arg(long, value_name = "N", requires = "session", alias = "trace_step")]
    trace_step: Option<u64>,
    /// Show in the timeline how long tensors live, and what allocators hold
    #[arg(long, requires = "timeline", alias = "show_memory")]
    pub(crate) show_memory: bool,
}

impl TraceArgs {
    /// The step to trace, of so many; `None` for no tracing.
    pub(crate) fn step(&self, steps: u64) -> Result<Option<u64>> {
        let is_traced = self.metadata_file().is_some() || self.timeline.is_some();
        match self.trace_step {
            Some(step) if step >= steps => Err(Error::invalid(format!(
                "--trace-step {step}: the steps are 0 to {}; give a later number to --steps or an earlier one here",
                steps - 1
            ))),
            Some(step) if !is_traced => Err(Error::invalid(format!(
                "--trace-step {step} says which step is traced, but nothing is: give --timeline FILE or --trace FULL_TRACE, too"
            ))),
            step => Ok(is_traced.then(|| step.unwrap_or(steps - 1))),
        }
    }

    /// The file for the RunMetadata, if there is one.
    pub(crate) fn metadata_file(&self) -> Option<&Path> {
        let is_traced = self.trace.is_some_and(|level| level != TraceLevel::None);
        is_traced.then(|| self.run_metadata.as_deref().unwrap_or(Path::new("run_metadata.pb")))
    }
}
