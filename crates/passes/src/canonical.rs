//! Passes that bring a module into the canonical form that later passes and the plan expect.

mod byte_contraction;
mod byte_lookup;
pub(crate) mod call_inliner;
mod concatenate_in_place;
mod constant_panels;
mod convolution_canonicalization;
mod defuser;
mod dot_operand_layout;
mod dynamic_dimension_results;
mod flatten_call_graph;
mod layout_normalization;
mod reduction_normalization;
mod single_device;

pub use byte_contraction::ByteContraction;
pub use byte_lookup::ByteLookup;
pub use call_inliner::CallInliner;
pub use concatenate_in_place::ConcatenateInPlace;
pub use constant_panels::{ConstantPanels, PanelsOf};
pub use convolution_canonicalization::ConvolutionCanonicalization;
pub use defuser::Defuser;
pub use dot_operand_layout::DotOperandLayout;
pub use dynamic_dimension_results::DynamicDimensionResults;
pub use flatten_call_graph::FlattenCallGraph;
pub use layout_normalization::LayoutNormalization;
pub use reduction_normalization::ReductionNormalization;
pub use single_device::SingleDevice;
