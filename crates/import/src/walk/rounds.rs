//! Rounds of an import, each of which teaches the next how much room stacks and tensor arrays need.
//!
//! A buffer is made at the first push or write, when what comes later is not known yet. Nearly always that is enough; where
//! it is not, the program is imported again, with what was found.

use crate::control::loop_bounds;
use crate::node::rule::RuleTable;
use crate::values::lessons::Lessons;
use crate::values::state::State;
use crate::walk::entry::import_once;
use crate::walk::unsupported;
use std::collections::BTreeSet;
use support::{Code, Coded as _, Error, Result};
use tf::Program;

/// How often a program is imported; each time all that was found too small gets the room that it needed.
const MAX_ROUNDS: usize = 8;

/// Imports until nothing is learned any more. Beside an error, the inputs whose values the rules wanted to know.
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
    let mut wanted = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let mut state = State::new(program, lessons);
        let result = import_once(rules, &mut state);
        wanted = state.take_wanted_constants();
        lessons = state.lessons().clone();
        if !lessons.take_change() {
            return (result, wanted);
        }
    }
    let error = Error::unsupported(format!(
        "the stacks or tensor arrays of the graph still need more room after {MAX_ROUNDS} rounds; give them their sizes"
    ));
    (Err(error.coded(Code::LoopBound)), wanted)
}
