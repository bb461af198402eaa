//! The command line: arguments, files, exit codes. What the words mean is the compiler's business.

mod aot_compile_cpu;
mod batches;
mod bench;
mod build;
mod check;
mod clustering;
mod compile;
mod depfile;
mod dump;
mod emitted;
mod explain;
mod flags;
mod freeze;
mod given;
mod headers;
mod hlo;
mod hlo_formats;
mod in_process;
mod infer;
mod init;
mod inspect;
mod kernel_cache;
mod linker;
mod manual;
mod mnist;
mod model;
mod module_file;
mod numerics;
mod outputs;
mod profile;
mod progress;
mod report;
mod run;
mod session_model;
mod session_profile;
mod session_run;
mod state;
mod steps;
mod tracing;
mod tuning;
mod verify;
mod versions;
mod xla_extract;
mod xla_flags;

use clap::Parser;
use flags::{Cli, Command};
use std::process::ExitCode;
use support::{Code, Coded as _, Error, ErrorKind, Result};
use xla_flags::XlaFlags;

fn main() -> ExitCode {
    // A defect is reported once, by `compiler::guarded`, with words for the user.
    std::panic::set_hook(Box::new(|_| {}));
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let kind = match error.kind() {
                ErrorKind::Invalid => "INVALID ARGUMENTS",
                ErrorKind::Unsupported => "UNSUPPORTED",
                ErrorKind::Internal => "INTERNAL ERROR",
            };
            let (message, code) = (shortened(error.message()), error.code());
            // Nobody is left to tell if standard error is closed.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("{kind}: {message}\n({code}: `tfcompile explain {code}` says more)\n"),
            );
            ExitCode::FAILURE
        }
    }
}

/// Bytes of the longest message; a graph may name its nodes with megabytes.
const MAX_MESSAGE: usize = 4000;

/// A message with the middle left out if it is too long: what is wrong stands at either end.
fn shortened(message: &str) -> std::borrow::Cow<'_, str> {
    if message.len() <= MAX_MESSAGE {
        return message.into();
    }
    let start = message.floor_char_boundary(MAX_MESSAGE / 2);
    let end = message.ceil_char_boundary(message.len() - MAX_MESSAGE / 2);
    format!("{} [{} bytes left out] {}", &message[..start], end - start, &message[end..]).into()
}

fn run() -> Result<()> {
    let environment = xla_flags::Environment {
        xla_flags: std::env::var("XLA_FLAGS").ok(),
        tf_xla_flags: std::env::var("TF_XLA_FLAGS").ok(),
        dump_graph_prefix: std::env::var("TF_DUMP_GRAPH_PREFIX").ok(),
        vlog_level: std::env::var("TF_CPP_MIN_VLOG_LEVEL").ok(),
    };
    let (words, xla) =
        xla_flags::split(std::env::args_os().collect(), &environment).coded(Code::CommandLine)?;
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(answer) if !answer.use_stderr() => return outputs::print(&answer.to_string()),
        Err(error) => return Err(Error::invalid(flags::message(&error)).coded(Code::CommandLine)),
    };
    // What has no code is a command's own: the stages behind give theirs at their borders.
    dispatch(cli, &xla).map_err(|error| match error.code() {
        Code::Invalid => error.coded(Code::CommandLine),
        _ => error,
    })
}

fn dispatch(cli: Cli, xla: &XlaFlags) -> Result<()> {
    match cli.command {
        Some(Command::Build(arguments)) => build::run(&arguments, xla),
        Some(Command::Check(arguments)) => check::run(&arguments),
        Some(Command::Config(arguments)) => infer::run(&arguments),
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
        Some(Command::Completions(arguments)) => manual::completions(&arguments),
        Some(Command::Man(arguments)) => manual::page(&arguments),
        None => compile::run(&cli.compile, xla),
    }
}
