//! HLO under construction, on arrays of data-dependent size.
//!
//! [`Builder`] builds HLO instruction by instruction. Translations to HLO use it: the rules of
//! TensorFlow ops (`import`), and [`settle_bounded_shapes`], which replays existing HLO. An
//! instruction on arrays of bounded size becomes instructions on the whole arrays. No pass, plan,
//! or kernel thus sees bounded shapes.

mod algebra;
mod arrays;
mod builder;
mod settle;
mod size;

pub use arrays::{Bounded, PaddedMatrices, Size, bounds, crossing, run_time};
pub use builder::{
    Branch, Builder, Captures, Carried, Checkpoint, Indices, LinearElement, LoopFacts, Reducer, Scope,
    VariableId, broadcast_sizes, check_size, highest, integer_vector, join_ranges, list, lowest,
    scalar_literal, scalar_of,
};
pub use settle::{has_bounded_shapes, settle_bounded_shapes};
pub use size::SameCount;
