//! Packs recorded cases as device programs, for a machine with a GPU but without the compiler.

use crate::engine::{self, DeviceFiles};
use crate::select::Found;
use recorded::case::read_case;
use std::path::Path;
use support::{Error, Result};
use target::Target;

/// A packed case, or the error of the compiler.
pub struct Packed {
    /// Name of the case.
    pub name: String,
    /// Number of bytes of its files, or the error.
    pub bytes: Result<u64>,
}

/// Compiles a case for devices and writes its files into a folder. Slashes in the name become
/// double underscores.
pub fn pack(case: &Found, devices: &[Target], folder: &Path) -> Packed {
    let name = case.name.replace('/', "__");
    Packed { bytes: write(case, devices, &folder.join(&name)), name }
}

fn write(case: &Found, devices: &[Target], stem: &Path) -> Result<u64> {
    let DeviceFiles { program, constants, interface } =
        engine::device_files(&read_case(&case.path)?, devices)?;
    let file = |extension: &str, bytes: &[u8]| -> Result<u64> {
        let path = stem.with_file_name(format!(
            "{}.{extension}",
            stem.file_name().unwrap_or_default().to_string_lossy()
        ));
        std::fs::write(&path, bytes)
            .map_err(|e| Error::invalid(format!("cannot write {}: {e}", path.display())))?;
        Ok(bytes.len() as u64)
    };
    let recorded = std::fs::read(&case.path)
        .map_err(|e| Error::invalid(format!("cannot read {}: {e}", case.path.display())))?;
    Ok(file("npz", &recorded)?
        + file("device", &program)?
        + file("constants", &constants)?
        + file("json", interface.to_string().as_bytes())?)
}
