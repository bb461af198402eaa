//! Trial translation: rolls back all changes after the trial, unless the caller keeps its result.

use crate::node::context::NodeContext;
use support::Result;

/// The outcome of a trial.
pub(crate) enum Outcome<R> {
    /// Keep what was built.
    Keep(R),
    /// Roll back what was built, and keep only the finding.
    RollBack(R),
}

impl NodeContext<'_, '_> {
    /// Makes an attempt. Unless it ends with [`Outcome::Keep`], the state is restored, even after
    /// an error.
    pub(crate) fn trial<R, E>(
        &mut self,
        attempt: impl FnOnce(&mut Self) -> Result<Outcome<R>, E>,
    ) -> Result<R, E> {
        let snapshot = self.snapshot();
        let outcome = attempt(self);
        self.end_trial(snapshot, matches!(outcome, Ok(Outcome::Keep(_))));
        outcome.map(|(Outcome::Keep(value) | Outcome::RollBack(value))| value)
    }
}
