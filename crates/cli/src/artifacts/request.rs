//! One build: the kinds of files to generate, the options, and the generated files.

use crate::args::tuning::AutotuneArgs;
use crate::artifacts::kind::Kind;
use crate::artifacts::names::FileNames;
use crate::artifacts::observer::Recorder;
use crate::files::hlo_formats::StageName;
use crate::files::linker::Linker;
use crate::files::outputs::Output;
use crate::program::autotune::{self, Tuning};
use crate::report::Reporter;
use crate::report::dump::{Dumper, Watch};
use aot::{CHeaderOptions, Member, RustOptions};
use compiler::{AotOptions, ConstantsFile, Input, Outputs};
use std::path::PathBuf;
use support::{Code, Coded as _, Result};

/// Build that the flags describe.
pub(crate) struct Request {
    kinds: Vec<Kind>,
    options: AotOptions,
    /// Stage at which HLO is written.
    pub(crate) hlo_stage: StageName,
    pub(crate) autotune: AutotuneArgs,
    /// Linker for [`Kind::Shared`].
    pub(crate) linker: Option<Linker>,
}

/// File of a build.
struct Emission {
    kind: Kind,
    content: Content,
}

enum Content {
    Bytes(Vec<u8>),
    /// Constants in pieces, which may be too large to hold in memory twice.
    Constants(ConstantsFile),
}

/// Files of a build.
pub(crate) struct Artifacts {
    emissions: Vec<Emission>,
    /// Measured choices of tuning, if any.
    pub(crate) tuning: Option<Tuning>,
}

impl Request {
    /// Creates a build of these kinds of files. It sets the fields of `options` that select them.
    pub(crate) fn new(kinds: Vec<Kind>, mut options: AotOptions) -> Self {
        let has = |kind: Kind| kinds.contains(&kind);
        let no_std = options.header.freestanding;
        options.c_header = has(Kind::CHeader).then(CHeaderOptions::default);
        options.rust = has(Kind::Rust).then_some(RustOptions { no_std });
        options.web = has(Kind::Wasm).then(|| options.back.entry_point.clone());
        options.test_program = has(Kind::Test);
        options.benchmark_program = has(Kind::Benchmark);
        options.session_module = has(Kind::SessionModule);
        options.back.llvm_ir = has(Kind::Llvm);
        options.back.assembly = has(Kind::Asm);
        let autotune = AutotuneArgs::default();
        Self { kinds, options, hlo_stage: StageName::Import, autotune, linker: None }
    }

    /// Names of the files.
    pub(crate) fn names(&self) -> Result<FileNames> {
        FileNames::new(&self.options.back.entry_point, self.options.back.target.triple.as_str())
    }

    fn has(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// Compiles a model. The dumper has already observed its import from HLO or StableHLO.
    pub(crate) fn make(
        mut self,
        input: Input,
        reporter: &mut dyn Reporter,
        mut dumper: Dumper,
    ) -> Result<Artifacts> {
        let mut doing = |text: &str, done, total| reporter.doing(text, done, total);
        let tuning = autotune::measure(&self.autotune, &input, &self.options.back, &mut doing)?;
        if let Some(tuning) = &tuning {
            self.options.back.plan.choices = tuning.choices.clone();
        }
        let (outputs, texts) = compiler::guarded(|| {
            let mut watch = Watch::new(reporter, &mut dumper);
            let is_rendered = self.kinds.iter().any(|kind| kind.format().is_some());
            let mut recorder = Recorder::new(&mut watch, is_rendered.then_some(self.hlo_stage));
            let outputs = compiler::build(input, &self.options, &mut recorder)?;
            let mut recorded = recorder.recorded();
            let mut texts =
                recorded.rendered(&self.kinds, self.hlo_stage, &self.options.back, &outputs.result_names)?;
            texts.extend(recorded.llvm_ir.map(|text| (Kind::Llvm, text.into_bytes())));
            texts.extend(recorded.assembly.map(|text| (Kind::Asm, text.into_bytes())));
            Ok((outputs, texts))
        })?;
        dumper.finish()?;
        if let Some(note) = autotune::ignored(&outputs.ignored_choices) {
            reporter.note(&note);
        }
        reporter.compiled();
        Ok(Artifacts { emissions: self.emissions(outputs, texts)?, tuning })
    }

    /// Files of the requested kinds, and the constants file if there is one.
    fn emissions(&self, build: Outputs, texts: Vec<(Kind, Vec<u8>)>) -> Result<Vec<Emission>> {
        let shared = match &self.linker {
            Some(linker) => {
                let names = self.names()?;
                let library = names.library(!self.options.back.devices.is_empty());
                let library = linker.link(&library, &build.function_object, &build.metadata_object);
                Some(library.coded(Code::WriteFile)?)
            }
            None => None,
        };
        let archive = if self.has(Kind::Archive) {
            let name = self.names()?.of(Kind::Obj);
            Some(aot::archive(&[Member { name: &name, object: &build.function_object }])?)
        } else {
            None
        };
        let empty = if self.has(Kind::EmptyObject) {
            Some(aot::empty_object(self.options.back.target.triple.as_str())?)
        } else {
            None
        };
        let (wasm, js, declarations) = match build.web {
            Some(web) => (Some(web.wasm), Some(web.js), Some(web.declarations)),
            None => (None, None, None),
        };
        let (kernels, launches) = match build.opencl.filter(|_| self.has(Kind::OpenCl)) {
            Some(files) => (Some(files.kernels), Some(files.launches)),
            None => (None, None),
        };
        let files = [
            (Kind::OpenCl, kernels.map(String::into_bytes)),
            (Kind::Launches, launches.map(String::into_bytes)),
            (Kind::Wasm, wasm),
            (Kind::JavaScript, js.map(String::into_bytes)),
            (Kind::Declarations, declarations.map(String::into_bytes)),
            (Kind::Obj, self.has(Kind::Obj).then_some(build.function_object.clone())),
            (Kind::C, self.has(Kind::C).then_some(build.function_object)),
            (Kind::Header, self.has(Kind::Header).then(|| build.header.into_bytes())),
            (Kind::CHeader, build.c_header.map(String::into_bytes)),
            (Kind::Rust, build.rust.map(String::into_bytes)),
            (Kind::Test, build.test_program.map(String::into_bytes)),
            (Kind::Benchmark, build.benchmark_program.map(String::into_bytes)),
            (Kind::Archive, archive),
            (Kind::Shared, shared),
            (Kind::Metadata, self.has(Kind::Metadata).then_some(build.metadata_object)),
            (Kind::SessionModule, build.session_module),
            (Kind::EmptyObject, empty),
        ];
        let files = files.into_iter().filter_map(|(kind, bytes)| Some((kind, bytes?))).chain(texts);
        let emission = |(kind, bytes)| Emission { kind, content: Content::Bytes(bytes) };
        let constants = build
            .constants_file
            .map(|file| Emission { kind: Kind::Constants, content: Content::Constants(file) });
        Ok(files.map(emission).chain(constants).collect())
    }
}

impl Artifacts {
    /// True if the build has a file of this kind.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.emissions.iter().any(|emission| emission.kind == kind)
    }

    /// The files with their paths, and the tuning file if choices were measured.
    pub(crate) fn outputs(&self, path_of: impl Fn(Kind) -> PathBuf) -> Result<Vec<Output<'_>>> {
        let mut outputs = Vec::new();
        for Emission { kind, content } in &self.emissions {
            let parts = match content {
                Content::Bytes(bytes) => vec![bytes.as_slice().into()],
                Content::Constants(file) => file.parts()?,
            };
            outputs.push(Output { path: path_of(*kind), parts });
        }
        if let Some(tuning) = &self.tuning {
            let table = tuning.table()?.into_bytes();
            outputs.push(Output { path: tuning.path.clone(), parts: vec![table.into()] });
        }
        Ok(outputs)
    }
}
