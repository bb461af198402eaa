//! Typed indices and the vectors they index; the error type that every stage speaks; memory
//! that is asked for before it is used.
//!
//! Nothing here knows a domain word: no shape, no graph, no instruction.

mod error;
mod id_vec;
mod memory;

pub use error::{Error, ErrorKind, Result};
pub use id_vec::{Id, IdVec};
pub use memory::check_memory;
