//! Commands of this project: `cargo xtask tidy`, `cargo xtask cycles`, and `cargo xtask test`.

mod cycles;
mod folders;
mod links;
mod manifest;
mod modules;
mod paths;
mod prose;
mod rules;
mod test_runs;
mod tidy;
mod tokens;
mod tree;

use std::process::ExitCode;
use tree::SourceFile;

const HELP: &str = "\
cargo xtask tidy              check the structure: dependency edges, sealed types, file sizes, file headers, where LLVM and IO may
                              be named, links and paths in pages, spelling and wording, and what `cycles` lists
cargo xtask cycles [CRATE]    list import cycles, large folders, and `mod.rs` files of all crates or of one
cargo xtask test              run all unit, integration, and doc tests, one test binary per processor at a time
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words == ["test"] {
        return match test_runs::run() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(message) => {
                eprintln!("test: {message}");
                ExitCode::from(2)
            }
        };
    }
    let files = match tree::read(std::path::Path::new(".")) {
        Ok(files) => files,
        Err(message) => {
            eprintln!("tidy: {message}");
            return ExitCode::from(2);
        }
    };
    match words.as_slice() {
        ["tidy"] => {
            let mut findings = tidy::check(&files);
            findings.extend(layout(&files, None));
            report(&findings)
        }
        ["cycles"] => report(&layout(&files, None)),
        ["cycles", name] => report(&layout(&files, Some(name))),
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}

/// Runs the checks of the layout of crates, of all or of one.
fn layout(files: &[SourceFile], only: Option<&str>) -> Vec<String> {
    let mut findings = Vec::new();
    folders::check(files, only, &mut findings);
    cycles::check(files, only, &mut findings);
    findings
}

fn report(findings: &[String]) -> ExitCode {
    findings.iter().for_each(|finding| eprintln!("tidy: {finding}"));
    if findings.is_empty() {
        println!("tidy: no findings");
        ExitCode::SUCCESS
    } else {
        eprintln!("tidy: {} findings", findings.len());
        ExitCode::FAILURE
    }
}
