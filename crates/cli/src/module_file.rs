//! Models that are programs already: HLO as text and as XLA's messages, StableHLO as text and as portable artefacts, `jax.export`.

use crate::model::ModelArgs;
use compiler::{HloProgram, Input};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use support::{Error, Result};

/// How a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    HloText,
    /// `HloModuleProto`, `HloProto` or `HloSnapshot`.
    HloProto,
    StablehloText,
    /// A portable artefact of StableHLO, alone or in one of `jax.export`.
    Artefact,
}

/// The program in a file, and the values of its arguments that the file holds, by name; `None` if it is no such file. The
/// program's checks stay.
pub(crate) fn read(flags: &ModelArgs) -> Result<Option<(Input, BTreeMap<String, Literal>)>> {
    let path = &flags.model;
    if path.is_dir() {
        return Ok(None);
    }
    let bytes = tf::source::read_bytes(path)?;
    let Some(format) = format_of(path, &bytes) else { return Ok(None) };
    refuse_flags(flags)?;
    let name = path.display();
    let text = || std::str::from_utf8(&bytes).map_err(|e| Error::invalid(format!("{name}: not UTF-8: {e}")));
    let alone = |program: HloProgram| (program, Vec::new());
    let (program, arguments) = compiler::guarded(|| {
        let program = match format {
            Format::HloText => HloProgram::parse_hlo(text()?).map(alone),
            Format::HloProto => HloProgram::parse_proto(&bytes),
            Format::StablehloText => HloProgram::parse_stablehlo(text()?).map(alone),
            Format::Artefact => HloProgram::parse_artefact(&bytes).map(alone),
        };
        program.map_err(|error| error.context(&name))
    })?;
    let values = program.arguments.iter().cloned().zip(arguments).collect();
    Ok(Some((Input::of_hlo(program, bytes), values)))
}

/// What the file's name or its first words say it is.
fn format_of(path: &Path, bytes: &[u8]) -> Option<Format> {
    if HloProgram::is_artefact(bytes) {
        return Some(Format::Artefact);
    }
    if HloProgram::is_proto(bytes) {
        return Some(Format::HloProto);
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
