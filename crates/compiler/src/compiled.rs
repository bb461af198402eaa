//! Compiled modules.

use aot::{ProfileCounter, SizeFacts};
use buffers::{BufferAssignment, ConstantsBlock};
use codegen::CompiledModule;
use hlo::Module;
use jit::Device;
use kernel::Counter;
use nest::launch::DeviceProgram;
use plan::ModulePlan;
use target::Target;

/// A compiled module.
#[derive(Debug)]
pub struct Compiled {
    /// Optimized HLO. Of a program in pieces, the HLO for all sizes before any pass.
    pub module: Module,
    /// Options of the plan.
    pub plan_options: plan::Options,
    /// Constants of all versions.
    pub constants: ConstantsBlock,
    /// Generated code.
    pub code: MachineCode,
    /// The open device that runs the code; `None` for the processor.
    pub open_device: Option<Device>,
}

/// The code of a compiled module with counters.
#[derive(Debug)]
pub struct CountedCode {
    /// Object file.
    pub object: Vec<u8>,
    /// The counters.
    pub counters: Vec<ProfileCounter>,
    /// Instructions that they measure.
    pub counted: Vec<Counter>,
}

/// Code of a module, and its use of memory.
#[derive(Debug)]
pub struct MachineCode {
    /// Plan of the first version.
    pub plan: ModulePlan,
    /// Buffer assignment of the first version. Its sizes are large enough for every version.
    pub assignment: BufferAssignment,
    /// Names of the kernels, in the order of their code.
    pub kernels: Vec<String>,
    /// The sizes with code of their own.
    pub sizes: Vec<SizeFacts>,
    /// Counters of the code; empty unless it is profiled.
    pub counters: Vec<ProfileCounter>,
    /// Instructions that the counters measure.
    pub counted: Vec<Counter>,
    /// Targets and plans of the other versions, in the order of `BackOptions::variants`.
    pub variants: Vec<(Target, ModulePlan)>,
    /// Object file.
    pub output: CompiledModule,
    /// Device part of the object, if a device runs the program.
    pub device: Option<DeviceCode>,
}

/// A device program as text.
#[derive(Clone, Debug)]
pub struct OpenClFiles {
    /// The kernels in OpenCL C.
    pub kernels: String,
    /// A header of C with the memory and the launches of the kernels.
    pub launches: String,
}

/// A program of a device.
#[derive(Debug)]
pub struct DeviceCode {
    /// Kernels and the steps of the host.
    pub program: DeviceProgram,
    /// The program and its images in their binary form.
    pub binary: Vec<u8>,
    /// The kernels in OpenCL C, if a device takes it, and the steps of the host as a header of C.
    pub opencl: Option<OpenClFiles>,
}
