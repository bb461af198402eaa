//! Passes over `while` loops.
//!
//! They share one view of a loop, [`Loop`]: its state is a tuple that is built, read, and returned
//! element by element. `simplify-while-loop` brings loops of other forms into this one; the other
//! passes ignore them.

mod accumulation_sinking;
mod constant_sinking;
mod induction_variables;
mod input_hoisting;
mod invariant_code_motion;
mod known_scalars;
pub(crate) mod operand_layout;
mod outside;
mod row_hoisting;
mod rows;
mod scalars;
mod simplifier;
mod split;
mod state;
mod strip_mining;
mod uninitialized_buffers;

pub use accumulation_sinking::WhileLoopAccumulationSinking;
pub use constant_sinking::WhileLoopConstantSinking;
pub use induction_variables::WhileLoopInductionVariableUnification;
pub use input_hoisting::WhileLoopInputHoisting;
pub use invariant_code_motion::WhileLoopInvariantCodeMotion;
pub use operand_layout::WhileLoopDotOperandLayout;
pub use row_hoisting::WhileLoopRowHoisting;
pub use simplifier::WhileLoopSimplifier;
pub use uninitialized_buffers::WhileLoopUninitializedBuffers;

use state::Loop;
