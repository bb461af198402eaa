//! Lowering: from planned HLO to loop nests in the language of the crate [`nest`].
//!
//! [`lower`] takes a module, its plan, its schedule, and its buffer assignment, and returns a
//! [`nest::Program`]: one function for each kernel, and the entry function that calls them. Nothing
//! here chooses a strategy, because the plan has done that, and nothing here names LLVM. Lowerings
//! emit tiled, vectorized loops; later stages are not expected to tile or vectorize.
//!
//! # How a kernel is built
//!
//! A kernel reads like the loop that it emits. The code for a family of strategies emits the loops:
//! `loops` for elementwise work, `contraction` for dots and convolutions, `reduction`, `sort`,
//! `fft`, and so on, with the same folders as in `plan`. Inside the loops it asks for elements:
//!
//! 1. The loop asks the [`KernelContext`] for the value of an instruction at a symbolic position,
//!    an [`index`] that is affine in the loop variables and in the lane number.
//! 2. `context::body_value` computes that value once in the outermost region in which its operands
//!    are available. Loop-invariant code therefore leaves its loops here; no later stage moves it.
//! 3. `context::reindex` turns the position in a result into positions in the operands, for
//!    operations such as `broadcast`, `transpose`, and `slice`. They cost no code of their own.
//! 4. [`elemental`] emits the arithmetic of one opcode on [`Element`]s, and [`math`] the elementary
//!    functions, in any vector width.
//!
//! A contraction keeps its sums in registers. Its epilogue, the elementwise work that follows in
//! the same fusion, is computed on each register tile before the tile is stored.
//!
//! # The entry
//!
//! [`regions`] and the modules around it build the entry. It reads the addresses that it needs from
//! the caller's frame, and then runs the schedule: kernels, copies, branches, loops, and calls of
//! user functions. Kernels that do not depend on each other form a parallel region, which costs one
//! fork and one join. A kernel of several tasks takes a range of task numbers, so that each worker
//! can run a part of it. [`Counter`]s describe what a profiled entry measures.

mod calls;
mod context;
mod contraction;
mod device;
mod device_program;
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
pub use device_program::lower_device;
pub use element::{Element, decode, encode, memory_type, normalize, register_type, splat};
pub use entry::choice::{Choice, Exact};
pub use entry::custom_call::ABORT_STATUS;
pub use entry::pieces::{Batch, BatchArray, Parts, Piece, duration};
pub use entry::profile::Counter;
pub use entry::regions;
pub use lower::{EntryOptions, Lowered, kernel_name, lower, lower_batch, lower_choice, lower_with};
