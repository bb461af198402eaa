//! Passes: plain HLO to plain HLO. Whatever runs here leaves a module that the evaluator and XLA can still run, and that
//! computes the same.
//!
//! One folder for each subject, one file for each pass, one file for each root op of the algebraic simplifier. The order in
//! which passes run is the compiler's.

mod canonical;
mod expanders;
mod fusion;
mod numerics;
mod pass;
mod pipeline;
mod query;
mod simplify;
mod while_loop;

pub use canonical::{
    CallInliner, ConcatenateInPlace, ConvolutionCanonicalization, Defuser, DotOperandLayout,
    DynamicDimensionResults, FlattenCallGraph, LayoutNormalization, ReductionNormalization, SingleDevice,
};
pub use expanders::{
    BatchNormExpander, CholeskyExpander, DecompositionExpander, FftExpander, MapExpander, PowerExpander,
    PredContractionExpander, RngExpander, SelectAndScatterExpander, TriangularSolveExpander,
};
pub use fusion::{
    AttentionFusion, ConvolutionChaining, InstructionFusion, MultiOutputFusion, ProducerDuplication,
    RowFusion,
};
pub use numerics::{BatchNormFolding, SoftmaxReciprocal, TreeReductionRewriter};
pub use pass::{Changed, Pass};
pub use pipeline::{PassRecord, Pipeline};
pub use simplify::{
    AlgebraicSimplifier, CommonSubexpressionElimination, ConditionalSimplifier, ConstantFolding,
    DeadCodeElimination, TupleSimplifier,
};
pub use while_loop::{
    WhileLoopAccumulationSinking, WhileLoopConstantSinking, WhileLoopDotOperandLayout,
    WhileLoopInductionVariableUnification, WhileLoopInputHoisting, WhileLoopInvariantCodeMotion,
    WhileLoopRowHoisting, WhileLoopSimplifier, WhileLoopUninitializedBuffers,
};

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
