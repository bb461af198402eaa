//! The command lines of the tools that this one replaces.

pub(crate) mod aot_compile_cpu;
pub(crate) mod compile;
pub(crate) mod freeze;
pub(crate) mod xla_extract;
