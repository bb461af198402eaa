//! Files of `build --emit` that are not linked: HLO in its formats, LLVM IR, and assembly.

use crate::artifacts::kind::Kind;
use crate::files::hlo_formats::{Format, StageName, Surroundings, render};
use compiler::{BackOptions, NoObserver, Observer, Point, Stage};
use hlo::Module;
use support::{Error, Result};

/// Observer that keeps the module and the code for the files of the build.
pub(crate) struct Recorder<'a> {
    inner: &'a mut dyn Observer,
    stage: Option<Stage>,
    recorded: Recorded,
}

/// Parts of a compilation that were kept.
#[derive(Default)]
pub(crate) struct Recorded {
    module: Option<Module>,
    /// LLVM IR.
    pub(crate) llvm_ir: Option<String>,
    /// Assembly.
    pub(crate) assembly: Option<String>,
}

impl<'a> Recorder<'a> {
    /// Passes a compilation on to another observer, and keeps the module at a stage if one is
    /// named. A kept module keeps its constants in memory.
    pub(crate) fn new(inner: &'a mut dyn Observer, stage: Option<StageName>) -> Self {
        Self { inner, stage: stage.map(StageName::stage), recorded: Recorded::default() }
    }

    /// Returns the recorded parts.
    pub(crate) fn recorded(self) -> Recorded {
        self.recorded
    }
}

impl Observer for Recorder<'_> {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        self.inner.ended(stage, detail);
    }

    fn module(&mut self, point: Point<'_>, module: &Module) {
        self.inner.module(point, module);
        let recorded_point = match self.stage {
            None => return,
            Some(Stage::Import) => Point::Imported,
            // The schedule is computed from the optimized module.
            Some(Stage::Optimized | Stage::Scheduled) => Point::Optimized,
        };
        if point == recorded_point {
            self.recorded.module = Some(module.clone());
        }
    }

    fn code(&mut self, llvm_ir: Option<&str>, assembly: Option<&str>) {
        self.inner.code(llvm_ir, assembly);
        self.recorded.llvm_ir = llvm_ir.map(str::to_owned);
        self.recorded.assembly = assembly.map(str::to_owned);
    }
}

impl Recorded {
    /// Renders the module in each HLO format among these kinds.
    pub(crate) fn rendered(
        &mut self,
        kinds: &[Kind],
        stage: StageName,
        back: &BackOptions,
        result_names: &[String],
    ) -> Result<Vec<(Kind, Vec<u8>)>> {
        let formats: Vec<(Kind, Format)> =
            kinds.iter().filter_map(|kind| Some((*kind, kind.format()?))).collect();
        if formats.is_empty() {
            return Ok(Vec::new());
        }
        let module = self
            .module
            .take()
            .ok_or_else(|| Error::internal("the observer received no module for the requested stage"))?;
        let module = match stage {
            // The module is already optimized.
            StageName::Scheduled => compiler::scheduled(module, back, &mut NoObserver)?,
            StageName::Import | StageName::Optimized => module,
        };
        let with = Surroundings {
            is_scheduled: stage == StageName::Scheduled,
            result_names: result_names.to_vec(),
            ..Surroundings::default()
        };
        formats.iter().map(|&(kind, format)| Ok((kind, render(&module, format, &with)?))).collect()
    }
}
