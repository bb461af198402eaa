//! `tfcompile headers`: writes the headers that generated headers include.

use crate::files::outputs;
use clap::Args;
use std::path::PathBuf;
use support::Result;

/// `tfcompile headers`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct Headers {
    /// Directory to write to, created if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Writes the C++ headers that are embedded in the tool.
pub(crate) fn run(arguments: &Headers) -> Result<()> {
    let files = outputs::runtime_headers(&arguments.output, true);
    outputs::create_directories(&files)?;
    outputs::write(&files)
}
