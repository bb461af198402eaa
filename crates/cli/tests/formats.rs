//! Objects in the formats of other systems, checked with their tools, and headers checked with
//! other compilers.

use crate::support::{root, succeed, tfcompile};
use std::path::Path;
use std::process::Command;

/// Builds a model for a target and returns the name of its object.
fn build(directory: &Path, target: &str, more: &[&str]) -> &'static str {
    let case = root().join("tests/oracle/tfcompile_tests/tfmatmul");
    let mut build = tfcompile(directory);
    build
        .arg("build")
        .arg(case.join("graph.pb"))
        .arg(format!("--config={}", case.join("config.pbtxt").display()));
    build.args(["--name=model", "--class=Model", "--quiet", "--output=.", "--emit=obj,header,c-header"]);
    succeed(build.arg(format!("--target={target}")).args(more));
    if target.contains("windows") { "model.obj" } else { "model.o" }
}

/// Output of one of LLVM's tools, which come with LLVM's development files.
fn llvm(tool: &str, arguments: &[&str], directory: &Path) -> String {
    let output = succeed(Command::new(format!("{tool}-22")).current_dir(directory).args(arguments));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Name and type letter of each symbol, sorted, without the prefix that the format puts before
/// names.
fn symbols(object: &str, prefix: &str, directory: &Path) -> Vec<(String, String)> {
    let listing = llvm("llvm-nm", &["--format=posix", object], directory);
    let symbol = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, letter) = (words.next()?, words.next()?);
        Some((name.strip_prefix(prefix).unwrap_or(name).to_owned(), letter.to_owned()))
    };
    let mut all: Vec<_> = listing.lines().filter_map(symbol).collect();
    all.sort();
    all
}

fn expect_symbols(symbols: &[(String, String)], undefined: &[&str]) {
    let of = |letters: &[&str]| -> Vec<&str> {
        symbols.iter().filter(|(_, l)| letters.contains(&l.as_str())).map(|(n, _)| n.as_str()).collect()
    };
    assert_eq!(of(&["U"]), undefined, "{symbols:?}");
    assert_eq!(of(&["T"]), ["model"], "{symbols:?}");
    assert_eq!(of(&["R", "S", "D"]), ["model_constants"], "{symbols:?}");
    assert!(of(&["t"]).iter().any(|name| name.starts_with("model.")), "{symbols:?}");
}

#[test]
fn windows_objects_are_coff() {
    for levels in ["none", "v2,v3,v4"] {
        let directory = tempfile::tempdir().expect("a directory");
        let multiversion = format!("--multiversion={levels}");
        let object = build(directory.path(), "x86_64-windows", &[&multiversion]);
        let heads = llvm("llvm-readobj", &["--file-headers", "--sections", object], directory.path());
        for expected in
            ["Format: COFF-x86-64", "IMAGE_FILE_MACHINE_AMD64", ".rdata$tfc", "IMAGE_SCN_ALIGN_64BYTES"]
        {
            assert!(heads.contains(expected), "no {expected}: {heads}");
        }
        expect_symbols(&symbols(object, "", directory.path()), &["_fltused"]);
    }
}

#[test]
fn windows_compilers_accept_header_and_object() {
    let directory = tempfile::tempdir().expect("a directory");
    build(directory.path(), "x86_64-windows", &["--multiversion=v2,v3"]);
    // The C header needs no library, so Microsoft's dialect can be checked without Microsoft's
    // headers.
    let program = "#include \"model_c.h\"\n";
    std::fs::write(directory.path().join("main.c"), program).expect("writable");
    for (language, standard) in [("c", "-std=c11"), ("c++", "-std=c++17")] {
        let mut check = Command::new("clang++");
        check.current_dir(directory.path()).args(["--target=x86_64-pc-windows-msvc", "-fms-compatibility"]);
        check.args([
            "-fms-extensions",
            "-ffreestanding",
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Werror",
            standard,
        ]);
        succeed(check.args(["-x", language, "main.c"]));
    }
}

/// Program whose status is 0 if a product of matrices is right. It needs no library, and only the
/// headers of the compiler.
const PROGRAM: &str = r#"
#include "model_c.h"
static unsigned char memory[MODEL_ARENA_BYTES];
int main(void) {
  static const float expected[4] = {20, 14, 56, 41};
  model_state* state = model_init(memory);
  for (int k = 0; k < 6; ++k) {
    model_arg0(state)[k] = (float)(k + 1);
    model_arg1(state)[k] = (float)(6 - k);
  }
  if (model_run(state) != 0) return 1;
  for (int k = 0; k < 4; ++k) if (model_result0(state)[k] != expected[k]) return 2;
  return 0;
}
"#;

/// True if a program is installed. It must be if `TEST_CROSS` is `true`.
fn is_installed(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    assert!(is_there || std::env::var("TEST_CROSS").as_deref() != Ok("true"), "{program} is missing");
    if !is_there {
        println!("skipped: {program} is not installed");
    }
    is_there
}

#[test]
fn programs_and_libraries_for_windows_run_in_wine() {
    // Debian has no command for it.
    let wine = "/usr/lib/wine/wine64";
    if !is_installed("x86_64-w64-mingw32-g++") || !is_installed(wine) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    // The directory that `scripts/test_cross.sh` uses, too: 700 MB, created once.
    let cache = std::env::var("XDG_CACHE_HOME")
        .or_else(|_| std::env::var("HOME").map(|home| format!("{home}/.cache")))
        .expect("a home");
    let prefix = format!("{cache}/tfcompile-models/wine");
    std::fs::create_dir_all(&prefix).expect("a directory");
    let run = |directory: &Path| {
        let mut wine = Command::new(wine);
        wine.env("WINEPREFIX", &prefix).env("WINEDEBUG", "-all").current_dir(directory);
        succeed(wine.arg("main.exe"));
    };
    let compile = |directory: &Path, compiler: &str, words: &[&str]| {
        let mut compiler = Command::new(compiler);
        compiler.current_dir(directory).args(["-Wall", "-Wextra", "-Werror", "-static", "-o", "main.exe"]);
        succeed(compiler.args(words));
    };
    for levels in ["none", "v2,v3"] {
        let object = build(directory.path(), "x86_64-windows", &[&format!("--multiversion={levels}")]);
        std::fs::write(directory.path().join("main.c"), PROGRAM).expect("writable");
        compile(directory.path(), "x86_64-w64-mingw32-gcc", &["main.c", object]);
        run(directory.path());
    }
    let heads = llvm("llvm-readobj", &["--file-headers", "main.exe"], directory.path());
    assert!(heads.contains("IMAGE_FILE_MACHINE_AMD64"), "{heads}");
    // The class, and a library that the program loads.
    build(directory.path(), "x86_64-windows", &["--emit=shared,header"]);
    let program = "#include \"model.h\"\nint main() { Model m; m.arg0_data()[0] = 2; m.arg1_data()[0] = 3;\n  return m.Run() && m.result0_data()[0] == 6 ? 0 : 1; }\n";
    std::fs::write(directory.path().join("main.cc"), program).expect("writable");
    let words = ["-std=c++17", "-Iinclude", "main.cc", "model.dll"];
    compile(directory.path(), "x86_64-w64-mingw32-g++", &words);
    let imports = llvm("llvm-readobj", &["--coff-imports", "main.exe"], directory.path());
    assert!(imports.contains("Name: model.dll"), "{imports}");
    run(directory.path());
}

/// Links with LLVM's linker against a stub of the system's library. Nothing here can run the
/// results.
#[test]
fn programs_and_libraries_for_macos_link() {
    if !is_installed("ld64.lld-22") || !is_installed("clang-22") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    let stub = "--- !tapi-tbd\ntbd-version: 4\ntargets: [ arm64-macos ]\ninstall-name: '/usr/lib/libSystem.B.dylib'\nexports:\n  - targets: [ arm64-macos ]\n    symbols: [ _memcpy, _memset, _memmove ]\n...\n";
    std::fs::write(place("libSystem.tbd"), stub).expect("writable");
    std::fs::write(place("main.c"), PROGRAM).expect("writable");
    let compiler = format!(
        "#!/bin/sh\nexec clang-22 --target=arm64-apple-macosx11.0 -mlinker-version=705 -ffreestanding -Wall -Wextra -Werror --ld-path=\"$(command -v ld64.lld-22)\" -nostdlib -L'{}' \"$@\" -lSystem\n",
        directory.path().display()
    );
    std::fs::write(place("compiler"), compiler).expect("writable");
    succeed(Command::new("chmod").arg("+x").arg(place("compiler")));

    let object = build(directory.path(), "aarch64-macos", &[]);
    let mut link = Command::new(place("compiler"));
    succeed(link.current_dir(directory.path()).args(["main.c", object, "-o", "main"]));
    let loads = llvm("llvm-objdump", &["--macho", "--private-headers", "main"], directory.path());
    for expected in ["EXECUTE", "LC_MAIN", "/usr/lib/libSystem.B.dylib", "LC_CODE_SIGNATURE"] {
        assert!(loads.contains(expected), "no {expected}: {loads}");
    }
    // A path to the linker is relative to the tool's directory, not to that of the linker.
    build(directory.path(), "aarch64-macos", &["--emit=shared,header", "--linker=./compiler"]);
    let dump = ["--macho", "--private-headers", "--exports-trie", "libmodel.dylib"];
    let loads = llvm("llvm-objdump", &dump, directory.path());
    for expected in ["DYLIB", "@rpath/libmodel.dylib", "_model\n", "_model_constants\n"] {
        assert!(loads.contains(expected), "no {expected}: {loads}");
    }
}

#[test]
fn macos_objects_are_mach_o() {
    let directory = tempfile::tempdir().expect("a directory");
    let object = build(directory.path(), "aarch64-macos", &[]);
    let heads = llvm("llvm-readobj", &["--file-headers", "--sections", object], directory.path());
    for expected in ["Format: Mach-O arm64", "CpuType: Arm64", "FileType: Relocatable", "Name: __const"] {
        assert!(heads.contains(expected), "no {expected}: {heads}");
    }
    // The linker requires the platform.
    let loads = llvm("llvm-objdump", &["--macho", "--private-headers", object], directory.path());
    assert!(loads.contains("LC_BUILD_VERSION") && loads.contains("macos"), "{loads}");
    expect_symbols(&symbols(object, "_", directory.path()), &[]);
}

#[test]
fn android_objects_are_elf() {
    let directory = tempfile::tempdir().expect("a directory");
    let object = build(directory.path(), "aarch64-android", &[]);
    let heads = llvm("llvm-readobj", &["--file-headers", object], directory.path());
    assert!(heads.contains("Format: elf64-littleaarch64") && heads.contains("EM_AARCH64"), "{heads}");
    expect_symbols(&symbols(object, "", directory.path()), &[]);
    // Position-independent code has no relocations that a shared library's text cannot have.
    let relocations = llvm("llvm-readobj", &["--relocations", object], directory.path());
    assert!(
        !relocations.contains("R_AARCH64_MOVW") && !relocations.contains(" R_AARCH64_ABS32"),
        "{relocations}"
    );
}
