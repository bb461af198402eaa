//! Progress and reports that the user sees during and after a compilation or a run.

pub(crate) mod dump;
pub(crate) mod progress;
pub(crate) mod stage_times;
pub(crate) mod steps;
pub(crate) mod text;

use compiler::Observer;

/// An observer of a build that also prints notes for the user.
pub(crate) trait Reporter: Observer + Send {
    /// Prints a note for the user.
    fn note(&mut self, text: &str);

    /// Shows the current activity.
    fn doing(&mut self, _text: &str) {}

    /// Ends the display, because the compilation is over.
    fn compiled(&mut self) {}
}
