//! HLO under construction, on arrays whose sizes only a run knows.
//!
//! [`Builder`] makes HLO instruction by instruction. Whoever translates something to HLO builds through it: TensorFlow's rules
//! (`import`), and [`settle_bounded_shapes`], which replays HLO that others wrote. An instruction on arrays of bounded size
//! becomes instructions on the whole arrays, so that no pass, plan, or kernel knows of bounded shapes.

mod arrays;
mod builder;
mod settle;

pub use arrays::{Bounded, Size, bounds, crossing, run_time};
pub use builder::{
    Builder, Captures, Checkpoint, Indices, LinearElement, LoopFacts, Reducer, Scope, VariableId,
    broadcast_sizes, check_size, highest, integer_vector, join_ranges, list, lowest, scalar_literal,
    scalar_of,
};
pub use settle::{has_bounded_shapes, settle_bounded_shapes};
