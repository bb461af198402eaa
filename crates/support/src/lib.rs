//! Typed indices and vectors indexed by them, the error type of every stage, a memory check before
//! large allocations, and parallel loops.
//!
//! This crate is independent of the domain: it has no shapes, graphs, or instructions. Only the
//! error codes name such things.

mod code;
mod error;
mod id_vec;
mod identifier;
mod memory;
mod parallel;

pub use code::Code;
pub use error::{Coded, Error, ErrorKind, Result};
pub use id_vec::{Id, IdSet, IdVec};
pub use identifier::is_c_identifier;
pub use memory::{attempt, check_memory, is_attempt};
pub use parallel::for_each_chunk;
