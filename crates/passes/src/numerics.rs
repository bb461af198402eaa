//! Rewrites that change how results are rounded.

mod batch_norm_folding;
mod float_narrowing;
mod operand_upcaster;
mod simplify_fp_conversions;
mod softmax_reciprocal;
mod tree_reduction;
mod weight_scales;

pub use batch_norm_folding::BatchNormFolding;
pub use float_narrowing::FloatNarrowing;
pub use operand_upcaster::OperandUpcaster;
pub use simplify_fp_conversions::SimplifyFpConversions;
pub use softmax_reciprocal::SoftmaxReciprocal;
pub use tree_reduction::TreeReductionRewriter;
pub use weight_scales::WeightScaleSinking;
