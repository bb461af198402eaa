//! Runs a case's graph: compiled to machine code by the whole compiler, or in the reference
//! interpreter.

use crate::c_source::Compiler;
use crate::case::Case;
use compiler::{Device, DeviceOptions, Executable, File, Input, NoObserver, Observer};
use hlo::{Interface, Module, Output};
use nest::launch::{DeviceProgram, Step};
use serde_json::{Value, json};
use shape::Literal;
use support::{Error, Id as _, Result};
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

/// Compiles the graph to C source, and that with a C compiler, loads the code, and runs it.
pub fn compile_c_and_run(case: &Case, compiler: &Compiler) -> Result<Vec<Literal>> {
    let executable = compiler::guarded(|| {
        let program = input(case)?.source.import(&mut NoObserver)?;
        let options = compiler.options(compiler::in_process_options(compiler.target()?));
        let mut compiled = compiler::compile_module(program.module, &options, &mut NoObserver)?;
        let object = compiler.compile(&compiled.code.output.object)?;
        compiled.code.output.object = object;
        Executable::load(&compiled)
    })?;
    executable.run(&case.arguments)
}

/// Compiles the graph for a device, loads the code, and runs it there. `targets` are those that the
/// user named.
pub fn compile_and_run_on(case: &Case, device: &Device, targets: &[Target]) -> Result<Vec<Literal>> {
    let executable = compiler::guarded(|| {
        let program = input(case)?.source.import(&mut NoObserver)?;
        let mut options = compiler::in_process_options(compiler::host("")?).on_device(device.clone())?;
        if !targets.is_empty() {
            options.devices = targets.to_vec();
        }
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

/// Compiles the graph for devices of OpenCL. Returns its kernels in OpenCL C.
pub fn opencl_c(case: &Case) -> Result<String> {
    compiler::guarded(|| {
        let program = input(case)?.source.import(&mut NoObserver)?;
        let mut options = compiler::in_process_options(compiler::host("")?);
        options.devices = vec![Target::opencl_c()?];
        let compiled = compiler::compile_module(program.module, &options, &mut NoObserver)?;
        let files = compiled.code.device.and_then(|device| device.opencl);
        files.map(|files| files.kernels).ok_or_else(|| Error::internal("the code has no OpenCL C"))
    })
}

/// The files of a device program.
pub struct DeviceFiles {
    /// The program and its images.
    pub program: Vec<u8>,
    /// The block of constants.
    pub constants: Vec<u8>,
    /// The results: type, dimensions, and the places of true sizes.
    pub interface: Value,
}

/// Compiles the graph for devices.
pub fn device_files(case: &Case, devices: &[Target]) -> Result<DeviceFiles> {
    compiler::guarded(|| {
        let program = input(case)?.source.import(&mut NoObserver)?;
        device_files_of(program.module, devices)
    })
}

/// Compiles a module for devices.
pub fn device_files_of(module: Module, devices: &[Target]) -> Result<DeviceFiles> {
    let mut options = compiler::in_process_options(compiler::host("")?);
    options.devices = devices.to_vec();
    let compiled = compiler::compile_module(module, &options, &mut NoObserver)?;
    let mut constants = vec![0; compiled.constants.size as usize];
    for (offset, chunk) in &compiled.constants.chunks {
        let start = *offset as usize;
        constants[start..start + chunk.len()].copy_from_slice(chunk);
    }
    let interface = Interface::of_module(&compiled.module)?;
    let result = |result: &Output| {
        let whole = result.whole();
        let size = |size: &hlo::TrueSize| json!({ "dimension": size.dimension, "index": size.index });
        json!({
            "type": whole.element_type.to_string(),
            "dimensions": whole.sizes(),
            "sizes": result.sizes().iter().map(size).collect::<Vec<Value>>(),
        })
    };
    let results: Vec<Value> = interface.results().iter().map(result).collect();
    let device = compiled.code.device.ok_or_else(|| Error::internal("the code has no device program"))?;
    let interface = json!({ "results": results, "kernels": kernels_of(&device.program) });
    Ok(DeviceFiles { program: device.binary, constants, interface })
}

/// Describes the launches of a program: kernel, grid, and estimates of its work.
fn kernels_of(program: &DeviceProgram) -> Vec<Value> {
    fn all<'s>(steps: &'s [Step], times: u64, launches: &mut Vec<(&'s Step, u64)>) {
        for step in steps {
            match step {
                Step::Launch { .. } => launches.push((step, times)),
                Step::Repeat { trips, body } => all(body, times * trips, launches),
                Step::While { before, body, .. } => {
                    all(before, times, launches);
                    all(body, times, launches);
                }
                Step::Skip { body, .. } => all(body, times, launches),
                Step::Copy { .. } | Step::Rotate(_) | Step::Home { .. } => {}
            }
        }
    }
    let mut launches = Vec::new();
    all(&program.steps, 1, &mut launches);
    let describe = |(step, times): (&Step, u64)| {
        let Step::Launch { kernel, groups, .. } = step else { return Value::Null };
        let (function, facts) = (&program.kernels.functions[*kernel], &program.facts[kernel.index()]);
        let nest::Linkage::Kernel { threads } = function.linkage else { return Value::Null };
        json!({
            "kernel": codegen::kernel_symbol(kernel.index(), &function.name),
            "label": facts.label,
            "groups": groups,
            "threads": threads,
            "times": times,
            "operations": facts.operations,
            "bytes": facts.bytes,
        })
    };
    launches.into_iter().map(describe).collect()
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

/// Opens the first device of a kind: `cuda`, `opencl`, or `opencl:` with forms of code. Also
/// returns the targets of the forms.
pub fn open_device(name: &str) -> Result<(Device, Vec<Target>)> {
    let (kind, targets) = match name.split_once(':') {
        Some((kind, _)) => (kind, target::parse_devices(name)?.unwrap_or_default()),
        None => (name, Vec::new()),
    };
    let kind = compiler::device_kind(kind)?;
    Ok((Device::open(&DeviceOptions::new(kind, 0))?, targets))
}

/// Interprets the HLO from the importer, as a second opinion.
pub fn interpret(case: &Case) -> Result<Vec<Literal>> {
    let program = input(case)?.source.import(&mut NoObserver)?;
    match evaluator::evaluate(&program.module, &case.arguments)? {
        Literal::Tuple(results) => Ok(results),
        Literal::Array { .. } => Err(Error::internal("expected a tuple as the entry's result")),
    }
}

/// Reads a case's graph and config.
pub(crate) fn input(case: &Case) -> Result<Input> {
    Input::parse(
        File { name: "graph.pb", content: case.graph.clone() },
        File { name: "config.pbtxt", content: case.config.clone() },
    )
}
