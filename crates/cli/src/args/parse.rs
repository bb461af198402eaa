//! Parsing of values that several flags share, and the message for a malformed command line.

use compiler::LoopBounds;
use regex_lite::Regex;
use std::collections::BTreeMap;
use support::{Code, Error, Result};
use tf::model::VariablesToFeed;
use tf::substitutions::{CustomCall, CustomOutput};

/// Rewrites clap's parse error as one sentence, in the original tool's words where it has a message
/// for it.
pub(crate) fn message(error: &clap::Error) -> String {
    use clap::error::ErrorKind;
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let paragraphs = text.split("\n\n").map(str::trim);
    // The tip "to pass" suggests an unknown flag as a value, which is never the intention.
    let left_out = ["Usage:", "For more information", "tip: to pass"];
    let paragraphs = paragraphs.filter(|p| left_out.iter().all(|start| !p.starts_with(start)));
    let clauses: Vec<String> = paragraphs
        .map(|p| p.strip_prefix("tip: ").unwrap_or(p).split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let sentence = clauses.join("; ");
    // clap takes a word that is not a flag for a command, which must come first.
    let left_over = match error.kind() {
        ErrorKind::InvalidSubcommand => true,
        ErrorKind::ArgumentConflict => sentence.starts_with("the subcommand '"),
        _ => false,
    };
    match sentence.split('\'').nth(1).filter(|_| left_over) {
        Some(word) => format!(
            "'{word}' is neither a flag nor a command such as build, check, inspect, or run, which must come first. This \
             command does not take any arguments other than flags. See --help."
        ),
        // The other flags describe what a config states.
        None if error.kind() == ErrorKind::ArgumentConflict && sentence.contains("'--config") => format!(
            "{sentence}: the config states feeds, fetches, and sizes. Write them there, open sizes as shape {{ dim {{ size: -1 \
             name: \"batch\" }} }} and dimension {{ name: \"batch\" min: 1 max: 64 }}, or leave out --config. See --help."
        ),
        None => format!("{sentence}. See --help."),
    }
}

/// Parses the regular expression of a flag.
pub(crate) fn regex(flag: &str, text: &str) -> Result<Regex> {
    Regex::new(text).map_err(|e| Error::invalid(format!("--{flag}={text}: invalid regular expression: {e}")))
}

/// Parses the flags `--loop-bound NAME=N`.
pub(crate) fn loop_bounds(flags: &[String]) -> Result<LoopBounds> {
    let mut bounds = LoopBounds::new();
    for flag in flags {
        let parsed = flag.rsplit_once('=').and_then(|(name, bound)| Some((name, bound.parse::<i64>().ok()?)));
        let Some((name, bound)) = parsed.filter(|&(name, bound)| !name.is_empty() && bound >= 0) else {
            return Err(Error::invalid(format!(
                "--loop-bound {flag}: expected NAME=N, the name of a loop and its maximum number of iterations"
            )));
        };
        if bounds.insert(name.to_owned(), bound).is_some() {
            return Err(Error::invalid(format!("--loop-bound is given twice for '{name}'")));
        }
    }
    Ok(bounds)
}

/// Parses the flags `--custom-call OP=symbol[:OUTPUT;..]`.
pub(crate) fn custom_calls(flags: &[String]) -> Result<BTreeMap<String, CustomCall>> {
    let mut calls = BTreeMap::new();
    for flag in flags {
        let at_flag = |e: Error| e.context(format!("--custom-call {flag}")).coded(Code::CustomCall);
        let parsed = flag.split_once('=').filter(|(op, _)| !op.is_empty());
        let (op, call) = parsed.ok_or_else(|| at_flag(Error::invalid("expected OP=symbol")))?;
        let (symbol, outputs) = call.split_once(':').unwrap_or((call, ""));
        if !support::is_c_identifier(symbol) || symbol == hlo::custom_call::ALLOCATE_BUFFER {
            return Err(at_flag(Error::invalid(format!("'{symbol}' is not a valid name for a C function"))));
        }
        let outputs = CustomOutput::parse_all(outputs).map_err(at_flag)?;
        if calls.insert(op.to_owned(), CustomCall { symbol: symbol.to_owned(), outputs }).is_some() {
            return Err(at_flag(Error::invalid(format!("given twice for '{op}'"))));
        }
    }
    Ok(calls)
}

/// Parses the value of `--variables-to-feed`.
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
