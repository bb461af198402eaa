//! A compiled program, loaded from the directory of one version of a model.
//!
//! The directory has one shared library (`*.so`) and, if the program's weights are in a file, one
//! constants file. Both are read, not mapped: repositories are updated by overwriting files, and a
//! mapped file would change under a model that still answers requests.

use crate::library::Library;
use hlo::{Interface, Role};
use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use support::{Error, Result};
use tfcompile_runtime::Constants;

/// A loaded program. All instances of a model share it.
#[derive(Debug)]
pub struct Program {
    /// Arguments and results.
    pub interface: Interface,
    /// Bytes of the temporaries.
    pub temps_bytes: usize,
    /// Bytes of scratch memory for each thread.
    pub scratch_bytes: usize,
    /// True if the compiler proved that the rows of a batch do not depend on each other. The code
    /// then accesses no row beyond the size of a run.
    pub has_independent_rows: bool,
    /// The driver of a program for GPUs: `cuda` or `opencl`.
    pub driver: Option<String>,
    /// Address of the entry function.
    pub entry: NonNull<c_void>,
    /// Address of the device program, if there is one.
    pub device_program: Option<NonNull<c_void>>,
    /// Address of the weights.
    pub constants: *const c_void,
    /// Owners of the memory that these addresses point into.
    _owners: (Library, Option<Constants>),
}

// SAFETY: code and weights are only read.
#[expect(unsafe_code, reason = "addresses of immutable memory")]
unsafe impl Send for Program {}
// SAFETY: as above.
#[expect(unsafe_code, reason = "addresses of immutable memory")]
unsafe impl Sync for Program {}

impl Program {
    /// Loads the program of a directory. `file` is the name of the library, if the configuration
    /// states one.
    pub fn load(folder: &Path, file: Option<&str>) -> Result<Self> {
        let path = match file {
            Some(file) => folder.join(file),
            None => only_file(folder, "so")?.ok_or_else(|| {
                Error::invalid(format!(
                    "'{}' has no shared library; write one there with tfcompile build MODEL --emit=shared -o {}",
                    folder.display(),
                    folder.display()
                ))
            })?,
        };
        let bytes = std::fs::read(&path).map_err(|e| {
            Error::invalid(format!("cannot read the model's library '{}': {e}", path.display()))
        })?;
        Self::of_library(&bytes, folder).map_err(|e| e.context(path.display()))
    }

    fn of_library(bytes: &[u8], folder: &Path) -> Result<Self> {
        let mut found = aot::read_metadata(bytes)?;
        let metadata = match found.len() {
            1 => found.remove(0).metadata,
            count => {
                return Err(Error::invalid(format!(
                    "the library has {count} programs; build a library for each with --emit=shared, and serve each as a model"
                )));
            }
        };
        let damaged = || Error::invalid("the library's metadata is damaged");
        let number = |key: &str| {
            metadata["memory"][key].as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(damaged)
        };
        let interface = aot::read_interface(&metadata)?;
        check_variables(&interface)?;
        let entry_point = metadata["entry_point"].as_str().ok_or_else(damaged)?;
        let driver = metadata["device"]["driver"].as_str().map(str::to_owned);
        let on_processor = driver.is_none();
        let library = Library::load(bytes)?;
        let symbol = |name: &str| library.symbol(name);
        let constants = match metadata["memory"]["constants_file"].as_str() {
            Some(layout) => Some(constants_file(folder, layout)?),
            None => None,
        };
        let missing = |symbol: &str| Error::invalid(format!("the library does not export '{symbol}'"));
        let address = match &constants {
            Some(file) => file.address(),
            None => {
                let name = format!("{entry_point}_constants");
                symbol(&name).ok_or_else(|| missing(&name))?.as_ptr().cast_const()
            }
        };
        Ok(Self {
            temps_bytes: if on_processor { number("temps")? } else { 0 },
            scratch_bytes: if on_processor { number("scratch_per_worker")? } else { 0 },
            has_independent_rows: on_processor
                && metadata["sizes"].as_array().is_some_and(|sizes| !sizes.is_empty()),
            entry: symbol(entry_point).ok_or_else(|| missing(entry_point))?,
            device_program: symbol(&format!("{entry_point}_device")),
            constants: address,
            driver,
            interface,
            _owners: (library, constants),
        })
    }
}

/// Refuses programs with variables: instances would have different values, and lose them when the
/// model is loaded again.
fn check_variables(interface: &Interface) -> Result<()> {
    let variables: Vec<String> = interface
        .arguments()
        .iter()
        .filter(|argument| argument.role == Role::Variable)
        .map(|argument| format!("'{}'", argument.label()))
        .collect();
    if variables.is_empty() {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "the program has variables ({}); freeze them, or make them feeds and fetches that the server keeps as the \
         states of a sequence (sequence_batching in config.pbtxt)",
        variables.join(", ")
    )))
}

/// Reads the constants of a program from the only constants file of a directory.
fn constants_file(folder: &Path, layout: &str) -> Result<Constants> {
    let path = only_file(folder, "constants")?.ok_or_else(|| {
        Error::invalid(format!(
            "the weights are in a file, but '{}' has no file *.constants; copy the one that tfcompile build wrote",
            folder.display()
        ))
    })?;
    let wrong = |why: &str| Error::invalid(format!("'{}': {why}", path.display()));
    let constants = Constants::read(&path).map_err(|e| wrong(&e.to_string()))?;
    let hash = hash(layout).ok_or_else(|| Error::invalid("the library's metadata is damaged"))?;
    constants.check(&hash).map_err(|e| wrong(e.message()))?;
    Ok(constants)
}

/// Parses a layout hash: 64 hexadecimal digits.
fn hash(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (k, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * k..2 * k + 2], 16).ok()?;
    }
    Some(hash)
}

/// Returns the only file of a directory with this suffix, `None` if there is none.
fn only_file(folder: &Path, suffix: &str) -> Result<Option<PathBuf>> {
    let unreadable =
        |e: std::io::Error| Error::invalid(format!("cannot read the directory '{}': {e}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == suffix) {
            found.push(path);
        }
    }
    found.sort();
    match found.len() {
        0 | 1 => Ok(found.pop()),
        count => Err(Error::invalid(format!(
            "'{}' has {count} files *.{suffix}; keep one, or name the library in config.pbtxt: default_model_filename",
            folder.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_hash_has_64_digits() {
        let text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff";
        let hash_of = hash(text).expect("64 digits");
        assert_eq!((hash_of[1], hash_of[30], hash_of[31]), (1, 0x1e, 0xff));
        assert_eq!(hash(&text[2..]), None);
        assert_eq!(hash(&text.replace("ff", "fg")), None);
        assert_eq!(hash(&text.replace("ff", "é")), None);
    }
}
