//! The command line: arguments, files, and exit codes. The compiler decides what the arguments
//! mean.

mod args;
mod artifacts;
mod commands;
mod dispatch;
mod files;
mod memory;
mod original;
mod program;
mod report;
mod session;

use clap::Parser;
use dispatch::{Cli, dispatch};
use std::process::ExitCode;
use support::{Code, Coded as _, Error, ErrorKind, Result};

fn main() -> ExitCode {
    // Silence the default report of a panic, because it becomes an error for the user.
    std::panic::set_hook(Box::new(|_| {}));
    memory::install();
    match std::panic::catch_unwind(run).unwrap_or_else(|panic| Err(compiler::panicked(&*panic))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let kind = match error.kind() {
                ErrorKind::Invalid => "INVALID ARGUMENTS",
                ErrorKind::Unsupported => "UNSUPPORTED",
                ErrorKind::Internal => "INTERNAL ERROR",
            };
            let kind = terminal::Screen::stderr().style(terminal::Style::Bad, kind);
            let (message, code) = (shortened(error.message()), error.code());
            // If standard error is closed, there is nowhere to report that.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("{kind}: {message}\n({code}: `tfcompile explain {code}` says more)\n"),
            );
            ExitCode::FAILURE
        }
    }
}

/// Maximum length of a message in bytes. A graph may contain names of many megabytes.
const MAX_MESSAGE: usize = 4000;

/// Shortens a message that is too long by omitting its middle: both ends say what is wrong.
fn shortened(message: &str) -> std::borrow::Cow<'_, str> {
    if message.len() <= MAX_MESSAGE {
        return message.into();
    }
    let start = message.floor_char_boundary(MAX_MESSAGE / 2);
    let end = message.ceil_char_boundary(message.len() - MAX_MESSAGE / 2);
    format!("{} [{} bytes omitted] {}", &message[..start], end - start, &message[end..]).into()
}

fn run() -> Result<()> {
    let environment = args::xla_flags::Environment {
        xla_flags: std::env::var("XLA_FLAGS").ok(),
        tf_xla_flags: std::env::var("TF_XLA_FLAGS").ok(),
        dump_graph_prefix: std::env::var("TF_DUMP_GRAPH_PREFIX").ok(),
        device_driver: std::env::var("TFCOMPILE_DEVICE_DRIVER").ok(),
        vlog_level: std::env::var("TF_CPP_MIN_VLOG_LEVEL").ok(),
    };
    let (words, xla) =
        args::xla_flags::split(std::env::args_os().collect(), &environment).coded(Code::CommandLine)?;
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(answer) if !answer.use_stderr() => return files::outputs::print(&answer.to_string()),
        Err(error) => return Err(Error::invalid(args::parse::message(&error)).coded(Code::CommandLine)),
    };
    // An error without a code comes from the command itself: every stage assigns codes to its own.
    dispatch(cli, &xla).map_err(|error| match error.code() {
        Code::Invalid => error.coded(Code::CommandLine),
        _ => error,
    })
}
