//! Progress and reports that the user sees during and after a compilation or a run.

pub(crate) mod bar;
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

    /// Shows the current activity, of which `done` of `total` parts are done, or 0 of 0 if their
    /// number is unknown.
    fn doing(&mut self, _text: &str, _done: usize, _total: usize) {}

    /// Ends the display, because the compilation is over.
    fn compiled(&mut self) {}
}
