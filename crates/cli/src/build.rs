//! `tfcompile build`.

use crate::model::ModelArgs;
use clap::Args;
use support::{Error, Result};

/// `tfcompile build`.
#[derive(Args, Debug)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Runs it.
pub(crate) fn run(arguments: &Build) -> Result<()> {
    Err(Error::unsupported(format!("{arguments:?}")))
}
