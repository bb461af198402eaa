//! Tests of the commands, which run the tool and what it writes.
//!
//! One binary links and compiles the shared code once.

mod artifacts;
mod bounded;
mod build_systems;
mod clusters;
mod commands;
mod consumer;
mod devices;
mod formats;
mod functions;
mod hlo;
mod hostile;
mod init;
mod kernel_cache;
mod large_decompositions;
mod messages;
mod mnist;
mod named_sizes;
mod objects;
mod programs;
mod quantize;
mod quantized;
mod run;
mod rust;
mod saved_models;
mod sessions;
mod stack;
mod state;
mod support;
mod tuning;
