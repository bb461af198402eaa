//! Linking of shared libraries with the system's linker.

use aot::SharedLibrary;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Error, Result};

/// C compiler used as a linker.
pub(crate) struct Linker {
    command: String,
}

/// Debian's C cross compilers: prefix of LLVM's triple, a word in the triple, and the command.
const CROSS: [(&str, &str, &str); 5] = [
    ("x86_64", "linux", "x86_64-linux-gnu-gcc"),
    ("aarch64", "linux", "aarch64-linux-gnu-gcc"),
    ("arm", "linux", "arm-linux-gnueabihf-gcc"),
    ("riscv64", "linux", "riscv64-linux-gnu-gcc"),
    ("x86_64", "windows", "x86_64-w64-mingw32-gcc"),
];

/// Command that compiles and links C++ for a triple.
pub(crate) fn cpp_compiler(triple: &str) -> String {
    match cross_compiler(triple) {
        _ if is_host(triple) => "c++".to_owned(),
        Some(gcc) => format!("{}++", gcc.trim_end_matches("cc")),
        None => format!("clang++ --target={triple}"),
    }
}

/// Debian's C cross compiler for a triple.
fn cross_compiler(triple: &str) -> Option<&'static str> {
    let entry = CROSS.iter().find(|(machine, system, _)| {
        triple.starts_with(machine) && triple.contains(system) && !triple.contains("android")
    });
    entry.map(|(_, _, command)| *command)
}

/// True if this machine has the architecture and the operating system of a triple.
fn is_host(triple: &str) -> bool {
    let architecture = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    let host = codegen::host_triple();
    let systems = ["linux", "darwin", "macos", "windows", "freebsd", "android"];
    architecture(&host) == architecture(triple)
        && systems.iter().all(|system| host.contains(system) == triple.contains(system))
}

/// Returns the linker that the flag names, or the default one for a triple. Returns an error if it
/// does not start, before anything is compiled.
pub(crate) fn find(flag: Option<&str>, triple: &str) -> Result<Linker> {
    let command = match (flag, is_host(triple), cross_compiler(triple)) {
        (Some(flag), ..) => flag,
        (None, true, _) => "cc",
        (None, false, Some(cross)) => cross,
        (None, false, None) => {
            return Err(Error::invalid(format!(
                "no linker is known for {triple}: name a C compiler for it with --linker, or emit an \
                 archive and link it there"
            )));
        }
    };
    match Command::new(command).arg("--version").output() {
        // It runs in another directory. The paths of one without a separator are those of PATH.
        Ok(_) if command.contains('/') => match std::path::absolute(command) {
            Ok(path) => Ok(Linker { command: path.display().to_string() }),
            Err(error) => Err(Error::invalid(format!("--linker {command}: {error}"))),
        },
        Ok(_) => Ok(Linker { command: command.to_owned() }),
        Err(error) => Err(Error::invalid(format!(
            "cannot start the linker '{command}' ({error}): install a C compiler for \
             {triple}, name one with --linker, or emit an archive instead of a shared library"
        ))),
    }
}

impl Linker {
    /// Links a library and returns its bytes.
    pub(crate) fn link(
        &self,
        library: &SharedLibrary<'_>,
        function: &[u8],
        metadata: &[u8],
    ) -> Result<Vec<u8>> {
        let directory = tempfile::tempdir()
            .map_err(|e| Error::invalid(format!("cannot create a directory for the linker: {e}")))?;
        let at = |name: &str| directory.path().join(name);
        let write = |name: &str, contents: &[u8]| -> Result<PathBuf> {
            fs::write(at(name), contents).map_err(|e| {
                Error::invalid(format!("cannot write '{}' for the linker: {e}", at(name).display()))
            })?;
            Ok(at(name))
        };
        // Relative names keep the directory's name out of the library.
        write("function.o", function)?;
        write("metadata.o", metadata)?;
        let exports = if library.triple.contains("windows") { "exports.def" } else { "exports" };
        write(exports, library.exports()?.as_bytes())?;
        // MinGW's compiler appends an extension to a name without one, and a DLL contains its own
        // name.
        let file_name = library.file_name()?;
        let arguments = library.link_arguments(&["function.o", "metadata.o"], exports, &file_name)?;
        let output = Command::new(&self.command).current_dir(directory.path()).args(&arguments).output();
        let output =
            output.map_err(|e| Error::invalid(format!("cannot start the linker '{}': {e}", self.command)))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            return Err(Error::invalid(format!(
                "the linker '{}' failed ({}): {}",
                self.command,
                output.status,
                message.trim()
            )));
        }
        read(&at(&file_name))
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.file_name().unwrap_or(OsStr::new("library"));
    fs::read(path)
        .map_err(|e| Error::invalid(format!("the linker did not write '{}': {e}", name.to_string_lossy())))
}
