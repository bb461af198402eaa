//! What programs need at run time that hold a graph compiled by tfcompile: the frame of a call, threads, constants files.
//!
//! `tfcompile build --emit=rust` writes a struct over these; [`include_model!`] takes it from a build script's output. Without the
//! feature `std` the crate is `no_std` and allocates nothing.

#![cfg_attr(not(feature = "std"), no_std)]

mod call;
mod constants;
mod error;
mod frame;
mod plain;
mod threads;

pub use call::{Scratch, enter};
pub use constants::{CONSTANTS_HEADER_BYTES, Constants};
pub use error::Error;
pub use frame::{Frame, ParallelBody, ParallelFor};
pub use plain::{Aligned, Plain};
#[cfg(feature = "std")]
pub use plain::{AlignedBlock, zeroed_box};
#[cfg(feature = "std")]
pub use threads::ThreadPool;
pub use threads::{Part, Workers, parallel_for};

/// The struct of a model that the build script compiled under this name: `include_model!("matmul");`.
#[macro_export]
macro_rules! include_model {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}
