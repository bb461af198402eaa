//! `tfcompile headers`.

use crate::files::outputs;
use clap::Args;
use std::path::PathBuf;
use support::Result;

/// `tfcompile headers`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct Headers {
    /// The directory to write them to; it is made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Writes the C++ headers that the tool carries.
pub(crate) fn run(arguments: &Headers) -> Result<()> {
    let files = outputs::runtime_headers(&arguments.output);
    outputs::create_directories(&files)?;
    outputs::write(&files)
}
