//! `tfcompile completions` and `tfcompile man`: what is made from the description of the command line.

use crate::files::outputs;
use clap::{Args, Command};
use clap_complete::Shell;
use support::{Error, Result};

/// `tfcompile completions`.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell; its manual says where it looks for the file
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// `tfcompile man`.
#[derive(Args, Debug)]
pub(crate) struct Page {
    /// A command, such as build [default: the page of the tool]
    #[arg(value_name = "COMMAND")]
    command: Option<String>,
}

/// Prints a script for a shell.
pub(crate) fn completions(arguments: &Completions, mut tool: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut tool, "tfcompile", &mut script);
    print(script)
}

/// Prints a page in roff.
pub(crate) fn page(arguments: &Page, mut tool: Command) -> Result<()> {
    // Built, so that a command knows the one that it belongs to.
    tool.build();
    let command = match arguments.command.as_deref() {
        None => tool,
        Some(name) => match tool.find_subcommand(name) {
            Some(command) => command.clone(),
            None => {
                let names: Vec<&str> = tool.get_subcommands().map(Command::get_name).collect();
                return Err(Error::invalid(format!("'{name}' is no command; they are {}", names.join(", "))));
            }
        },
    };
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(command).render(&mut page);
    rendered.map_err(|e| Error::internal(format!("the page cannot be written to memory: {e}")))?;
    print(page)
}

fn print(bytes: Vec<u8>) -> Result<()> {
    let text = String::from_utf8(bytes).map_err(|_| Error::internal("the description is no UTF-8"))?;
    outputs::print(&text)
}
