//! Kernels that move data.

pub(crate) mod overwritten;
pub(crate) mod update;
