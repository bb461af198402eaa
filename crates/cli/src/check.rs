//! `tfcompile check`.

use crate::model::ModelArgs;
use clap::Args;
use support::{Error, Result};

/// `tfcompile check`.
#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Runs it.
pub(crate) fn run(arguments: &Check) -> Result<()> {
    Err(Error::unsupported(format!("{arguments:?}")))
}
