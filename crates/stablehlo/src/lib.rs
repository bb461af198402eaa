//! StableHLO to HLO, the programs that JAX, PyTorch/XLA and others export, as modules of the compiler; and back
//! ([`write()`]).
//!
//! Operations mean what StableHLO's specification (`docs/spec.md` of openxla/stablehlo) and, for CHLO, the descriptions
//! in `ChloOps.td` say. Each becomes the opcode of its name or a few of them; there is one function for each in [`ops`],
//! found by name. Functions become computations that are called, regions become computations.

mod checks;
mod flat_buffer;
mod importer;
mod jax_export;
mod operation;
mod ops;
mod quantized;
mod regions;
mod types;
mod walk;
mod writer;

pub use checks::{Check, CheckKind};
pub use importer::{Imported, import, import_each};
pub use jax_export::{is_export, read_export};
pub use writer::{Version, WriteOptions, write};
