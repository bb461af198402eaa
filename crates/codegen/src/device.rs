//! Kernels of a device program as an image: PTX for NVIDIA's GPUs, SPIR-V for OpenCL.

mod bundle;
mod entry;
mod spirv;

pub use bundle::{DeviceMemory, bundle};
pub use entry::compile_device_entry;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{CodeModel, FileType, RelocMode, TargetMachine, TargetTriple};
use nest::launch::DeviceProgram;
use std::sync::{Mutex, PoisonError};
use support::{Error, Id, Result};
use target::{Architecture, Target};

use crate::function::FunctionTranslator;
use crate::llvm;
use crate::module::ModuleTranslator;
use crate::{CodegenOptions, emit};

/// The form of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageKind {
    /// PTX as text, which the driver compiles for its GPU.
    Ptx,
    /// Machine code of one architecture, as `ptxas` makes it.
    Cubin,
    /// A SPIR-V module.
    Spirv,
    /// OpenCL C as text.
    OpenClC,
}

/// The code of a device program for one architecture.
#[derive(Clone, Debug)]
pub struct DeviceImage {
    /// The form.
    pub kind: ImageKind,
    /// LLVM's name of the architecture, such as `sm_80`; empty for SPIR-V and OpenCL C.
    pub architecture: String,
    /// The code.
    pub bytes: Vec<u8>,
    /// LLVM IR, if requested.
    pub llvm_ir: Option<String>,
}

/// Passes for devices. Addresses are inferred first, so that accesses name their kind of memory.
/// The lowering leaves masked accesses of short vectors, which devices do not have.
fn passes(is_spirv: bool) -> String {
    // InstCombine turns tests of several lanes into casts of vectors of bits, which SPIR-V does
    // not have.
    let combine = if is_spirv { "" } else { "instcombine<no-verify-fixpoint>," };
    format!(
        "always-inline,scalarize-masked-mem-intrin,function(sroa,infer-address-spaces,early-cse,{combine}\
         loop-mssa(licm),gvn,simplifycfg,infer-address-spaces,early-cse)"
    )
}

/// Returns the symbol of a kernel. PTX allows letters, digits, and underscores.
pub fn kernel_symbol(number: usize, name: &str) -> String {
    const MAX_NAME: usize = 48;
    let clean = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).take(MAX_NAME);
    format!("k{number}_{}", clean.collect::<String>())
}

/// Held while SPIR-V is generated: LLVM's SPIR-V back end shares state between contexts, and
/// corrupts memory if threads use it at once.
static SPIRV: Mutex<()> = Mutex::new(());

/// Compiles the kernels of a program for a GPU.
///
/// Errors: `invalid` for an architecture that LLVM does not know; `unsupported` for code that the
/// back end refuses; `internal` for a program that the verifier rejects.
pub fn compile_kernels(program: &DeviceProgram, target: &Target, llvm_ir: bool) -> Result<DeviceImage> {
    nest::verify(&program.kernels)?;
    let is_spirv = target.triple.architecture == Architecture::Spirv64;
    // The lock protects no data of this program.
    let _alone = is_spirv.then(|| SPIRV.lock().unwrap_or_else(PoisonError::into_inner));
    let context = Context::create();
    let diagnostics = llvm::Diagnostics::listen(&context);
    let options = CodegenOptions::new("device");
    let mut module = ModuleTranslator::new(&context, &device_machine(target)?, target, &options);
    module.begin_program(target, program.kernels.functions.len());
    for (id, function) in program.kernels.functions.iter() {
        let symbol = kernel_symbol(id.index(), &function.name);
        module.declare(id, function, &symbol, true)?;
    }
    for (id, function) in program.kernels.functions.iter() {
        FunctionTranslator::new(&module, function, module.callee(id)?)
            .translate()
            .map_err(|e| e.context(format_args!("function {:?}", function.name)))?;
    }
    let module = module.module;
    // LLVM's back end for SPIR-V keeps references to values in the machine, so the machine must be
    // freed before the module: it is declared after it.
    let machine = device_machine(target)?;
    if cfg!(debug_assertions) {
        verify(&module)?;
    }
    module
        .run_passes(&passes(is_spirv), &machine, PassBuilderOptions::create())
        .map_err(|e| Error::internal(format!("LLVM's passes: {e}")))?;
    let llvm_ir = llvm_ir.then(|| module.print_to_string().to_string());
    let (kind, bytes) = if is_spirv {
        (ImageKind::Spirv, spirv::emit_spirv(&module, || device_machine(target))?)
    } else {
        (ImageKind::Ptx, emit(&machine, &module, FileType::Assembly)?)
    };
    if let Some(error) = diagnostics.first_error() {
        return Err(Error::unsupported(format!("LLVM cannot generate code for the device: {error}")));
    }
    Ok(DeviceImage { kind, architecture: target.cpu.clone(), bytes, llvm_ir })
}

fn verify(module: &Module<'_>) -> Result<()> {
    module.verify().map_err(|e| {
        Error::internal(format!(
            "LLVM's verifier rejects the code: {e}\n{}",
            module.print_to_string().to_string()
        ))
    })
}

fn device_machine(target: &Target) -> Result<TargetMachine> {
    llvm::initialize();
    let triple = TargetTriple::create(target.triple.as_str());
    let llvm_target = inkwell::targets::Target::from_triple(&triple).map_err(|_| {
        Error::unsupported(format!("LLVM was built without a back end for {}", target.triple.as_str()))
    })?;
    let machine = llvm_target.create_target_machine(
        &triple,
        &target.cpu,
        ptx_version(target),
        OptimizationLevel::Default,
        RelocMode::Default,
        CodeModel::Default,
    );
    machine
        .ok_or_else(|| Error::invalid(format!("LLVM does not support the GPU architecture '{}'", target.cpu)))
}

/// Returns the version of PTX as a feature: the first one that knows the architecture, so that
/// older drivers take it, but at least 7.0, which CUDA 11.0 introduced.
fn ptx_version(target: &Target) -> &'static str {
    match target.gpu.map_or(0, |gpu| gpu.capability) {
        0 => "",
        1..=80 => "+ptx70",
        81..=86 => "+ptx71",
        87..=88 => "+ptx74",
        89..=90 => "+ptx80",
        91..=101 => "+ptx86",
        _ => "+ptx87",
    }
}
