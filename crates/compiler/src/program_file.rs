//! Which files are programs already: HLO as text and as XLA's messages, StableHLO as text and as portable artefacts, `jax.export`.

use crate::{HloProgram, PassRun};
use shape::Literal;
use std::path::Path;
use support::{Code, Error, ErrorKind, Result};

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

impl HloProgram {
    /// The program that a file of this name holds, and the values of its arguments that the file has; `None` if it is no such
    /// file. The program's checks stay.
    pub fn of_file(
        path: &Path,
        bytes: &[u8],
        passes: &mut PassRun<'_>,
    ) -> Result<Option<(Self, Vec<Literal>)>> {
        let Some(format) = format_of(path, bytes) else { return Ok(None) };
        let name = path.display();
        let text =
            || std::str::from_utf8(bytes).map_err(|e| Error::invalid(format!("{name}: not UTF-8: {e}")));
        let alone = |program: Self| (program, Vec::new());
        let program = match format {
            Format::HloText => Self::parse_hlo(text()?, passes).map(alone),
            Format::HloProto => Self::parse_proto(bytes, passes),
            Format::StablehloText => Self::parse_stablehlo(text()?).map(alone),
            Format::Artefact => Self::parse_artefact(bytes).map(alone),
        };
        program.map(Some).map_err(|error| {
            let code = match error.kind() {
                ErrorKind::Unsupported => Code::UnsupportedHlo,
                _ => Code::Hlo,
            };
            error.coded(code).context(&name)
        })
    }
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
