//! `tfcompile completions` and `tfcompile man`: files generated from the definition of the command
//! line.

use crate::files::outputs;
use clap::{Args, Command};
use clap_complete::Shell;
use support::{Error, Result};

/// `tfcompile completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// Shell to complete commands in; see its manual for where to store the script
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// `tfcompile man`.
#[derive(Args, Debug)]
pub(crate) struct Page {
    /// Command to describe, such as build [default: the tool itself]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Prints the completion script for a shell.
pub(crate) fn completions(arguments: &Completions, mut tool: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut tool, "tfcompile", &mut script);
    print(script)
}

/// Prints a manual page in roff.
pub(crate) fn page(arguments: &Page, mut tool: Command) -> Result<()> {
    // Propagates the tool's name to its commands.
    tool.build();
    let command = match arguments.command.as_deref() {
        None => tool,
        Some(name) => match tool.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                let names: Vec<&str> = tool.get_subcommands().map(Command::get_name).collect();
                return Err(Error::invalid(format!(
                    "unknown command '{name}': expected one of {}",
                    names.join(", ")
                )));
            }
        },
    };
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|e| Error::internal(format!("failed to render the manual page: {e}")))?;
    print(page)
}

fn print(bytes: Vec<u8>) -> Result<()> {
    let text =
        String::from_utf8(bytes).map_err(|_| Error::internal("the generated page is not valid UTF-8"))?;
    outputs::print(&text)
}
