//! Run-time support for graphs that tfcompile compiled into a Rust program: the frame of a call,
//! threads, and constants files. The crate has no dependencies.
//!
//! A program normally uses two items of this crate. A build script compiles the model with
//! `tfcompile-build`, and [`include_model!`] includes the generated struct:
//!
//! ```ignore
//! tfcompile_runtime::include_model!("scorer");
//!
//! let mut scorer = Scorer::new();
//! let outputs = scorer.call(&ScorerInputs { arg_x: &x })?;
//! println!("{:?}", outputs.result_score);
//! ```
//!
//! The generated struct is built on the other items. Several models can share one [`ThreadPool`],
//! or any other implementation of [`Workers`]:
//!
//! ```
//! use std::sync::atomic::{AtomicI64, Ordering};
//! use tfcompile_runtime::{ThreadPool, Workers};
//!
//! let pool = ThreadPool::new(2)?;
//! let sum = AtomicI64::new(0);
//! // Each call gets a range of items and the number of the worker that runs it.
//! let status = pool.run(100, &|begin, end, _worker| {
//!     sum.fetch_add((begin..end).sum(), Ordering::Relaxed);
//!     0
//! });
//! assert_eq!((status, sum.into_inner()), (0, 4950));
//! # Ok::<(), tfcompile_runtime::Error>(())
//! ```
//!
//! # Features
//!
//! `std`, on by default, adds [`ThreadPool`], [`Constants::read`], and heap memory. Without it the
//! crate is `no_std` and allocates nothing.
//!
//! `device` adds `Device` and `DeviceArray`, which models compiled for a GPU use. It compiles the C
//! runtime, so it needs a C compiler.

#![cfg_attr(not(feature = "std"), no_std)]

mod call;
mod constants;
#[cfg(feature = "device")]
mod device;
mod error;
mod frame;
mod plain;
mod quantization;
mod threads;

pub use call::{Scratch, enter};
pub use constants::{CONSTANTS_HEADER_BYTES, Constants};
#[cfg(feature = "device")]
pub use device::{Device, DeviceArray, DeviceKind};
pub use error::Error;
pub use frame::{Frame, ParallelBody, ParallelFor};
pub use plain::{Aligned, Plain};
#[cfg(feature = "std")]
pub use plain::{AlignedBlock, zeroed_box};
pub use quantization::{dequantize, quantize};
#[cfg(feature = "std")]
pub use threads::ThreadPool;
pub use threads::{Part, Workers, parallel_for};

/// Includes the struct of the model that the build script compiled under this name:
/// `include_model!("matmul");`. The macro reads `$OUT_DIR/NAME.rs`.
#[macro_export]
macro_rules! include_model {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
