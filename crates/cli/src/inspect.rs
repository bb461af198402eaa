//! `tfcompile inspect`.

use clap::Args;
use support::{Error, Result};

/// `tfcompile inspect`.
#[derive(Args, Debug)]
pub(crate) struct Inspect {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: std::path::PathBuf,
}

/// Runs it.
pub(crate) fn run(arguments: &Inspect) -> Result<()> {
    Err(Error::unsupported(format!("{arguments:?}")))
}
