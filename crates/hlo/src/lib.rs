//! The intermediate representation of the compiler: XLA's HLO, as data that can be read, checked,
//! edited, printed, and parsed.
//!
//! Every front end produces HLO and every later stage reads it: `import` and `stablehlo` build it,
//! `passes` rewrite it, `plan`, `buffers`, and `kernel` compile it, and `evaluator` interprets it.
//! The crate itself knows no TensorFlow, no target machine, and no file.
//!
//! # Main types
//!
//! - A [`Module`] is a program in the narrow sense: a set of computations, one of which is the
//!   entry, and the aliases between the entry's parameters and results.
//! - A [`Computation`] is a graph of instructions with one root. Its fields are private. Reads go
//!   through indexing (`module[computation][instruction]`); edits go through its methods, which
//!   keep the lists of users correct. Removing an instruction leaves a hole, so an
//!   [`InstructionId`] stays valid as long as its computation lives.
//! - An [`Instruction`] is an [`Op`] applied to operands, with a shape, a name, and [`OpMetadata`],
//!   the TensorFlow node that it comes from.
//! - [`Op`] is generated from one table, which has a row for each of XLA's opcodes: its name in
//!   text, its number of operands, its attributes, and its [`Traits`]. Shape inference, the
//!   evaluator, and the lowering match on it exhaustively, so they do not compile until they handle
//!   a new row.
//! - A [`Program`] is a module with its [`Interface`]: the names, roles, and shapes of arguments
//!   and results, and which result takes the memory of which argument.
//!
//! # Functions over modules
//!
//! - [`infer_shape`] computes the shape of an instruction; [`ComputationBuilder`] calls it for each
//!   instruction that it adds.
//! - [`verify()`] checks a whole module: shapes, operands, computations, the interface. It runs
//!   after the import and after every pass that changed something.
//! - [`parse`] and [`Module::to_text`] read and write XLA's text format; [`proto`] reads and writes
//!   XLA's binary messages.
//! - [`analysis`] answers questions without running the program: ranges of integers, trip counts of
//!   loops, costs. A range or a trip count is a guarantee; a cost is an estimate.
//! - [`quantization`] builds and reads the two forms of quantized arrays.
//! - The fusion contract ([`FusionKind`] and the predicates beside it) states what the passes that
//!   build fusions and the plan that compiles them agree on.

pub mod analysis;
mod annotations;
mod attributes;
mod builder;
mod byte_table;
mod computation;
mod convolution;
pub mod custom_call;
mod families;
mod fusion;
mod ids;
mod infer;
mod instruction;
pub mod interface;
mod module;
mod narrow_weights;
mod opcode;
pub mod proto;
pub mod quantization;
pub mod text;
mod verify;
mod xla_types;

pub use annotations::Annotations;
pub use attributes::*;
pub use builder::ComputationBuilder;
pub use byte_table::{add_byte_table, byte_table};
pub use computation::Computation;
pub use convolution::ConvolutionForm;
pub use fusion::{CACHE_LINE, MIN_TILE_COLUMNS, constant_starts, cut_dimension, is_associative};
pub use ids::{ComputationId, InstructionId};
pub use infer::{MAX_RANK, MAX_TUPLE_DEPTH, infer_shape};
pub use instruction::{Instruction, OpMetadata};
pub use interface::{
    Argument, ExactModule, Identifier, Interface, NamedDimension, Origin, Output, Program, Role, SizeRange,
    SizedModule, TrueSize, named_dimensions,
};
pub use module::{AliasKind, BoundedDimension, InputOutputAlias, Module, SizeParameter};
pub use narrow_weights::{NarrowWeights, Scales, narrow_operand};
pub use opcode::{Arity, Op, Opcode, Traits};
pub use text::{PrintOptions, parse};
pub use verify::{MAX_CALL_DEPTH, VerifyError, verify, verify_all};
