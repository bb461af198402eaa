//! `tfcompile quantize`: writes a model with integers or short floats in its layers.

use crate::args::model::ModelArgs;
use crate::args::quantization::{QuantizationArgs, SchemeName};
use crate::args::xla_flags::XlaFlags;
use crate::artifacts::names::name_of;
use crate::files::hlo_formats::{Format, Surroundings, render};
use crate::files::outputs;
use crate::files::state::listed;
use crate::program::in_process::Initial;
use crate::program::model::{Read, read};
use crate::program::quantized::quantize;
use crate::report::dump::Dumper;
use crate::report::progress::Progress;
use crate::report::text::print_json;
use clap::Args;
use compiler::{NoObserver, Source};
use hlo::{Argument, Interface, Role};
use std::path::{Path, PathBuf};
use support::{Code, Error, Result};
use terminal::Screen;

/// `tfcompile quantize`.
#[derive(Args, Debug)]
pub(crate) struct Quantize {
    #[command(flatten)]
    model: ModelArgs,
    /// Form of the layers
    #[arg(long, value_enum, value_name = "SCHEME", default_value = "int8")]
    scheme: SchemeName,
    #[command(flatten)]
    quantization: QuantizationArgs,
    /// File to write: StableHLO (.mlir), HLO text (.hlo), or HloModuleProto (.pb) [default: the
    /// model's name and the scheme, as StableHLO]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Quantizes a model, writes it, and prints a report.
pub(crate) fn run(arguments: &Quantize, xla: &XlaFlags) -> Result<()> {
    let model = &arguments.model;
    model.refuse_compilation("quantize")?;
    let name = name_of(&model.model);
    let scheme = arguments.quantization.options(arguments.scheme)?.scheme.name();
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.{scheme}.mlir")));
    let format = format(&path)?;
    if !model.quiet {
        xla.warn();
    }
    let mut progress = Progress::new(model, &name);
    let mut dumper = Dumper::new(xla);
    let Read { input, initial, .. } = read(model, &xla.disabled_passes, &mut progress, &mut dumper)?;
    if let Some(name) = open_dimension(&input.source) {
        return Err(Error::invalid(format!(
            "a quantized model is written for fixed sizes, but '{name}' has a range: state its size, as in --dim {name}=16, \
             or use 'build --quantize', which keeps the range"
        ))
        .coded(Code::OpenSize));
    }
    let (input, report) =
        quantize(input, &initial, arguments.scheme, &arguments.quantization, &mut progress)?;
    let program = input.source.import_whole(&mut NoObserver)?;
    let lost = valued_variables(&program.interface, &initial);
    if !lost.is_empty() {
        progress.note(&format!(
            "the written model does not hold the initial values of its variables: pass those of {} with --var or --variables",
            listed(&lost)
        ));
    }
    let with = Surroundings { result_names: program.interface.result_names(), ..Surroundings::default() };
    let bytes = compiler::guarded(|| render(&program.module, format, &with))?;
    dumper.finish()?;
    progress.finish();
    outputs::write_all(&[(&path, &bytes)])?;
    if arguments.json {
        return print_json("quantize", &model.model.display().to_string(), report.to_json());
    }
    let text = if model.quiet { String::new() } else { report.to_text(&Screen::stdout()) };
    outputs::print(&format!("{text}{}\n", path.display()))
}

/// Returns the name of a dimension with a range, if there is any.
fn open_dimension(source: &Source) -> Option<String> {
    match source {
        Source::Graph { config, .. } => config.dimension.first().map(|dimension| dimension.name.clone()),
        Source::Hlo(program) => program.program.interface.sizes().next().map(|(_, size, _)| size.label()),
    }
}

/// Variables whose first value in the model is not zero.
fn valued_variables(interface: &Interface, initial: &Initial) -> Vec<String> {
    let is_valued = |argument: &&Argument| {
        let value = initial.iter().find(|(node, _)| argument.is_called(node));
        argument.role == Role::Variable
            && value.is_some_and(|(_, value)| value.bytes().iter().any(|&byte| byte != 0))
    };
    interface.arguments().iter().filter(is_valued).map(Argument::label).collect()
}

/// Format of a file by its extension.
fn format(path: &Path) -> Result<Format> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("mlir") => Ok(Format::Stablehlo),
        Some("hlo") => Ok(Format::Text),
        Some("pb") => Ok(Format::Proto),
        _ => Err(Error::invalid(format!(
            "--output {}: expected a name that ends in .mlir, .hlo, or .pb",
            path.display()
        ))
        .coded(Code::CommandLine)),
    }
}
