//! Routines that the code generator calls for operations without an instruction: found among the
//! undefined symbols of an object, and translated with the rest when it is generated again.

use std::collections::BTreeSet;

use inkwell::context::Context;
use nest::FunctionId;
use nest::stack::Calls;
use object::{Object, ObjectSymbol};
use support::{Error, IdVec, Result};
use target::Target;

use crate::function::FunctionTranslator;
use crate::module::ModuleTranslator;
use crate::{CodegenOptions, llvm, machine, object_file};

/// Returns the undefined symbols of an object that are names of routines.
pub(crate) fn missing(object: &[u8]) -> Result<BTreeSet<String>> {
    let file = object_file::parse(object)?;
    let undefined = file.symbols().filter(|symbol| symbol.is_undefined());
    let names = undefined.filter_map(|symbol| symbol.name().ok());
    Ok(names.filter(|name| routines::is_routine(name)).map(str::to_owned).collect())
}

/// Translates routines to functions that are local to the object.
pub(crate) fn translate<'c>(module: &mut ModuleTranslator<'c>, symbols: &BTreeSet<String>) -> Result<()> {
    let functions: IdVec<FunctionId, nest::Function> = symbols
        .iter()
        .map(|symbol| {
            routines::routine(symbol)
                .unwrap_or_else(|| Err(Error::internal(format!("'{symbol}' is not a routine"))))
        })
        .collect::<Result<_>>()?;
    module.begin_program(module.target, functions.len());
    for (id, function) in functions.iter() {
        module.declare(id, function, &function.name, true)?;
        FunctionTranslator::new(module, function, module.callee(id)?).translate()?;
    }
    Ok(())
}

/// Adds routines to the calls of a program: any function may call any of them.
pub(crate) fn add_calls(calls: &[Calls], symbols: &BTreeSet<String>) -> Vec<Calls> {
    let mut ordered: Vec<&String> = symbols.iter().collect();
    ordered.sort_by_key(|symbol| routines::level(symbol));
    let below = |level: u32| ordered.iter().filter(move |s| routines::level(s) < level).map(|&s| s.clone());
    let of_routines = ordered
        .iter()
        .map(|&symbol| Calls { caller: symbol.clone(), callees: below(routines::level(symbol)).collect() });
    let of_program = calls.iter().map(|function| Calls {
        caller: function.caller.clone(),
        callees: function.callees.iter().cloned().chain(below(u32::MAX)).collect(),
    });
    of_routines.chain(of_program).collect()
}

/// Generates an object that exports routines and those that they call, for tests.
///
/// Errors: `invalid` for names that are not those of routines, and as [`crate::compile`].
pub fn compile_routines(symbols: &[&str], target: &Target) -> Result<Vec<u8>> {
    let options = CodegenOptions { freestanding: true, ..CodegenOptions::new("routines") };
    let machine = machine::target_machine(target, true)?;
    let mut names: BTreeSet<String> = symbols.iter().map(|&symbol| symbol.to_owned()).collect();
    loop {
        let context = Context::create();
        let diagnostics = llvm::Diagnostics::listen(&context);
        let mut module = ModuleTranslator::new(&context, &machine, target, &options);
        translate(&mut module, &names)?;
        for name in &names {
            if let Some(function) = module.module.get_function(name) {
                function.set_linkage(inkwell::module::Linkage::External);
            }
        }
        let passes = crate::passes(target, None);
        let generated =
            crate::optimize_and_emit(&module.module, &machine, &passes, &diagnostics, target, &options)?;
        let more = missing(&generated.object)?;
        if more.is_empty() {
            object_file::check_undefined_symbols(&generated.object, target, &options, &BTreeSet::new())?;
            return Ok(generated.object);
        }
        names.extend(more);
    }
}
