//! Repeats an import. Each round teaches the next how much room stacks and tensor arrays need.
//!
//! A buffer is allocated at the first push or write, before later ones are known. Its size is
//! nearly always sufficient. If not, the program is imported again with the sizes found.

use crate::control::loop_bounds;
use crate::node::rule::RuleTable;
use crate::values::lessons::Lessons;
use crate::values::state::State;
use crate::walk::entry::import_once;
use crate::walk::unsupported;
use std::collections::BTreeSet;
use support::{Code, Coded as _, Error, Result};
use tf::Program;

/// Maximum number of rounds. After each, everything that was too small gets the room that it
/// needed.
const MAX_ROUNDS: usize = 8;

/// Imports a program. Also returns the inputs whose values the rules asked for. If only the ranges
/// of sizes prevent the import, the error says so.
pub(crate) fn import_in_rounds(
    rules: &'static RuleTable,
    program: &Program,
) -> (Result<hlo::Program>, BTreeSet<(String, usize)>) {
    let (result, requested) = rounds(rules, program);
    (result.map_err(|error| with_fix(rules, program, error)), requested)
}

/// Adds to an error that the program compiles with fixed sizes, if it does. Otherwise returns the
/// error of the program with the largest sizes, and adds that it compiles with the smallest ones,
/// as models do that were made for one sample.
fn with_fix(rules: &'static RuleTable, program: &Program, error: Error) -> Error {
    if program.dimensions.is_empty() {
        return error;
    }
    match rounds(rules, &program.of_largest_sizes()).0 {
        Ok(_) => with_flags(program, error),
        Err(fixed) => match rounds(rules, &program.of_smallest_sizes()).0 {
            Ok(_) => {
                let flags = |k: usize| flag(program, k, &program.dimensions[k].low.max(1).to_string());
                let flags: Vec<String> = (0..program.dimensions.len()).map(flags).collect();
                let message = fixed.message();
                let message = format!("{message}; with the smallest sizes it compiles: {}", flags.join(" "));
                fixed.with_message(message)
            }
            Err(_) => fixed,
        },
    }
}

/// Adds the flags that fix the sizes of a program.
pub(crate) fn with_flags(program: &Program, error: Error) -> Error {
    let flags: Vec<String> = (0..program.dimensions.len()).map(|k| flag(program, k, "N")).collect();
    let message = format!("{}; with fixed sizes it compiles: {}", error.message(), flags.join(" "));
    error.with_message(message)
}

/// Returns the flag that fixes the size of a named dimension. The dimension of one feed is named
/// after the feed and the dimension's number.
fn flag(program: &Program, position: usize, size: &str) -> String {
    let name = &program.dimensions[position].name;
    let own = program.feeds.iter().find_map(|feed| {
        let feed_name = if feed.name.is_empty() { &feed.id.0 } else { &feed.name };
        let mut dimensions = feed.dimensions.iter().filter(|(_, named)| **named == position);
        dimensions.find(|(d, _)| *name == format!("{feed_name}_{d}")).map(|(d, _)| format!("{feed_name}.{d}"))
    });
    format!("--dim {}={size}", own.as_ref().unwrap_or(name))
}

/// Imports until a round learns nothing new.
fn rounds(rules: &'static RuleTable, program: &Program) -> (Result<hlo::Program>, BTreeSet<(String, usize)>) {
    let check = unsupported::check(rules, program)
        .and_then(|()| loop_bounds::check_promises(program).coded(Code::LoopBound));
    if let Err(error) = check {
        return (Err(error), BTreeSet::new());
    }
    let mut lessons = Lessons::default();
    let mut requested = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let mut state = State::new(program, lessons);
        let result = import_once(rules, &mut state);
        requested = state.take_requested_constants();
        lessons = state.lessons().clone();
        if !lessons.take_change() {
            return (result, requested);
        }
    }
    let error = Error::unsupported(format!(
        "the stacks or tensor arrays of the graph still need more room after {MAX_ROUNDS} rounds; declare their sizes in the graph"
    ));
    (Err(error.coded(Code::LoopBound)), requested)
}
