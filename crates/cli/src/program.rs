//! A model on its way into the compiler: read, given arrays, compiled for this process.

pub(crate) mod arguments;
pub(crate) mod autotune;
pub(crate) mod in_process;
pub(crate) mod model;
pub(crate) mod model_files;
pub(crate) mod module_file;
