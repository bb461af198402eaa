//! A model read from its files as the flags ask, with its config: the one of a file, or one that is inferred.

use crate::args::model::ModelArgs;
use crate::args::parse::loop_bounds;
use crate::program::module_file;
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use bytes::Bytes;
use compiler::{Input, Observer as _};
use shape::Literal;
use std::collections::BTreeMap;
use support::{Code, Error, Result};
use tf::Inferred;
use tf::model::Model;
use tf::proto::Config;

/// A model with its config.
pub(crate) struct Read {
    /// For the compiler.
    pub(crate) input: Input,
    /// The values that the model comes with: of variables before the first run, by the name of the variable's node; of
    /// the arguments of a snapshot, by name.
    pub(crate) initial: BTreeMap<String, Literal>,
}

/// The model and its config, inferred if no file is given. What the user may want to know of it is printed to
/// standard error. `disabled` are the passes over HLO that do not run; the dumper sees HLO between the others.
pub(crate) fn read(
    flags: &ModelArgs,
    disabled: &[String],
    progress: &mut Progress,
    dumper: &mut Dumper,
) -> Result<Read> {
    if let Some((input, initial)) = module_file::read(flags, disabled, progress, dumper)? {
        progress.ended("read", &String::new);
        return Ok(Read { input, initial });
    }
    let (model, file) = load(flags)?;
    let (config, file) = match file {
        Some((config, bytes)) => (config, Some(bytes)),
        None => (inferred_config(&model, progress)?, None),
    };
    let initial = model.initial.clone();
    progress.ended("read", &String::new);
    let loop_bounds = loop_bounds(&flags.loop_bound)?;
    Ok(Read { input: Input::of_model(model, config, file).with_loop_bounds(loop_bounds), initial })
}

/// The model, and the config with its bytes if a file is given.
pub(crate) fn load(flags: &ModelArgs) -> Result<(Model, Option<(Config, Bytes)>)> {
    compiler::guarded(|| {
        let config = match &flags.config {
            Some(path) => {
                let bytes = tf::source::read_bytes(path)?;
                Some((tf::source::parse_config(bytes.clone(), &path.display().to_string())?, bytes))
            }
            None => None,
        };
        let stated = config.as_ref().map(|(config, _)| config.clone());
        let options = flags.choice.options(stated, flags.inference.options()?)?;
        Ok((tf::model::load(&flags.model, &options)?, config))
    })
}

fn inferred_config(model: &Model, progress: &Progress) -> Result<Config> {
    let inferred = compiler::guarded(|| model.infer())?;
    if !inferred.problems.is_empty() {
        return Err(not_inferred(&model.name, &inferred));
    }
    inferred.notes.iter().for_each(|note| progress.note(note));
    Ok(inferred.config)
}

/// The error of a model whose config cannot be inferred: all that is missing, each with the flag that mends it.
pub(crate) fn not_inferred(model: &str, inferred: &Inferred) -> Error {
    Error::invalid(format!(
        "no config is given, and it cannot be inferred from {model}:\n  {}",
        inferred.problems.join("\n  ")
    ))
    .coded(Code::NotInferred)
}
