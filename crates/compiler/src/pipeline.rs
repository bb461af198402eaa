//! Pass pipelines.

use crate::{Observer, Point};
use hlo::Module;
use passes::{
    AlgebraicSimplifier, AttentionFusion, BatchNormExpander, BatchNormFolding, ByteContraction, ByteLookup,
    CallInliner, Changed, CholeskyExpander, CommonSubexpressionElimination, ConcatenateInPlace,
    ConditionalSimplifier, ConstantFolding, ConstantPanels, ContractionConstantFolding,
    ConvolutionCanonicalization, ConvolutionChaining, DeadCodeElimination, DecompositionExpander, Defuser,
    DequantizationSinking, DequantizedConstantFolding, DotOperandLayout, DynamicDimensionResults,
    FftExpander, FlattenCallGraph, FloatNarrowing, FloatRequantization, InstructionFusion, IntegerNarrowing,
    LayoutNormalization, MapExpander, MultiOutputFusion, OperandUpcaster, Pass, PassRecord, Pipeline,
    PowerExpander, PredContractionExpander, ProducerDuplication, QuantizedConstantFolding,
    QuantizedContraction, ReductionNormalization, RequantizationFolding, RngExpander, RowFusion,
    SelectAndScatterExpander, SimplifyFpConversions, SingleDevice, SoftmaxReciprocal, TreeReductionRewriter,
    TriangularSolveExpander, TupleSimplifier, WeightScaleSinking, WhileLoopAccumulationSinking,
    WhileLoopConstantSinking, WhileLoopDotOperandLayout, WhileLoopInductionVariableUnification,
    WhileLoopInputHoisting, WhileLoopInvariantCodeMotion, WhileLoopRowHoisting, WhileLoopSimplifier,
    WhileLoopUninitializedBuffers,
};
use plan::Precision;
use shape::PrimitiveType;
use std::borrow::Cow;
use support::Result;
use target::Target;

/// Settings for running passes: the disabled ones, and the observer of the others.
pub struct PassRun<'a> {
    /// Names of passes to skip (`--xla_disable_hlo_passes`).
    pub disabled: &'a [String],
    /// Receives the module after each pass.
    pub observer: &'a mut dyn Observer,
}

impl PassRun<'_> {
    /// Runs a pipeline. The verifier runs after every pass that changes the module.
    pub fn run(&mut self, pipeline: &Pipeline, module: &mut Module) -> Result<()> {
        let observer = &mut *self.observer;
        observer.module(Point::PipelineStart { pipeline: pipeline.name() }, module);
        let notify = |record: &PassRecord, module: &Module| {
            observer.ended(record.name, &|| if record.changed { module.to_text() } else { String::new() });
            observer.module(Point::AfterPass { name: record.name, changed: record.changed }, module);
        };
        pipeline.run(module, self.disabled, notify)?;
        observer.module(Point::PipelineEnd, module);
        Ok(())
    }
}

/// Pipeline that converts another compiler's HLO to the form that the import produces: without
/// layouts, fusions, devices, and bounded shapes.
pub fn normalization_pipeline() -> Pipeline {
    Pipeline::of_input(
        "normalization",
        vec![
            // Bitcasts are only meaningful while layouts are known.
            Box::new(LayoutNormalization),
            // Later passes see the instructions in fusions.
            Box::new(Defuser),
            Box::new(SingleDevice),
            Box::new(DecompositionExpander),
            Box::new(ReductionNormalization),
            Box::new(BoundedShapes),
            // Last, because earlier passes may share computations.
            Box::new(FlattenCallGraph),
        ],
    )
}

/// Pass that converts the entry to arrays of static shapes, and sets the sizes of its results.
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

/// Pipeline from imported to optimized HLO.
pub fn pipeline() -> Pipeline {
    pipeline_of(Precision::F32, true)
}

/// Pipeline from imported to optimized HLO, with products of weights in this precision.
/// `widens_weights` is true if the kernels of dots widen constant weights in registers.
fn pipeline_of(precision: Precision, widens_weights: bool) -> Pipeline {
    let to = precision.narrow_type();
    let mut pipeline = Pipeline::new(
        "optimization",
        vec![
            // Later passes see static shapes.
            Box::new(DynamicDimensionResults),
            // Creates calls, which are inlined next.
            Box::new(MapExpander),
            // Later passes see one flat computation for each region of control flow.
            Box::new(CallInliner),
            // The following expanders create tuples, which `TupleSimplifier` removes.
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
            // Folding can make a predicate constant, and inlining a branch can create more
            // constants.
            Box::new(ConditionalSimplifier),
            Box::new(TupleSimplifier),
            // Trip counts require constant bounds. Normalizes loops for the other loop passes.
            Box::new(WhileLoopSimplifier),
            // Before bodies are simplified, because this provides their constants.
            Box::new(WhileLoopConstantSinking),
            Box::new(WhileLoopInductionVariableUnification),
            // Known contents of buffers filled by one loop become constants and fills for the next.
            Box::new(WhileLoopRowHoisting),
            Box::new(WhileLoopConstantSinking),
            // Removes values that the preceding passes leave unused.
            Box::new(WhileLoopSimplifier),
            // Loops with one iteration have become tuples.
            Box::new(TupleSimplifier),
            // Folding enables simplification and vice versa. Two rounds are common in gradients.
            Box::new(AlgebraicSimplifier),
            Box::new(ConstantFolding::default()),
            Box::new(AlgebraicSimplifier),
            // Row indices are compared syntactically.
            Box::new(CommonSubexpressionElimination),
            // Before loop-invariant code motion, which would separate weights from their products.
            Box::new(ContractionConstantFolding::default()),
            // Before loop-invariant code motion, which would widen weights of products in loops.
            Box::new(ByteContraction { only_dots: true }),
            // Before loop-invariant code motion: this pass reads kernels in the body, and leaves
            // slices of them there.
            Box::new(WhileLoopInputHoisting),
            Box::new(WhileLoopAccumulationSinking),
            Box::new(WhileLoopInvariantCodeMotion),
            // Sinking may have added counters.
            Box::new(WhileLoopInductionVariableUnification),
            Box::new(WhileLoopSimplifier),
            Box::new(TupleSimplifier),
            // Scales and offsets are now constants next to their contractions.
            Box::new(BatchNormFolding),
            // The preceding rules read the original dimension labels. The remaining transposes are
            // simplified and folded from here on.
            Box::new(ConvolutionCanonicalization),
            Box::new(AlgebraicSimplifier),
            Box::new(ConstantFolding::default()),
            Box::new(AlgebraicSimplifier),
            // Again, because a batch normalization or a loop's body may have left new expressions.
            Box::new(ContractionConstantFolding::default()),
            // Reads constants of contractions in their canonical form.
            Box::new(QuantizedConstantFolding),
            Box::new(DequantizationSinking),
            // Weights that have become integers are moved.
            Box::new(ConstantFolding::default()),
            Box::new(QuantizedContraction),
            Box::new(RequantizationFolding),
            // The weights of the other contractions.
            Box::new(DequantizedConstantFolding { keeps_weights_of_dots: widens_weights }),
            // Sees the arithmetic of a layer in one piece, on the quantized numbers.
            Box::new(ByteLookup),
            // After the last simplification, which would move the scales back to constant weights.
            Box::new(WeightScaleSinking),
            // Reads fixed-point arithmetic as front ends write it.
            Box::new(FloatRequantization),
            // After the last constant folding, which would widen constants again.
            Box::new(IntegerNarrowing),
            Box::new(TreeReductionRewriter),
            Box::new(CommonSubexpressionElimination),
            Box::new(DeadCodeElimination),
            // After the last simplification, which would fold the transposes back into the dots.
            Box::new(WhileLoopDotOperandLayout),
            Box::new(WhileLoopInvariantCodeMotion),
            Box::new(DotOperandLayout),
            Box::new(DeadCodeElimination),
            // Zero points and weights are constants next to their contractions. After the last
            // CSE, because each padded image starts with its own array.
            Box::new(ByteContraction::default()),
            // Weights are constants next to their contractions. Before concatenations are in place,
            // because narrow arrays are concatenated, too.
            Box::new(FloatNarrowing { to: to.unwrap_or(PrimitiveType::F32) }),
            // After the last CSE, because each concatenation starts with its own array.
            Box::new(ConcatenateInPlace),
            Box::new(SoftmaxReciprocal),
            Box::new(PowerExpander),
            // Before the remaining instructions are fused with their users.
            Box::new(RowFusion::default()),
            // No later pass reads the initial values of loops.
            Box::new(WhileLoopUninitializedBuffers),
            // No pass after this one merges common subexpressions.
            Box::new(ProducerDuplication),
            // Last, so that no other pass needs to look into fusions.
            Box::new(InstructionFusion { widens_weights, ..InstructionFusion::default() }),
            // Merges the kernels that fusion has formed.
            Box::new(MultiOutputFusion::default()),
            Box::new(DeadCodeElimination),
        ],
    );
    if to.is_none() {
        pipeline.remove(FloatNarrowing { to: PrimitiveType::F32 }.name());
    }
    pipeline
}

/// Pipeline from imported HLO to the HLO whose layers are quantized: up to the canonical form of
/// contractions, with their scales and offsets in constants.
pub fn quantization_pipeline() -> Pipeline {
    let mut pipeline = pipeline();
    pipeline.rename("quantization");
    pipeline.truncate(QuantizedConstantFolding.name());
    pipeline.push(Box::new(CommonSubexpressionElimination));
    pipeline.push(Box::new(DeadCodeElimination));
    pipeline
}

/// Pipeline from imported HLO to HLO for another compiler: inlined and simplified, without
/// optimizations that are specific to this compiler's kernels.
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

/// Returns the module with the sizes of its bounded results as further results, so that it has the
/// same results as its optimized form.
pub fn with_size_results(module: &Module) -> Result<Cow<'_, Module>> {
    let root = module.entry_computation();
    if root[root.root()].shape().leaves().iter().all(|(_, leaf)| leaf.is_static()) {
        return Ok(Cow::Borrowed(module));
    }
    let mut module = module.clone();
    let _ = DynamicDimensionResults.run(&mut module)?;
    Ok(Cow::Owned(module))
}

/// Pipeline from imported HLO to the HLO that is planned for these targets, which are versions of
/// one program. It adds the kernels that depend on the targets' caches.
pub fn pipeline_for(targets: Vec<Target>, options: plan::Options) -> Pipeline {
    let precision = options.precision;
    let on_device = targets.iter().any(|target| target.gpu.is_some());
    let has_byte_products = targets.iter().any(|target| target.byte_products.is_some());
    // Bytes take little of a small memory, and loads extend them.
    let keeps_bytes = has_byte_products || targets.iter().any(|target| target.is_microcontroller);
    let has_floats = targets.iter().all(|target| target.has_f32);
    // Wide copies of operands take memory, and devices multiply narrow numbers.
    let widens = !on_device && !targets.iter().any(|target| target.is_microcontroller);
    let has_bf16_products = targets.iter().all(|target| target.has_bf16_products);
    let upcaster = OperandUpcaster { has_floats, has_bf16_products };
    let (attention_targets, attention_options) = (targets.clone(), options.clone());
    let attention = AttentionFusion {
        judge: Box::new(move |module, computation, id| {
            plan::attention_pays(module, computation, id, &attention_targets, &attention_options)
        }),
    };
    let (panels_targets, packings) = (targets.clone(), options.packings.clone());
    let panels = ConstantPanels {
        panels: Box::new(move |module, computation, id| {
            plan::constant_panels(module, computation, id, &panels_targets, &packings)
        }),
    };
    let chaining = ConvolutionChaining {
        max_stages: plan::MAX_STAGES,
        saving: Box::new(move |module, computation, chain| {
            plan::chain_saving(module, computation, chain, &targets, options.winograd)
        }),
    };
    let mut pipeline = pipeline_of(precision, !on_device);
    if !on_device {
        // Contractions have their final operands. Before lookups are fused.
        pipeline.insert_before(ConcatenateInPlace.name(), Box::new(panels));
    }
    if widens {
        // After quantized layers have become products. Before loop-invariant code motion, which
        // moves conversions out of loops.
        pipeline.insert_before(WhileLoopDotOperandLayout.name(), Box::new(upcaster));
        pipeline.insert_before(WhileLoopDotOperandLayout.name(), Box::new(SimplifyFpConversions));
    }
    if !keeps_bytes {
        // Converting all bytes once is faster than converting each where it is used.
        pipeline.remove(ByteContraction::default().name());
    }
    if !has_byte_products {
        // Products of floats are faster than those of integers of 32 bits.
        pipeline.remove(QuantizedContraction.name());
    }
    // Devices may add without rounding the product.
    if !has_byte_products || on_device || !has_floats {
        pipeline.remove(FloatRequantization.name());
    }
    if on_device {
        pipeline.remove(ByteLookup.name());
        // Devices divide reductions themselves, into more parts.
        pipeline.remove(TreeReductionRewriter.name());
    }
    pipeline.push(Box::new(attention));
    pipeline.push(Box::new(chaining));
    pipeline
}
