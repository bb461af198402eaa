//! Kernels that move elements: concatenations, updates in place, and scatters.

pub(crate) mod concatenate;
pub(crate) mod scatter;
pub(crate) mod update;
