//! Pages that follow from the tool or from one another: the reference of the command line, the table of contents.

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use support::{root, succeed, tfcompile};

fn help(arguments: &[&str]) -> String {
    let output = succeed(tfcompile(&root()).args(arguments).arg("--help"));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The commands that the tool's help lists: indented words in lower case.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("Commands:").nth(1).expect("a list of commands");
    let lines = list.lines().skip(1).take_while(|line| !line.is_empty());
    lines.filter_map(|line| Some(line.strip_prefix("  ")?.split_whitespace().next()?.to_owned())).collect()
}

/// `UPDATE_DOCS=1` writes the page.
#[test]
fn the_reference_is_what_the_tool_says() {
    let tool = help(&[]);
    let mut page = String::from(
        "# Command line\n\nWhat `--help` says, of the tool and of each command; written by `make docs`.\n",
    );
    let mut section = |name: &str, text: &str| {
        write!(page, "\n## {name}\n\n```text\n").expect("to memory");
        text.lines().for_each(|line| writeln!(page, "{}", line.trim_end()).expect("to memory"));
        page.push_str("```\n");
    };
    section("tfcompile", &tool);
    let commands = commands(&tool);
    assert!(commands.iter().any(|command| command == "build"), "{commands:?}");
    for command in &commands {
        section(&format!("tfcompile {command}"), &help(&[command]));
    }
    let path = root().join("docs/cli.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &page).expect("written");
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == page, "docs/cli.md is not what the tool says: run `make docs`");
}

#[test]
fn the_book_has_every_page_and_no_other() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("a table of contents");
    let listed: BTreeSet<String> = summary
        .lines()
        .filter_map(|line| Some(line.split_once("](")?.1.split_once(')')?.0.to_owned()))
        .collect();
    let mut there = BTreeSet::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(docs.join(&folder)).expect("readable") {
            let entry = entry.expect("readable");
            let path = format!("{folder}{}", entry.file_name().into_string().expect("UTF-8"));
            if entry.file_type().expect("readable").is_dir() {
                folders.push(format!("{path}/"));
            } else if path.ends_with(".md") && path != "SUMMARY.md" {
                there.insert(path);
            }
        }
    }
    assert_eq!(listed, there);
}
