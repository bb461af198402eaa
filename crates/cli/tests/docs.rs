//! Generated pages: the reference of the command line and the table of contents.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use support::{root, succeed, tfcompile};

fn help(arguments: &[&str]) -> String {
    let output = succeed(tfcompile(&root()).args(arguments).arg("--help"));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the commands that the tool's help lists: indented lower-case words.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("Commands:").nth(1).expect("a list of commands");
    let lines = list.lines().skip(1).take_while(|line| !line.is_empty());
    lines.filter_map(|line| Some(line.strip_prefix("  ")?.split_whitespace().next()?.to_owned())).collect()
}

/// Summary of a command: the first line of its help.
fn summary(help: &str) -> &str {
    help.lines().next().unwrap_or_default()
}

/// Returns a page with the help of one command.
fn page(title: &str, help: &str) -> String {
    let mut page = format!("# {title}\n\n```text\n");
    help.lines().for_each(|line| writeln!(page, "{}", line.trim_end()).expect("to memory"));
    page + "```\n"
}

/// `UPDATE_DOCS=1` writes the pages.
#[test]
fn the_reference_is_what_the_tool_says() {
    let tool = help(&[]);
    let commands = commands(&tool);
    assert!(commands.iter().any(|command| command == "build"), "{commands:?}");
    let mut index = String::from(
        "# Command line\n\nThe pages of this section contain the output of `--help` for the tool and for each command. `make\n\
         docs` generates them.\n\n| command | |\n|---|---|\n",
    );
    let mut pages = vec![("cli/tfcompile.md".to_owned(), page("tfcompile without a command", &tool))];
    writeln!(
        index,
        "| [`tfcompile`](cli/tfcompile.md) without a command | Compile a graph with the flags of TensorFlow's tfcompile |"
    )
    .expect("to memory");
    for command in &commands {
        let help = help(&[command]);
        writeln!(index, "| [`{command}`](cli/{command}.md) | {} |", summary(&help)).expect("to memory");
        pages.push((format!("cli/{command}.md"), page(&format!("tfcompile {command}"), &help)));
    }
    pages.push(("cli.md".to_owned(), index));
    for (name, text) in pages {
        let path = root().join("docs").join(&name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::create_dir_all(path.parent().expect("a page is in a folder")).expect("created");
            fs::write(&path, &text).expect("written");
        }
        let there = fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "docs/{name} is out of date: run `make docs`");
    }
}

/// Returns the pages of a folder by their paths relative to `docs`.
fn pages(folder: &Path, prefix: &str) -> BTreeSet<String> {
    let mut pages_found = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("readable") {
        let entry = entry.expect("readable");
        let name = entry.file_name().into_string().expect("UTF-8");
        if entry.path().is_dir() {
            pages_found.extend(pages(&entry.path(), &format!("{prefix}{name}/")));
        } else if name.ends_with(".md") && name != "SUMMARY.md" {
            pages_found.insert(format!("{prefix}{name}"));
        }
    }
    pages_found
}

#[test]
fn the_book_has_every_page_and_no_other() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("a table of contents");
    let listed: BTreeSet<String> = summary
        .lines()
        .filter_map(|line| Some(line.split_once("](")?.1.split_once(')')?.0.to_owned()))
        .collect();
    assert_eq!(listed, pages(&docs, ""));
}
