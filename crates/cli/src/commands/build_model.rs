//! `tfcompile build`: compiles a model into a directory of files.

mod c_source;
mod functions;
mod opencl;
mod section;
mod summary;

use crate::args::model::ModelArgs;
use crate::args::quantization::{QuantizationArgs, SchemeName};
use crate::args::xla_flags::XlaFlags;
use crate::artifacts::kind::Kind;
use crate::artifacts::names::{class_of, name_of};
use crate::artifacts::request::Request;
use crate::files::hlo_formats::StageName;
use crate::files::outputs::{self, Output};
use crate::files::{depfile, linker};
use crate::program::model::{Read, read};
use crate::program::model_files;
use crate::program::quantized::{find_layers, quantize};
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use aot::{ConstantsMode, HeaderOptions};
use clap::{Args, ValueEnum};
use compiler::{AotOptions, BackOptions, Input};
use std::path::PathBuf;
use support::{Code, Coded as _, Error, Result};
use target::Architecture;

/// `tfcompile build`.
#[derive(Args, Debug)]
pub(crate) struct Build {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    back: crate::args::versions::BackArgs,
    #[command(flatten)]
    autotune: crate::args::tuning::AutotuneArgs,
    /// Quantize the model's layers first, as `tfcompile quantize` does
    #[arg(long, value_enum, value_name = "SCHEME")]
    quantize: Option<SchemeName>,
    #[command(flatten)]
    quantization: QuantizationArgs,
    /// Directory to write to, created if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    output: PathBuf,
    /// Base name of the files, and the C symbol of the program [default: the model's file name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Class that the C++ header defines: [[namespace::]...]Class [default: the name in camel case]
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Files to write, joined by commas [default: obj,header; for WebAssembly: wasm]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    emit: Vec<Kind>,
    /// Stage of the HLO that --emit writes
    #[arg(long, value_enum, value_name = "STAGE", default_value = "import")]
    hlo_stage: StageName,
    /// Vectors of --emit=c: gcc for those of GCC 12 and Clang, or none for C11 without extensions
    /// [default: gcc; for Cortex-M55: none]
    #[arg(long, value_enum, value_name = "KIND", hide_possible_values = true)]
    c_vectors: Option<c_source::VectorsName>,
    /// Place of the weights: embed for the object, or file for one that the program maps and can
    /// replace [default: embed]
    #[arg(long, value_enum, value_name = "WHERE", default_value = "embed", hide_possible_values = true)]
    #[arg(hide_default_value = true)]
    constants: Constants,
    /// Section of the object for the weights, such as .flash_weights, which a linker script places
    #[arg(long, value_name = "NAME")]
    constants_section: Option<String>,
    /// Include the run-time headers in the C++ header, so that it needs no others
    #[arg(long)]
    standalone_header: bool,
    /// Omit the directory of headers that the C++ header includes; `tfcompile headers` writes them
    /// once for all programs
    #[arg(long)]
    no_runtime_headers: bool,
    /// Leave headers and C programs untouched if they would not change, so that their timestamps
    /// trigger no rebuilds
    #[arg(long)]
    keep_unchanged: bool,
    /// Write a rule for Make or Ninja that names the files that the build reads
    #[arg(long, value_name = "FILE")]
    depfile: Option<PathBuf>,
    /// Generate code and a C++ class that need no library, not even C's, and allocate nothing: all
    /// memory is part of the object of the class [default for microcontrollers]
    #[arg(long, conflicts_with = "standalone_header")]
    freestanding: bool,
    /// C compiler that links shared libraries [default: cc, or Debian's cross compiler for the
    /// target]
    #[arg(long, value_name = "COMMAND")]
    linker: Option<String>,
}

impl Build {
    /// Kinds of the files to write.
    fn kinds(&self) -> Vec<Kind> {
        if !self.emit.is_empty() {
            return self.emit.clone();
        }
        let target = self.model.target("");
        let is_wasm = target.is_ok_and(|target| target.triple.architecture == Architecture::Wasm32);
        if is_wasm { vec![Kind::Wasm] } else { vec![Kind::Obj, Kind::Header] }
    }

    /// True if files of this kind are written.
    fn emits(&self, kind: Kind) -> bool {
        self.kinds().contains(&kind)
    }
}

/// Place of the constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Constants {
    Embed,
    File,
}

/// Compiles a model, writes its files, and lists them.
pub(crate) fn run(mut arguments: Build, xla: &XlaFlags) -> Result<()> {
    if !arguments.model.quiet {
        xla.warn();
    }
    match arguments.quantize {
        Some(scheme) => arguments.quantization.options(scheme).map(|_| ())?,
        None => arguments.quantization.refuse()?,
    }
    let name = name(&arguments)?;
    opencl::select(&mut arguments)?;
    c_source::check(&arguments)?;
    section::check(&arguments)?;
    if xla.is_profiled {
        arguments.model.inference.refuse_sizes(compiler::PROFILE_HAS_ONE_SIZE)?;
    }
    if let Some(signatures) = functions::signatures(&arguments.model) {
        return functions::run(&arguments, &name, &signatures, xla);
    }
    if arguments.model.target("")?.is_microcontroller && arguments.model.devices()?.is_empty() {
        arguments.freestanding = !arguments.standalone_header && arguments.back.sanitizer().is_none();
    }
    let arguments = &arguments;
    let mut request =
        Request::new(arguments.kinds(), options(arguments, &class(arguments, &name)?, &name, xla)?);
    request.hlo_stage = arguments.hlo_stage;
    request.autotune = arguments.autotune.clone();
    let names = request.names()?;
    if arguments.emits(Kind::Shared) {
        let linker = linker::find(arguments.linker.as_deref(), names.triple());
        request.linker = Some(linker.coded(Code::WriteFile)?);
    }
    let mut progress = Progress::new(&arguments.model, &name);
    let mut dumper = Dumper::new(xla);
    let (input, report, _) = input(arguments, &arguments.model, xla, &mut progress, &mut dumper)?;
    let artifacts = request.make(input, &mut progress, dumper)?;
    let mut files = artifacts.outputs(|kind| arguments.output.join(names.of(kind)))?;
    if let Some(path) = &arguments.depfile {
        let mut inputs = model_files::inputs(&arguments.model, arguments.model.tuning.file())?;
        inputs.extend(arguments.quantization.data.iter().cloned());
        let rule = depfile::rule(&files, &inputs)?;
        files.push(Output { path: path.clone(), parts: vec![rule.into_bytes().into()] });
    }
    let listed = files.len();
    if needs_headers(arguments) {
        let has_gpu = !arguments.model.devices()?.is_empty();
        files.extend(outputs::runtime_headers(&arguments.output.join("include"), has_gpu));
    }
    outputs::create_directories(&files)?;
    if arguments.keep_unchanged {
        outputs::write_changed(&files, &["h", "c", "rs", "js", "ts"])?;
    } else {
        outputs::write(&files)?;
    }
    if !arguments.model.quiet {
        outputs::print(&report)?;
        let hints = summary::hints(arguments, &artifacts, &names);
        outputs::print(&summary::table(&files, listed, &hints))?;
    }
    Ok(())
}

/// Reads a model, and quantizes it if the flags request that. Also returns the report of the
/// quantization, or nothing. One of several functions that has no layers stays as it is.
fn input(
    arguments: &Build,
    model: &ModelArgs,
    xla: &XlaFlags,
    progress: &mut Progress,
    dumper: &mut Dumper,
) -> Result<(Input, String, Vec<String>)> {
    let Read { input, initial, unused } = read(model, &xla.disabled_passes, progress, dumper)?;
    let Some(scheme) = arguments.quantize else { return Ok((input, String::new(), unused)) };
    let mut input = input;
    if functions::signatures(&arguments.model).is_some() {
        let (imported, has_layers) = find_layers(input)?;
        if !has_layers {
            return Ok((imported, functions::NO_LAYERS.to_owned(), unused));
        }
        input = imported;
    }
    let (input, report) = quantize(input, &initial, scheme, &arguments.quantization, progress)?;
    Ok((input, report.to_text(&terminal::Screen::stdout()), unused))
}

/// Options that the flags describe, for a class and an entry point.
fn options(arguments: &Build, class: &str, name: &str, xla: &XlaFlags) -> Result<AotOptions> {
    let (target, versions) = match c_source::target(arguments)? {
        Some(target) => (target, Vec::new()),
        None => arguments.back.targets(&arguments.model)?,
    };
    let devices = arguments.model.devices()?;
    let back = xla.options(BackOptions {
        assembler: arguments.back.assembler(&devices)?,
        devices,
        freestanding: arguments.freestanding,
        constants_section: arguments.constants_section.clone(),
        c_source: c_source::vectors(arguments)?,
        plan: arguments.model.plan_options()?,
        ..BackOptions::new(target, name)
    });
    let back = arguments.back.options(back, versions)?;
    // Run-time functions that read the metadata object. Freestanding classes do not have them.
    let has_metadata = arguments.emits(Kind::Metadata) && !arguments.freestanding;
    Ok(AotOptions {
        header: HeaderOptions {
            gen_name_to_index: has_metadata,
            gen_program_shape: has_metadata,
            standalone: arguments.standalone_header,
            freestanding: arguments.freestanding,
        },
        constants: match arguments.constants {
            Constants::Embed => ConstantsMode::Embed,
            Constants::File => ConstantsMode::File,
        },
        describe_object: true,
        describe_web: has_metadata,
        ..AotOptions::new(class, back)
    })
}

/// Name of the program: the value of the flag, or the name of the model.
fn name(arguments: &Build) -> Result<String> {
    let name = arguments.name.clone().unwrap_or_else(|| name_of(&arguments.model.model));
    aot::validate_entry_point(&name).map_err(|e| {
        Error::invalid(format!("the name of the program (--name): {}", e.message())).coded(Code::OutputName)
    })?;
    Ok(name)
}

/// Class: the value of the flag, or the program's name in camel case, which differs from the name
/// of its function.
fn class(arguments: &Build, name: &str) -> Result<String> {
    let class = match &arguments.class {
        Some(class) => class.clone(),
        None => class_of(name),
    };
    match aot::parse_cpp_class(&class) {
        Ok(_) => Ok(class),
        Err(_) if class.is_empty() => {
            Err(Error::invalid("--class is empty: name a class, or remove the flag"))
        }
        Err(e) => Err(Error::invalid(format!("the class of the header (--class): {}", e.message()))
            .coded(Code::OutputName)),
    }
}

/// True if the headers that the C++ header includes are written next to it.
fn needs_headers(arguments: &Build) -> bool {
    let is_omitted = arguments.no_runtime_headers || arguments.standalone_header || arguments.freestanding;
    arguments.emits(Kind::Header) && !is_omitted
}
