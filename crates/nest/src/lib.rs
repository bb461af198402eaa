//! The loop-nest language: the level between planned HLO and machine code.
//!
//! `kernel` lowers each planned fusion to a function in this language, and `codegen` translates the
//! functions to LLVM IR. Tiles, vectors, addresses, and the order of all operations are explicit,
//! so the translation to machine code only selects instructions and allocates registers. The crate
//! knows neither HLO nor LLVM. Code for another kind of machine needs another translator and
//! nothing else.
//!
//! # The language
//!
//! [`language`] defines it. A [`Program`] is a list of [`Function`]s, callees before callers. The
//! last one is the entry, whose only parameter points to the caller's frame ([`FrameLayout`]). A
//! function has typed parameters and a body of [`Statement`]s in structured control flow: `for`,
//! `while`, `if`, calls, stores. An [`Expression`] defines a value. Each value is a scalar or a
//! vector with a fixed number of lanes, is defined once (SSA form), and is visible in its region
//! and in the regions inside. A loop lists the values that it carries from one iteration to the
//! next.
//!
//! ```text
//! for v6 in v4..v5 step 1 {
//!   ...
//!   v11: f32x8, v13: f32x8 = for v9 in v7..v8 step 16 carry (v10 = v3, v12 = v3) {
//!     ...
//!     v19: ptr = offset v0 + v18 * 4
//!     v21: f32x8 = load v19 align 4
//!     v22: f32x8 = add v10, v21
//!     ...
//!     yield v22, v27
//!   }
//!   ...
//! }
//! ```
//!
//! # Working with programs
//!
//! - [`FunctionBuilder`] builds a function statement by statement and folds index arithmetic on the
//!   way. Regions are closures.
//! - [`verify()`] checks the rules that translators rely on.
//! - Every program prints as text (`Display`), which [`parse`] reads back. The file tests below
//!   `tests/hlo/kernel` compare such text, so lowering is tested without LLVM.
//! - [`Walk`] visits nested statements in one traversal.
//! - [`dedup()`] replaces functions with the same body by one of them; [`stack`] bounds the stack
//!   that the entry needs; [`in_turn`] interleaves independent straight-line code, so that a core
//!   executes several dependency chains at once, and [`with_joined_lookups`] joins lookups of bytes
//!   that would not fill a register.

mod builder;
mod dedup;
#[cfg(debug_assertions)]
pub mod defects;
mod fixed_point;
mod frame;
mod interleave;
pub mod language;
pub mod launch;
mod lookups;
pub mod stack;
mod straight_line;
mod text;
mod uniform;
mod verify;
mod walk;

pub use builder::{FunctionBuilder, RegionBuilder};
pub use dedup::dedup;
pub use frame::FrameLayout;
pub use interleave::in_turn;
pub use language::*;
pub use lookups::with_joined_lookups;
pub use text::parse;
pub use verify::verify;
pub use walk::Walk;
