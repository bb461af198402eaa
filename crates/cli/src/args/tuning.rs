//! Flags of tuning: the measured choices that a build uses, and whether it measures.

use clap::Args;
use compiler::PlanOptions;
use compiler::tuning::{self, Choices};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{Error, Result};

/// Tuning file if the flag names none.
pub(crate) const DEFAULT_FILE: &str = "tfcompile.tuning";

/// The flag for choices that were measured before.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TuningArgs {
    /// Compute kernels as chosen in this file, which --autotune writes. It can hold choices for
    /// several machines and be used on any
    #[arg(long, value_name = "FILE")]
    tuning: Option<PathBuf>,
}

/// Flags for measuring.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AutotuneArgs {
    /// Measure the fastest algorithm for each kernel on this machine, use it, and add it to a file.
    /// Choices already in the file are used and not measured again [default file:
    /// tfcompile.tuning]. The target must be this machine's processor
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = DEFAULT_FILE)]
    #[arg(conflicts_with = "tuning")]
    pub(crate) autotune: Option<PathBuf>,
    /// Upper bound on the seconds spent measuring; the planner decides for the remaining kernels
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
    /// The tuning file, if one is named.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.tuning.as_deref()
    }

    /// Adds the choices of the file to the plan's options.
    pub(crate) fn options(&self, options: PlanOptions) -> Result<PlanOptions> {
        let Some(path) = &self.tuning else { return Ok(options) };
        Ok(PlanOptions { choices: Arc::new(read(path)?), ..options })
    }
}

/// Reads the choices in a file.
pub(crate) fn read(path: &Path) -> Result<Choices> {
    let name = path.display().to_string();
    let cannot = |e: std::io::Error| Error::invalid(format!("cannot read the tuning file '{name}': {e}"));
    let kind = std::fs::metadata(path).map_err(cannot)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        // A pipe would wait for another process to write to it.
        return Err(Error::invalid(format!(
            "cannot read the tuning file '{name}': it is a pipe or device; name a file"
        )));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(tuning::MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > tuning::MAX_BYTES {
        return Err(Error::invalid(format!(
            "{name}: the tuning file is larger than {} bytes",
            tuning::MAX_BYTES
        )));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Error::invalid(format!("{name}: the tuning file is not valid UTF-8; name another file"))
    })?;
    Choices::parse(&text, &name)
}
