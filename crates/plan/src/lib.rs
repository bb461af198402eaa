//! The plan: how the code of each instruction will look.
//!
//! Planning comes after the passes, which decide what is computed together, and before `buffers`
//! and `kernel`, which carry the plan out. [`plan_with`] takes an optimized module, a
//! `target::Target`, and the caller's [`Options`], and returns a [`ModulePlan`]. It is a pure
//! function: it emits no code, reads no clock, and prints with [`ModulePlan::to_text`]. Its unit
//! tests are tables of shapes and the decisions expected for them.
//!
//! # Main types
//!
//! - A [`ModulePlan`] has a [`ComputationPlan`] for the entry and for each computation that control
//!   flow reaches. Each of these has an [`InstructionPlan`] per instruction.
//! - An [`InstructionPlan`] is a [`KernelPlan`] around a [`Strategy`]. It lists what the code needs
//!   from its surroundings: packed constants, scratch memory, the number of tasks into which the
//!   work is divided, and the operands whose memory the result may reuse.
//! - A [`Strategy`] is the kind of code: [`Strategy::Loop`] over the elements of the result,
//!   [`Strategy::Dot`] in register tiles, [`Strategy::Rows`] for softmax and layer normalization,
//!   and so on. [`Strategy::Alias`] means that no code is needed.
//! - A [`Fusion`] is a view of one kernel's body. It hides whether the body is a fused computation
//!   or a single instruction.
//!
//! # How a strategy is chosen
//!
//! The planner matches on the instruction's operation, and for a fusion on its `hlo::FusionKind`.
//! The module of that family then fills in the details from shapes and target alone: lanes, loops,
//! tile sizes, packing. `contraction` covers dots, convolutions, chains of convolutions, and
//! attention; `reduction` covers reductions, windows, and rows; `movement` covers slices and
//! updates.
//!
//! A contraction usually has several [`Candidate`]s. Rules choose among those of a dot. Cost
//! models, simple models of one core, choose among most of those of a convolution. [`rationale`]
//! says which chose and why. A table of measured [`Choices`], written by `--autotune`, may name
//! another one. An unknown choice is ignored and listed in [`ModulePlan::ignored_choices`].
//!
//! The plan precedes the assignment of buffers because it decides how much scratch memory and which
//! packed constants there are, and which results may overwrite an operand.

mod candidate;
mod choices;
mod collapse;
mod contraction;
mod device;
mod fft;
mod fusion;
mod in_place;
mod kernel_plan;
mod loops;
mod movement;
mod multi_output;
mod options;
mod packing;
mod planner;
mod print;
mod rationale;
mod reduction;
mod sort;
mod strategy;
mod tasks;
pub mod tuning;

pub use candidate::{Candidate, MAX_CANDIDATES};
pub use choices::Choices;
pub use collapse::Loop;
pub use contraction::attention::AttentionPlan;
pub use contraction::block_float::BlockFloat;
pub use contraction::chain::{ChainPlan, ChainStage, MAX_STAGES, chain_saving};
pub use contraction::convolution::{
    ConvolutionDims, ConvolutionKind, ConvolutionPlan, DensePlan, DepthwisePlan, GradientPlan, GradientSize,
    GradientTransform, OpenDimensions, PackedColumns, Rectangle, Segment, SpatialDimension, Strip, TileSize,
    Tiling, Transform, Winograd, WinogradGradientPlan, WinogradGradientScratch, WinogradPlan,
    WinogradScratch,
};
pub use contraction::dot::{DotDims, DotLoops, DotPlan, Extent, TiledDot, constant_panels};
pub use contraction::extents::DotShape;
pub use contraction::grouping::tiles::{covers_rows, tile_groups, tile_rows};
pub use contraction::grouping::{Factors, GROUP_BYTES, Grouping, Sums};
pub use contraction::panels::PanelLayout;
pub use contraction::tile::{Tile, most_together};
pub use contraction::weights::{Blocks, NIBBLES, Weights};
pub use device::movement::{CopyPlan, MAX_CONCATENATED, UpdatePlan};
pub use device::outputs::{ColumnsPlan, OutputsPlan};
pub use device::random::paired_sizes;
pub use device::reduce::TeamReducePlan;
pub use device::rows::TeamRowsPlan;
pub use device::scatter::{RangesPlan, SCATTER_THREADS, ScatterPlan};
pub use device::sort::{SortStep, TeamSortPlan};
pub use device::teams::Teams;
pub use device::transpose::{TILE, TILE_ROWS, TransposePlan};
pub use device::windows::{ScanPlan, WindowsPlan};
pub use device::{
    Check, ContractionPlan, ContractionView, DeviceAttentionPlan, DevicePlan, FewRows, GroupGrid, GroupTile,
    MatrixTile, Method, OnlineSoftmax, OperandView, Role, Step,
};
pub use fft::{
    FftKind, FftLayout, FftPlace, FftPlan, FftStep, Roots, has_kernel as has_fft_kernel, root_of_unity,
};
pub use fusion::{Fusion, Position, RowSlice};
pub use kernel_plan::KernelPlan;
pub use loops::LoopPlan;
pub use multi_output::{MultiOutputPlan, Output, OutputReduction, Placement, outputs};
pub use options::{Options, Precision};
pub use packing::{PackedConstant, Packing, Packings};
pub use planner::{attention_pays, plan, plan_with};
pub use rationale::{Considered, ModeledCost, Rationale};
pub use reduction::reduce::{ReduceKind, ReducePlan};
pub use reduction::reduce_window::{ReduceWindowPlan, WindowSegment, WindowWalk};
pub use reduction::rows::{RowValue, RowsPlan, Sweep};
pub use sort::{FEW, NETWORK_ROWS, SortItems, SortKey, SortLayout, SortPlan};
pub use strategy::{ComputationPlan, InstructionPlan, ModulePlan, Strategy};
pub use tasks::{Work, is_transcendental};
pub use tuning::{candidates, rationale};
