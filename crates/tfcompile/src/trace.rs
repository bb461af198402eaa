//! Traces of runs, in TensorFlow's formats.

use ::trace::{TimelineOptions, chrome_trace};
use tf::proto::{RunMetadata, StepStats};

/// Start and end of each node of a run, and the outputs that it produced.
#[derive(Clone, Debug)]
pub struct Trace {
    metadata: RunMetadata,
}

impl Trace {
    pub(crate) fn new(metadata: RunMetadata) -> Self {
        Self { metadata }
    }

    /// Returns TensorFlow's `RunMetadata` message. The trace is in its `step_stats`.
    pub fn metadata(&self) -> &RunMetadata {
        &self.metadata
    }

    /// Serializes the `RunMetadata` message in binary form.
    pub fn to_bytes(&self) -> Vec<u8> {
        tf::source::run_metadata_to_bytes(&self.metadata)
    }

    /// Prints the `RunMetadata` message in text form.
    pub fn to_text(&self) -> String {
        tf::source::run_metadata_to_text(&self.metadata)
    }

    /// Returns a timeline in Chrome's trace event format (JSON), laid out as TensorFlow's
    /// `timeline` module does it. Open it in `chrome://tracing` or Perfetto.
    pub fn timeline(&self, options: TimelineOptions) -> String {
        let none = StepStats::default();
        chrome_trace(self.metadata.step_stats.as_ref().unwrap_or(&none), options)
    }
}
