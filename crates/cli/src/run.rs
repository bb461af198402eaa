//! `tfcompile run`.

use crate::model::ModelArgs;
use clap::Args;
use support::{Error, Result};

/// `tfcompile run`.
#[derive(Args, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Compile a model in this process, run it once and print its results.
pub(crate) fn run(arguments: &Run) -> Result<()> {
    Err(Error::unsupported(format!("run {}", arguments.model.model.display())))
}
