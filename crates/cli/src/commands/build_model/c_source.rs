//! `tfcompile build --emit c`: C source in place of an object.

use super::Build;
use crate::artifacts::kind::Kind;
use clap::ValueEnum;
use compiler::{CVectors, c_plan_target};
use support::{Error, Result};
use target::Target;

/// Processor for which C source is planned unless the flags name one: vectors of 32 bytes, 16
/// registers, and multiply-add, which compilers split for smaller machines.
const DEFAULT: &str = "x86-64-v3";

/// Value of `--c-vectors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum VectorsName {
    Gcc,
    None,
}

/// Vectors of the C source; `None` if the build has no C source. GCC 12 and Clang 22 compile
/// vectors for MVE to code with other results, so there are none by default.
pub(super) fn vectors(arguments: &Build) -> Result<Option<CVectors>> {
    if !arguments.emit.contains(&Kind::C) {
        return Ok(None);
    }
    let has_mve = named_target(arguments)?.has_mve;
    Ok(Some(match arguments.c_vectors {
        Some(VectorsName::Gcc) if has_mve => {
            return Err(Error::invalid(
                "--c-vectors=gcc: GCC 12 and Clang 22 compile these vectors wrongly for processors with MVE: remove the flag",
            ));
        }
        Some(VectorsName::None) => CVectors::None,
        None if has_mve => CVectors::None,
        None | Some(VectorsName::Gcc) => CVectors::Gcc,
    }))
}

/// Rejects kinds of files and flags that C source excludes.
pub(super) fn check(arguments: &Build) -> Result<()> {
    if !arguments.emit.contains(&Kind::C) {
        if arguments.c_vectors.is_some() {
            return Err(Error::invalid("--c-vectors is for C source: add c to --emit, or remove the flag"));
        }
        return Ok(());
    }
    let linked = [
        (Kind::Obj, "obj"),
        (Kind::Archive, "archive"),
        (Kind::Shared, "shared"),
        (Kind::Metadata, "metadata"),
        (Kind::Llvm, "llvm"),
        (Kind::Asm, "asm"),
    ];
    if let Some((_, name)) = linked.iter().find(|(kind, _)| arguments.emit.contains(kind)) {
        return Err(Error::invalid(format!(
            "--emit: C source replaces the object, so c and {name} exclude each other: build each alone"
        )));
    }
    let given = [
        (arguments.back.names_versions(), "--multiversion: C source has one version of the code"),
        (
            arguments.freestanding,
            "--freestanding: C source calls memcpy and memset, which you provide without a library",
        ),
        (arguments.back.sanitizer().is_some(), "--sanitize: compile C source with -fsanitize instead"),
    ];
    if let Some((_, what)) = given.iter().find(|(is_given, _)| *is_given) {
        return Err(Error::invalid(format!("{what}: remove the flag or c from --emit")));
    }
    if !arguments.model.devices()?.is_empty() {
        return Err(Error::invalid(
            "--emit=c is for processors, but --target names a GPU: remove one of them",
        ));
    }
    vectors(arguments).map(|_| ())
}

/// Target for which C source is planned; `None` if the build has none.
pub(super) fn target(arguments: &Build) -> Result<Option<Target>> {
    let Some(vectors) = vectors(arguments)? else { return Ok(None) };
    Ok(Some(c_plan_target(&named_target(arguments)?, vectors)))
}

/// Target that the flags name, or else the default one.
fn named_target(arguments: &Build) -> Result<Target> {
    let model = &arguments.model;
    let is_open = model.target.is_none()
        && model.target_triple.is_none()
        && model.target_cpu.is_none()
        && model.target_features.is_none();
    if is_open { target::named(DEFAULT) } else { Ok(arguments.back.targets(model)?.0) }
}
