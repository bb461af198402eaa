//! Flags of tuning: which measured choices a build takes, and whether it measures.

use clap::Args;
use compiler::PlanOptions;
use compiler::tuning::{self, Choices};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{Error, Result};

/// Where choices are kept if no file is named.
const DEFAULT_FILE: &str = "tfcompile.tuning";

/// Choices that were measured before.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TuningArgs {
    /// Compute kernels as this file says, which --autotune wrote; it may hold choices for several machines, and is read
    /// on any
    #[arg(long, value_name = "FILE")]
    tuning: Option<PathBuf>,
}

/// Measuring.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AutotuneArgs {
    /// Measure on this machine which way of computing each kernel is fastest, use it, and add it to a file, whose choices are
    /// taken and not measured again [default file: tfcompile.tuning]. The target must be this machine's processor
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_FILE)]
    #[arg(conflicts_with = "tuning")]
    pub(crate) autotune: Option<PathBuf>,
    /// Seconds to measure for, at most; what is left is computed as the cost model wants it
    #[arg(
        long,
        alias = "autotune_seconds",
        value_name = "SECONDS",
        default_value_t = 60.0,
        requires = "autotune"
    )]
    pub(crate) autotune_seconds: f64,
}

impl TuningArgs {
    /// The file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.tuning.as_deref()
    }

    /// The plan's options with the choices of the file.
    pub(crate) fn options(&self, options: PlanOptions) -> Result<PlanOptions> {
        let Some(path) = &self.tuning else { return Ok(options) };
        Ok(PlanOptions { choices: Arc::new(read(path)?), ..options })
    }
}

/// The choices in a file.
pub(crate) fn read(path: &Path) -> Result<Choices> {
    let name = path.display().to_string();
    let cannot = |e: std::io::Error| Error::invalid(format!("cannot read the tuning file '{name}': {e}"));
    // A device or a pipe does not say how much there is.
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(tuning::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > tuning::MAX_BYTES {
        return Err(Error::invalid(format!("{name}: a tuning file has {} bytes at most", tuning::MAX_BYTES)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Error::invalid(format!("{name}: a tuning file is text; name another file")))?;
    Choices::parse(&text, &name)
}
