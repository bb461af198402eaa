//! Fusion passes: they decide which instructions one kernel computes.

mod attention;
mod body;
mod chaining;
mod instruction;
mod multi_output;
mod producer_duplication;
mod row;
mod tiles;

pub use attention::AttentionFusion;
pub use chaining::ConvolutionChaining;
pub use instruction::InstructionFusion;
pub use multi_output::MultiOutputFusion;
pub use producer_duplication::ProducerDuplication;
pub use row::RowFusion;
