//! The flags: the original's names and meanings (and more), in `clap`'s words.

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Compiles a TensorFlow graph ahead of time, into an object file and a C++ header that gives access to it.
///
/// A graph, a config that names its feeds and fetches, and a class name are all it needs:
///
///     tfcompile --graph=graph.pb --config=graph.config.pbtxt --cpp_class=mynamespace::MyComputation
///
/// writes out.h and out_model.o. Include the first, link the second; `tfcompile headers -o DIR` writes the headers that
/// the first includes. No TensorFlow, no Python and no library is needed from then on.
///
/// Flags are written --name=value; switches also --name and --noname.
#[derive(Debug, Parser)]
#[command(name = "tfcompile", version, args_override_self = true, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true, disable_help_subcommand = true, verbatim_doc_comment)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) compile: Compile,
}

/// Other things than compiling.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile a model into object file, header, archive, shared library
    Build(crate::build::Build),
    /// Say all that keeps a model from being compiled
    Check(crate::check::Check),
    /// Print the config of a model: its feeds, fetches and variables, inferred if none is given
    Config(crate::model::ModelArgs),
    /// Say what the code of an error means: cause and cure
    Explain(crate::explain::Explain),
    /// Print the table of ops: types, recorded cases, notes
    Ops,
    /// Print a model's HLO, or as StableHLO, a graph, a page; before or after optimisation
    Hlo(crate::hlo::Hlo),
    /// Write what nodes of a graph need as an HloModuleProto, simplified but not compiled
    #[command(alias = "xla_extract")]
    XlaExtract(crate::xla_extract::XlaExtract),
    /// Say what a compiled file holds
    Inspect(crate::inspect::Inspect),
    /// Compile a model in this process and run it once
    Run(crate::run::Run),
    /// Compile a model in this process and measure how fast it runs
    Bench(crate::bench::Bench),
    /// Run a model in this process and write a page that shows where its time goes
    Profile(crate::profile::Profile),
    /// Compare compiled code with the evaluator, on random and edge inputs
    Verify(crate::verify::Verify),
    /// Put a checkpoint's values into a graph, as TensorFlow's freeze_graph does
    Freeze(Freeze),
    /// Compile a signature of a SavedModel, as saved_model_cli does
    #[command(alias = "aot_compile_cpu")]
    AotCompileCpu(crate::aot_compile_cpu::AotCompileCpu),
    /// Write the C++ headers that generated headers include
    Headers(Headers),
    /// Write a project that builds a model into a program
    Init(crate::init::Init),
    /// Print what a shell needs to complete this command line
    Completions(crate::manual::Completions),
    /// Print a manual page, for `man -l -`
    Man(crate::manual::Page),
}

/// Compiling a graph.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct Compile {
    /// The graph: a GraphDef or MetaGraphDef file, binary or text, or a SavedModel or its directory
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Option<PathBuf>,
    /// Its feeds, fetches and variables: a tensorflow.tf2xla.Config file, binary or text. Without, they are inferred
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which part of a model, with which values.
    #[command(flatten)]
    pub(crate) choice: crate::model::ChoiceArgs,
    /// What helps to infer a config.
    #[command(flatten)]
    pub(crate) inference: crate::infer::InferArgs,
    /// The class that the header defines: [[namespace::]...]Class
    #[arg(long, value_name = "CLASS")]
    pub(crate) cpp_class: Option<String>,
    /// The object file to write: code and constants
    #[arg(long, alias = "out_object", value_name = "FILE", default_value = "out_model.o")]
    pub(crate) out_function_object: PathBuf,
    /// The C++ header to write
    #[arg(long, value_name = "FILE", default_value = "out.h")]
    pub(crate) out_header: PathBuf,
    /// The object file to write that describes the program: names, shapes, config
    #[arg(long, value_name = "FILE", default_value = "out_helper.o")]
    pub(crate) out_metadata_object: PathBuf,
    /// An object file for constants. Accepted for the newest build files: constants are in the function's object, so what
    /// is written here is empty
    #[arg(long, value_name = "FILE")]
    pub(crate) out_constant_buffers_object: Option<PathBuf>,
    /// Write the graph's HLO, before any optimisation, as a serialised xla.HloSnapshot
    #[arg(long, value_name = "FILE")]
    pub(crate) out_session_module: Option<PathBuf>,
    /// Write a program in C that runs the code on zeros and on random data and checks that the results depend on nothing
    /// else
    #[arg(long, value_name = "FILE")]
    pub(crate) out_test: Option<PathBuf>,
    /// Write a program in C that measures how long a run takes
    #[arg(long, value_name = "FILE")]
    pub(crate) out_benchmark: Option<PathBuf>,
    /// The C symbol of the compiled function. Must be unique among objects that are linked together
    #[arg(long, value_name = "SYMBOL", default_value = "entry")]
    pub(crate) entry_point: String,
    /// The machine to compile for, as an LLVM triple
    #[arg(long, value_name = "TRIPLE", default_value = "x86_64-pc-linux")]
    pub(crate) target_triple: String,
    /// Its processor, by LLVM's name; `native` is this machine's. Without, code runs on every processor of the triple
    #[arg(long, value_name = "CPU", default_value = "")]
    pub(crate) target_cpu: String,
    /// Its features, such as +avx2,+fma
    #[arg(long, value_name = "FEATURES", default_value = "", allow_hyphen_values = true)]
    pub(crate) target_features: String,
    /// How far rounding may differ.
    #[command(flatten)]
    pub(crate) numerics: crate::numerics::NumericsArgs,
    /// What was measured before.
    #[command(flatten)]
    pub(crate) tuning: crate::tuning::TuningArgs,
    /// What is to be measured.
    #[command(flatten)]
    pub(crate) autotune: crate::tuning::AutotuneArgs,
    /// The most iterations of a loop that nothing else bounds, by the name of its node or the scope that it is in. May be
    /// given several times
    #[arg(long, alias = "loop-bound", value_name = "NAME=N")]
    pub(crate) loop_bound: Vec<String>,
    /// Names of feeds, fetches and variables for the class's Lookup*Index
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) gen_name_to_index: bool,
    /// Shapes for the class's ProgramShape()
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) gen_program_shape: bool,
    /// Print the names of the fetched nodes, joined by commas, and nothing else
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) dump_fetch_nodes: bool,
    /// Source places of the graph's nodes: a GraphDebugInfo file. Accepted; messages name nodes
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_info: Option<PathBuf>,
    /// Accepted with --debug_info
    #[arg(long, value_name = "TEXT")]
    pub(crate) debug_info_path_begin_marker: Option<String>,
    /// Parts of the original that used MLIR. Accepted: `None`, `Bridge` and `HloLowering` make no difference here
    #[arg(long, value_name = "LIST", default_value = "", hide_default_value = true)]
    pub(crate) mlir_components: String,
    /// The original's quantisation hook, which is no part of it. Only false is accepted
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide = true)]
    pub(crate) experimental_quantize: bool,
    /// Instrumentation for the data flow sanitizer. Only false is accepted
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide = true)]
    pub(crate) sanitize_dataflow: bool,
    /// Accepted with --sanitize_dataflow
    #[arg(long, value_name = "LIST", hide = true)]
    pub(crate) sanitize_abilists_dataflow: Option<String>,
    /// Another run time of the newest original. Accepted: there is only one here
    #[arg(long, num_args = 0..=1, require_equals = true, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide = true)]
    pub(crate) use_xla_nanort_runtime: bool,
    /// Threads to compile with. Accepted: code is generated on all processors, and the output never depends on it
    #[arg(short = 'j', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) jobs: u32,
    /// Print a table of the stages' times and what they made: HLO, plan, buffers
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// `tfcompile freeze`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct Freeze {
    /// The graph: a GraphDef file
    #[arg(long, value_name = "FILE")]
    pub(crate) input_graph: Option<PathBuf>,
    /// A MetaGraphDef file instead, such as a saver's .meta file: its graph, and its saver restores
    #[arg(long, value_name = "FILE")]
    pub(crate) input_meta_graph: Option<PathBuf>,
    /// The directory of a SavedModel, instead of graph and checkpoint
    #[arg(long, value_name = "DIR")]
    pub(crate) input_saved_model_dir: Option<PathBuf>,
    /// The tags of its graph, joined by commas
    #[arg(long, value_name = "TAGS", default_value = "serve")]
    pub(crate) saved_model_tags: String,
    /// The checkpoint: its file, or the prefix of its files
    #[arg(long, value_name = "FILE")]
    pub(crate) input_checkpoint: Option<PathBuf>,
    /// A SaverDef file that says how variables are stored
    #[arg(long, value_name = "FILE")]
    pub(crate) input_saver: Option<PathBuf>,
    /// The checkpoint's format: 1 or 2. The files tell, so this is only checked
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) checkpoint_version: i64,
    /// Whether the input files are binary. They tell themselves, so this is only accepted
    #[arg(long, num_args = 0..=1, default_value = "false", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL", hide_default_value = true)]
    pub(crate) input_binary: bool,
    /// The nodes to keep, with all that they need: names joined by commas
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) output_node_names: String,
    /// The frozen graph to write
    #[arg(long, value_name = "FILE")]
    pub(crate) output_graph: Option<PathBuf>,
    /// Whether to clear the nodes' devices
    #[arg(long, num_args = 0..=1, default_value = "true", default_missing_value = "true")]
    #[arg(value_parser = BoolishValueParser::new(), value_name = "BOOL")]
    pub(crate) clear_devices: bool,
    /// Nodes that give variables values, to be run after the checkpoint is restored: names joined by commas. With
    /// --input_saver they are left alone, as the original leaves them
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) initializer_nodes: String,
    /// The only variables that become constants: names joined by commas [default: all]
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true)]
    pub(crate) variable_names_whitelist: String,
    /// Variables that stay variables: names joined by commas
    #[arg(
        long,
        alias = "variable_names_blacklist",
        value_name = "NAMES",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) variable_names_denylist: String,
    /// Accepted: the name of the restoring op is the saver's
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) restore_op_name: Option<String>,
    /// Accepted: the checkpoint is the one given
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) filename_tensor_name: Option<String>,
}

/// `tfcompile headers`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub(crate) struct Headers {
    /// The directory to write them to; it is made if it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// One sentence of a parse error, in the words of the original where it has some.
pub(crate) fn message(error: &clap::Error) -> String {
    use clap::error::ErrorKind;
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs = text.split("\n\n").map(str::trim);
    // Nobody means an unknown flag as a value.
    let left_out = ["Usage:", "For more information", "tip: to pass"];
    let told = paragraphs.filter(|p| left_out.iter().all(|start| !p.starts_with(start)));
    let told: Vec<String> = told
        .map(|p| p.strip_prefix("tip: ").unwrap_or(p).split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let sentence = told.join("; ");
    // A word that is no flag is taken for a command, which stands alone.
    let left_over = match error.kind() {
        ErrorKind::InvalidSubcommand => true,
        ErrorKind::ArgumentConflict => sentence.starts_with("the subcommand '"),
        _ => false,
    };
    match sentence.split('\'').nth(1).filter(|_| left_over) {
        Some(word) => format!(
            "'{word}' is neither a flag nor a command such as build, check, inspect or run, which stands first. This \
             command does not take any arguments other than flags. See --help."
        ),
        None => format!("{sentence}. See --help."),
    }
}
