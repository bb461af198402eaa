//! Lowers each planned fusion to a loop nest, in the language of the crate [`nest`].
//!
//! Lowerings build tiled, vectorized loops explicitly; the printer that translates the result (LLVM today) is not asked
//! to vectorize or tile. Nothing here names LLVM, and nothing chooses a strategy: the plan does.
//!
//! [`lower`] makes a program of a module with its plan and buffers. A kernel reads like the loop it makes: the loops
//! ([`mod@loops`], `reduce`, `sort`, ...) ask for elements at symbolic positions; `fused` and `reindex` turn a position
//! into operand positions; [`elemental`] computes one opcode.

mod addressing;
mod apply;
mod attention;
mod concatenate;
mod context;
mod convolution;
mod custom_call;
mod destination;
pub mod dot;
mod element;
pub mod elemental;
mod entry;
mod fft;
mod fused;
pub mod index;
mod loops;
mod lower;
pub mod math;
mod multi_output;
pub mod narrow;
mod profile;
mod random;
mod reduce;
mod reduce_window;
pub mod regions;
mod reindex;
mod rows;
mod scatter;
mod sort;
mod tasks;
mod tile;
mod transpose;
mod update;

pub use context::{KernelContext, Memory};
pub use custom_call::ABORT_STATUS;
pub use element::{Element, decode, encode, memory_type, normalise, register_type, splat};
pub use lower::{EntryOptions, Lowered, lower, lower_with};
pub use profile::Counter;
