//! The loop-nest language: the level between planned HLO and machine code.
//!
//! [`language`] defines it: functions of structured control flow over scalars and fixed-width vectors, with explicit
//! tiles, vectors, and memory. [`FunctionBuilder`] builds functions, [`verify`] checks the rules that printers rely on,
//! and every program prints as text that [`parse`] reads back.
//!
//! The crate knows neither HLO nor LLVM, so that a printer for another machine needs nothing else.

mod builder;
mod dedup;
#[cfg(debug_assertions)]
pub mod defects;
mod frame;
mod interleave;
pub mod language;
pub mod stack;
mod text;
mod verify;
mod walk;

pub use builder::{FunctionBuilder, RegionBuilder};
pub use dedup::dedup;
pub use frame::FrameLayout;
pub use interleave::in_turn;
pub use language::*;
pub use text::parse;
pub use verify::verify;
pub use walk::Walk;
