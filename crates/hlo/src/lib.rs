//! HLO: the one middle of the compiler. Modules, computations, instructions, with XLA's opcodes, names and text.
//!
//! What a program means lives here and nowhere else; no TensorFlow, no target, no file. The fields of the graph are
//! private: reads go through indexing, edits through [`Computation`]'s methods, which keep the users right.

pub mod analysis;
mod annotations;
mod attributes;
mod builder;
mod computation;
pub mod custom_call;
mod fusion;
mod ids;
mod infer;
mod instruction;
pub mod interface;
mod module;
mod opcode;
pub mod proto;
pub mod text;
mod verify;
mod xla_types;

pub use annotations::Annotations;
pub use attributes::*;
pub use builder::ComputationBuilder;
pub use computation::Computation;
pub use fusion::{CACHE_LINE, is_associative};
pub use ids::{ComputationId, InstructionId};
pub use infer::{MAX_RANK, MAX_TUPLE_DEPTH, infer_shape};
pub use instruction::{Instruction, OpMetadata};
pub use interface::{Argument, Identifier, Interface, Origin, Output, Program, Role, TrueSize};
pub use module::{AliasKind, BoundedDimension, InputOutputAlias, Module};
pub use opcode::{Arity, Op, Opcode, Traits};
pub use text::{PrintOptions, parse};
pub use verify::{MAX_CALL_DEPTH, VerifyError, verify, verify_all};
