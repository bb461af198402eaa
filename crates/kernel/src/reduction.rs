//! Reductions: over dimensions, over windows, and over rows that later use their own results.

pub(crate) mod reduce;
pub(crate) mod reduce_window;
pub(crate) mod rows;
