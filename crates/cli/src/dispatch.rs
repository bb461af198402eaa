//! The commands, and which code runs each.

use crate::args::model::ModelArgs;
use crate::args::xla_flags::XlaFlags;
use crate::commands::{
    bench, build_model, check, config, explain, headers, hlo, init, inspect, manual, profile, run, verify,
};
use crate::files::outputs;
use crate::original::{aot_compile_cpu, compile, freeze, xla_extract};
use clap::{CommandFactory as _, Parser, Subcommand};
use support::Result;

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
    pub(crate) compile: compile::Compile,
}

/// Other things than compiling.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Compile a model into object file, header, archive, shared library
    Build(build_model::Build),
    /// Say all that keeps a model from being compiled
    Check(check::Check),
    /// Print the config of a model: its feeds, fetches and variables, inferred if none is given
    Config(ModelArgs),
    /// Say what the code of an error means: cause and cure
    Explain(explain::Explain),
    /// Print the table of ops: types, recorded cases, notes
    Ops,
    /// Print a model's HLO, or as StableHLO, a graph, a page; before or after optimisation
    Hlo(hlo::Hlo),
    /// Write what nodes of a graph need as an HloModuleProto, simplified but not compiled
    #[command(alias = "xla_extract")]
    XlaExtract(xla_extract::XlaExtract),
    /// Say what a compiled file holds
    Inspect(inspect::Inspect),
    /// Compile a model in this process and run it once
    Run(run::Run),
    /// Compile a model in this process and measure how fast it runs
    Bench(bench::Bench),
    /// Run a model in this process and write a page that shows where its time goes
    Profile(profile::Profile),
    /// Compare compiled code with the evaluator, on random and edge inputs
    Verify(verify::Verify),
    /// Put a checkpoint's values into a graph, as TensorFlow's freeze_graph does
    Freeze(freeze::Freeze),
    /// Compile a signature of a SavedModel, as saved_model_cli does
    #[command(alias = "aot_compile_cpu")]
    AotCompileCpu(aot_compile_cpu::AotCompileCpu),
    /// Write the C++ headers that generated headers include
    Headers(headers::Headers),
    /// Write a project that builds a model into a program
    Init(init::Init),
    /// Print what a shell needs to complete this command line
    Completions(manual::Completions),
    /// Print a manual page, for `man -l -`
    Man(manual::Page),
}

/// Runs the command that the words name.
pub(crate) fn dispatch(cli: Cli, xla: &XlaFlags) -> Result<()> {
    match cli.command {
        Some(Command::Build(arguments)) => build_model::run(&arguments, xla),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Config(arguments)) => config::run(&arguments),
        Some(Command::Explain(arguments)) => explain::run(&arguments),
        Some(Command::Ops) => outputs::print(&compiler::op_table()),
        Some(Command::Hlo(arguments)) => hlo::run(&arguments, xla),
        Some(Command::XlaExtract(arguments)) => xla_extract::run(&arguments, xla),
        Some(Command::Inspect(arguments)) => inspect::run(&arguments),
        Some(Command::Run(arguments)) => run::run(&arguments, xla),
        Some(Command::Bench(arguments)) => bench::run(&arguments, xla),
        Some(Command::Profile(arguments)) => profile::run(&arguments, xla),
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
