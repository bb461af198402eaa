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
    let object = build(directory.path(), "x86_64-windows", &["--multiversion=v2,v3"]);
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
    // MinGW's compiler has its own library. It is optional.
    let mingw = ["x86_64-w64-mingw32-g++", "x86_64-w64-mingw32-g++-posix"];
    let Some(compiler) = mingw.into_iter().find(|c| Command::new(c).arg("--version").output().is_ok()) else {
        println!("skipped: linking (no MinGW)");
        return;
    };
    let program = "#include \"model.h\"\nint main() { Model m; return m.Run() ? 0 : 1; }\n";
    std::fs::write(directory.path().join("main.cc"), program).expect("writable");
    let mut link = Command::new(compiler);
    link.current_dir(directory.path()).args([
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Iinclude",
        "-static",
    ]);
    succeed(link.args(["main.cc", object, "-o", "main.exe"]));
    let heads = llvm("llvm-readobj", &["--file-headers", "main.exe"], directory.path());
    assert!(heads.contains("IMAGE_FILE_MACHINE_AMD64"), "{heads}");
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
