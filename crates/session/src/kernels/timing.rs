//! Results and durations of launches.

use super::cache::Kernel;
use crate::recorder::Recorder;
use crate::recorder::profile::Span;
use crate::value::Storage;
use std::time::{Duration, Instant};
use support::Result;

/// Results of a kernel, and the sizes determined by the run.
pub(super) struct Results {
    pub(super) buffers: Vec<Storage>,
    pub(super) dynamic_sizes: Vec<i64>,
    /// Number of rows of results that end after the true ones.
    pub(super) rows: Option<i64>,
}

/// Duration of a launch. Zero if not requested.
pub(super) struct Timing {
    /// Duration on the monotonic clock, for profiles.
    pub(super) time: Duration,
    /// Span on the recorder's clock.
    pub(super) span: Span,
}

impl Timing {
    /// Launches a kernel and measures its duration as requested.
    pub(super) fn of(
        kernel: &Kernel,
        recorder: Option<&Recorder>,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let now = || recorder.map_or(0, Recorder::now);
        let begin = now();
        let start = kernel.counts.profile.is_some().then(Instant::now);
        launch()?;
        let time = start.map(|start| start.elapsed()).unwrap_or_default();
        Ok(Self { time, span: Span { begin, end: now() } })
    }
}
