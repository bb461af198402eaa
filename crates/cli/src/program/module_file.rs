//! Models that are programs instead of graphs: HLO as text or as XLA's messages, StableHLO as text
//! or as a portable artifact, and `jax.export`.

use crate::args::model::ModelArgs;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use compiler::{HloProgram, Input, PassRun};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
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
    let module = compiler::guarded(|| {
        let observer = &mut Watch::new(progress, dumper);
        HloProgram::of_file(path, &bytes, &mut PassRun { disabled, observer })
    })?;
    let Some((program, arguments)) = module else { return Ok(None) };
    refuse_flags(flags)?;
    let names = program.program.interface.program_shape().parameter_names;
    let values = names.into_iter().zip(arguments).collect();
    Ok(Some((Input::of_hlo(program, bytes), values)))
}

/// Rejects flags that select parts of a graph.
fn refuse_flags(flags: &ModelArgs) -> Result<()> {
    let given = [
        ("--config", flags.config.is_some()),
        ("--signature", flags.choice.signature.is_some()),
        ("--checkpoint", flags.choice.checkpoint.is_some()),
        ("--function", flags.choice.function.is_some()),
        ("--fetch", !flags.inference.fetch.is_empty()),
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
