//! Loop nests: the level between HLO and machine code, and the lowering of each planned fusion to it.
//!
//! [`ir`] is the language: functions of structured control flow over scalars and fixed-width vectors. Lowerings build
//! tiled, vectorised loops explicitly; whoever translates the result (LLVM today) is not asked to vectorise or tile.
//! Nothing here names LLVM, and nothing chooses a strategy: that is the plan's.
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
pub mod frame;
mod fused;
pub mod index;
pub mod ir;
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
