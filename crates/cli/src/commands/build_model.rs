//! `tfcompile build`: from a model to a directory of files.

mod summary;

use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::artifacts::names::{FileNames, class_of, name_of};
use crate::artifacts::observer::Keeper;
use crate::files::depfile;
use crate::files::hlo_formats::{Format, StageName};
use crate::files::linker;
use crate::files::outputs;
use crate::files::outputs::Output;
use crate::program::autotune;
use crate::program::model::read;
use crate::program::model_files;
use crate::report::dump::{Dumper, Watch};
use crate::report::progress::Progress;
use aot::{CHeaderOptions, ConstantsMode, HeaderOptions, Member, RustOptions, SharedLibrary};
use clap::{Args, ValueEnum};
use compiler::{AotOptions, BackOptions};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use support::{Code, Coded as _, Error, Result};

/// `tfcompile build`.
#[derive(Args, Debug)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    back: crate::args::versions::BackArgs,
    #[command(flatten)]
    autotune: crate::args::tuning::AutotuneArgs,
    /// The directory to write to; it is made if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// What the files are called, and the C symbol [default: the model's file name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The class of the C++ header: [[namespace::]...]Class [default: the name in camel case]
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// What to write, joined by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST", default_value = "obj,header")]
    emit: Vec<Emit>,
    /// How far HLO is compiled that --emit writes
    #[arg(long, value_enum, value_name = "STAGE", default_value = "import")]
    hlo_stage: StageName,
    /// Where the weights are: in the object, or in a file that the program maps and may exchange
    #[arg(long, value_enum, value_name = "WHERE", default_value = "embed")]
    constants: Constants,
    /// Put the run-time headers into the C++ header, so that it needs no other
    #[arg(long)]
    standalone_header: bool,
    /// Leave out the directory of headers that the C++ header includes; `tfcompile headers` writes them for all programs
    #[arg(long)]
    no_runtime_headers: bool,
    /// Leave headers and C programs as they are, their times too, if they would not change, so that nothing is built anew that
    /// only includes them
    #[arg(long)]
    keep_unchanged: bool,
    /// Write a rule for Make or Ninja that names the files that were read
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,
    /// Code and a C++ class that need no library, not even C's, and allocate nothing: all memory is in the class's object
    #[arg(long, conflicts_with = "standalone_header")]
    freestanding: bool,
    /// The C compiler that links shared libraries [default: cc, or Debian's cross compiler of the target]
    #[arg(long, value_name = "COMMAND")]
    linker: Option<String>,
}

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Emit {
    /// The object file: code and constants
    Obj,
    /// The C++ header, with the headers that it includes
    Header,
    /// A C header over the same code
    CHeader,
    /// A Rust module over the same code, for crates that depend on tfcompile-runtime; no_std with --freestanding
    Rust,
    /// A static archive of the object
    Archive,
    /// A shared library, made by the system's linker
    Shared,
    /// A program in C that runs the code on zeros and on random data and checks that the results depend on nothing else
    Test,
    /// A program in C that measures how long a run takes
    Benchmark,
    /// Names and shapes for the class's Lookup*Index() and ProgramShape(), and an object with the latter as a
    /// serialised xla.ProgramShapeProto
    Metadata,
    /// The HLO before optimisation, as an xla.HloSnapshot
    SessionModule,
    /// HLO text, which XLA's parser reads
    HloText,
    /// HLO as an xla.HloModuleProto
    HloProto,
    /// StableHLO, as MLIR text
    Stablehlo,
    /// The graph of the HLO for Graphviz
    Dot,
    /// One page that shows the graph in a browser
    Html,
    /// LLVM's IR
    Llvm,
    /// Assembly
    Asm,
}

impl Emit {
    /// The form of HLO that it is.
    fn format(self) -> Option<Format> {
        match self {
            Self::HloText => Some(Format::Text),
            Self::HloProto => Some(Format::Proto),
            Self::Stablehlo => Some(Format::Stablehlo),
            Self::Dot => Some(Format::Dot),
            Self::Html => Some(Format::Html),
            _ => None,
        }
    }
}

/// Where constants are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Constants {
    Embed,
    File,
}

/// Compiles a model, writes its files and says what they are.
pub(crate) fn run(arguments: &Build, xla: &XlaFlags) -> Result<()> {
    if !arguments.model.quiet {
        xla.warn();
    }
    let name = name(arguments)?;
    let class = class(arguments, &name)?;
    let emits = |emit: Emit| arguments.emit.contains(&emit);
    let (target, versions) = arguments.back.targets(&arguments.model)?;
    let triple = target.triple.as_str().to_owned();
    let back = xla.options(BackOptions {
        freestanding: arguments.freestanding,
        plan: arguments.model.plan_options()?,
        llvm_ir: emits(Emit::Llvm),
        assembly: emits(Emit::Asm),
        ..BackOptions::new(target, &name)
    });
    let back = arguments.back.options(back, versions)?;
    // What the metadata object is for at run time; classes without library have no place for it.
    let described = emits(Emit::Metadata) && !arguments.freestanding;
    let options = AotOptions {
        header: HeaderOptions {
            gen_name_to_index: described,
            gen_program_shape: described,
            standalone: arguments.standalone_header,
            freestanding: arguments.freestanding,
        },
        c_header: emits(Emit::CHeader).then(CHeaderOptions::default),
        rust: emits(Emit::Rust).then_some(RustOptions { no_std: arguments.freestanding }),
        test_program: emits(Emit::Test),
        benchmark_program: emits(Emit::Benchmark),
        constants: match arguments.constants {
            Constants::Embed => ConstantsMode::Embed,
            Constants::File => ConstantsMode::File,
        },
        describe_object: true,
        session_module: emits(Emit::SessionModule),
        ..AotOptions::new(class, back)
    };
    let library = SharedLibrary { triple: &triple, entry_point: &name, name: &name };
    let names = FileNames::new(&library)?;
    let linker = match emits(Emit::Shared) {
        true => Some(linker::find(arguments.linker.as_deref(), &triple).coded(Code::WriteFile)?),
        false => None,
    };
    let mut progress = Progress::new(&arguments.model, &name);
    let input = read(&arguments.model, &xla.disabled_passes, &mut progress)?.input;
    let tuning =
        autotune::measure(&arguments.autotune, &input, &options.back, &mut |doing| progress.doing(doing))?;
    let mut options = options;
    if let Some(tuning) = &tuning {
        options.back.plan.choices = tuning.choices.clone();
    }
    let mut dumper = Dumper::new(xla);
    let formats: Vec<Format> = arguments.emit.iter().filter_map(|emit| emit.format()).collect();
    let (made, kept, rendered) = compiler::guarded(|| {
        let mut watch = Watch::new(&mut progress, &mut dumper);
        let mut keeper = Keeper::new(&mut watch, (!formats.is_empty()).then_some(arguments.hlo_stage));
        let made = compiler::build(input, &options, &mut keeper)?;
        let mut kept = keeper.kept();
        let rendered = kept.rendered(&formats, arguments.hlo_stage, &options.back, &made.result_names)?;
        Ok((made, kept, rendered))
    })?;
    dumper.finish()?;
    if let Some(note) = crate::program::autotune::ignored(&made.ignored_choices) {
        progress.note(&note);
    }
    progress.finish();
    let shared = match &linker {
        Some(linker) => {
            Some(linker.link(&library, &made.function_object, &made.metadata_object).coded(Code::WriteFile)?)
        }
        None => None,
    };
    let archive = match emits(Emit::Archive) {
        true => Some(aot::archive(&[Member { name: &names.object, object: &made.function_object }])?),
        false => None,
    };
    let mut files = Files { directory: &arguments.output, outputs: Vec::new() };
    if emits(Emit::Obj) {
        files.add(&names.object, vec![Cow::Borrowed(&made.function_object)]);
    }
    if emits(Emit::Header) {
        files.add(&format!("{name}.h"), vec![Cow::Borrowed(made.header.as_bytes())]);
    }
    if let Some(c_header) = &made.c_header {
        files.add(&format!("{name}_c.h"), vec![Cow::Borrowed(c_header.as_bytes())]);
    }
    if let Some(rust) = &made.rust {
        files.add(&format!("{name}.rs"), vec![Cow::Borrowed(rust.as_bytes())]);
    }
    for (program, suffix) in [(&made.test_program, "test"), (&made.benchmark_program, "benchmark")] {
        if let Some(program) = program {
            files.add(&format!("{name}_{suffix}.c"), vec![Cow::Borrowed(program.as_bytes())]);
        }
    }
    if let Some(archive) = &archive {
        files.add(&names.archive, vec![Cow::Borrowed(archive)]);
    }
    if let Some(shared) = &shared {
        files.add(&names.shared, vec![Cow::Borrowed(shared)]);
    }
    if emits(Emit::Metadata) {
        files.add(&names.metadata, vec![Cow::Borrowed(&made.metadata_object)]);
    }
    if let Some(snapshot) = &made.session_module {
        files.add(&format!("{name}.hlo_snapshot.pb"), vec![Cow::Borrowed(snapshot)]);
    }
    for (format, bytes) in &rendered {
        files.add(&format!("{name}.{}", format.suffix()), vec![Cow::Borrowed(bytes)]);
    }
    for (text, suffix) in [(&kept.llvm_ir, "ll"), (&kept.assembly, "s")] {
        if let Some(text) = text {
            files.add(&format!("{name}.{suffix}"), vec![Cow::Borrowed(text.as_bytes())]);
        }
    }
    if let Some(constants) = &made.constants_file {
        files.add(&format!("{name}.constants"), constants.parts()?);
    }
    let table = tuning.as_ref().map(crate::program::autotune::Tuning::table).transpose()?;
    if let (Some(tuning), Some(table)) = (&tuning, &table) {
        let path = tuning.path.clone();
        files.outputs.push(Output { path, parts: vec![Cow::Borrowed(table.as_bytes())] });
    }
    let rule = match &arguments.depfile {
        Some(_) => {
            let read: Vec<&Path> = arguments.model.tuning.file().into_iter().collect();
            Some(depfile::rule(&files.outputs, &model_files::inputs(&arguments.model, &read)?)?)
        }
        None => None,
    };
    if let (Some(path), Some(rule)) = (&arguments.depfile, &rule) {
        files.outputs.push(Output { path: path.clone(), parts: vec![Cow::Borrowed(rule.as_bytes())] });
    }
    let listed = files.outputs.len();
    if needs_headers(arguments) {
        for (path, contents) in aot::runtime_headers() {
            files.add(&format!("include/{path}"), vec![Cow::Borrowed(contents.as_bytes())]);
        }
    }
    outputs::create_directories(&files.outputs)?;
    match arguments.keep_unchanged {
        true => outputs::write_changed(&files.outputs, &["h", "c", "rs"])?,
        false => outputs::write(&files.outputs)?,
    }
    if !arguments.model.quiet {
        let measured = tuning.as_ref().map(|tuning| tuning.report(arguments.model.verbose));
        let mut hints = measured.unwrap_or_default() + &summary::link_line(arguments, &names, &triple);
        if made.constants_file.is_some() {
            hints += &format!(
                "weights: the program loads them from {}.constants, see the header\n",
                names.program
            );
        }
        outputs::print(&summary::summary(&files.outputs, listed, &hints))?;
    }
    Ok(())
}

/// The files to write.
struct Files<'a> {
    directory: &'a Path,
    outputs: Vec<Output<'a>>,
}

impl<'a> Files<'a> {
    fn add(&mut self, name: &str, parts: Vec<Cow<'a, [u8]>>) {
        self.outputs.push(Output { path: self.directory.join(name), parts });
    }
}

/// The name of the program: that of the flag, or of the model.
fn name(arguments: &Build) -> Result<String> {
    let name = arguments.name.clone().unwrap_or_else(|| name_of(&arguments.model.model));
    aot::validate_entry_point(&name).map_err(|e| {
        Error::invalid(format!("the name of the program (--name): {}", e.message())).coded(Code::OutputName)
    })?;
    Ok(name)
}

/// The class: that of the flag, or the program's name in camel case, which differs from the name of its function.
fn class(arguments: &Build, name: &str) -> Result<String> {
    let class = match &arguments.class {
        Some(class) => class.clone(),
        None => class_of(name),
    };
    match aot::parse_cpp_class(&class) {
        Ok(_) => Ok(class),
        Err(_) if class.is_empty() => Err(Error::invalid("--class is empty: name a class, or leave it out")),
        Err(e) => Err(Error::invalid(format!("the class of the header (--class): {}", e.message()))
            .coded(Code::OutputName)),
    }
}

/// Whether the headers that the C++ header includes are written beside it.
fn needs_headers(arguments: &Build) -> bool {
    let left_out = arguments.no_runtime_headers || arguments.standalone_header || arguments.freestanding;
    arguments.emit.contains(&Emit::Header) && !left_out
}
