//! A backend of Triton Inference Server: `libtriton_tfcompile.so`, which runs shared libraries that
//! `tfcompile build --emit=shared` wrote.
//!
//! | file | contents |
//! |---|---|
//! | `api` | the server's functions, found at run time, with its types and numbers |
//! | `entry` | the functions that the server calls |
//! | `server` | the server's functions as safe Rust |
//! | `library`, `program` | a compiled program from a directory of the model repository |
//! | `signature`, `config` | the program's tensors for the server; the model's configuration |
//! | `batch` | division of requests into runs |
//! | `block` | copies between dense tensors and the corners of larger arrays |
//! | `frame` | the memory of an instance, and a run |
//! | `execute` | requests to responses |
//!
//! No function of the backend ends the process or unwinds into the server: every failure is an
//! error of a model, of an instance, or of one request.

#![cfg(target_os = "linux")]

#[expect(unsafe_code, reason = "declarations of the server's functions")]
mod api;
mod batch;
mod block;
mod config;
#[expect(unsafe_code, reason = "the server calls these functions, with its objects")]
mod entry;
mod execute;
#[expect(unsafe_code, reason = "generated code follows raw addresses")]
mod frame;
#[expect(unsafe_code, reason = "the dynamic linker")]
mod library;
mod program;
#[expect(unsafe_code, reason = "the server's functions, with its objects")]
mod server;
mod signature;
