//! Typed indices and the vectors they index; the error type that every stage speaks.
//!
//! Nothing here knows a domain word: no shape, no graph, no instruction.

mod error;
mod id_vec;

pub use error::{Error, ErrorKind, Result};
pub use id_vec::{Id, IdVec};
