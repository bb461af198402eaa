//! Reductions: of whole dimensions, of windows, and along rows.

pub(crate) mod reduce;
pub(crate) mod reduce_window;
pub(crate) mod rows;
