//! Translation of a unit of a program's versions to an LLVM module.

use std::collections::BTreeSet;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::TargetMachine;
use nest::{FunctionId, Program};
use support::{Id, Result};

use crate::CodegenOptions;
use crate::function::FunctionTranslator;
use crate::module::ModuleTranslator;
use crate::placement::Placement;
use crate::units::{Source, Unit};

/// Translates a unit and the given routines. The last unit also contains the code that selects a
/// version, compiled for the baseline.
pub(crate) fn translate<'c>(
    context: &'c Context,
    machine: &TargetMachine,
    source: &Source<'c>,
    unit: &Unit,
    options: &CodegenOptions,
    constants: Placement,
    routines: &BTreeSet<String>,
) -> Result<Module<'c>> {
    let mut module = ModuleTranslator::new(context, machine, source.versions[0].target, options);
    if unit.is_last {
        module.declare_constants(options, constants);
    }
    let mut entries = Vec::new();
    for (k, version) in source.versions.iter().enumerate() {
        module.begin_program(version.target, version.program.functions.len());
        translate_program(&mut module, version.program, &source.symbols[k], &unit.bodies(source, k), unit)?;
        entries.extend(module.last_function());
    }
    if unit.is_last && !source.requirements.is_empty() {
        module.begin_program(source.baseline, 0);
        module.dispatch(&options.entry_point, &source.requirements, &entries)?;
    }
    if !routines.is_empty() {
        module.begin_program(source.versions[0].target, 0);
        crate::routines::translate(&mut module, routines)?;
    }
    Ok(module.module)
}

/// Declares the functions of a program that a unit contains or references, and translates the
/// bodies that it contains.
fn translate_program(
    module: &mut ModuleTranslator<'_>,
    program: &Program,
    symbols: &[String],
    bodies: &BTreeSet<FunctionId>,
    unit: &Unit,
) -> Result<()> {
    let callees = bodies.iter().flat_map(|&id| program.functions[id].callees());
    let mut declared: BTreeSet<FunctionId> = callees.chain(bodies.iter().copied()).collect();
    if unit.is_last {
        declared.extend(program.functions.iter().last().map(|(id, _)| id));
    }
    for id in declared {
        module.declare(id, &program.functions[id], &symbols[id.index()], unit.is_whole)?;
    }
    for &id in bodies {
        let function = &program.functions[id];
        FunctionTranslator::new(module, function, module.callee(id)?)
            .translate()
            .map_err(|e| e.context(format_args!("function {:?}", function.name)))?;
    }
    Ok(())
}
