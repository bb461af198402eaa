//! Translation on trial: whatever it changes is rolled back, however it ends, unless it is to be kept.

use crate::node::context::NodeContext;
use support::Result;

/// The outcome of a trial.
pub(crate) enum Outcome<R> {
    /// What was built stays.
    Keep(R),
    /// Only what was found stays.
    RollBack(R),
}

impl NodeContext<'_, '_> {
    /// Makes an attempt. Unless that ends with [`Outcome::Keep`], everything is as before: also after an error.
    pub(crate) fn trial<R, E>(
        &mut self,
        attempt: impl FnOnce(&mut Self) -> Result<Outcome<R>, E>,
    ) -> Result<R, E> {
        let snapshot = self.snapshot();
        let outcome = attempt(self);
        self.end_trial(snapshot, matches!(outcome, Ok(Outcome::Keep(_))));
        outcome.map(|(Outcome::Keep(found) | Outcome::RollBack(found))| found)
    }
}
