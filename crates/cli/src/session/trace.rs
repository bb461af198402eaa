//! Files of a traced step: its RunMetadata and its timeline.

use crate::args::trace::TraceArgs;
use crate::files::outputs::Output;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::Path;
use tf::proto::{RunMetadata, StepStats};
use tf::source::{run_metadata_to_bytes, run_metadata_to_text};
use trace::{TimelineOptions, chrome_trace};

/// Returns the files of a traced step.
pub(crate) fn outputs(flags: &TraceArgs, metadata: &RunMetadata) -> Vec<Output<'static>> {
    let mut files = Vec::new();
    let mut file = |path: &Path, bytes: Vec<u8>| {
        files.push(Output { path: path.to_owned(), parts: vec![Cow::from(bytes)] });
    };
    if let Some(path) = flags.metadata_file() {
        let mut text_path: OsString = path.as_os_str().to_owned();
        text_path.push("txt");
        file(path, run_metadata_to_bytes(metadata));
        file(Path::new(&text_path), run_metadata_to_text(metadata).into_bytes());
    }
    if let Some(path) = &flags.timeline {
        let options = TimelineOptions { memory: flags.show_memory, ..TimelineOptions::default() };
        let none = StepStats::default();
        file(path, chrome_trace(metadata.step_stats.as_ref().unwrap_or(&none), options).into_bytes());
    }
    files
}
