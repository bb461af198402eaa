//! Output of `build`: the files that it wrote, and the command that links them.

use super::{Build, needs_headers};
use crate::artifacts::kind::Kind;
use crate::artifacts::names::FileNames;
use crate::artifacts::request::Artifacts;
use crate::files::linker;
use crate::files::outputs::Output;
use std::fmt::Write as _;
use std::path::Path;
use terminal::Screen;

/// Lists each file with its size, followed by the hints.
pub(super) fn table(outputs: &[Output<'_>], listed: usize, hints: &str) -> String {
    let line = |name: String, bytes: u64, more: String| (name, terminal::bytes(bytes), more);
    let mut lines: Vec<(String, String, String)> = outputs[..listed]
        .iter()
        .map(|output| line(output.path.display().to_string(), output.size(), String::new()))
        .collect();
    if let Some(first) = outputs.get(listed) {
        let directory = first.path.ancestors().find(|path| path.ends_with("include")).unwrap_or(&first.path);
        let bytes = outputs[listed..].iter().map(Output::size).sum();
        let count = outputs.len() - listed;
        lines.push(line(format!("{}/", directory.display()), bytes, format!("  ({count} headers)")));
    }
    let width = lines.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, bytes, more) in lines {
        let _ = writeln!(out, "{name:<width$}  {bytes:>9}{more}");
    }
    out + hints
}

/// Hints about a build: the measured choices, the command that links it, and the file of its
/// weights.
pub(super) fn hints(arguments: &Build, artifacts: &Artifacts, names: &FileNames) -> String {
    let choices =
        artifacts.tuning.as_ref().map(|tuning| tuning.report(&Screen::stdout(), arguments.model.verbose));
    let mut hints = choices.unwrap_or_default() + &link_line(arguments, names);
    if artifacts.has(Kind::Constants) {
        let file = names.of(Kind::Constants);
        let text =
            if artifacts.has(Kind::JavaScript) { names.of(Kind::JavaScript) } else { "the header".into() };
        hints += &format!("weights: the program loads them from {file}; see {text}\n");
    }
    hints
}

/// Command that links the files with a source file of the user's into a program.
fn link_line(arguments: &Build, names: &FileNames) -> String {
    let emits = |kind: Kind| arguments.emits(kind);
    let quoted_path = |file: &str| quoted(&arguments.output.join(file).display().to_string());
    let at = |kind: Kind| quoted_path(&names.of(kind));
    let directory = quoted(&arguments.output.display().to_string());
    let is_for_gpu = arguments.model.devices().is_ok_and(|devices| !devices.is_empty());
    if emits(Kind::Wasm) {
        return format!("use: import {{ load }} from \"./{}\"\n", names.of(Kind::JavaScript));
    }
    let mut linked = if emits(Kind::Obj) {
        at(Kind::Obj)
    } else if emits(Kind::C) {
        return c_line(arguments, names);
    } else if emits(Kind::Archive) {
        at(Kind::Archive)
    } else if emits(Kind::Shared) && names.is_coff() {
        at(Kind::Shared)
    } else if emits(Kind::Shared) {
        format!("{} {}", at(Kind::Shared), run_path(&arguments.output, &names.of(Kind::Shared)))
    } else {
        return String::new();
    };
    if emits(Kind::Rust) && !emits(Kind::Header) && !emits(Kind::CHeader) {
        let feature = if is_for_gpu { " with the feature `device`" } else { "" };
        return format!(
            "link: in a crate that depends on tfcompile-runtime{feature}, include {} and link {linked}\n",
            at(Kind::Rust)
        );
    }
    if emits(Kind::Metadata) {
        linked = format!("{linked} {}", at(Kind::Metadata));
    }
    let runtime =
        if needs_headers(arguments) { format!(" -I {}", quoted_path("include")) } else { String::new() };
    // Microsoft's compiler links import libraries; MinGW links the library itself.
    if names.is_coff() && (emits(Kind::Obj) || emits(Kind::Archive)) {
        return format!(
            "link: cl /std:c++17 /O2 /EHsc{} /I {directory} main.cc {linked}\n",
            runtime.replace("-I", "/I")
        );
    }
    let sanitizer = arguments.back.sanitizer().map(|word| format!(" -fsanitize={word}")).unwrap_or_default();
    if is_for_gpu && names.triple().contains("linux") {
        // The driver is opened at run time. Libraries before glibc 2.34 need this.
        linked += " -ldl";
    }
    let bare = if arguments.freestanding {
        " -ffreestanding"
    } else if (emits(Kind::Header) || is_for_gpu) && names.triple().contains("linux") {
        // The thread pool of the C++ headers and the runtime of GPUs need this flag with libraries
        // before glibc 2.34.
        " -pthread"
    } else {
        ""
    };
    let cpp = linker::cpp_compiler(names.triple());
    if emits(Kind::Header) || !emits(Kind::CHeader) {
        format!(
            "link: {cpp} -std=c++17 -O2{bare}{sanitizer} -I {directory}{runtime} main.cc {linked} -o main\n"
        )
    } else {
        let c = cpp.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc");
        format!("link: {c} -std=c99 -O2{bare}{sanitizer} -I {directory} main.c {linked} -o main\n")
    }
}

/// Command that compiles the C source.
fn c_line(arguments: &Build, names: &FileNames) -> String {
    let source = quoted(&arguments.output.join(names.of(Kind::C)).display().to_string());
    let object = names.of(Kind::Obj);
    format!("compile: cc -std=c11 -O3 -march=native -c {source} -o {object}\n")
}

/// Linker flag with the path of the shared library relative to the program, so that the program
/// runs from every directory.
fn run_path(directory: &Path, library: &str) -> String {
    let origin = if library.ends_with(".dylib") { "@executable_path" } else { "$ORIGIN" };
    let place = match directory {
        path if path.is_absolute() => path.display().to_string(),
        path if path == Path::new(".") => origin.to_owned(),
        path => format!("{origin}/{}", path.display()),
    };
    quoted(&format!("-Wl,-rpath,{place}"))
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    if word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+:,=@%".contains(c)) && !word.is_empty() {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_program_as_they_are() {
        for word in ["out/a.o", "with space", "it's", "$HOME", ""] {
            let script = format!("printf %s {}", quoted(word));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
            assert_eq!(output.stdout, word.as_bytes());
        }
    }
}
