//! What is shown of a compilation and of a run while they go on, and after them.

pub(crate) mod dump;
pub(crate) mod progress;
pub(crate) mod stage_times;
pub(crate) mod steps;
pub(crate) mod text;
