//! Files that contain programs: HLO as text and as XLA's messages, StableHLO as text and as
//! portable artifacts, and `jax.export`.

use crate::{HloProgram, OpenSizes, PassRun};
use shape::Literal;
use std::path::Path;
use support::{Code, Error, ErrorKind, Result};

/// Format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    HloText,
    /// `HloModuleProto`, `HloProto`, or `HloSnapshot`.
    HloProto,
    StablehloText,
    /// Portable artifact of StableHLO, alone or inside a file of `jax.export`.
    Artifact,
}

impl HloProgram {
    /// Reads the program in a file of this name, and the values of arguments that the file
    /// contains. `function` selects a function of StableHLO. Returns `None` if the file is not a
    /// program. The program keeps its checks. `sizes` are those of open dimensions, which only
    /// StableHLO has.
    pub fn of_file(
        path: &Path,
        bytes: &[u8],
        function: Option<&str>,
        sizes: &OpenSizes,
        passes: &mut PassRun<'_>,
    ) -> Result<Option<(Self, Vec<Literal>)>> {
        let Some(format) = format_of(path, bytes) else { return Ok(None) };
        let name = path.display();
        let text =
            || std::str::from_utf8(bytes).map_err(|e| Error::invalid(format!("{name}: not UTF-8: {e}")));
        let alone = |program: Self| (program, Vec::new());
        if matches!(format, Format::HloText | Format::HloProto) && function.is_some() {
            return Err(Error::invalid(format!(
                "--signature selects a function of StableHLO or a signature of a model, but '{name}' is HLO, \
                 which has one entry"
            )));
        }
        if let (Format::HloText | Format::HloProto, Some(key)) = (format, sizes.request.given.keys().next()) {
            return Err(Error::invalid(format!(
                "--dim {key}: '{name}' is HLO, whose parameters state their sizes or bounds"
            )));
        }
        if let (Format::HloText | Format::HloProto, Some(key)) = (format, sizes.code.keys().next()) {
            return Err(Error::invalid(format!(
                "--sizes {key} has no effect, remove it: '{name}' is HLO, whose code is that of the largest sizes"
            )));
        }
        let program = match format {
            Format::HloText => Self::parse_hlo(text()?, passes).map(alone),
            Format::HloProto => Self::parse_proto(bytes, passes),
            Format::StablehloText => Self::parse_stablehlo(text()?, function, sizes, passes).map(alone),
            Format::Artifact => Self::parse_artifact(bytes, function, sizes, passes).map(alone),
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

/// Determines the format of a file from its name and its first words.
fn format_of(path: &Path, bytes: &[u8]) -> Option<Format> {
    if HloProgram::is_artifact(bytes) {
        return Some(Format::Artifact);
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
