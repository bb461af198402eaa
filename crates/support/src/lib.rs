//! Typed indices and the vectors they index; the error type of every stage; a check of memory
//! before it is allocated; loops that threads share.
//!
//! Nothing here knows a domain word: no shape, no graph, no instruction. Codes of errors name such things and nothing more.

mod code;
mod error;
mod id_vec;
mod identifier;
mod memory;
mod parallel;

pub use code::Code;
pub use error::{Coded, Error, ErrorKind, Result};
pub use id_vec::{Id, IdVec};
pub use identifier::is_c_identifier;
pub use memory::check_memory;
pub use parallel::for_each_chunk;
