//! Brings convolutions into the code generator's canonical form.

use crate::pass::{Changed, Pass};
use crate::query::is_static;
use hlo::{
    Computation, ConvolutionDimensionNumbers, ConvolutionForm, InstructionId, Module, Op, OpMetadata, Window,
};
use shape::{ArrayShape, PrimitiveType};
use support::Result;

/// Gives every convolution of static arrays innermost channels: `dim_labels=b01f_01io->b01f`, for
/// any number of spatial dimensions.
///
/// Operands and results in another order are transposed, a reversed kernel is reversed, and batch
/// groups become feature groups: the groups of the batch are placed next to each other in the
/// features. Strides, padding, dilations, and feature groups remain attributes of the convolution.
/// A kernel gradient that sums over the images of two arrays with innermost channels
/// (`f01b_i01o->01bf`) is left unchanged, because no transpose would make it faster. Exact for
/// every input: the products are the same, and the order of their sum is unspecified.
pub struct ConvolutionCanonicalization;

impl Pass for ConvolutionCanonicalization {
    fn name(&self) -> &'static str {
        "convolution-canonicalization"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            for instruction in computation.post_order() {
                if let Some(new) = canonical(computation, instruction) {
                    computation.replace_all_uses(instruction, new);
                    changed = true;
                }
            }
            if changed {
                crate::simplify::dce::sweep(computation);
            }
        }
        Ok(changed.into())
    }
}

/// The replacement of a convolution in another form.
fn canonical(computation: &mut Computation, id: InstructionId) -> Option<InstructionId> {
    let Op::Convolution { window, dim_labels: labels, feature_group_count, batch_group_count } =
        computation[id].op()
    else {
        return None;
    };
    match ConvolutionForm::of(computation[id].op()) {
        Some(ConvolutionForm::Canonical) => return None,
        Some(ConvolutionForm::KernelGradient) if gradient_stays(computation, id) => return None,
        Some(ConvolutionForm::KernelGradient) | None => {}
    }
    let spatial = window.dimensions.len();
    let (window, labels) = (window.clone(), labels.clone());
    let (mut feature_groups, batch_groups) = (*feature_group_count, *batch_group_count);
    let operands = computation[id].operands().to_vec();
    if !is_static(computation, id) {
        return None;
    }
    let result = computation[id].shape().expect_array().clone();
    let mut writer = Writer { metadata: computation[id].metadata().clone(), computation };

    let order =
        order(labels.input_batch_dimension, &labels.input_spatial_dimensions, labels.input_feature_dimension);
    let mut input = writer.transpose(operands[0], order);
    if batch_groups > 1 {
        input = writer.batch_groups_to_features(input, batch_groups);
        feature_groups = batch_groups;
    }
    let kernel_features = [labels.kernel_input_feature_dimension, labels.kernel_output_feature_dimension];
    let order_of_kernel = labels.kernel_spatial_dimensions.iter().copied().chain(kernel_features).collect();
    let kernel = writer.transpose(operands[1], order_of_kernel);
    let kernel = writer.reverse(kernel, &window);

    let dimensions = window.dimensions.iter().map(|&d| hlo::WindowDimension { window_reversal: false, ..d });
    let window = Window { dimensions: dimensions.collect() };
    let order_of_result = self::order(
        labels.output_batch_dimension,
        &labels.output_spatial_dimensions,
        labels.output_feature_dimension,
    );
    let sizes: Vec<i64> = order_of_result.iter().map(|&d| result.size(d)).collect();
    let op = Op::Convolution {
        window,
        dim_labels: ConvolutionDimensionNumbers::canonical(spatial),
        feature_group_count: feature_groups,
        batch_group_count: 1,
    };
    let new = writer.add(op, ArrayShape::new(result.element_type, &sizes), &[input, kernel]);
    let back =
        (0..sizes.len()).map(|d| order_of_result.iter().position(|&o| o == d)).collect::<Option<_>>()?;
    Some(writer.transpose(new, back))
}

/// Above this many rows, the lists that a kernel needs for them are too long.
const MAX_GRADIENT_ROWS: i64 = 1 << 18;

/// True if a kernel gradient should remain: the element type is one in which products are summed,
/// and the rows of the result, taps times input features, are few enough.
fn gradient_stays(computation: &Computation, id: InstructionId) -> bool {
    let arrays =
        || computation[id].operands().iter().chain([&id]).map(|&id| computation[id].shape().as_array());
    let is_summed = |array: Option<&ArrayShape>| {
        array.is_some_and(|array| {
            matches!(array.element_type, PrimitiveType::F32 | PrimitiveType::F64)
                && array.is_static()
                && array.element_count() > 0
        })
    };
    let Some(result) = computation[id].shape().as_array() else { return false };
    let rows = result.sizes()[..result.rank() - 1].iter().fold(1, |n: i64, &size| n.saturating_mul(size));
    (3..=5).contains(&result.rank()) && arrays().all(is_summed) && rows <= MAX_GRADIENT_ROWS
}

/// Batch, spatial dimensions, features.
fn order(batch: usize, spatial: &[usize], features: usize) -> Vec<usize> {
    std::iter::once(batch).chain(spatial.iter().copied()).chain([features]).collect()
}

/// Adds instructions with the metadata of a convolution.
struct Writer<'c> {
    computation: &'c mut Computation,
    metadata: OpMetadata,
}

impl Writer<'_> {
    fn add(&mut self, op: Op, shape: ArrayShape, operands: &[InstructionId]) -> InstructionId {
        self.computation.add("", op, shape.into(), operands, self.metadata.clone())
    }

    fn array(&self, id: InstructionId) -> &ArrayShape {
        self.computation[id].shape().expect_array()
    }

    /// Reorders the dimensions of an array, if the order differs.
    fn transpose(&mut self, operand: InstructionId, dimensions: Vec<usize>) -> InstructionId {
        if dimensions.is_sorted() {
            return operand;
        }
        let shape = self.array(operand);
        let sizes: Vec<i64> = dimensions.iter().map(|&d| shape.size(d)).collect();
        let shape = ArrayShape::new(shape.element_type, &sizes);
        self.add(Op::Transpose { dimensions }, shape, &[operand])
    }

    fn reverse(&mut self, kernel: InstructionId, window: &Window) -> InstructionId {
        let is_reversed = |&d: &usize| window.dimensions[d].window_reversal && window.dimensions[d].size > 1;
        let dimensions: Vec<usize> = (0..window.dimensions.len()).filter(is_reversed).collect();
        if dimensions.is_empty() {
            return kernel;
        }
        let shape = self.array(kernel).clone();
        self.add(Op::Reverse { dimensions }, shape, &[kernel])
    }

    /// `[groups * n, ..., f]` as `[n, ..., groups * f]`.
    fn batch_groups_to_features(&mut self, input: InstructionId, groups: i64) -> InstructionId {
        let shape = self.array(input).clone();
        let (sizes, rank) = (shape.sizes(), shape.rank());
        let (batch, spatial, features) = (sizes[0] / groups, &sizes[1..rank - 1], sizes[rank - 1]);
        let of_sizes = |sizes: &[&[i64]]| ArrayShape::new(shape.element_type, &sizes.concat());
        let split = self.add(Op::Reshape {}, of_sizes(&[&[groups, batch], spatial, &[features]]), &[input]);
        let dimensions: Vec<usize> = (1..rank).chain([0, rank]).collect();
        let moved = of_sizes(&[&[batch], spatial, &[groups, features]]);
        let moved = self.add(Op::Transpose { dimensions }, moved, &[split]);
        self.add(Op::Reshape {}, of_sizes(&[&[batch], spatial, &[groups * features]]), &[moved])
    }
}
