//! From HLO to object code.

use crate::{Observer, pipeline};
use buffers::BufferAssignment;
use codegen::{CodegenOptions, CompiledModule, Constants};
use hlo::Module;
use support::Result;
use target::Target;

/// What the code is made for.
#[derive(Clone, Debug)]
pub struct BackOptions {
    /// The machine.
    pub target: Target,
    /// The symbol of the entry function.
    pub entry_point: String,
    /// Passes that do not run, by name (`--xla_disable_hlo_passes`).
    pub disabled_passes: Vec<String>,
    /// Whether the constants go into the object; without, whoever calls the code gives it a block of them.
    pub embed_constants: bool,
}

impl BackOptions {
    /// All passes, everything in the object.
    pub fn new(target: Target, entry_point: impl Into<String>) -> Self {
        Self { target, entry_point: entry_point.into(), disabled_passes: Vec::new(), embed_constants: true }
    }
}

/// A compiled module.
#[derive(Debug)]
pub struct Compiled {
    /// The optimised HLO.
    pub module: Module,
    /// Where its values live.
    pub assignment: BufferAssignment,
    /// The names of its kernels, in the order of their code.
    pub kernels: Vec<String>,
    /// The object file.
    pub code: CompiledModule,
}

/// Optimises, plans, assigns buffers, lowers and generates code.
pub fn compile_module(
    mut module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    pipeline().run(&mut module, &options.disabled_passes, |record, module| {
        observer.ended(record.name, &|| {
            if record.changed { module.to_text() } else { String::new() }
        });
    })?;
    compile_optimized(module, options, observer)
}

/// As [`compile_module`], for a module that the passes have been through.
pub fn compile_optimized(
    module: Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<Compiled> {
    let plan = plan::plan(&module, &options.target)?;
    observer.ended("plan", &|| plan.to_text(&module));
    let schedule = buffers::schedule(&module, &plan);
    let assignment = buffers::assign(&module, &plan, &schedule)?;
    buffers::check(&module, &plan, &schedule, &assignment)?;
    observer.ended("buffers", &|| assignment.to_text(&module));
    let mut program =
        kernel::lower(&module, &plan, &schedule, &assignment, &options.target, &options.entry_point)?;
    codegen::dedup(&mut program);
    observer.ended("kernel", &|| program.to_string());
    let kernels = program.functions.values().map(|f| f.name.clone()).collect();
    let constants = match options.embed_constants {
        true => Constants {
            size: assignment.constants_size,
            chunks: assignment.constants.iter().map(|(offset, bytes)| (*offset, bytes.as_ref())).collect(),
        },
        false => Constants::default(),
    };
    let code =
        codegen::compile(&program, &options.target, &CodegenOptions::new(&options.entry_point), &constants)?;
    observer.ended("codegen", &|| format!("{} bytes of object code", code.object.len()));
    Ok(Compiled { module, assignment, kernels, code })
}
