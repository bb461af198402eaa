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

/// Imports until a round learns nothing new. Also returns the inputs whose values the rules asked
/// for.
pub(crate) fn import_in_rounds(
    rules: &'static RuleTable,
    program: &Program,
) -> (Result<hlo::Program>, BTreeSet<(String, usize)>) {
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
