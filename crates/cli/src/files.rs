//! Files that the tool reads and writes.

pub(crate) mod depfile;
pub(crate) mod hlo_formats;
pub(crate) mod kernel_cache;
pub(crate) mod linker;
pub(crate) mod outputs;
pub(crate) mod ptxas;
pub(crate) mod state;
