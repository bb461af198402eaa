//! The plan: for each instruction that needs code, how its code will look.
//!
//! A pure function of module and target, printable with [`ModulePlan::to_text`], tested as tables. The plan decides what
//! the buffers must provide (packed constants, scratch, in-place rights), so it comes before them; it emits nothing.

mod candidate;
mod choices;
mod collapse;
mod contraction;
mod fft;
mod fusion;
mod in_place;
mod kernel_plan;
mod loops;
mod movement;
mod multi_output;
mod options;
mod packing;
mod parallel;
mod planner;
mod print;
mod reduction;
mod sort;
mod strategy;
mod tasks;
pub mod tuning;

pub use candidate::{Candidate, MAX_CANDIDATES};
pub use choices::Choices;
pub use collapse::Loop;
pub use contraction::attention::AttentionPlan;
pub use contraction::chain::{ChainPlan, ChainStage, MAX_STAGES, chain_saving};
pub use contraction::convolution::{
    ConvolutionDims, ConvolutionKind, ConvolutionPlan, DensePlan, DepthwisePlan, GradientPlan, GradientSize,
    GradientTransform, Rectangle, Segment, SpatialDimension, Strip, TileSize, Tiling, Transform, Winograd,
    WinogradGradientPlan, WinogradGradientScratch, WinogradPlan, WinogradScratch,
};
pub use contraction::dot::{DotDims, DotLoops, DotPlan, Extent, TiledDot};
pub use contraction::extents::DotShape;
pub use contraction::tile::{Tile, most_together};
pub use fft::{
    FftKind, FftLayout, FftPlace, FftPlan, FftStep, Roots, has_kernel as has_fft_kernel, root_of_unity,
};
pub use fusion::{Fusion, Position, RowSlice};
pub use kernel_plan::KernelPlan;
pub use loops::LoopPlan;
pub use multi_output::{MultiOutputPlan, Output, OutputReduction, Placement, outputs};
pub use options::Options;
pub use packing::{PackedConstant, Packing};
pub use planner::{attention_pays, plan, plan_with};
pub use reduction::reduce::{ReduceKind, ReducePlan};
pub use reduction::reduce_window::{ReduceWindowPlan, WindowSegment, WindowWalk};
pub use reduction::rows::{RowValue, RowsPlan, Sweep};
pub use sort::{FEW, NETWORK_ROWS, SortItems, SortKey, SortLayout, SortPlan};
pub use strategy::{ComputationPlan, InstructionPlan, ModulePlan, Strategy};
pub use tasks::{Work, is_transcendental};
pub use tuning::candidates;
