//! Models that are programs already: HLO as text and as XLA's messages, StableHLO as text and as portable artefacts, `jax.export`.

use crate::args::model::ModelArgs;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use compiler::{HloProgram, Input, PassRun};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use support::{Error, Result};

/// The program in a file, and the values of its arguments that the file holds, by name; `None` if it is no such file. The
/// program's checks stay. `disabled` are the passes that do not run; the dumper sees HLO between the others.
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
    let found = compiler::guarded(|| {
        let observer = &mut Watch::new(progress, dumper);
        HloProgram::of_file(path, &bytes, &mut PassRun { disabled, observer })
    })?;
    let Some((program, arguments)) = found else { return Ok(None) };
    refuse_flags(flags)?;
    let names = program.program.interface.program_shape().parameter_names;
    let values = names.into_iter().zip(arguments).collect();
    Ok(Some((Input::of_hlo(program, bytes), values)))
}

/// Flags that choose parts of a graph say nothing about a program.
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
            "{flag} is for graphs; '{}' is a program, whose arguments and results are its own",
            flags.model.display()
        ))),
        None => Ok(()),
    }
}

/// An error that says why there is no config to print.
pub(crate) fn needs_no_config(path: &Path) -> Error {
    Error::invalid(format!(
        "'{}' is a program, whose arguments and results are its own: it has no config",
        path.display()
    ))
}
