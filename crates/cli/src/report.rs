//! What is shown of a compilation and of a run while they go on, and after them.

pub(crate) mod dump;
pub(crate) mod progress;
pub(crate) mod stage_times;
pub(crate) mod steps;
pub(crate) mod text;

use compiler::Observer;

/// An observer of a build that also takes notes for the user.
pub(crate) trait Reporter: Observer + Send {
    /// Prints something that the user may want to know.
    fn note(&mut self, text: &str);

    /// Shows the current activity.
    fn doing(&mut self, _text: &str) {}

    /// Ends the display: the compilation is over.
    fn compiled(&mut self) {}
}
