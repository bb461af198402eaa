//! Passes: plain HLO to plain HLO. Whatever runs here leaves a module that the evaluator and XLA can still run, and that
//! computes the same.
//!
//! One file for each pass, one file for each root op of the simplifier. What runs in which order is the compiler's.

mod attention_fusion;
mod batch_norm_expander;
mod batch_norm_folding;
mod call_inliner;
mod cholesky_expander;
mod concatenate_in_place;
mod constant_folding;
mod control_flow;
mod convolution_canonicalization;
mod convolution_chaining;
mod cse;
mod dce;
mod decomposition_expander;
mod defuser;
mod dot_operand_layout;
mod dynamic_dimension_results;
mod expander;
mod fft_expander;
mod flatten_call_graph;
mod fusion;
mod layout_normalization;
mod map_expander;
mod multi_output_fusion;
mod pipeline;
mod power_expander;
mod pred_contraction_expander;
mod producer_duplication;
mod reduction_normalization;
mod rng_expander;
mod row_fusion;
mod select_and_scatter_expander;
mod simplify;
mod single_device;
mod softmax_reciprocal;
mod tree_reduction_rewriter;
mod triangular_solve_expander;
mod tuple_simplifier;
mod while_loop;

pub use attention_fusion::AttentionFusion;
pub use batch_norm_expander::BatchNormExpander;
pub use batch_norm_folding::BatchNormFolding;
pub use call_inliner::CallInliner;
pub use cholesky_expander::CholeskyExpander;
pub use concatenate_in_place::ConcatenateInPlace;
pub use constant_folding::ConstantFolding;
pub use control_flow::ConditionalSimplifier;
pub use convolution_canonicalization::ConvolutionCanonicalization;
pub use convolution_chaining::ConvolutionChaining;
pub use cse::CommonSubexpressionElimination;
pub use dce::DeadCodeElimination;
pub use decomposition_expander::DecompositionExpander;
pub use defuser::Defuser;
pub use dot_operand_layout::DotOperandLayout;
pub use dynamic_dimension_results::DynamicDimensionResults;
pub use fft_expander::FftExpander;
pub use flatten_call_graph::FlattenCallGraph;
pub use fusion::InstructionFusion;
pub use layout_normalization::LayoutNormalization;
pub use map_expander::MapExpander;
pub use multi_output_fusion::MultiOutputFusion;
pub use pipeline::{PassRecord, Pipeline};
pub use power_expander::PowerExpander;
pub use pred_contraction_expander::PredContractionExpander;
pub use producer_duplication::ProducerDuplication;
pub use reduction_normalization::ReductionNormalization;
pub use rng_expander::RngExpander;
pub use row_fusion::RowFusion;
pub use select_and_scatter_expander::SelectAndScatterExpander;
pub use simplify::AlgebraicSimplifier;
pub use single_device::SingleDevice;
pub use softmax_reciprocal::SoftmaxReciprocal;
pub use tree_reduction_rewriter::TreeReductionRewriter;
pub use triangular_solve_expander::TriangularSolveExpander;
pub use tuple_simplifier::TupleSimplifier;
pub use while_loop::{
    WhileLoopAccumulationSinking, WhileLoopConstantSinking, WhileLoopDotOperandLayout,
    WhileLoopInductionVariableUnification, WhileLoopInputHoisting, WhileLoopInvariantCodeMotion,
    WhileLoopRowHoisting, WhileLoopSimplifier, WhileLoopUninitializedBuffers,
};

use hlo::{ComputationId, Module};
use support::Result;

/// Whether a pass changed the module.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Not a bit.
    No,
    /// Something.
    Yes,
}

impl Changed {
    /// Yes if either is.
    pub fn or(self, other: Self) -> Self {
        if self == Self::Yes { self } else { other }
    }
}

impl From<bool> for Changed {
    fn from(changed: bool) -> Self {
        if changed { Self::Yes } else { Self::No }
    }
}

/// A rewrite of a whole module that keeps its meaning.
pub trait Pass {
    /// XLA's name where it has one, such as `algsimp`'s long form `algebraic-simplifier`.
    fn name(&self) -> &'static str;
    /// Rewrites the module. An error leaves it in any state.
    fn run(&self, module: &mut Module) -> Result<Changed>;
}

/// Every pass by name, for tests and for `--xla_disable_hlo_passes`.
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    let all: Vec<Box<dyn Pass>> = vec![
        Box::new(AttentionFusion::default()),
        Box::new(BatchNormExpander),
        Box::new(BatchNormFolding),
        Box::new(CallInliner),
        Box::new(CholeskyExpander),
        Box::new(FlattenCallGraph),
        Box::new(FftExpander::default()),
        Box::new(TriangularSolveExpander),
        Box::new(ConcatenateInPlace),
        Box::new(ConstantFolding::default()),
        Box::new(ConditionalSimplifier),
        Box::new(CommonSubexpressionElimination),
        Box::new(ConvolutionCanonicalization),
        Box::new(DeadCodeElimination),
        Box::new(Defuser),
        Box::new(DotOperandLayout),
        Box::new(DynamicDimensionResults),
        Box::new(InstructionFusion::default()),
        Box::new(ConvolutionChaining::default()),
        Box::new(LayoutNormalization),
        Box::new(MapExpander),
        Box::new(MultiOutputFusion::default()),
        Box::new(PowerExpander),
        Box::new(PredContractionExpander),
        Box::new(ReductionNormalization),
        Box::new(RngExpander),
        Box::new(RowFusion::default()),
        Box::new(AlgebraicSimplifier),
        Box::new(SelectAndScatterExpander),
        Box::new(DecompositionExpander),
        Box::new(SingleDevice),
        Box::new(SoftmaxReciprocal),
        Box::new(TreeReductionRewriter),
        Box::new(TupleSimplifier),
        Box::new(WhileLoopAccumulationSinking),
        Box::new(WhileLoopConstantSinking),
        Box::new(WhileLoopInductionVariableUnification),
        Box::new(WhileLoopDotOperandLayout),
        Box::new(WhileLoopInputHoisting),
        Box::new(WhileLoopInvariantCodeMotion),
        Box::new(WhileLoopRowHoisting),
        Box::new(WhileLoopSimplifier),
        Box::new(WhileLoopUninitializedBuffers),
        Box::new(ProducerDuplication),
    ];
    all.into_iter().find(|pass| pass.name() == name)
}

/// The entry and the computations that control flow runs, callees first: those whose instructions run one by one. Fused
/// and applied computations are not among them.
fn executed_computations(module: &Module) -> Vec<ComputationId> {
    use hlo::Op;
    let mut executed = vec![module.entry()];
    let mut next = 0;
    while let Some(&id) = executed.get(next) {
        next += 1;
        for (_, instruction) in module[id].instructions() {
            let called = match instruction.op() {
                Op::Conditional { .. } | Op::While { .. } | Op::Call { .. } => {
                    instruction.op().called_computations()
                }
                _ => continue,
            };
            for callee in called {
                if !executed.contains(&callee) {
                    executed.push(callee);
                }
            }
        }
    }
    executed.reverse();
    executed
}
