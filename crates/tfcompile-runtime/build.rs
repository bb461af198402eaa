//! Compiles the C runtime of GPUs for the feature `device`, with the C compiler in `CC` or the
//! system's. Other features need no C compiler.
//!
//! The runtime's headers are in `$TFCOMPILE_INCLUDE`, in the folder `include` of this crate
//! (written by `tfcompile headers --output include`), in the repository, or in the package.

use std::env::var;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if var("CARGO_FEATURE_DEVICE").is_err() {
        return;
    }
    if let Err(message) = compile() {
        println!("cargo::error=the feature `device` of tfcompile-runtime: {message}");
        std::process::exit(1);
    }
}

fn compile() -> Result<(), String> {
    for name in ["TFCOMPILE_INCLUDE", "CC", "AR"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=c/device.c");
    let include = include()?;
    println!("cargo::rerun-if-changed={}", include.join("tfcompile").display());
    let needed = |name: &str| var(name).map_err(|_| format!("{name} is not set: build with Cargo"));
    let (out, target) = (PathBuf::from(needed("OUT_DIR")?), needed("TARGET")?);
    let is_msvc = target.ends_with("-msvc");
    let source = Path::new("c/device.c");
    let compiler = tool("CC", &target).unwrap_or_else(|| if is_msvc { "cl" } else { "cc" }.to_owned());
    let archiver = tool("AR", &target).unwrap_or_else(|| if is_msvc { "lib" } else { "ar" }.to_owned());
    let (object, library);
    if is_msvc {
        object = out.join("device.obj");
        library = out.join("tfcompile_device.lib");
        let output = format!("/Fo{}", object.display());
        let flags = ["/nologo", "/O2", "/c", &output, "/I"].map(str::to_owned);
        run(Command::new(&compiler).args(flags).arg(&include).arg(source))?;
        let output = format!("/OUT:{}", library.display());
        run(Command::new(&archiver).args(["/nologo", &output]).arg(&object))?;
    } else {
        object = out.join("device.o");
        library = out.join("libtfcompile_device.a");
        let mut command = Command::new(&compiler);
        command.args(["-std=c99", "-O2", "-fPIC", "-c", "-I"]).arg(&include).arg(source);
        run(command.arg("-o").arg(&object))?;
        // An archiver adds to an existing archive.
        let _ = std::fs::remove_file(&library);
        run(Command::new(&archiver).arg("crs").arg(&library).arg(&object))?;
    }
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=tfcompile_device");
    if target.contains("linux") {
        println!("cargo::rustc-link-lib=dl");
        println!("cargo::rustc-link-lib=pthread");
    }
    Ok(())
}

/// Returns the tool that a variable names, for the target or for all.
fn tool(name: &str, target: &str) -> Option<String> {
    let of_target = format!("{name}_{}", target.replace('-', "_"));
    [of_target.as_str(), name].into_iter().find_map(|name| var(name).ok().filter(|tool| !tool.is_empty()))
}

/// Returns the folder of the headers.
fn include() -> Result<PathBuf, String> {
    let named = var("TFCOMPILE_INCLUDE").ok().map(PathBuf::from);
    let places = named
        .into_iter()
        .chain(["include", "../../runtime/include", "../../../../include"].map(PathBuf::from));
    let mut places = places.filter(|place| place.join("tfcompile/device_state.h").exists());
    places.next().ok_or_else(|| {
        "the C headers of the runtime are missing: run `tfcompile headers --output include` in the folder of the crate, or set \
         TFCOMPILE_INCLUDE to a folder with them"
            .to_owned()
    })
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| {
        format!("cannot run the C compiler's tool: {command:?}: {e}; install one, or set CC and AR")
    })?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
    Err(format!("{command:?} failed: {text}"))
}
