//! Runs a case's graph: compiled to machine code by the whole compiler, or in the reference
//! interpreter.

use crate::case::Case;
use compiler::{Device, DeviceOptions, Executable, File, Input, NoObserver, Observer};
use shape::Literal;
use support::{Error, Result};
use target::Target;

/// Compiles the graph for a CPU (LLVM's name, or `native`), loads the code, and runs it.
pub fn compile_and_run(case: &Case, cpu: &str) -> Result<Vec<Literal>> {
    let executable = compiler::guarded(|| {
        let program = input(case)?.source.import(&mut NoObserver)?;
        let options = compiler::in_process_options(compiler::host(cpu)?);
        Executable::load(&compiler::compile_module(program.module, &options, &mut NoObserver)?)
    })?;
    executable.run(&case.arguments)
}

/// Compiles the graph for a device, loads the code, and runs it there.
pub fn compile_and_run_on(case: &Case, device: &Device) -> Result<Vec<Literal>> {
    let executable = compiler::guarded(|| {
        let program = input(case)?.source.import(&mut NoObserver)?;
        let options = compiler::in_process_options(compiler::host("")?).on_device(device.clone())?;
        Executable::load(&compiler::compile_module(program.module, &options, &mut NoObserver)?)
    })?;
    executable.run(&case.arguments)
}

/// Compiles the graph for NVIDIA's GPUs of an architecture. Returns the PTX of its kernels.
pub fn ptx(case: &Case, architecture: &str) -> Result<String> {
    compiler::guarded(|| {
        let program = input(case)?.source.import(&mut NoObserver)?;
        let mut options = compiler::in_process_options(compiler::host("")?);
        options.devices = vec![Target::cuda(architecture)?];
        options.assembly = true;
        let mut text = Ptx::default();
        compiler::compile_module(program.module, &options, &mut text)?;
        Ok(text.0)
    })
}

/// Keeps the assembly of a compilation.
#[derive(Default)]
struct Ptx(String);

impl Observer for Ptx {
    fn ended(&mut self, _stage: &str, _detail: &dyn Fn() -> String) {}

    fn code(&mut self, _llvm_ir: Option<&str>, assembly: Option<&str>) {
        self.0 = assembly.unwrap_or_default().to_owned();
    }
}

/// Opens the first device of a kind.
pub fn open_device(kind: &str) -> Result<Device> {
    let kind = compiler::device_kind(kind)?;
    Device::open(&DeviceOptions::new(kind, 0))
}

/// Interprets the HLO from the importer, as a second opinion.
pub fn interpret(case: &Case) -> Result<Vec<Literal>> {
    let program = input(case)?.source.import(&mut NoObserver)?;
    match evaluator::evaluate(&program.module, &case.arguments)? {
        Literal::Tuple(results) => Ok(results),
        Literal::Array { .. } => Err(Error::internal("expected a tuple as the entry's result")),
    }
}

fn input(case: &Case) -> Result<Input> {
    Input::parse(
        File { name: "graph.pb", content: case.graph.clone() },
        File { name: "config.pbtxt", content: case.config.clone() },
    )
}
