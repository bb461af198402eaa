//! The system's linker, for shared libraries.

use aot::SharedLibrary;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Error, Result};

/// A C compiler that can link.
pub(crate) struct Linker {
    command: String,
}

/// Debian's names of C compilers for other machines, by the beginning of LLVM's triple and a word in it.
const CROSS: [(&str, &str, &str); 5] = [
    ("x86_64", "linux", "x86_64-linux-gnu-gcc"),
    ("aarch64", "linux", "aarch64-linux-gnu-gcc"),
    ("arm", "linux", "arm-linux-gnueabihf-gcc"),
    ("riscv64", "linux", "riscv64-linux-gnu-gcc"),
    ("x86_64", "windows", "x86_64-w64-mingw32-gcc"),
];

/// The command that compiles C++ for a triple and links it.
pub(crate) fn cpp_compiler(triple: &str) -> String {
    match cross_compiler(triple) {
        _ if is_host(triple) => "c++".to_owned(),
        Some(gcc) => format!("{}++", gcc.trim_end_matches("cc")),
        None => format!("clang++ --target={triple}"),
    }
}

/// Debian's C compiler for another machine.
fn cross_compiler(triple: &str) -> Option<&'static str> {
    let found = CROSS.iter().find(|(machine, system, _)| {
        triple.starts_with(machine) && triple.contains(system) && !triple.contains("android")
    });
    found.map(|(_, _, command)| *command)
}

/// Whether the programs of this machine have a triple's architecture and system.
fn is_host(triple: &str) -> bool {
    let architecture = |triple: &str| triple.split('-').next().unwrap_or_default().to_owned();
    let host = codegen::host_triple();
    let systems = ["linux", "darwin", "macos", "windows", "freebsd", "android"];
    architecture(&host) == architecture(triple)
        && systems.iter().all(|system| host.contains(system) == triple.contains(system))
}

/// The linker of the flag, or the one for a triple. An error, before anything is compiled, if it does not start.
pub(crate) fn find(flag: Option<&str>, triple: &str) -> Result<Linker> {
    let command = match (flag, is_host(triple), cross_compiler(triple)) {
        (Some(flag), ..) => flag,
        (None, true, _) => "cc",
        (None, false, Some(cross)) => cross,
        (None, false, None) => {
            return Err(Error::invalid(format!(
                "a shared library for {triple} needs a linker: name a C compiler for it with --linker, or emit an \
                 archive and link it there"
            )));
        }
    };
    match Command::new(command).arg("--version").output() {
        Ok(_) => Ok(Linker { command: command.to_owned() }),
        Err(error) => Err(Error::invalid(format!(
            "a shared library needs a linker, and '{command}' cannot be started ({error}): install a C compiler for \
             {triple}, name one with --linker, or emit an archive instead"
        ))),
    }
}

impl Linker {
    /// The library's bytes.
    pub(crate) fn link(
        &self,
        library: &SharedLibrary<'_>,
        function: &[u8],
        metadata: &[u8],
    ) -> Result<Vec<u8>> {
        let directory = tempfile::tempdir()
            .map_err(|e| Error::invalid(format!("cannot make a directory for the linker: {e}")))?;
        let at = |name: &str| directory.path().join(name);
        let write = |name: &str, contents: &[u8]| -> Result<PathBuf> {
            fs::write(at(name), contents).map_err(|e| {
                Error::invalid(format!("cannot write '{}' for the linker: {e}", at(name).display()))
            })?;
            Ok(at(name))
        };
        // Relative names: nothing of the directory's name may reach the library.
        write("function.o", function)?;
        write("metadata.o", metadata)?;
        let exports = if library.triple.contains("windows") { "exports.def" } else { "exports" };
        write(exports, library.exports()?.as_bytes())?;
        // MinGW's compiler adds a suffix to a name without one, and a DLL has its name in it.
        let file_name = library.file_name()?;
        let arguments = library.link_arguments(&["function.o", "metadata.o"], exports, &file_name)?;
        let output = Command::new(&self.command).current_dir(directory.path()).args(&arguments).output();
        let output = output
            .map_err(|e| Error::invalid(format!("the linker '{}' cannot be started: {e}", self.command)))?;
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
        .map_err(|e| Error::invalid(format!("the linker made no '{}': {e}", name.to_string_lossy())))
}
