//! Passes that make a module smaller or cheaper without changing its form.

mod algebraic;
pub(crate) mod constant_expression;
mod constant_folding;
mod contraction_constant_folding;
mod control_flow;
mod cse;
pub(crate) mod dce;
mod integer_narrowing;
mod tuples;

pub use algebraic::AlgebraicSimplifier;
pub use constant_folding::ConstantFolding;
pub use contraction_constant_folding::ContractionConstantFolding;
pub use control_flow::ConditionalSimplifier;
pub use cse::CommonSubexpressionElimination;
pub use dce::DeadCodeElimination;
pub use integer_narrowing::IntegerNarrowing;
pub use tuples::TupleSimplifier;
