//! Converts StableHLO to HLO, so that programs exported by JAX, PyTorch/XLA, and others can be
//! compiled; also converts HLO back to StableHLO ([`write()`]).
//!
//! The semantics of operations come from StableHLO's specification (`docs/spec.md` of
//! openxla/stablehlo) and, for CHLO, from the descriptions in `ChloOps.td`. Each operation becomes
//! the opcode of the same name or a few opcodes; `ops` has one function for each, looked up by
//! name. Functions become computations that are called, and regions become computations.

mod checks;
mod importer;
mod jax_export;
mod names;
mod operation;
mod ops;
mod quantized;
mod regions;
mod sized;
mod types;
mod walk;
mod writer;

pub use checks::{Check, CheckKind};
pub use importer::{Imported, dimensions, import, import_each, import_function_named, import_sized};
pub use jax_export::{is_export, read_export};
pub use sized::{GivenSize, OpenDimensions, SizeRequest};
pub use writer::{Version, WriteOptions, write};
