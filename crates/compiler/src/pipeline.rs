//! The passes, in their order.

use passes::{
    AlgebraicSimplifier, BatchNormExpander, BatchNormFolding, CallInliner, CommonSubexpressionElimination,
    ConditionalSimplifier, ConstantFolding, ConvolutionCanonicalization, DeadCodeElimination,
    InstructionFusion, Pipeline, SelectAndScatterExpander, TreeReductionRewriter, TupleSimplifier,
};

/// The way from imported to optimised HLO.
pub fn pipeline() -> Pipeline {
    Pipeline::new(vec![
        // Everything after sees one flat computation for each region of control flow.
        Box::new(CallInliner),
        // Their tuples are taken apart next.
        Box::new(BatchNormExpander),
        Box::new(SelectAndScatterExpander),
        Box::new(TupleSimplifier),
        Box::new(AlgebraicSimplifier),
        Box::new(ConstantFolding::default()),
        // Folding may make a predicate known, and inlining a branch may make more constants.
        Box::new(ConditionalSimplifier),
        Box::new(TupleSimplifier),
        // What is folded simplifies its users, and what is simplified may fold: depths of two are common in gradients.
        Box::new(AlgebraicSimplifier),
        Box::new(ConstantFolding::default()),
        Box::new(AlgebraicSimplifier),
        // Scales and offsets are constants now, and next to their contractions.
        Box::new(BatchNormFolding),
        // The rules above read labels as they are; what transposes are left are simplified and folded from here on.
        Box::new(ConvolutionCanonicalization),
        Box::new(AlgebraicSimplifier),
        Box::new(ConstantFolding::default()),
        Box::new(AlgebraicSimplifier),
        Box::new(TreeReductionRewriter),
        Box::new(CommonSubexpressionElimination),
        Box::new(DeadCodeElimination),
        // Last, so that no pass looks into fusions.
        Box::new(InstructionFusion::default()),
        Box::new(DeadCodeElimination),
    ])
}
