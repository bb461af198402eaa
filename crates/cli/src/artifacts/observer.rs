//! The files of `build --emit` that are not code to link: HLO in its forms, LLVM's IR, assembly.

use crate::artifacts::kind::Kind;
use crate::files::hlo_formats::{Format, StageName, Surroundings, render};
use compiler::{BackOptions, NoObserver, Observer, Point, Stage};
use hlo::Module;
use support::{Error, Result};

/// Keeps what is to be written while a compilation goes by.
pub(crate) struct Keeper<'a> {
    inner: &'a mut dyn Observer,
    stage: Option<Stage>,
    kept: Kept,
}

/// What was seen.
#[derive(Default)]
pub(crate) struct Kept {
    module: Option<Module>,
    /// LLVM's IR.
    pub(crate) llvm_ir: Option<String>,
    /// Assembly.
    pub(crate) assembly: Option<String>,
}

impl<'a> Keeper<'a> {
    /// Shows a compilation to another observer too, and keeps the module of a stage, if one is wanted: a module that is kept
    /// keeps its constants in memory.
    pub(crate) fn new(inner: &'a mut dyn Observer, stage: Option<StageName>) -> Self {
        Self { inner, stage: stage.map(StageName::stage), kept: Kept::default() }
    }

    /// What was kept.
    pub(crate) fn kept(self) -> Kept {
        self.kept
    }
}

impl Observer for Keeper<'_> {
    fn ended(&mut self, stage: &str, detail: &dyn Fn() -> String) {
        self.inner.ended(stage, detail);
    }

    fn module(&mut self, point: Point<'_>, module: &Module) {
        self.inner.module(point, module);
        let wanted = match self.stage {
            None => return,
            Some(Stage::Import) => Point::Imported,
            // The order is found from the module as it is optimised.
            Some(Stage::Optimized | Stage::Scheduled) => Point::Optimized,
        };
        if point == wanted {
            self.kept.module = Some(module.clone());
        }
    }

    fn code(&mut self, llvm_ir: Option<&str>, assembly: Option<&str>) {
        self.inner.code(llvm_ir, assembly);
        self.kept.llvm_ir = llvm_ir.map(str::to_owned);
        self.kept.assembly = assembly.map(str::to_owned);
    }
}

impl Kept {
    /// The module in the forms that are among these kinds.
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
        let module = self.module.take().ok_or_else(|| Error::internal("the module was never seen"))?;
        let module = match stage {
            // Its passes have run.
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
