//! The passes, in their order.

use crate::{Observer, Point};
use hlo::Module;
use passes::{
    AlgebraicSimplifier, AttentionFusion, BatchNormExpander, BatchNormFolding, CallInliner, Changed,
    CholeskyExpander, CommonSubexpressionElimination, ConcatenateInPlace, ConditionalSimplifier,
    ConstantFolding, ConvolutionCanonicalization, ConvolutionChaining, DeadCodeElimination,
    DecompositionExpander, Defuser, DotOperandLayout, DynamicDimensionResults, FftExpander, FlattenCallGraph,
    InstructionFusion, LayoutNormalization, MapExpander, MultiOutputFusion, Pass, PassRecord, Pipeline,
    PowerExpander, PredContractionExpander, ProducerDuplication, ReductionNormalization, RngExpander,
    RowFusion, SelectAndScatterExpander, SingleDevice, SoftmaxReciprocal, TreeReductionRewriter,
    TriangularSolveExpander, TupleSimplifier, WhileLoopAccumulationSinking, WhileLoopConstantSinking,
    WhileLoopDotOperandLayout, WhileLoopInductionVariableUnification, WhileLoopInputHoisting,
    WhileLoopInvariantCodeMotion, WhileLoopRowHoisting, WhileLoopSimplifier, WhileLoopUninitializedBuffers,
};
use std::borrow::Cow;
use support::Result;
use target::Target;

/// How passes run: those that do not, and who sees the others.
pub struct PassRun<'a> {
    /// Names of passes that do not run (`--xla_disable_hlo_passes`).
    pub disabled: &'a [String],
    /// Sees the module after each pass.
    pub observer: &'a mut dyn Observer,
}

impl PassRun<'_> {
    /// Runs a pipeline: every pass that changes the module is followed by the verifier.
    pub fn run(&mut self, pipeline: &Pipeline, module: &mut Module) -> Result<()> {
        let observer = &mut *self.observer;
        observer.module(Point::PipelineStart { pipeline: pipeline.name() }, module);
        let seen = |record: &PassRecord, module: &Module| {
            observer.ended(record.name, &|| if record.changed { module.to_text() } else { String::new() });
            observer.module(Point::AfterPass { name: record.name, changed: record.changed }, module);
        };
        pipeline.run(module, self.disabled, seen)?;
        observer.module(Point::PipelineEnd, module);
        Ok(())
    }
}

/// Turns HLO of others into HLO as it is imported: without layouts, fusions, devices, and bounded shapes, all of which are
/// another compiler's.
pub fn normalization_pipeline() -> Pipeline {
    Pipeline::of_input(
        "normalization",
        vec![
            // Bitcasts have a meaning only as long as layouts are known.
            Box::new(LayoutNormalization),
            // Everything after sees what was in fusions.
            Box::new(Defuser),
            Box::new(SingleDevice),
            Box::new(DecompositionExpander),
            Box::new(ReductionNormalization),
            Box::new(BoundedShapes),
            // Last: the passes before may share computations.
            Box::new(FlattenCallGraph),
        ],
    )
}

/// Makes the entry compute on arrays of static shapes, and sets the sizes of its results.
struct BoundedShapes;

impl Pass for BoundedShapes {
    fn name(&self) -> &'static str {
        "bounded-shapes"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        if !bounded::has_bounded_shapes(module) {
            return Ok(Changed::No);
        }
        let inlined = CallInliner.run(module)?;
        *module = bounded::settle_bounded_shapes(module)?;
        Ok(inlined.or(Changed::Yes))
    }
}

/// The way from imported to optimised HLO.
pub fn pipeline() -> Pipeline {
    Pipeline::new(
        "optimization",
        vec![
            // Everything after sees static shapes.
            Box::new(DynamicDimensionResults),
            // Calls what it expands.
            Box::new(MapExpander),
            // Everything after sees one flat computation for each region of control flow.
            Box::new(CallInliner),
            // Their tuples are taken apart next.
            Box::new(BatchNormExpander),
            Box::new(SelectAndScatterExpander),
            Box::new(CholeskyExpander),
            Box::new(TriangularSolveExpander),
            Box::new(FftExpander { has_kernel: plan::has_fft_kernel }),
            Box::new(RngExpander),
            Box::new(PredContractionExpander),
            Box::new(TupleSimplifier),
            Box::new(AlgebraicSimplifier),
            Box::new(ConstantFolding::default()),
            // Folding may make a predicate known, and inlining a branch may make more constants.
            Box::new(ConditionalSimplifier),
            Box::new(TupleSimplifier),
            // Trip counts want bounds that are constants. Brings loops into the form that the other loop passes look for.
            Box::new(WhileLoopSimplifier),
            // Before bodies are simplified: their constants come from here.
            Box::new(WhileLoopConstantSinking),
            Box::new(WhileLoopInductionVariableUnification),
            // Known contents of buffers that one loop fills become constants and fills for the next.
            Box::new(WhileLoopRowHoisting),
            Box::new(WhileLoopConstantSinking),
            // Removes what these have left unread.
            Box::new(WhileLoopSimplifier),
            // Loops that ran once are tuples.
            Box::new(TupleSimplifier),
            // What is folded simplifies its users, and what is simplified may fold: depths of two are common in gradients.
            Box::new(AlgebraicSimplifier),
            Box::new(ConstantFolding::default()),
            Box::new(AlgebraicSimplifier),
            // Indices of rows are compared as they are written.
            Box::new(CommonSubexpressionElimination),
            // Before what is kept is hoisted: it reads kernels in the body, and leaves slices of them there.
            Box::new(WhileLoopInputHoisting),
            Box::new(WhileLoopAccumulationSinking),
            Box::new(WhileLoopInvariantCodeMotion),
            // Sinking may have added counters.
            Box::new(WhileLoopInductionVariableUnification),
            Box::new(WhileLoopSimplifier),
            Box::new(TupleSimplifier),
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
            // The simplifier would fold the transposes into the products again.
            Box::new(WhileLoopDotOperandLayout),
            Box::new(WhileLoopInvariantCodeMotion),
            Box::new(DotOperandLayout),
            Box::new(DeadCodeElimination),
            // Behind the last CSE: each concatenation begins with an array of its own.
            Box::new(ConcatenateInPlace),
            Box::new(SoftmaxReciprocal),
            Box::new(PowerExpander),
            // Before what remains is fused with its users.
            Box::new(RowFusion::default()),
            // No later pass reads the initial values of loops.
            Box::new(WhileLoopUninitializedBuffers),
            // No pass after this one merges common subexpressions.
            Box::new(ProducerDuplication),
            // Last, so that no pass looks into fusions.
            Box::new(InstructionFusion::default()),
            // Of the kernels there are now.
            Box::new(MultiOutputFusion::default()),
            Box::new(DeadCodeElimination),
        ],
    )
}

/// The way from imported HLO to HLO that another compiler is given: inlined, simplified, and without anything that this
/// compiler does for its own kernels.
pub fn extraction_pipeline() -> Pipeline {
    Pipeline::new(
        "extraction",
        vec![
            Box::new(CallInliner),
            Box::new(CommonSubexpressionElimination),
            Box::new(TupleSimplifier),
            Box::new(AlgebraicSimplifier),
            Box::new(ConstantFolding::default()),
            Box::new(ConditionalSimplifier),
            Box::new(WhileLoopSimplifier),
            Box::new(TupleSimplifier),
            Box::new(AlgebraicSimplifier),
            Box::new(ConstantFolding::default()),
            Box::new(CommonSubexpressionElimination),
            Box::new(DeadCodeElimination),
        ],
    )
}

/// The module with the sizes of its bounded results as further results: what it and its optimised form both compute.
pub fn with_size_results(module: &Module) -> Result<Cow<'_, Module>> {
    let root = module.entry_computation();
    if root[root.root()].shape().leaves().iter().all(|(_, leaf)| leaf.is_static()) {
        return Ok(Cow::Borrowed(module));
    }
    let mut module = module.clone();
    let _ = DynamicDimensionResults.run(&mut module)?;
    Ok(Cow::Owned(module))
}

/// The way from imported HLO to what is planned for these targets, which are versions of one program: with kernels that
/// their caches ask for.
pub fn pipeline_for(targets: Vec<Target>, options: plan::Options) -> Pipeline {
    let of_attention = targets.clone();
    let attention = AttentionFusion {
        judge: Box::new(move |module, computation, id| {
            plan::attention_pays(module, computation, id, &of_attention)
        }),
    };
    let chaining = ConvolutionChaining {
        max_stages: plan::MAX_STAGES,
        saving: Box::new(move |module, computation, chain| {
            plan::chain_saving(module, computation, chain, &targets, options.winograd)
        }),
    };
    let mut pipeline = pipeline();
    pipeline.push(Box::new(attention));
    pipeline.push(Box::new(chaining));
    pipeline
}
