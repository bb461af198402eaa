//! The façade: from a graph and its config, or HLO, to object, header and metadata, or to code in this process.
//!
//! Owns the list of passes and the order of the stages, and nothing else: each stage is a crate, and takes the previous
//! one's result as a parameter. No file is read or written here.

mod aot_build;
mod back;
mod check;
mod counters;
mod front;
mod hlo_program;
mod in_process;
mod loadable;
mod pipeline;
mod profile;
mod program_file;
mod stage;
pub mod tuning;

pub use aot::ProfileCounter;
pub use aot_build::{AotOptions, ConstantsFile, Outputs, build};
pub use back::{BackOptions, Compiled, MachineCode, compile_module, compile_optimized, optimize};
pub use check::{Checked, MAX_PROBLEMS, check, check_program};
pub use codegen::UnitCache;
pub use front::{File, Input, LoopBounds, Source, import, import_bounded};
pub use hlo_program::HloProgram;
pub use import::op_table;
pub use in_process::{Executable, Session, compile_in_process, host, in_process_options};
pub use kernel::Counter;
pub use loadable::{Loadable, compile_loadable};
pub use pipeline::{
    PassRun, extraction_pipeline, normalization_pipeline, pipeline, pipeline_for, with_size_results,
};
pub use plan::{Candidate, Choices, Options as PlanOptions, Winograd};
pub use profile::{Span, kind};
pub use stage::{Stage, at_stage, portable, scheduled};

use hlo::Module;
use support::{Error, Result};

/// Sees the stages go by, to time or to print them.
pub trait Observer {
    /// A stage or a pass has ended; `detail` is what there is to say of it, such as the plan's text, made only if asked.
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String);

    /// A module on its way; who wants more than to look clones it.
    fn module(&mut self, _point: Point<'_>, _module: &Module) {}

    /// LLVM's IR and assembly, if the options asked for them.
    fn code(&mut self, _llvm_ir: Option<&str>, _assembly: Option<&str>) {}
}

/// Where a module is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point<'n> {
    /// As it was imported, before any pass but those that normalize foreign HLO.
    Imported,
    /// Before the first pass of a pipeline.
    PipelineStart {
        /// The name of the passes together.
        pipeline: &'n str,
    },
    /// After the last pass of a pipeline.
    PipelineEnd,
    /// After a pass.
    AfterPass {
        /// The pass.
        name: &'n str,
        /// Whether it changed anything.
        changed: bool,
    },
    /// After all passes.
    Optimized,
}

/// Sees nothing.
pub struct NoObserver;

impl Observer for NoObserver {
    fn ended(&mut self, _stage: &str, _detail: &dyn Fn() -> String) {}
}

/// Enough for the deepest recursion that bounded inputs cause; only what is touched is ever committed.
const STACK_BYTES: usize = 128 << 20;

/// Runs a compilation on a stack of its own. A panic in it is a defect of this tool, and becomes an error that says so.
pub fn guarded<T: Send>(compile: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, compile);
        let worker = worker.map_err(|e| Error::internal(format!("cannot start a thread: {e}")))?;
        worker.join().unwrap_or_else(|panic| Err(panicked(&*panic)))
    })
}

/// What a panic says, as the error of a defect of this tool.
pub fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    Error::internal(format!("{text}; this is a defect of tfcompile, please report it with the graph"))
}
