//! Loading of models: reads a model and its arrays, and compiles it for this process.

pub(crate) mod arguments;
pub(crate) mod autotune;
pub(crate) mod in_process;
pub(crate) mod model;
pub(crate) mod model_files;
pub(crate) mod module_file;
pub(crate) mod quantized;
