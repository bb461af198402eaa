//! Flags of code generation that several commands share: versions for several processors, sanitizers.

use crate::args::model::ModelArgs;
use crate::files::kernel_cache::KernelCache;
use clap::Args;
use codegen::{Sanitizer, UnitCache};
use compiler::BackOptions;
use std::path::PathBuf;
use std::sync::Arc;
use support::{Error, Result};
use target::{Architecture, Level, Target};

/// The versions of an object for x86-64 by default.
const DEFAULT_LEVELS: &str = "v2,v3,v4";

/// How code is generated.
#[derive(Args, Clone, Debug)]
pub(crate) struct BackArgs {
    /// Versions of the code in one object, chosen by the processor that it runs on: levels of x86-64, or `none`
    /// [default: v2,v3,v4 on x86-64 without a processor of its own]
    #[arg(long, value_name = "LEVELS")]
    multiversion: Option<String>,
    /// Instrument the generated code to find defects: address or thread
    #[arg(long, value_name = "SANITIZER")]
    sanitize: Option<String>,
    /// Keep generated code in a directory, and take from there what was generated before: the next build of a model that
    /// hardly differs is faster, and its object the same
    #[arg(long, value_name = "DIR")]
    kernel_cache: Option<PathBuf>,
}

impl BackArgs {
    /// The word of the sanitizer.
    pub(crate) fn sanitizer(&self) -> Option<&str> {
        self.sanitize.as_deref()
    }

    /// The target of the lowest version, and those of the others.
    pub(crate) fn targets(&self, model: &ModelArgs) -> Result<(Target, Vec<Target>)> {
        let target = model.target("")?;
        let is_x86_64 = target.triple.architecture == Architecture::X86_64;
        let baseline = target.cpu == Level::V1.cpu();
        let has_processor = !target.cpu.is_empty() && !baseline || !target.features.is_empty();
        let levels = match self.multiversion.as_deref() {
            Some("none" | "") => return Ok((target, Vec::new())),
            Some(levels) if !is_x86_64 => {
                return Err(Error::invalid(format!(
                    "--multiversion={levels} is for x86-64, and the target is {}: leave it out",
                    target.triple.as_str()
                )));
            }
            Some(levels) if has_processor => {
                return Err(Error::invalid(format!(
                    "--multiversion={levels} chooses the processors, and so does the target: leave one of them out"
                )));
            }
            Some(levels) => levels,
            // Who names the baseline wants code for it, which is in none of the versions.
            None if is_x86_64 && !has_processor && !baseline && self.sanitize.is_none() => DEFAULT_LEVELS,
            None => return Ok((target, Vec::new())),
        };
        let mut versions = Vec::new();
        for word in levels.split(',') {
            let level = Level::parse(word).ok_or_else(|| {
                Error::invalid(format!(
                    "--multiversion: '{word}' is no level of x86-64; they are v1, v2, v3 and v4"
                ))
            })?;
            versions.push(level);
        }
        versions.sort_unstable();
        versions.dedup();
        let version = |level: Level| Target::new(target.triple.as_str(), level.cpu(), "");
        let mut targets = versions.into_iter().map(version).collect::<Result<Vec<_>>>()?;
        let rest = targets.split_off(1);
        Ok((targets.remove(0), rest))
    }

    /// Options of code generation with what these flags say.
    pub(crate) fn options(&self, options: BackOptions, versions: Vec<Target>) -> Result<BackOptions> {
        let sanitize = match self.sanitize.as_deref() {
            None => None,
            Some(word) => Some(Sanitizer::parse(word).ok_or_else(|| {
                Error::invalid(format!("--sanitize={word}: the sanitizers are address and thread"))
            })?),
        };
        let cache = self.kernel_cache.as_deref().map(KernelCache::open).transpose()?;
        let cache = cache.map(|cache| Arc::new(cache) as Arc<dyn UnitCache>);
        Ok(BackOptions { variants: versions, sanitize, cache, ..options })
    }
}
