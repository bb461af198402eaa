//! Command lines of the TensorFlow tools that this tool replaces.

pub(crate) mod aot_compile_cpu;
pub(crate) mod compile;
pub(crate) mod freeze;
pub(crate) mod xla_extract;
