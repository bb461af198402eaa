//! The compiler's facade: from a graph and its config, or from HLO, to an object, header, and
//! metadata, or to code in this process.
//!
//! The crate owns the list of passes, the order of the stages, and the choice of a model's reader
//! ([`load()`]), and nothing else. Each stage is a crate that takes the result of the previous
//! stage as a parameter. Only `load` reads files, and nothing writes any.

mod aot_build;
mod back;
mod bindings;
mod check;
mod compiled;
mod counters;
mod device;
mod device_target;
mod entry;
mod front;
mod hlo_program;
mod in_process;
mod load;
mod loadable;
mod named_sizes;
mod open_program;
mod options;
mod pipeline;
mod profile;
mod program_file;
mod sizes;
mod stage;
pub mod tuning;
mod versions;

pub use aot::ProfileCounter;
pub use aot_build::{
    AotOptions, ConstantsFile, Function, Functions, FunctionsOutputs, Outputs, build, build_functions,
};
pub use back::{
    compile_module, compile_optimized, compile_program, compile_with_counters, has_several_modules, optimize,
};
pub use check::{Checked, MAX_PROBLEMS, check, check_program};
pub use codegen::{UnitCache, check_section};
pub use compiled::{Compiled, CountedCode, DeviceCode, MachineCode};
pub use csource::{Vectors as CVectors, plan_target as c_plan_target};
pub use device::serial_kernels;
pub use device_target::{device_kind, device_target};
pub use front::{File, Input, LoopBounds, Source, import, import_bounded, import_for_code};
pub use hlo_program::HloProgram;
pub use import::op_table;
pub use in_process::{Executable, Session, compile_in_process, host, in_process_options};
pub use jit::{Device, DeviceKind, DeviceOperation, DeviceOptions, DeviceRecord};
pub use kernel::{Counter, kernel_name};
pub use load::{foreign, load};
pub use loadable::{Loadable, compile_loadable};
pub use open_program::OpenSizes;
pub use options::{Assembler, BackOptions};
pub use pipeline::{
    PassRun, extraction_pipeline, normalization_pipeline, pipeline, pipeline_for, quantization_pipeline,
    with_size_results,
};
pub use plan::{Candidate, Choices, Options as PlanOptions, Precision, Winograd};
pub use profile::{Span, kind};
pub use sizes::{GPU_HAS_ONE_SIZE, PROFILE_HAS_ONE_SIZE, loop_over_rows};
pub use stage::{Stage, at_stage, portable, scheduled};

use hlo::Module;
use support::{Code, Error, Result};

/// Receives the results of the stages, for example to time or to print them.
pub trait Observer {
    /// Called after each stage and each pass. `detail` returns a description, such as the plan's
    /// text, which is only built if it is called.
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String);

    /// Called with the module after each stage and pass. Clone it to keep it.
    fn module(&mut self, _point: Point<'_>, _module: &Module) {}

    /// Called with the LLVM IR and the assembly, if the options request them.
    fn code(&mut self, _llvm_ir: Option<&str>, _assembly: Option<&str>) {}
}

/// Point in a compilation at which an observer receives the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point<'n> {
    /// After the import, before any pass except those that normalize foreign HLO.
    Imported,
    /// Before the first pass of a pipeline.
    PipelineStart {
        /// Name of the pipeline.
        pipeline: &'n str,
    },
    /// After the last pass of a pipeline.
    PipelineEnd,
    /// After a pass.
    AfterPass {
        /// Name of the pass.
        name: &'n str,
        /// True if it changed the module.
        changed: bool,
    },
    /// After all passes.
    Optimized,
}

/// Observer that does nothing.
pub struct NoObserver;

impl Observer for NoObserver {
    fn ended(&mut self, _stage: &str, _detail: &dyn Fn() -> String) {}
}

/// Size of a compilation's stack, enough for the deepest recursion on bounded inputs. The system
/// commits only the pages that are used.
const STACK_BYTES: usize = 128 << 20;

/// Runs a compilation on its own stack. A panic is a bug in this tool and becomes an internal
/// error.
pub fn guarded<T: Send>(compile: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, compile);
        let worker = worker.map_err(|e| {
            let megabytes = STACK_BYTES >> 20;
            Error::unsupported(format!(
                "cannot start a thread with a stack of {megabytes} MiB ({e}); allow more memory \
                 (ulimit -v) or threads (ulimit -u)"
            ))
            .coded(Code::Resources)
        })?;
        worker.join().unwrap_or_else(|panic| Err(panicked(&*panic)))
    })
}

/// Converts a panic to an internal error.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Error::internal(format!("{text}; this is a defect of tfcompile, please report it with the graph"))
}
