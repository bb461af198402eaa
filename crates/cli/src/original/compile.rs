//! `tfcompile` without a command: compiles a graph with the flags of TensorFlow's tfcompile.

use crate::args::parse::loop_bounds;
use crate::args::xla_flags::XlaFlags;
use crate::artifacts::kind::Kind;
use crate::artifacts::request::Request;
use crate::files::outputs;
use crate::report::dump::Dumper;
use crate::report::stage_times::StageTimes;
use aot::HeaderOptions;
use bytes::Bytes;
use clap::Args;
use clap::builder::BoolishValueParser;
use compiler::{AotOptions, BackOptions, Input, Observer as _};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use support::{Error, Result};
use target::Target;
use tf::model::Model;
use tf::proto::Config;

/// Flags of `tfcompile` without a command.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct Compile {
    /// Graph: a GraphDef or MetaGraphDef file, binary or text, or a SavedModel or its directory
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Option<PathBuf>,
    /// Feeds, fetches, and variables: a tensorflow.tf2xla.Config file, binary or text [default:
    /// inferred from the graph]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Selects the part of the model.
    #[command(flatten)]
    pub(crate) choice: crate::args::model::ChoiceArgs,
    /// Guides the inference of the config.
    #[command(flatten)]
    pub(crate) inference: crate::args::inference::InferArgs,
    /// Class that the C++ header defines: [[namespace::]...]Class
    #[arg(long, value_name = "CLASS")]
    pub(crate) cpp_class: Option<String>,
    /// Object file to write, with code and constants
    #[arg(long, alias = "out_object", value_name = "FILE", default_value = "out_model.o")]
    pub(crate) out_function_object: PathBuf,
    /// C++ header to write
    #[arg(long, value_name = "FILE", default_value = "out.h")]
    pub(crate) out_header: PathBuf,
    /// Object file to write that describes the program: names, shapes, and config
    #[arg(long, value_name = "FILE", default_value = "out_helper.o")]
    pub(crate) out_metadata_object: PathBuf,
    /// Object file for constants. Accepted for build files of newer versions; it is empty, because
    /// the function's object contains the constants
    #[arg(long, value_name = "FILE")]
    pub(crate) out_constant_buffers_object: Option<PathBuf>,
    /// Write the graph's HLO before optimization as a serialized xla.HloSnapshot
    #[arg(long, value_name = "FILE")]
    pub(crate) out_session_module: Option<PathBuf>,
    /// Write a test program in C that runs the code on zeros and on random data, and checks that
    /// results depend only on the arguments
    #[arg(long, value_name = "FILE")]
    pub(crate) out_test: Option<PathBuf>,
    /// Write a benchmark program in C that measures the time of a run
    #[arg(long, value_name = "FILE")]
    pub(crate) out_benchmark: Option<PathBuf>,
    /// C symbol of the compiled function. Must be unique among linked objects
    #[arg(long, value_name = "SYMBOL", default_value = "entry")]
    pub(crate) entry_point: String,
    /// Machine to compile for, as an LLVM triple
    #[arg(long, value_name = "TRIPLE", default_value = "x86_64-pc-linux")]
    pub(crate) target_triple: String,
    /// Processor to compile for, by LLVM's name; `native` is this machine's. Without it, the code
    /// runs on every processor of the triple
    #[arg(long, value_name = "CPU", default_value = "")]
    pub(crate) target_cpu: String,
    /// Processor features, such as +avx2,+fma
    #[arg(long, value_name = "FEATURES", default_value = "", allow_hyphen_values = true)]
    pub(crate) target_features: String,
    /// Bounds rounding errors.
    #[command(flatten)]
    pub(crate) numerics: crate::args::numerics::NumericsArgs,
    /// Names the tuning file.
    #[command(flatten)]
    pub(crate) tuning: crate::args::tuning::TuningArgs,
    /// Enables measuring.
    #[command(flatten)]
    pub(crate) autotune: crate::args::tuning::AutotuneArgs,
    /// Upper bound on the iterations of a loop that has no other bound, by the name of its node or
    /// of its scope. Can be repeated
    #[arg(long, alias = "loop-bound", value_name = "NAME=N")]
    pub(crate) loop_bound: Vec<String>,
    /// Generate names of feeds, fetches, and variables for the class's Lookup*Index()
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) gen_name_to_index: bool,
    /// Generate shapes for the class's ProgramShape()
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) gen_program_shape: bool,
    /// Print only the names of the fetched nodes, joined by commas
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) dump_fetch_nodes: bool,
    /// Source locations of the graph's nodes: a GraphDebugInfo file. Accepted without effect:
    /// messages name nodes
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_info: Option<PathBuf>,
    /// Accepted without effect
    #[arg(long, value_name = "TEXT")]
    pub(crate) debug_info_path_begin_marker: Option<String>,
    /// MLIR components of the original. `None`, `Bridge`, and `HloLowering` are accepted without
    /// effect
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub(crate) mlir_components: String,
    /// The original's quantization hook, which TensorFlow does not include. Only false is accepted
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide = true)]
    pub(crate) experimental_quantize: bool,
    /// Instrumentation for the data flow sanitizer. Only false is accepted
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide = true)]
    pub(crate) sanitize_dataflow: bool,
    /// Accepted without effect
    #[arg(long, value_name = "LIST", hide = true)]
    pub(crate) sanitize_abilists_dataflow: Option<String>,
    /// Alternative run time of newer versions of the original. Accepted without effect
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide = true)]
    pub(crate) use_xla_nanort_runtime: bool,
    /// Number of compilation threads. Accepted without effect: all processors are used, and the
    /// output does not depend on their number
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) jobs: u32,
    /// Print the time and the results of each stage: HLO, plan, and buffers
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// Compiles a graph and writes its files.
pub(crate) fn run(flags: &Compile, xla: &XlaFlags) -> Result<()> {
    xla.warn();
    check_flags(flags)?;
    let details: &[&str] = &["import", "fusion", "plan", "regions", "buffers", "codegen"];
    let mut report = StageTimes::new(if flags.verbose { details } else { &[] });
    let Some(input) = read(flags, &mut report)? else { return Ok(()) };
    let artifacts = request(flags, xla)?.make(input, &mut report, Dumper::new(xla))?;
    let path_of = |kind: Kind| {
        let place = places(flags).find(|(other, _)| *other == kind);
        place.map(|(_, path)| path.to_owned()).unwrap_or_default()
    };
    outputs::write(&artifacts.outputs(path_of)?)?;
    if flags.verbose {
        report.print();
    }
    Ok(())
}

/// Reads the graph and its config. Returns `None` if the flags ask for the names of the fetched
/// nodes, which are then printed.
fn read(flags: &Compile, report: &mut StageTimes) -> Result<Option<Input>> {
    let file = config_file(flags)?;
    if let Some((_, config)) = &file {
        let nodes = tf::fetch_nodes(config)?;
        if flags.dump_fetch_nodes {
            return outputs::print(&nodes.join(",")).map(|()| None);
        }
    }
    let path = given(flags.graph.as_ref()).ok_or_else(|| {
        Error::invalid(match file {
            Some(_) => "Must specify --graph: a GraphDef file, or a SavedModel",
            None => {
                "Must specify --config: a file that names feeds and fetches; or --graph alone, to infer them"
            }
        })
    })?;
    let stated = file.as_ref().map(|(_, config)| config.clone());
    let options = flags.choice.options(stated, flags.inference.fixed_options("the original command")?)?;
    let model = compiler::guarded(|| compiler::load(path, &options))?;
    let (config, bytes) = match file {
        Some((bytes, config)) => (config, Some(bytes)),
        None => (inferred(&model)?, None),
    };
    if flags.dump_fetch_nodes {
        let nodes = tf::fetch_nodes(&config)?;
        return outputs::print(&nodes.join(",")).map(|()| None);
    }
    let loop_bounds = loop_bounds(&flags.loop_bound)?;
    report.ended("read", &String::new);
    Ok(Some(Input::of_model(model, config, bytes).with_loop_bounds(loop_bounds)))
}

/// Build that the flags describe.
fn request(flags: &Compile, xla: &XlaFlags) -> Result<Request> {
    let class = flags.cpp_class.as_deref().filter(|class| !class.is_empty());
    let class = class.ok_or_else(|| {
        Error::invalid(
            "Must specify --cpp_class: the class that the header defines, such as mynamespace::MyComputation",
        )
    })?;
    let back = xla.options(BackOptions {
        cache: crate::args::versions::cache(None, None)?,
        plan: flags.tuning.options(flags.numerics.options())?,
        ..BackOptions::new(target(flags)?, &flags.entry_point)
    });
    let header = HeaderOptions {
        gen_name_to_index: flags.gen_name_to_index,
        gen_program_shape: flags.gen_program_shape,
        ..HeaderOptions::default()
    };
    let kinds = places(flags).map(|(kind, _)| kind).collect();
    let options = AotOptions { header, ..AotOptions::new(class, back) };
    let mut request = Request::new(kinds, options);
    request.autotune = flags.autotune.clone();
    Ok(request)
}

/// Files to write, with their paths.
fn places(flags: &Compile) -> impl Iterator<Item = (Kind, &Path)> {
    let places = [
        (Kind::Obj, Some(&flags.out_function_object)),
        (Kind::Header, Some(&flags.out_header)),
        (Kind::Metadata, Some(&flags.out_metadata_object)),
        (Kind::SessionModule, flags.out_session_module.as_ref()),
        (Kind::Test, flags.out_test.as_ref()),
        (Kind::Benchmark, flags.out_benchmark.as_ref()),
        (Kind::EmptyObject, flags.out_constant_buffers_object.as_ref()),
    ];
    places.into_iter().filter_map(|(kind, path)| Some((kind, path?.as_path())))
}

/// Rejects values of the original's flags that this tool does not support.
fn check_flags(flags: &Compile) -> Result<()> {
    if flags.experimental_quantize {
        return Err(Error::unsupported(
            "--experimental_quantize requires a hook that tfcompile does not include; remove the flag",
        ));
    }
    if flags.sanitize_dataflow {
        return Err(Error::unsupported("--sanitize_dataflow is not supported; remove the flag"));
    }
    let known = ["", "None", "Bridge", "HloLowering"];
    match flags.mlir_components.split(',').find(|name| !known.contains(name)) {
        Some(name) => Err(Error::invalid(format!(
            "Unknown mlir_component {name}: expected None, Bridge, or HloLowering"
        ))),
        None => Ok(()),
    }
}

/// Reads the config that a flag names. Also returns the bytes of the file.
fn config_file(flags: &Compile) -> Result<Option<(Bytes, Config)>> {
    let Some(path) = given(flags.config.as_ref()) else { return Ok(None) };
    let file = tf::source::read_bytes(path)?;
    compiler::guarded(|| {
        let config = tf::source::parse_config(file.clone(), &path.display().to_string())?;
        Ok(Some((file, config)))
    })
}

/// Infers the config of a model that comes without one. Prints notes to standard error.
fn inferred(model: &Model) -> Result<Config> {
    let inferred = compiler::guarded(|| model.infer())?;
    if !inferred.problems.is_empty() {
        return Err(Error::invalid(format!(
            "Must specify --config: {}",
            crate::program::model::not_inferred(&model.name, &inferred).message()
        )));
    }
    for note in &inferred.notes {
        let _ = writeln!(std::io::stderr(), "note: {note}");
    }
    Ok(inferred.config)
}

fn given(path: Option<&PathBuf>) -> Option<&Path> {
    path.filter(|path| !path.as_os_str().is_empty()).map(PathBuf::as_path)
}

fn target(flags: &Compile) -> Result<Target> {
    if flags.target_cpu == "native" {
        let (cpu, host_features) = codegen::host_target();
        let features = match flags.target_features.as_str() {
            "" => host_features,
            more => format!("{host_features},{more}"),
        };
        return Target::new(&flags.target_triple, &cpu, &features);
    }
    Target::new(&flags.target_triple, &flags.target_cpu, &flags.target_features)
}
