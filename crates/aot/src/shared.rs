//! Shared libraries: file names, exports, and arguments of the system's linker. The caller runs it.

use crate::object_file::{self, Format};
use support::{Error, Result};

/// A shared library of one program.
#[derive(Clone, Copy, Debug)]
pub struct SharedLibrary<'a> {
    /// LLVM triple of the objects.
    pub triple: &'a str,
    /// Entry point of the program. The library exports only this symbol, its constants, and its
    /// device program.
    pub entry_point: &'a str,
    /// True if the program runs on a GPU.
    pub has_device: bool,
    /// Name of the library, without `lib` and suffix.
    pub name: &'a str,
}

impl SharedLibrary<'_> {
    /// Returns the file name: `libname.so`, `libname.dylib`, `name.dll`.
    ///
    /// Fails for triples whose object format is unknown.
    pub fn file_name(&self) -> Result<String> {
        Ok(match object_file::format(self.triple)? {
            Format::Elf => format!("lib{}.so", self.name),
            Format::MachO => format!("lib{}.dylib", self.name),
            Format::Coff => format!("{}.dll", self.name),
            Format::Wasm => format!("{}.so", self.name),
        })
    }

    /// Returns the contents of the file that lists the exported symbols.
    pub fn exports(&self) -> Result<String> {
        let entry = self.entry_point;
        let mut symbols = vec![entry.to_owned(), format!("{entry}_constants")];
        symbols.extend(self.has_device.then(|| format!("{entry}_device")));
        let device = if self.has_device { format!("  {entry}_device DATA\n") } else { String::new() };
        Ok(match object_file::format(self.triple)? {
            // Only ELF has a pointer to constants. Its linkers ignore names without a symbol,
            // and those for Mach-O refuse them.
            Format::Elf => {
                symbols.push(format!("{entry}_constants_pointer"));
                format!("{{ global: {}; local: *; }};\n", symbols.join("; "))
            }
            Format::MachO => symbols.iter().map(|symbol| format!("_{symbol}\n")).collect(),
            Format::Wasm => return Err(no_libraries()),
            Format::Coff => format!("EXPORTS\n  {entry}\n  {entry}_constants DATA\n{device}"),
        })
    }

    /// Returns the arguments for a C compiler that links `objects` to `output`. `exports` is the
    /// path of the file with the contents of [`Self::exports`].
    pub fn link_arguments(&self, objects: &[&str], exports: &str, output: &str) -> Result<Vec<String>> {
        let mut arguments: Vec<String> = Vec::new();
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        match object_file::format(self.triple)? {
            Format::Elf => {
                let file_name = self.file_name()?;
                add(&["-shared", "-nostartfiles", "-Wl,--build-id=none", "-Wl,-z,noexecstack"]);
                add(&[&format!("-Wl,-soname,{file_name}"), &format!("-Wl,--version-script={exports}")]);
            }
            Format::MachO => {
                let file_name = self.file_name()?;
                add(&["-dynamiclib", &format!("-Wl,-exported_symbols_list,{exports}")]);
                add(&["-install_name", &format!("@rpath/{file_name}")]);
            }
            Format::Wasm => return Err(no_libraries()),
            Format::Coff => add(&["-shared", "-Wl,--no-insert-timestamp", exports]),
        }
        add(&["-o", output]);
        add(objects);
        Ok(arguments)
    }
}

fn no_libraries() -> Error {
    Error::unsupported("there are no shared libraries for WebAssembly: write a module with --emit=wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_exports_are_those_of_the_system() {
        let library = |triple| SharedLibrary { triple, entry_point: "f", name: "m", has_device: false };
        let elf = library("x86_64-pc-linux-gnu");
        assert_eq!(elf.file_name().unwrap(), "libm.so");
        assert_eq!(elf.exports().unwrap(), "{ global: f; f_constants; f_constants_pointer; local: *; };\n");
        let gpu = SharedLibrary { has_device: true, ..elf };
        assert!(gpu.exports().unwrap().contains("; f_device; "));
        let arguments = elf.link_arguments(&["a.o"], "exports", "out").unwrap();
        assert!(arguments.contains(&"-Wl,--version-script=exports".to_owned()), "{arguments:?}");
        assert_eq!(library("aarch64-apple-macos").file_name().unwrap(), "libm.dylib");
        assert_eq!(library("aarch64-apple-macos").exports().unwrap(), "_f\n_f_constants\n");
        assert_eq!(library("x86_64-pc-windows-msvc").file_name().unwrap(), "m.dll");
        assert!(library("nonsense-pc-linux").file_name().is_err());
    }
}
