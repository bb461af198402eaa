//! Reading of a model and its config, which comes from a file or is inferred.

use crate::args::model::ModelArgs;
use crate::args::parse::loop_bounds;
use crate::program::module_file;
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use bytes::Bytes;
use compiler::{Input, Observer as _, Source};
use shape::Literal;
use std::collections::BTreeMap;
use support::{Code, Error, Result};
use tf::Inferred;
use tf::model::Model;
use tf::proto::Config;

/// A model with its config.
pub(crate) struct Read {
    /// Input of the compiler.
    pub(crate) input: Input,
    /// Values that the model contains: of variables before the first run, by the names of their
    /// nodes, and of the arguments of a snapshot, by name.
    pub(crate) initial: BTreeMap<String, Literal>,
    /// Flags for several functions that have no effect on this one.
    pub(crate) unused: Vec<String>,
}

/// Reads the model and its config, which is inferred if no file is given. Prints notes to standard
/// error. `disabled` names the HLO passes that do not run; the dumper observes HLO between the
/// others.
pub(crate) fn read(
    flags: &ModelArgs,
    disabled: &[String],
    progress: &mut Progress,
    dumper: &mut Dumper,
) -> Result<Read> {
    if let Some((input, initial)) = module_file::read(flags, disabled, progress, dumper)? {
        progress.ended("read", &String::new);
        let unused = match &input.source {
            Source::Hlo(program) => program.unused.clone(),
            Source::Graph { .. } => Vec::new(),
        };
        return Ok(Read { input, initial, unused });
    }
    if flags.weights.is_some() {
        return Err(Error::invalid(
            "--weights gives values to the arguments of a StableHLO or HLO program; a TensorFlow model takes them from \
             --checkpoint",
        ));
    }
    let (model, file) = load(flags)?;
    let (config, file, unused) = match file {
        Some((config, bytes)) => (config, Some(bytes), Vec::new()),
        None => {
            let Inferred { config, unused, .. } = inferred(&model, progress)?;
            (config, None, unused)
        }
    };
    let initial = model.initial.clone();
    progress.ended("read", &String::new);
    let loop_bounds = loop_bounds(&flags.loop_bound)?;
    let input = Input::of_model(model, config, file).with_loop_bounds(loop_bounds);
    Ok(Read { input, initial, unused })
}

/// Reads the model, and the config with the bytes of its file if one is given.
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
        let options = flags.choice.options(stated, flags.infer_options()?)?;
        Ok((compiler::load(&flags.model, &options)?, config))
    })
}

fn inferred(model: &Model, progress: &Progress) -> Result<Inferred> {
    let inferred = compiler::guarded(|| model.infer())?;
    if !inferred.problems.is_empty() {
        return Err(not_inferred(&model.name, &inferred));
    }
    inferred.notes.iter().for_each(|note| progress.note(note));
    Ok(inferred)
}

/// Error for a model whose config cannot be inferred. It lists every missing item with the flag
/// that supplies it.
pub(crate) fn not_inferred(model: &str, inferred: &Inferred) -> Error {
    Error::invalid(format!(
        "no config is given, and it cannot be inferred from {model}:\n  {}",
        inferred.problems.join("\n  ")
    ))
    .coded(Code::NotInferred)
}
