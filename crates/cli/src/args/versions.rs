//! Flags of code generation that several commands share: multiversioning, sanitizers, and the
//! kernel cache.

use crate::args::model::ModelArgs;
use crate::files::kernel_cache::KernelCache;
use crate::files::ptxas::Ptxas;
use clap::Args;
use codegen::{Sanitizer, UnitCache};
use compiler::{Assembler, BackOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{Error, Result};
use target::{Architecture, Level, Target};

/// Default levels of an object for x86-64. Models that do not multiply narrow numbers have no
/// versions for `avxvnni`, `avx512vnni`, `avx512bf16`, and `amx`.
const DEFAULT_LEVELS: &str = "v2,v3,avxvnni,v4,avx512vnni,avx512bf16,amx";

/// Flags of code generation.
#[derive(Args, Clone, Debug)]
pub(crate) struct BackArgs {
    /// Versions of the code in one object, selected at run time by processor: v1 to v4 (levels of
    /// x86-64); avxvnni, avx512vnni, avx512bf16, and amx (Linux) where the model multiplies bytes
    /// or bf16; or `none` [default: all but v1 on x86-64 if no processor is given]
    #[arg(long, value_name = "LEVELS")]
    multiversion: Option<String>,
    /// Instrument the generated code with a sanitizer: address or thread
    #[arg(long, value_name = "SANITIZER")]
    sanitize: Option<String>,
    /// Directory of the cache of generated code, which makes the next build of a similar model
    /// faster; the object does not change [default: the variable TFCOMPILE_KERNEL_CACHE, or
    /// tfcompile/kernels in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    kernel_cache: Option<PathBuf>,
    /// Maximum size of the cache of generated code; the least recently used entries are removed
    /// [default: the variable TFCOMPILE_KERNEL_CACHE_LIMIT, or 256]
    #[arg(long, value_name = "MIB")]
    kernel_cache_limit: Option<u64>,
    /// Neither read nor write a cache of generated code
    #[arg(long, conflicts_with_all = ["kernel_cache", "kernel_cache_limit"])]
    no_kernel_cache: bool,
    /// NVIDIA's assembler, with which the object also gets machine code for the architectures of
    /// --target=cuda, so that the driver need not compile when the program starts
    #[arg(long, value_name = "PATH")]
    ptxas: Option<PathBuf>,
}

impl BackArgs {
    /// Value of `--sanitize`.
    pub(crate) fn sanitizer(&self) -> Option<&str> {
        self.sanitize.as_deref()
    }

    /// True if the flags name versions.
    pub(crate) fn names_versions(&self) -> bool {
        self.multiversion.as_deref().is_some_and(|levels| !["none", ""].contains(&levels))
    }

    /// Returns the target of the lowest version, and the targets of the other versions.
    pub(crate) fn targets(&self, model: &ModelArgs) -> Result<(Target, Vec<Target>)> {
        let target = model.target("")?;
        if !model.devices()?.is_empty() {
            if let Some(levels) = self.multiversion.as_deref().filter(|levels| !["none", ""].contains(levels))
            {
                return Err(Error::invalid(format!(
                    "--multiversion={levels} selects processors, but the code is for a GPU: remove the flag"
                )));
            }
            return Ok((target, Vec::new()));
        }
        let is_x86_64 = target.triple.architecture == Architecture::X86_64;
        let baseline = target.cpu == Level::V1.cpu();
        let has_processor = !target.cpu.is_empty() && !baseline || !target.features.is_empty();
        let levels = match self.multiversion.as_deref() {
            Some("none" | "") => return Ok((target, Vec::new())),
            Some(levels) if !is_x86_64 => {
                return Err(Error::invalid(format!(
                    "--multiversion={levels} requires x86-64, but the target is {}: remove the flag",
                    target.triple.as_str()
                )));
            }
            Some(levels) if has_processor => {
                return Err(Error::invalid(format!(
                    "--multiversion={levels} and the target both select processors: remove one of them"
                )));
            }
            Some(levels) => levels,
            // An explicit baseline asks for code for the baseline, which is in none of the
            // versions.
            None if is_x86_64 && !has_processor && !baseline && self.sanitize.is_none() => DEFAULT_LEVELS,
            None => return Ok((target, Vec::new())),
        };
        let mut versions = Vec::new();
        for word in levels.split(',') {
            let level = Level::parse(word).ok_or_else(|| {
                Error::invalid(format!(
                    "--multiversion: unknown x86-64 level '{word}': expected {}",
                    Level::ALL.map(Level::name).join(", ")
                ))
            })?;
            versions.push(level);
        }
        versions.sort_unstable();
        versions.dedup();
        let version = |level: Level| Target::new(target.triple.as_str(), level.cpu(), level.features());
        let mut targets = versions.into_iter().map(version).collect::<Result<Vec<_>>>()?;
        let rest = targets.split_off(1);
        Ok((targets.remove(0), rest))
    }

    /// NVIDIA's assembler, if the user names it. The devices must be NVIDIA's.
    pub(crate) fn assembler(&self, devices: &[Target]) -> Result<Option<Arc<dyn Assembler>>> {
        let is_cuda = devices.iter().any(|device| device.gpu.is_some_and(|gpu| gpu.capability > 0));
        if let Some(path) = self.ptxas.as_ref().filter(|_| !is_cuda) {
            return Err(Error::invalid(format!(
                "--ptxas={} is for NVIDIA's GPUs: add --target=cuda, or remove the flag",
                path.display()
            )));
        }
        Ok(self.ptxas.clone().map(|path| Arc::new(Ptxas(path)) as Arc<dyn Assembler>))
    }

    /// Adds the settings of these flags to the options of code generation.
    pub(crate) fn options(&self, options: BackOptions, versions: Vec<Target>) -> Result<BackOptions> {
        let sanitize =
            match self.sanitize.as_deref() {
                None => None,
                Some(word) => Some(Sanitizer::parse(word).ok_or_else(|| {
                    Error::invalid(format!("--sanitize={word}: expected address or thread"))
                })?),
            };
        let cache = if self.no_kernel_cache {
            None
        } else {
            cache(self.kernel_cache.as_deref(), self.kernel_cache_limit)?
        };
        Ok(BackOptions { variants: versions, sanitize, cache, ..options })
    }
}

/// Cache of generated code, by the user's flags or by the environment.
pub(crate) fn cache(directory: Option<&Path>, limit: Option<u64>) -> Result<Option<Arc<dyn UnitCache>>> {
    let cache = KernelCache::of_build(directory, limit)?;
    Ok(cache.map(|cache| Arc::new(cache) as Arc<dyn UnitCache>))
}
