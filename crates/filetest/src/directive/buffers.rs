//! `// test: buffers`: prints the memory assigned to each value. The independent checker must
//! accept it.

use super::{Outcome, plan::outcome};
use crate::case::Case;
use buffers::ConstantsPool;

/// Plans, schedules, assigns, checks, and prints.
pub(super) fn run(case: &Case) -> Outcome {
    outcome(case, |module, plan, _| {
        let schedule = buffers::schedule(module, plan);
        let mut constants = ConstantsPool::default();
        let assignment = buffers::assign(module, plan, &schedule, &mut constants)?;
        buffers::check(module, plan, &schedule, &assignment)?;
        Ok(assignment.to_text(module, constants.size()))
    })
}
