//! Lowers each planned fusion to a loop nest, in the language of the crate [`nest`].
//!
//! Lowerings build tiled, vectorized loops explicitly; the printer that translates the result (LLVM today) is not asked
//! to vectorize or tile. Nothing here names LLVM, and nothing chooses a strategy: the plan does.
//!
//! [`lower`] makes a program of a module with its plan and buffers. A kernel reads like the loop it emits: the loops
//! ([`mod@loops`], `contraction`, `reduction`, `sort`, ...) ask for elements at symbolic positions; `body_value` and
//! `reindex` turn a position into operand positions; [`elemental`] computes one opcode. The families have the layout that
//! they have in `plan`.

mod calls;
mod context;
mod contraction;
mod element;
pub mod elemental;
mod entry;
mod fft;
pub mod index;
mod loops;
mod lower;
pub mod math;
mod movement;
mod multi_output;
pub mod narrow;
mod random;
mod reduction;
mod sort;
mod transpose;

pub use context::KernelContext;
pub use context::parameters::Memory;
pub use element::{Element, decode, encode, memory_type, normalise, register_type, splat};
pub use entry::custom_call::ABORT_STATUS;
pub use entry::profile::Counter;
pub use entry::regions;
pub use lower::{EntryOptions, Lowered, lower, lower_with};
