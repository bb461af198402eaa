//! Models that are programs instead of graphs: HLO as text or as XLA's messages, StableHLO as text
//! or as a portable artifact, and `jax.export`.

use crate::args::model::ModelArgs;
use crate::files::state::StateFile;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use compiler::{HloProgram, Input, OpenSizes, PassRun};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;
use support::{Error, Result};

/// Reads the program in a file, and the values of arguments that the file contains, by name.
/// Returns `None` if the file is not a program. The program keeps its checks. `disabled` names the
/// passes that do not run; the dumper observes HLO between the others.
pub(crate) fn read(
    flags: &ModelArgs,
    disabled: &[String],
    progress: &mut Progress,
    dumper: &mut Dumper,
) -> Result<Option<(Input, BTreeMap<String, Literal>)>> {
    let path = &flags.model;
    if path.is_dir() {
        return Ok(None);
    }
    let bytes = tf::source::read_bytes(path)?;
    let sizes = OpenSizes::of_options(&flags.infer_options()?);
    let module = compiler::guarded(|| {
        let observer = &mut Watch::new(progress, dumper);
        HloProgram::of_file(
            path,
            &bytes,
            flags.choice.signature.as_deref(),
            &sizes,
            &mut PassRun { disabled, observer },
        )
    })?;
    let Some((program, arguments)) = module else { return Ok(None) };
    refuse_flags(flags)?;
    program.notes.iter().for_each(|note| progress.note(note));
    let program = match &flags.weights {
        Some(path) => {
            let constants = compiler::guarded(|| program.with_constants(weights(path, &flags.arrays)?));
            constants.map_err(|e| e.context(format!("--weights {}", path.display())))?
        }
        None => program,
    };
    let names = program.program.interface.program_shape().parameter_names;
    let values = names.into_iter().zip(arguments).collect();
    Ok(Some((Input::of_hlo(program, bytes), values)))
}

/// Reads all arrays of a file, unless that was done for another function of the model.
fn weights<'a>(
    path: &Path,
    shared: &'a OnceLock<BTreeMap<String, Literal>>,
) -> Result<&'a BTreeMap<String, Literal>> {
    if let Some(arrays) = shared.get() {
        return Ok(arrays);
    }
    let mut file = StateFile::open(path)?;
    let mut arrays = BTreeMap::new();
    for name in file.names() {
        let array = file.get(&name)?;
        arrays.extend(array.map(|array| (name, array)));
    }
    Ok(shared.get_or_init(|| arrays))
}

/// Rejects flags that select parts of a graph.
fn refuse_flags(flags: &ModelArgs) -> Result<()> {
    let given = [
        ("--config", flags.config.is_some()),
        ("--checkpoint", flags.choice.checkpoint.is_some()),
        ("--function", flags.choice.function.is_some()),
        ("--fetch", !flags.inference.fetch.is_empty()),
        ("--feed-constant", !flags.inference.feed_constant.is_empty()),
        ("--loop-bound", !flags.loop_bound.is_empty()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Error::invalid(format!(
            "{flag} applies only to graphs, but '{}' is a program with its own arguments and results",
            flags.model.display()
        ))),
        None => Ok(()),
    }
}

/// Error that explains why a program has no config.
pub(crate) fn needs_no_config(path: &Path) -> Error {
    Error::invalid(format!(
        "'{}' is a program with its own arguments and results, so it has no config",
        path.display()
    ))
}
