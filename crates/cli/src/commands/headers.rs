//! `tfcompile headers`.

use crate::files::outputs;
use crate::files::outputs::Output;
use clap::Args;
use std::borrow::Cow;
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
    let output = |(path, contents): &(&str, &'static str)| Output {
        path: arguments.output.join(path),
        parts: vec![Cow::Borrowed(contents.as_bytes())],
    };
    let files: Vec<Output<'_>> = aot::runtime_headers().iter().map(output).collect();
    outputs::create_directories(&files)?;
    outputs::write(&files)
}
