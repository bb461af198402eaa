//! Reductions: over dimensions, over windows, and over rows whose result the rows then use.

pub(crate) mod reduce;
pub(crate) mod reduce_window;
pub(crate) mod rows;
