//! `tfcompile bench`.

use crate::model::ModelArgs;
use clap::Args;
use support::{Error, Result};

/// `tfcompile bench`.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Compile a model in this process and measure how fast it runs.
pub(crate) fn run(arguments: &Bench) -> Result<()> {
    Err(Error::unsupported(format!("bench {}", arguments.model.model.display())))
}
