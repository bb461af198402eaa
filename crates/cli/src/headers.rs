//! `tfcompile headers`.

use crate::flags::Headers;
use crate::outputs::{self, Output};
use std::borrow::Cow;
use support::Result;

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
