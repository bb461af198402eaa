//! Tests of headers, modules, and metadata, and of programs that use them.
//!
//! One binary links and compiles the shared code once.

mod artifacts;
mod c_header;
mod fixtures;
mod header;
mod metadata;
mod programs;
mod rust_module;
