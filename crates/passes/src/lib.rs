//! Passes: transformations from HLO to HLO that keep the meaning of a module.
//!
//! A pass implements [`Pass`]: it has a name, XLA's where XLA has the same pass, and rewrites a
//! [`hlo::Module`] in place. A [`Pipeline`] runs a list of passes. After each pass that reports
//! [`Changed::Yes`], it verifies the module and calls an observer, which prints the module or
//! measures the time. The order of the passes, with the reason for each position, is in
//! `crates/compiler/src/pipeline.rs`, because only `compiler` knows all stages.
//!
//! The result of a pass is plain HLO, which the evaluator and XLA can still run. That makes every
//! pass testable on its own: a file test below `tests/hlo/pass` holds a module before and after a
//! pass, and the test runner checks that both compute the same values. Passes that change the
//! rounding say so, and their tests state a tolerance.
//!
//! # Subjects
//!
//! One folder holds the passes of one subject; one file holds one pass, or one root operation of
//! the algebraic simplifier.
//!
//! - `expanders` replace an operation by simpler ones: batch normalization, Cholesky, `map`,
//!   `power`.
//! - `canonical` reduces the number of forms that later stages must know: it inlines calls, gives
//!   convolutions one layout, and removes what belongs to another compiler: layouts, foreign
//!   fusions, devices.
//! - `simplify` makes the module smaller: algebraic rules, constant folding, common subexpressions,
//!   dead code, tuples, control flow.
//! - `while_loop` moves work out of loops and shrinks their state.
//! - `numerics` may change the rounding: for example, it folds a batch normalization into the
//!   weights of a convolution.
//! - `fusion` decides which instructions become one kernel. A pass that builds a fusion states its
//!   `hlo::FusionKind`, by which `plan` later chooses a strategy. These passes run last, so no
//!   other pass has to look inside a fusion.
//!
//! Some decisions depend on the machine: whether a chain of convolutions pays, or whether a Fourier
//! transform has a kernel. Such a pass takes the answer as a function, which `compiler` supplies
//! from `plan`. This crate therefore knows no target.

mod canonical;
mod expanders;
mod fusion;
mod numerics;
mod pass;
mod pipeline;
mod quantization;
mod query;
mod simplify;
mod while_loop;

pub use canonical::{
    ByteContraction, ByteLookup, CallInliner, ConcatenateInPlace, ConstantPanels,
    ConvolutionCanonicalization, Defuser, DotOperandLayout, DynamicDimensionResults, FlattenCallGraph,
    LayoutNormalization, PanelsOf, ReductionNormalization, SingleDevice,
};
pub use expanders::{
    BatchNormExpander, CholeskyExpander, DecompositionExpander, FftExpander, MapExpander, PowerExpander,
    PredContractionExpander, RngExpander, SelectAndScatterExpander, TriangularSolveExpander,
};
pub use fusion::{
    AttentionFusion, ConvolutionChaining, InstructionFusion, MultiOutputFusion, ProducerDuplication,
    RowFusion,
};
pub use numerics::{
    BatchNormFolding, FloatNarrowing, OperandUpcaster, SimplifyFpConversions, SoftmaxReciprocal,
    TreeReductionRewriter, WeightScaleSinking,
};
pub use pass::{Changed, Pass};
pub use pipeline::{PassRecord, Pipeline};
pub use quantization::{
    DequantizationSinking, DequantizedConstantFolding, Edit, FloatRequantization, QuantizedConstantFolding,
    QuantizedContraction, RequantizationFolding,
};
pub use simplify::{
    AlgebraicSimplifier, CommonSubexpressionElimination, ConditionalSimplifier, ConstantFolding,
    ContractionConstantFolding, DeadCodeElimination, IntegerNarrowing, TupleSimplifier,
};
pub use while_loop::{
    WhileLoopAccumulationSinking, WhileLoopConstantSinking, WhileLoopDotOperandLayout,
    WhileLoopInductionVariableUnification, WhileLoopInputHoisting, WhileLoopInvariantCodeMotion,
    WhileLoopRowHoisting, WhileLoopSimplifier, WhileLoopUninitializedBuffers,
};

/// Looks up a pass by name, for tests and for `--xla_disable_hlo_passes`.
pub fn by_name(name: &str) -> Option<Box<dyn Pass>> {
    all().into_iter().find(|pass| pass.name() == name)
}

/// All passes, with default settings.
pub fn all() -> Vec<Box<dyn Pass>> {
    vec![
        Box::new(AttentionFusion::default()),
        Box::new(BatchNormExpander),
        Box::new(BatchNormFolding),
        Box::new(ByteContraction::default()),
        Box::new(ByteLookup),
        Box::new(CallInliner),
        Box::new(CholeskyExpander),
        Box::new(FlattenCallGraph),
        Box::new(FftExpander::default()),
        Box::new(TriangularSolveExpander),
        Box::new(ConcatenateInPlace),
        Box::new(ConstantPanels::default()),
        Box::new(ConstantFolding::default()),
        Box::new(ContractionConstantFolding::default()),
        Box::new(ConditionalSimplifier),
        Box::new(CommonSubexpressionElimination),
        Box::new(ConvolutionCanonicalization),
        Box::new(DeadCodeElimination),
        Box::new(Defuser),
        Box::new(DotOperandLayout),
        Box::new(DynamicDimensionResults),
        Box::new(FloatNarrowing { to: shape::PrimitiveType::Bf16 }),
        Box::new(FloatRequantization),
        Box::new(InstructionFusion::default()),
        Box::new(IntegerNarrowing),
        Box::new(ConvolutionChaining::default()),
        Box::new(LayoutNormalization),
        Box::new(MapExpander),
        Box::new(MultiOutputFusion::default()),
        Box::new(OperandUpcaster { has_floats: true, has_bf16_products: false }),
        Box::new(PowerExpander),
        Box::new(PredContractionExpander),
        Box::new(ReductionNormalization),
        Box::new(RngExpander),
        Box::new(RowFusion::default()),
        Box::new(DequantizationSinking),
        Box::new(DequantizedConstantFolding { keeps_weights_of_dots: true }),
        Box::new(QuantizedConstantFolding),
        Box::new(QuantizedContraction),
        Box::new(RequantizationFolding),
        Box::new(AlgebraicSimplifier),
        Box::new(SelectAndScatterExpander),
        Box::new(DecompositionExpander),
        Box::new(SimplifyFpConversions),
        Box::new(SingleDevice),
        Box::new(SoftmaxReciprocal),
        Box::new(TreeReductionRewriter),
        Box::new(TupleSimplifier),
        Box::new(WeightScaleSinking),
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
    ]
}
