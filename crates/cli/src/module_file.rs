//! Models that are programs already: HLO text, StableHLO as text and as portable artefacts, `jax.export`.

use crate::model::ModelArgs;
use compiler::{HloProgram, Input};
use std::path::Path;
use support::{Error, Result};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    HloText,
    StablehloText,
    /// A portable artefact of StableHLO, alone or in one of `jax.export`.
    Artefact,
}

/// The program in a file; `None` if it is no such file. Its checks stay.
pub(crate) fn read(flags: &ModelArgs) -> Result<Option<Input>> {
    let path = &flags.model;
    if path.is_dir() {
        return Ok(None);
    }
    let bytes = tf::source::read_bytes(path)?;
    let Some(format) = format_of(path, &bytes) else { return Ok(None) };
    refuse_flags(flags)?;
    let name = path.display();
    let text = || std::str::from_utf8(&bytes).map_err(|e| Error::invalid(format!("{name}: not UTF-8: {e}")));
    let program = compiler::guarded(|| {
        let program = match format {
            Format::HloText => HloProgram::parse_hlo(text()?),
            Format::StablehloText => HloProgram::parse_stablehlo(text()?),
            Format::Artefact => HloProgram::parse_artefact(&bytes),
        };
        program.map_err(|error| error.context(&name))
    })?;
    Ok(Some(Input::of_hlo(program, bytes)))
}

/// What the file's name or its first words say it is.
fn format_of(path: &Path, bytes: &[u8]) -> Option<Format> {
    if HloProgram::is_artefact(bytes) {
        return Some(Format::Artefact);
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    let mut lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"//")).unwrap_or_default();
    let begins = |words: &[&[u8]]| words.iter().any(|word| first.starts_with(word));
    match extension {
        "hlo" => Some(Format::HloText),
        "mlir" => Some(Format::StablehloText),
        _ if begins(&[b"HloModule "]) => Some(Format::HloText),
        _ if begins(&[b"module {", b"module @", b"module attributes", b"func.func ", b"#loc"]) => {
            Some(Format::StablehloText)
        }
        _ => None,
    }
}

/// Flags that choose parts of a graph say nothing about a program.
fn refuse_flags(flags: &ModelArgs) -> Result<()> {
    let given = [
        ("--config", flags.config.is_some()),
        ("--signature", flags.choice.signature.is_some()),
        ("--checkpoint", flags.choice.checkpoint.is_some()),
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
