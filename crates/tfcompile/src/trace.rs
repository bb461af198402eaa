//! What a run took, in TensorFlow's forms.

use ::trace::{TimelineOptions, chrome_trace};
use tf::proto::{RunMetadata, StepStats};

/// When each node of a run began and ended, and what it made.
#[derive(Clone, Debug)]
pub struct Trace {
    metadata: RunMetadata,
}

impl Trace {
    pub(crate) fn new(metadata: RunMetadata) -> Self {
        Self { metadata }
    }

    /// TensorFlow's message, whose `step_stats` a full trace fills.
    pub fn metadata(&self) -> &RunMetadata {
        &self.metadata
    }

    /// The same as bytes of a protocol buffer.
    pub fn to_bytes(&self) -> Vec<u8> {
        tf::source::run_metadata_to_bytes(&self.metadata)
    }

    /// The same as text.
    pub fn to_text(&self) -> String {
        tf::source::run_metadata_to_text(&self.metadata)
    }

    /// A timeline in Chrome's trace event format, laid out as TensorFlow's `timeline` module does it.
    pub fn timeline(&self, options: TimelineOptions) -> String {
        let none = StepStats::default();
        chrome_trace(self.metadata.step_stats.as_ref().unwrap_or(&none), options)
    }
}
