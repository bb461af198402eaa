//! The project's own checks: `cargo xtask tidy`.

mod links;
mod manifest;
mod rules;
mod tidy;
mod tree;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask tidy    check the structure: dependency edges, file sizes, file headers, where LLVM and IO may be named,
                    and whether links between pages lead somewhere
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => match tree::read(std::path::Path::new(".")) {
            Ok(files) => report(&tidy::check(&files)),
            Err(message) => {
                eprintln!("tidy: {message}");
                ExitCode::from(2)
            }
        },
        _ => {
            eprint!("{HELP}");
            ExitCode::from(2)
        }
    }
}

fn report(findings: &[String]) -> ExitCode {
    findings.iter().for_each(|finding| eprintln!("tidy: {finding}"));
    if findings.is_empty() {
        println!("tidy: nothing to say");
        ExitCode::SUCCESS
    } else {
        eprintln!("tidy: {} findings", findings.len());
        ExitCode::FAILURE
    }
}
