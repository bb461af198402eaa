//! Constants that are quantized or dequantized.

use super::edit::Edit;
use crate::pass::{Changed, Pass};
use crate::query::{executed_computations, is_static_array};
use crate::simplify::{constant_expression, dce};
use hlo::analysis::ChannelConstant;
use hlo::quantization::{Dequantize, Quantization, integer_range};
use hlo::{Computation, InstructionId, Module, NarrowWeights, Op};
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use std::collections::BTreeSet;
use support::Result;

/// `convert(f(constants)) => constant` of integers, of any size, for elementwise arithmetic `f` of
/// floats: however weights are rounded, the next passes see their integers. Exact for every input.
pub struct QuantizedConstantFolding;

impl Pass for QuantizedConstantFolding {
    fn name(&self) -> &'static str {
        "quantized-constant-folding"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        rewrite_all(module, quantized)
    }
}

/// `dequantize(constant) => constant` of real numbers if it is the kernel of a convolution or of a
/// dot, which reads each number several times. Otherwise, weights with a zero point become `s8`
/// weights without one, if they fit. Exact for every input.
pub struct DequantizedConstantFolding {
    /// True to leave the weights of dots that widen them in registers ([`NarrowWeights`]).
    pub keeps_weights_of_dots: bool,
}

impl Pass for DequantizedConstantFolding {
    fn name(&self) -> &'static str {
        "dequantized-constant-folding"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        rewrite_all(module, |computation, root| dequantized(computation, root, self.keeps_weights_of_dots))
    }
}

/// Replaces instructions of executed computations.
pub(super) fn rewrite_all(
    module: &mut Module,
    rewrite: impl Fn(&mut Computation, InstructionId) -> Option<InstructionId>,
) -> Result<Changed> {
    let mut changed = false;
    for id in executed_computations(module) {
        let computation = module.computation_mut(id);
        let mut has_replaced = false;
        for root in computation.post_order() {
            if let Some(new) = rewrite(computation, root) {
                computation.replace_all_uses(root, new);
                has_replaced = true;
            }
        }
        if has_replaced {
            dce::sweep(computation);
            changed = true;
        }
    }
    Ok(changed.into())
}

/// Maximum number of instructions between a constant and its integers.
const MAX_STEPS: usize = 32;

fn quantized(computation: &mut Computation, root: InstructionId) -> Option<InstructionId> {
    let element_type = |id: InstructionId| Some(computation[id].shape().as_array()?.element_type);
    let Op::Convert {} = computation[root].op() else { return None };
    let is_rounded = element_type(computation[root].operands()[0])?.is_floating_point();
    if !is_rounded || !element_type(root)?.is_integer() {
        return None;
    }
    let literal = value(computation, root)?;
    Some(Edit::at(computation, root).literal(literal))
}

/// The value of elementwise arithmetic on constants, one of which has as many elements.
fn value(computation: &Computation, root: InstructionId) -> Option<Literal> {
    let count = |id: InstructionId| computation[id].shape().as_array().map(ArrayShape::element_count);
    let (mut steps, mut pending, mut is_large) = (BTreeSet::new(), vec![root], false);
    while let Some(id) = pending.pop() {
        let instruction = &computation[id];
        let op = instruction.op();
        is_large |= matches!(op, Op::Constant { .. }) && count(id) == count(root);
        // The functions of maps are in other computations.
        let is_known = matches!(op, Op::Constant { .. } | Op::Broadcast { .. })
            || op.is_elementwise() && !matches!(op, Op::Map { .. });
        if !is_known || !is_static_array(computation, id) || steps.len() > MAX_STEPS {
            return None;
        }
        if steps.insert(id) {
            pending.extend(instruction.operands());
        }
    }
    if !is_large {
        return None;
    }
    constant_expression::value(computation, &steps, root)
}

fn dequantized(
    computation: &mut Computation,
    root: InstructionId,
    keeps_weights_of_dots: bool,
) -> Option<InstructionId> {
    let Dequantize { integers, quantization } = Dequantize::of(computation, root)?;
    let Op::Constant { literal } = computation[integers].op() else { return None };
    let shape = computation[root].shape().as_array()?.clone();
    if shape.element_type != PrimitiveType::F32 {
        return None;
    }
    let index = channel_index(&shape, quantization.dimension());
    let is_kernel = |user: InstructionId| {
        let is_contraction = matches!(computation[user].op(), Op::Convolution { .. } | Op::Dot { .. });
        is_contraction && computation[user].operands()[1] == root
    };
    let users = || computation[root].users().iter().copied();
    let is_of_convolution =
        users().any(|user| is_kernel(user) && matches!(computation[user].op(), Op::Convolution { .. }));
    // The difference within a product is no array of its own.
    let is_scaled = matches!(computation[root].op(), Op::Multiply {});
    let is_left_to_dots = keeps_weights_of_dots || !users().any(is_kernel);
    if is_scaled
        && quantization.storage.bit_width() <= 16
        && is_left_to_dots
        && !is_of_convolution
        && quantization.zero_point.only() != Some(0.0)
        && let Some(weights) = without_zero_point(literal, &quantization)
    {
        let zero_point = ChannelConstant::of_all(0.0);
        let storage = PrimitiveType::S8;
        let quantization =
            Quantization { storage, zero_point, range: integer_range(storage), ..quantization };
        let mut edit = Edit::at(computation, root);
        let weights = edit.literal(weights);
        return Some(edit.dequantize(&quantization, weights));
    }
    let is_kept = |user| keeps_weights_of_dots && NarrowWeights::of(computation, user).is_some();
    if !users().any(|user| is_kernel(user) && !is_kept(user)) {
        return None;
    }
    let real = |(k, integer): (usize, Scalar)| {
        let centered = integer.as_i64()? as f32 - quantization.zero_point.at(index(k)) as f32;
        Some(f64::from(centered * quantization.scale.at(index(k)) as f32))
    };
    let numbers: Vec<f64> = literal.scalars().enumerate().map(real).collect::<Option<_>>()?;
    Some(Edit::at(computation, root).literal(Literal::from_floats(shape, numbers)))
}

/// Returns `s8` integers less their zero points. `None` if one does not fit.
fn without_zero_point(literal: &Literal, quantization: &Quantization) -> Option<Literal> {
    let shape = literal.array_shape();
    let index = channel_index(shape, quantization.dimension());
    let centered = |(k, integer): (usize, Scalar)| {
        let weight = integer.as_i64()?.checked_sub(quantization.zero_point.at(index(k)) as i64)?;
        i8::try_from(weight).is_ok().then_some(weight)
    };
    let weights: Vec<i64> = literal.scalars().enumerate().map(centered).collect::<Option<_>>()?;
    integer_literal(&shape.with_element_type(PrimitiveType::S8), weights.into_iter())
}

/// Returns the index along a dimension of the element at a row-major position.
pub(super) fn channel_index(shape: &ArrayShape, dimension: Option<usize>) -> impl Fn(usize) -> usize + use<> {
    let (stride, count) = match dimension {
        Some(d) => (row_major_strides(&shape.sizes())[d] as usize, shape.size(d) as usize),
        None => (1, 1),
    };
    move |position| position / stride % count
}

/// Returns an array of integers. `None` if the type is not one of integers.
pub(super) fn integer_literal(shape: &ArrayShape, integers: impl Iterator<Item = i64>) -> Option<Literal> {
    let is_signed = shape.element_type.is_signed_integer();
    let scalar =
        |integer: i64| if is_signed { Scalar::Signed(integer) } else { Scalar::Unsigned(integer as u64) };
    shape.element_type.is_integer().then(|| Literal::from_scalars(shape.clone(), integers.map(scalar)))
}
