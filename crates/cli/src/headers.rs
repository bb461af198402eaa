//! `tfcompile headers`.

use crate::flags::Headers;
use crate::outputs;
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// Writes the C++ headers that the tool carries.
pub(crate) fn run(arguments: &Headers) -> Result<()> {
    let headers: Vec<(PathBuf, &[u8])> = aot::runtime_headers()
        .iter()
        .map(|(path, contents)| (arguments.output.join(path), contents.as_bytes()))
        .collect();
    for (path, _) in &headers {
        let directory = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory).map_err(|e| {
            Error::invalid(format!("cannot make the directory '{}': {e}", directory.display()))
        })?;
    }
    let files: Vec<(&Path, &[u8])> =
        headers.iter().map(|(path, contents)| (path.as_path(), *contents)).collect();
    outputs::write_all(&files)
}
