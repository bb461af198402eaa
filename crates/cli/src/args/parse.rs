//! Texts that several flags share: their values, and the sentence about a command line that is wrong.

use compiler::LoopBounds;
use regex_lite::Regex;
use std::collections::BTreeMap;
use support::{Code, Error, Result};
use tf::model::VariablesToFeed;
use tf::substitutions::{CustomCall, CustomOutput};

/// One sentence of a parse error, in the words of the original where it has some.
pub(crate) fn message(error: &clap::Error) -> String {
    use clap::error::ErrorKind;
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs = text.split("\n\n").map(str::trim);
    // Nobody means an unknown flag as a value.
    let left_out = ["Usage:", "For more information", "tip: to pass"];
    let told = paragraphs.filter(|p| left_out.iter().all(|start| !p.starts_with(start)));
    let told: Vec<String> = told
        .map(|p| p.strip_prefix("tip: ").unwrap_or(p).split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let sentence = told.join("; ");
    // A word that is no flag is taken for a command, which stands alone.
    let left_over = match error.kind() {
        ErrorKind::InvalidSubcommand => true,
        ErrorKind::ArgumentConflict => sentence.starts_with("the subcommand '"),
        _ => false,
    };
    match sentence.split('\'').nth(1).filter(|_| left_over) {
        Some(word) => format!(
            "'{word}' is neither a flag nor a command such as build, check, inspect or run, which stands first. This \
             command does not take any arguments other than flags. See --help."
        ),
        None => format!("{sentence}. See --help."),
    }
}

/// A regular expression that a flag gives.
pub(crate) fn regex(flag: &str, text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|e| Error::invalid(format!("--{flag}={text} is no regular expression: {e}")))
}

/// What flags `--loop-bound NAME=N` promise.
pub(crate) fn loop_bounds(flags: &[String]) -> Result<LoopBounds> {
    let mut bounds = LoopBounds::new();
    for flag in flags {
        let parsed = flag.rsplit_once('=').and_then(|(name, bound)| Some((name, bound.parse::<i64>().ok()?)));
        let Some((name, bound)) = parsed.filter(|&(name, bound)| !name.is_empty() && bound >= 0) else {
            return Err(Error::invalid(format!(
                "--loop-bound {flag}: NAME=N is wanted, the name of a loop and the most iterations, at least 0"
            )));
        };
        if bounds.insert(name.to_owned(), bound).is_some() {
            return Err(Error::invalid(format!("--loop-bound is given twice for '{name}'")));
        }
    }
    Ok(bounds)
}

/// What flags `--custom-call OP=symbol[:OUTPUT;..]` say.
pub(crate) fn custom_calls(flags: &[String]) -> Result<BTreeMap<String, CustomCall>> {
    let mut calls = BTreeMap::new();
    for flag in flags {
        let at_flag = |e: Error| e.context(format!("--custom-call {flag}")).coded(Code::CustomCall);
        let parsed = flag.split_once('=').filter(|(op, _)| !op.is_empty());
        let (op, call) = parsed.ok_or_else(|| at_flag(Error::invalid("OP=symbol is wanted")))?;
        let (symbol, outputs) = call.split_once(':').unwrap_or((call, ""));
        if !support::is_c_identifier(symbol) || symbol == hlo::custom_call::ALLOCATE_BUFFER {
            return Err(at_flag(Error::invalid(format!("'{symbol}' cannot be the name of a C function"))));
        }
        let outputs = CustomOutput::parse_all(outputs).map_err(at_flag)?;
        if calls.insert(op.to_owned(), CustomCall { symbol: symbol.to_owned(), outputs }).is_some() {
            return Err(at_flag(Error::invalid(format!("it is given twice for '{op}'"))));
        }
    }
    Ok(calls)
}

/// The variables that a flag names.
pub(crate) fn variables_to_feed(names: Option<&str>) -> VariablesToFeed {
    match names {
        None | Some("") => VariablesToFeed::Written,
        Some(all) if all.eq_ignore_ascii_case("all") => VariablesToFeed::All,
        Some(names) => {
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            VariablesToFeed::Named(names.map(str::to_owned).collect())
        }
    }
}
