//! Finds LLVM 22, compiles what its C interface does not offer, and links LLVM: dynamically, or
//! statically with the feature `static-llvm`.

use std::path::Path;
use std::process::Command;

/// Major version in the name of `inkwell`'s feature in Cargo.toml.
const LLVM_MAJOR: &str = "22";

fn main() {
    println!("cargo:rerun-if-changed=cpp");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=LLVM_SYS_221_PREFIX");
    let config = find_llvm_config();
    let ask = |arguments: &[&str]| output(&config, arguments).unwrap_or_else(|why| panic!("{config}: {why}"));
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        .flag_if_supported("-Wno-unused-parameter")
        .include(ask(&["--includedir"]))
        .file("cpp/memory.cc")
        .file("cpp/subtarget_tables.cc")
        // Linked below, after LLVM.
        .cpp_link_stdlib(None)
        .compile("tfcompile_llvm");
    println!("cargo:rustc-link-search=native={}", ask(&["--libdir"]));
    if std::env::var_os("CARGO_FEATURE_STATIC_LLVM").is_some() {
        for library in libraries(&ask(&["--link-static", "--libs"])) {
            println!("cargo:rustc-link-lib=static:-bundle={library}");
        }
        // LLVM's interpreter, which this crate does not use, needs libffi, but `--system-libs` does
        // not list it.
        let system = libraries(&ask(&["--link-static", "--system-libs"]));
        system.iter().map(String::as_str).chain(["ffi", "stdc++"]).for_each(link_archive);
    } else {
        println!("cargo:rustc-link-lib=dylib=stdc++");
        for library in libraries(&ask(&["--link-shared", "--libs"])) {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}

/// Links an archive into the binary, so that the binary runs where the library is not installed.
/// Libraries that exist only as shared libraries, or belong to the C library, are linked
/// dynamically.
fn link_archive(library: &str) {
    const C_LIBRARY: [&str; 4] = ["rt", "dl", "m", "pthread"];
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let found = output(&compiler, &[&format!("-print-file-name=lib{library}.a")]);
    // A compiler that does not find a file prints the unchanged name.
    match found.as_deref().map(Path::new) {
        Ok(archive) if archive.is_absolute() && !C_LIBRARY.contains(&library) => {
            let folder = archive.parent().unwrap_or(Path::new("/"));
            println!("cargo:rustc-link-search=native={}", folder.display());
            println!("cargo:rustc-link-lib=static:-bundle={library}");
        }
        _ => println!("cargo:rustc-link-lib=dylib={library}"),
    }
}

/// Finds `llvm-config` of the right version, below `LLVM_SYS_221_PREFIX` (which `llvm-sys` also
/// reads) or on the path.
fn find_llvm_config() -> String {
    let candidates = match std::env::var("LLVM_SYS_221_PREFIX") {
        Ok(prefix) => vec![format!("{prefix}/bin/llvm-config")],
        Err(_) => vec![format!("llvm-config-{LLVM_MAJOR}"), "llvm-config".to_owned()],
    };
    let fits = |config: &&String| {
        output(config, &["--version"]).is_ok_and(|version| version.split('.').next() == Some(LLVM_MAJOR))
    };
    candidates.iter().find(fits).cloned().unwrap_or_else(|| {
        panic!(
            "LLVM {LLVM_MAJOR} is not installed (looked for {}); on Debian: llvm-22-dev",
            candidates.join(", ")
        )
    })
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Parses the names in `-lfirst -lsecond`.
fn libraries(flags: &str) -> Vec<String> {
    flags.split_whitespace().filter_map(|flag| flag.strip_prefix("-l")).map(str::to_owned).collect()
}
