//! Compilation for GPUs: one plan, an image for each architecture, and the host's object.

use crate::Observer;
use crate::compiled::{DeviceCode, MachineCode, OpenClFiles};
use crate::options::{Assembler, BackOptions};
use buffers::{ConstantsBlock, ConstantsPool};
use codegen::{CodegenOptions, DeviceImage, DeviceMemory, ImageKind};
use hlo::{Interface, Module};
use nest::launch::DeviceProgram;
use support::{Code, Coded as _, Error, Id as _, Result};
use target::Target;

/// Compiles an optimized module for the devices of the options. Also returns its constants.
///
/// The plan is that of the first device, the least capable one, so that all images have the same
/// kernels and the host has one list of launches.
pub(crate) fn compile(
    module: &Module,
    options: &BackOptions,
    observer: &mut dyn Observer,
) -> Result<(MachineCode, ConstantsBlock)> {
    check_options(options)?;
    let first = options.devices.first().ok_or_else(|| Error::internal("no device to compile for"))?;
    let plan = plan::plan_with(module, first, &options.plan).coded(Code::UnsupportedHlo)?;
    observer.ended("plan", &|| plan.to_text(module));
    let schedule = buffers::schedule(module, &plan);
    let mut pool = ConstantsPool::default();
    let assignment = buffers::assign(module, &plan, &schedule, &mut pool)?;
    buffers::check(module, &plan, &schedule, &assignment)?;
    observer.ended("buffers", &|| assignment.to_text(module, pool.size()));
    let program =
        kernel::lower_device(module, &plan, &schedule, &assignment, first).coded(Code::UnsupportedHlo)?;
    observer.ended("kernel", &|| program.kernels.to_string());
    let images = options
        .devices
        .iter()
        .map(|device| image(&program, device, options))
        .collect::<Result<Vec<DeviceImage>>>()?;
    if options.llvm_ir || options.assembly {
        let assembly = options.assembly.then(|| text_of(&images));
        let llvm_ir = images.iter().filter_map(|image| image.llvm_ir.clone()).collect::<Vec<_>>().concat();
        observer.code(options.llvm_ir.then_some(llvm_ir.as_str()), assembly.as_deref());
    }
    let images = match &options.assembler {
        Some(assembler) => assembled(images, &**assembler)?,
        None => images,
    };
    let constants = pool.finish();
    let memory = memory(module, &assignment, constants.size)?;
    let opencl = opencl_files(&program, &images, &memory, &options.entry_point);
    let blob = codegen::bundle(&program, &images, &memory, &options.entry_point)?;
    let code_options = CodegenOptions::new(&options.entry_point);
    let embedded = if options.embed_constants { constants.clone() } else { ConstantsBlock::default() };
    let output =
        codegen::compile_device_entry(&blob, &options.target, &code_options, embedded.size, embedded.chunks)?;
    observer.ended("codegen", &|| {
        format!("{} bytes of object, {} kernels", output.object.len(), program.kernels.functions.len())
    });
    let kernels = program.kernels.functions.values().map(|f| f.name.clone()).collect();
    let code = MachineCode {
        sizes: Vec::new(),
        plan,
        assignment,
        kernels,
        counters: Vec::new(),
        counted: Vec::new(),
        variants: Vec::new(),
        output,
        device: Some(DeviceCode { program, binary: blob, opencl }),
    };
    Ok((code, constants))
}

/// Compiles the kernels of a program for a device.
fn image(program: &DeviceProgram, device: &Target, options: &BackOptions) -> Result<DeviceImage> {
    if !device.is_opencl_c() {
        return codegen::compile_kernels(program, device, options.llvm_ir);
    }
    let text = csource::write_kernels(program, &symbols(program), &options.entry_point)?;
    Ok(DeviceImage {
        kind: ImageKind::OpenClC,
        architecture: String::new(),
        bytes: text.into_bytes(),
        llvm_ir: None,
    })
}

/// The names of the kernels.
fn symbols(program: &DeviceProgram) -> Vec<String> {
    let functions = program.kernels.functions.iter();
    functions.map(|(id, function)| codegen::kernel_symbol(id.index(), &function.name)).collect()
}

/// The image in OpenCL C, if there is one, and its launches.
fn opencl_files(
    program: &DeviceProgram,
    images: &[DeviceImage],
    memory: &DeviceMemory,
    name: &str,
) -> Option<OpenClFiles> {
    let image = images.iter().find(|image| image.kind == ImageKind::OpenClC)?;
    let blocks = csource::Blocks {
        arguments: memory.arguments.iter().map(|&(bytes, _)| bytes).collect(),
        results: memory.results.iter().map(|&(bytes, _)| bytes).collect(),
        sizes: memory.sizes,
        temps: memory.temps,
        persistent: memory.persistent,
        constants: memory.constants,
    };
    Some(OpenClFiles {
        kernels: String::from_utf8_lossy(&image.bytes).into_owned(),
        launches: csource::write_launches(program, &symbols(program), name, &blocks),
    })
}

/// Rejects options that have no meaning for a device.
fn check_options(options: &BackOptions) -> Result<()> {
    let refused = [
        (options.freestanding, "--freestanding: the host part calls the device's driver"),
        (options.sanitize.is_some(), "--sanitize: use compute-sanitizer on the program instead"),
        (options.is_profiled, "counters of a profile: the driver measures the kernels instead"),
        (!options.variants.is_empty(), "several versions for processors"),
    ];
    match refused.into_iter().find(|(is_set, _)| *is_set) {
        Some((_, what)) => Err(Error::invalid(format!("a program of a device does not support {what}"))),
        None => Ok(()),
    }
}

/// Returns the machine code of all images, and the PTX of the first one for later GPUs.
fn assembled(images: Vec<DeviceImage>, assembler: &dyn Assembler) -> Result<Vec<DeviceImage>> {
    let assemble = |image: &DeviceImage| {
        let bytes = assembler.assemble(&image.bytes, &image.architecture)?;
        let architecture = image.architecture.clone();
        Ok(DeviceImage { kind: ImageKind::Cubin, architecture, bytes, llvm_ir: None })
    };
    let mut all = images.iter().map(assemble).collect::<Result<Vec<_>>>()?;
    all.extend(images.into_iter().next());
    Ok(all)
}

/// Returns the text of all images that have one.
fn text_of(images: &[DeviceImage]) -> String {
    images
        .iter()
        .filter(|image| matches!(image.kind, ImageKind::Ptx | ImageKind::OpenClC))
        .map(|image| String::from_utf8_lossy(&image.bytes).into_owned())
        .collect::<Vec<_>>()
        .join("\n")
}

fn memory(module: &Module, assignment: &buffers::BufferAssignment, constants: u64) -> Result<DeviceMemory> {
    let interface = Interface::of_module(module)?;
    let is_written = |k: usize| interface.results().iter().any(|result| result.alias == Some(k));
    let arguments = interface.arguments().iter().enumerate();
    Ok(DeviceMemory {
        arguments: arguments.map(|(k, a)| (a.shape.byte_size(), is_written(k))).collect(),
        results: interface.results().iter().map(|r| (r.whole().byte_size(), r.alias)).collect(),
        sizes: interface.size_count(),
        temps: assignment.temps_size,
        persistent: assignment.persistent_size,
        constants,
    })
}

/// Returns the kernels that run as one thread although they have much work.
pub fn serial_kernels(program: &DeviceProgram) -> Vec<&str> {
    program.facts.iter().filter(|facts| facts.is_serial).map(|facts| facts.label.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fake;

    impl Assembler for Fake {
        fn assemble(&self, ptx: &[u8], architecture: &str) -> Result<Vec<u8>> {
            Ok([architecture.as_bytes(), ptx].concat())
        }
    }

    #[test]
    fn machine_code_precedes_the_first_ptx() {
        let image = |architecture: &str| DeviceImage {
            kind: ImageKind::Ptx,
            architecture: architecture.to_owned(),
            bytes: b" code".to_vec(),
            llvm_ir: None,
        };
        let images = assembled(vec![image("sm_80"), image("sm_90a")], &Fake).expect("images");
        let facts: Vec<_> = images.iter().map(|i| (i.kind, i.architecture.as_str(), &i.bytes[..])).collect();
        assert_eq!(
            facts,
            [
                (ImageKind::Cubin, "sm_80", &b"sm_80 code"[..]),
                (ImageKind::Cubin, "sm_90a", b"sm_90a code"),
                (ImageKind::Ptx, "sm_80", b" code"),
            ]
        );
    }
}
