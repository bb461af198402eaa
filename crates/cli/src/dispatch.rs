//! The list of commands, and the function that runs each.

use crate::args::model::{COMPILATION, ModelArgs};
use crate::args::xla_flags::XlaFlags;
use crate::commands::{
    autotune, bench, build_model, check, config, explain, headers, hlo, init, inspect, manual, profile,
    quantize, report, run, verify,
};
use crate::files::outputs;
use crate::original::{aot_compile_cpu, compile, freeze, xla_extract};
use clap::{Arg, CommandFactory as _, Parser, Subcommand};
use support::Result;

/// Compile a TensorFlow graph ahead of time into an object file and a C++ header.
///
/// A compilation needs a graph, a config that names its feeds and fetches, and a class name.
/// It writes out.h and out_model.o: include the first, link the second. `tfcompile headers -o DIR`
/// writes the headers that out.h includes. The program needs no TensorFlow, Python, or library.
///
/// Write flags as --name=value, and switches also as --name and --noname.
#[derive(Debug, Parser)]
#[command(name = "tfcompile", version, args_override_self = true, args_conflicts_with_subcommands = true)]
#[command(subcommand_negates_reqs = true, disable_help_subcommand = true, verbatim_doc_comment)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) compile: compile::Compile,
}

/// Example of compiling a graph.
const EXAMPLE: &str = "\
Example:
  tfcompile --graph=graph.pb --config=graph.config.pbtxt --cpp_class=mynamespace::MyComputation";

/// Hides the flags that [`ModelArgs::refuse_compilation`] refuses.
fn hide_compilation(arg: Arg) -> Arg {
    let is_refused = COMPILATION.contains(&arg.get_id().as_str());
    arg.hide(is_refused)
}

/// Commands, each with an example of its use.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile a model into object files, headers, and libraries
    #[command(after_help = "Example:\n  tfcompile build saved_model -o out --emit=obj,header,shared")]
    Build(build_model::Build),
    /// List everything that prevents a model from compiling
    #[command(after_help = "Example:\n  tfcompile check model.pb")]
    Check(check::Check),
    /// Print the config of a model: feeds, fetches, and variables, inferred if not given
    #[command(after_help = "Example:\n  tfcompile config model.pb > model.config.pbtxt")]
    // Only programs take weights, and they have no config.
    #[command(mut_arg("weights", |arg| arg.hide(true)))]
    Config(ModelArgs),
    /// Explain an error code: its cause and fix
    #[command(after_help = "Example:\n  tfcompile explain E0401")]
    Explain(explain::Explain),
    /// Print the table of ops: types, recorded cases, notes
    #[command(after_help = "Example:\n  tfcompile ops | grep Conv")]
    Ops,
    /// Print a model as HLO, StableHLO, or a picture, before or after optimization
    #[command(
        after_help = "Example:\n  tfcompile hlo model.pb --stage=optimized --format=html -o model.html"
    )]
    Hlo(hlo::Hlo),
    /// Extract nodes of a graph as a simplified HloModuleProto for another compiler
    #[command(alias = "xla_extract")]
    #[command(
        after_help = "Example:\n  tfcompile xla-extract --in_graph=graph.pb --target_node=\"loss:0 train\" --out_graph=module.hlo"
    )]
    XlaExtract(xla_extract::XlaExtract),
    /// Describe a compiled file
    #[command(after_help = "Example:\n  tfcompile inspect out/model.o")]
    Inspect(inspect::Inspect),
    /// Compile a model in this process and run it
    #[command(after_help = "Example:\n  tfcompile run model.pb --feed x=x.npy --out results.npz")]
    Run(run::Run),
    /// Compile a model in this process and measure its speed
    #[command(after_help = "Example:\n  tfcompile bench model.pb --threads=1,4")]
    Bench(bench::Bench),
    /// Measure the fastest algorithm for each kernel of a model on this machine
    #[command(
        after_help = "Example:\n  tfcompile autotune model.pb && tfcompile build model.pb --target-cpu=native --tuning tfcompile.tuning"
    )]
    Autotune(autotune::Autotune),
    /// Run a model in this process and write a page that shows the time of each kernel
    #[command(after_help = "Example:\n  tfcompile profile model.pb --steps=200 -o model.profile.html")]
    Profile(profile::Profile),
    /// Write a page with the figures of a model, compare them with older ones, or check a budget
    #[command(after_help = "Example:\n  tfcompile report model.pb --budget budget.toml -o model.html")]
    Report(report::Report),
    /// Write a model whose layers compute with integers, or store their weights in fewer bits
    #[command(
        after_help = "Example:\n  tfcompile quantize model.pb --data calibration.npz -o model_int8.mlir"
    )]
    #[command(mut_args(hide_compilation))]
    Quantize(quantize::Quantize),
    /// Compare compiled code with the evaluator on random and edge-case inputs
    #[command(after_help = "Example:\n  tfcompile verify model.pb --seed=7")]
    Verify(verify::Verify),
    /// Put a checkpoint's values into a graph, as TensorFlow's freeze_graph does
    #[command(
        after_help = "Example:\n  tfcompile freeze --input_graph=graph.pb --input_checkpoint=model.ckpt --output_node_names=y --output_graph=frozen.pb"
    )]
    Freeze(freeze::Freeze),
    /// Compile a signature of a SavedModel, as saved_model_cli does
    #[command(alias = "aot_compile_cpu")]
    #[command(
        after_help = "Example:\n  tfcompile aot-compile-cpu --dir=saved_model --output_prefix=out/model --cpp_class=ns::Model"
    )]
    AotCompileCpu(aot_compile_cpu::AotCompileCpu),
    /// Write the C++ headers that generated headers include
    #[command(after_help = "Example:\n  tfcompile headers -o include")]
    Headers(headers::Headers),
    /// Create a project that builds a model into a program
    #[command(after_help = "Example:\n  tfcompile init app --build=cmake --model=saved_model")]
    Init(init::Init),
    /// Print the completion script for a shell
    #[command(after_help = "Example:\n  tfcompile completions bash > tfcompile.bash")]
    Completions(manual::Completions),
    /// Print a manual page in roff format
    #[command(after_help = "Example:\n  tfcompile man build | man -l -")]
    Man(manual::Page),
}

/// Runs the command that the arguments name.
pub(crate) fn dispatch(cli: Cli, xla: &XlaFlags) -> Result<()> {
    match cli.command {
        Some(Command::Build(arguments)) => build_model::run(arguments, xla),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Explain(arguments)) => explain::run(&arguments),
        Some(Command::Ops) => outputs::print(&compiler::op_table()),
        Some(Command::Hlo(arguments)) => hlo::run(&arguments, xla),
        Some(Command::XlaExtract(arguments)) => xla_extract::run(&arguments, xla),
        Some(Command::Inspect(arguments)) => inspect::run(&arguments),
        Some(Command::Run(arguments)) => run::run(&arguments, xla),
        Some(Command::Bench(arguments)) => bench::run(&arguments, xla),
        Some(Command::Autotune(arguments)) => autotune::run(&arguments, xla),
        Some(Command::Profile(arguments)) => profile::run(&arguments, xla),
        Some(Command::Report(arguments)) => report::run(&arguments, xla),
        Some(Command::Quantize(arguments)) => quantize::run(&arguments, xla),
        Some(Command::Verify(arguments)) => verify::run(&arguments, xla),
        Some(Command::Freeze(arguments)) => freeze::run(&arguments),
        Some(Command::AotCompileCpu(arguments)) => aot_compile_cpu::run(&arguments, xla),
        Some(Command::Headers(arguments)) => headers::run(&arguments),
        Some(Command::Init(arguments)) => init::run(&arguments),
        Some(Command::Completions(arguments)) => manual::completions(&arguments, Cli::command()),
        Some(Command::Man(arguments)) => manual::page(&arguments, Cli::command()),
        None => compile::run(&cli.compile, xla),
    }
}
