//! `tfcompile verify`.

use crate::model::ModelArgs;
use clap::Args;
use support::{Error, Result};

/// `tfcompile verify`.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Compare compiled code with the evaluator, on random and edge inputs.
pub(crate) fn run(arguments: &Verify) -> Result<()> {
    Err(Error::unsupported(format!("verify {}", arguments.model.model.display())))
}
