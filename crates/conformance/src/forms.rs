//! A program in every form in which it can be given away, before and after optimisation, with arguments and the results of
//! our compiled code: for XLA to parse, to run and to compare (`scripts/xla_judge.py`).

use crate::export::{draw, fusions_as_calls, is_comparable, write_file};
use compiler::{Executable, NoObserver};
use hlo::Module;
use shape::{Literal, Shape};
use std::collections::BTreeMap;
use std::path::Path;
use stablehlo::WriteOptions;
use support::{Error, Result};

/// Writes below `directory`: `NAME.hlo`, `NAME.pb` and `NAME.mlir` before, `NAME-optimized.*` after optimisation, and
/// `NAME-optimized-unfused.hlo`, the latter with calls for fusions, since a back end runs only its own. Those that can be
/// run have an `.npz` with arguments (drawn if none are given) and our results. Where StableHLO has no form for a program,
/// `.refused` says why.
pub fn write_forms(
    directory: &Path,
    name: &str,
    module: &Module,
    arguments: Option<Vec<Literal>>,
) -> Result<()> {
    let options = compiler::in_process_options(compiler::host("")?);
    let compiled = compiler::compile_module(module.clone(), &options, &mut NoObserver)?;
    let mut optimized = compiled.module.clone();
    let is_bounded = !optimized.bounded_dimensions().is_empty();
    // XLA has no word for it.
    optimized.set_bounded_dimensions(Vec::new());
    let arrays = match is_comparable(module) && !is_bounded {
        false => None,
        true => {
            let arguments = arguments.or_else(|| drawn(module, name));
            arguments.map(|arguments| results(&compiled, arguments)).transpose()?
        }
    };
    let archive = arrays.map(|arrays| npz::write(&arrays)).transpose()?;
    write_module(directory, name, module, archive.as_deref())?;
    let name = format!("{name}-optimized");
    let unfused = fusions_as_calls(&optimized);
    // With fusions, the text and the messages are read only.
    let of_text = if unfused.is_some() { None } else { archive.as_deref() };
    write_module_text(directory, &name, &optimized, of_text)?;
    write_stablehlo(directory, &format!("{name}-mlir"), &optimized, archive.as_deref())?;
    match unfused {
        Some(unfused) => {
            let path = directory.join(format!("{name}-unfused"));
            write_file(&path, "hlo", unfused.to_text().as_bytes())?;
            archive.map_or(Ok(()), |archive| write_file(&path, "npz", &archive))
        }
        None => Ok(()),
    }
}

fn write_module(directory: &Path, name: &str, module: &Module, archive: Option<&[u8]>) -> Result<()> {
    write_module_text(directory, name, module, archive)?;
    write_stablehlo(directory, &format!("{name}-mlir"), module, archive)
}

fn write_module_text(directory: &Path, name: &str, module: &Module, archive: Option<&[u8]>) -> Result<()> {
    let path = directory.join(name);
    write_file(&path, "hlo", module.to_text().as_bytes())?;
    write_file(&path, "pb", &hlo::proto::to_hlo_module_proto_bytes(module)?)?;
    archive.map_or(Ok(()), |archive| write_file(&path, "npz", archive))
}

/// The text, which our own reader has to take too.
fn write_stablehlo(directory: &Path, name: &str, module: &Module, archive: Option<&[u8]>) -> Result<()> {
    let path = directory.join(name);
    match stablehlo::write(module, &WriteOptions::default()) {
        Ok(text) => {
            stablehlo::import(&mlir::parse(&text)?)
                .and_then(|imported| Ok(hlo::verify(&imported.module)?))
                .map_err(|error| error.context("the StableHLO that was written does not read back"))?;
            write_file(&path, "mlir", text.as_bytes())?;
            archive.map_or(Ok(()), |archive| write_file(&path, "npz", archive))
        }
        Err(error) => write_file(&path, "refused", error.message().as_bytes()),
    }
}

/// Seeded arguments; `None` if some are not arrays of known size.
fn drawn(module: &Module, seed: &str) -> Option<Vec<Literal>> {
    let entry = module.entry_computation();
    let parameters = entry.parameters().iter().enumerate();
    let argument = |(k, &id): (usize, &hlo::InstructionId)| match entry[id].shape() {
        Shape::Array(shape) if shape.is_static() => Some(draw(shape, &format!("{seed}/{k}"))),
        _ => None,
    };
    parameters.map(argument).collect()
}

/// Arguments and results as members of an archive.
fn results(compiled: &compiler::Compiled, arguments: Vec<Literal>) -> Result<BTreeMap<String, Literal>> {
    let results = Executable::load(compiled)?.run(&arguments)?;
    let named = |kind: &'static str, literals: Vec<Literal>| {
        literals.into_iter().enumerate().map(move |(k, literal)| (format!("{kind}/{k}"), literal))
    };
    Ok(named("in", arguments).chain(named("out", results)).collect())
}

/// The program of a recorded case, in all forms, run on its own arguments.
pub fn write_case(directory: &Path, name: &str, path: &Path) -> Result<()> {
    let case = crate::case::read_case(path)?;
    let graph = tf::source::parse_graph_def(case.graph, "graph")?;
    let config = tf::source::parse_config(case.config, "config")?;
    let module = compiler::import(graph, config, &mut NoObserver)?.import.module;
    let parameters = module.entry_computation().parameters().len();
    if parameters != case.arguments.len() {
        return Err(Error::internal(format!("{parameters} parameters, {} arguments", case.arguments.len())));
    }
    write_forms(directory, name, &module, Some(case.arguments))
}
