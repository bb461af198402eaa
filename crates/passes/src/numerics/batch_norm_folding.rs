//! Folds per-channel scales and offsets into the constants of the preceding contraction.
//!
//! A convolution with bias and batch normalization becomes a convolution with another kernel and
//! one addition.

use crate::pass::{Changed, Pass};
use hlo::analysis::ChannelConstant;
use hlo::{Computation, InstructionId, Module, Op};
use shape::index::row_major_strides;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::Result;

/// Folds per-channel constants that follow a convolution or dot with a constant kernel, for `f32`
/// and `f64`:
///
/// - `contraction(x, k) * c => contraction(x, k * c)`,
/// - `(contraction + a) * c => contraction * c + a * c`,
/// - `(contraction + a) + c => contraction + (a + c)`,
/// - `x - c => x + -c` if that leads to one of these.
///
/// Changes the rounding: sums are scaled before rounding instead of after it, and constants are
/// rounded once more. Kernels and constants that would overflow are left unchanged. The
/// intermediate values must have no other users.
pub struct BatchNormFolding;

impl Pass for BatchNormFolding {
    fn name(&self) -> &'static str {
        "batch-norm-folding"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            // Each rewrite leads to instructions closer to the contraction; later roots see the
            // results of earlier rewrites.
            for instruction in computation.post_order() {
                let mut root = instruction;
                while let Some(folded) = fold(computation, root) {
                    computation.replace_all_uses(root, folded);
                    // Dead instructions must not count as users.
                    remove_unused(computation, root);
                    changed = true;
                    root = folded;
                }
            }
            if changed {
                crate::simplify::dce::sweep(computation);
            }
        }
        Ok(changed.into())
    }
}

/// Removes an unused instruction, and its operands if they become unused.
fn remove_unused(computation: &mut Computation, id: InstructionId) {
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        let Some(instruction) = computation.get(id) else { continue };
        let must_stay = matches!(instruction.op(), Op::Parameter { .. }) || computation.root() == id;
        if must_stay || !instruction.users().is_empty() {
            continue;
        }
        pending.extend(instruction.operands());
        computation.remove(id);
    }
}

/// Combines the numbers of two constants, rounded to the type; `None` if they lie along different
/// dimensions or if a number is not finite.
fn combine(
    a: &ChannelConstant,
    b: &ChannelConstant,
    element_type: PrimitiveType,
    f: impl Fn(f64, f64) -> f64,
) -> Option<ChannelConstant> {
    let combined = a.combine(b, f)?;
    let values = combined.values.into_iter().map(|value| rounded(element_type, value));
    Some(ChannelConstant { dimension: combined.dimension, values: values.collect::<Option<_>>()? })
}

/// The nearest number of the type, if it is finite.
fn rounded(element_type: PrimitiveType, value: f64) -> Option<f64> {
    let value = if element_type == PrimitiveType::F32 { f64::from(value as f32) } else { value };
    value.is_finite().then_some(value)
}

/// The replacement of a multiplication, addition, or subtraction.
fn fold(computation: &mut Computation, root: InstructionId) -> Option<InstructionId> {
    // An earlier rewrite may have removed the root.
    let element_type = computation.get(root)?.shape().as_array()?.element_type;
    if !matches!(element_type, PrimitiveType::F32 | PrimitiveType::F64) {
        return None;
    }
    let op = computation[root].op().clone();
    let (x, constant) = beside_constant(computation, root)?;
    match op {
        Op::Multiply {} => {
            if let Some(scaled) = scaled(computation, x, &constant) {
                return Some(scaled);
            }
            let (inner, offset) = offset_contraction(computation, x)?;
            // Folds the offset only if the scale disappears, so that nothing is computed twice.
            let scaled = scaled(computation, inner, &constant)?;
            let offset = combine(&offset, &constant, element_type, |a, c| a * c)?;
            Some(with_offset(computation, root, scaled, &offset))
        }
        Op::Add {} => {
            let (inner, offset) = offset_contraction(computation, x)?;
            let offset = combine(&offset, &constant, element_type, |a, c| a + c)?;
            Some(with_offset(computation, root, inner, &offset))
        }
        Op::Subtract {} => {
            let leads_to_rewrite =
                contraction(computation, x) || offset_contraction(computation, x).is_some();
            leads_to_rewrite.then(|| with_offset(computation, root, x, &constant.map(|value| -value)))
        }
        _ => None,
    }
}

/// The operand of a multiplication, addition, or subtraction that is not a constant, and the one
/// that is.
fn beside_constant(computation: &Computation, id: InstructionId) -> Option<(InstructionId, ChannelConstant)> {
    let is_linear = matches!(computation[id].op(), Op::Multiply {} | Op::Add {} | Op::Subtract {});
    is_linear.then(|| ChannelConstant::beside(computation, id))?
}

/// The contraction and the constant of a sum of both with one user.
fn offset_contraction(
    computation: &Computation,
    id: InstructionId,
) -> Option<(InstructionId, ChannelConstant)> {
    if !matches!(computation[id].op(), Op::Add {}) || !has_one_user(computation, id) {
        return None;
    }
    let (x, constant) = beside_constant(computation, id)?;
    contraction(computation, x).then_some((x, constant))
}

/// True if an instruction is a contraction with a constant kernel and one user.
fn contraction(computation: &Computation, id: InstructionId) -> bool {
    let is_constant = |position: usize| {
        matches!(computation[computation[id].operands()[position]].op(), Op::Constant { .. })
    };
    let has_kernel = match computation[id].op() {
        Op::Convolution { .. } => is_constant(1),
        Op::Dot { .. } => is_constant(0) || is_constant(1),
        _ => false,
    };
    has_kernel && has_one_user(computation, id)
}

fn has_one_user(computation: &Computation, id: InstructionId) -> bool {
    computation[id].users().len() == 1 && computation.root() != id
}

/// A copy of a contraction with a scaled kernel, so that each channel of the result is scaled.
fn scaled(
    computation: &mut Computation,
    id: InstructionId,
    scale: &ChannelConstant,
) -> Option<InstructionId> {
    if !contraction(computation, id) {
        return None;
    }
    let (position, dimension) = kernel_dimension(computation, id, scale.dimension)?;
    let kernel = computation[id].operands()[position];
    let Op::Constant { literal } = computation[kernel].op() else { return None };
    let shape = literal.array_shape().clone();
    if shape.element_type != computation[id].shape().as_array()?.element_type {
        return None;
    }
    let literal = scaled_literal(literal, dimension, &scale.values)?;
    let metadata = computation[kernel].metadata().clone();
    let kernel = computation.add("", Op::Constant { literal }, shape.into(), &[], metadata);
    let mut operands = computation[id].operands().to_vec();
    operands[position] = kernel;
    let (op, shape) = (computation[id].op().clone(), computation[id].shape().clone());
    let metadata = computation[id].metadata().clone();
    Some(computation.add("", op, shape, &operands, metadata))
}

/// The operand that is a constant kernel, and its dimension that becomes dimension `of_result` of
/// the result; no dimension if all channels have the same scale.
fn kernel_dimension(
    computation: &Computation,
    id: InstructionId,
    result_dimension: Option<usize>,
) -> Option<(usize, Option<usize>)> {
    let is_constant = |position: usize| {
        matches!(computation[computation[id].operands()[position]].op(), Op::Constant { .. })
    };
    match computation[id].op() {
        Op::Convolution { dim_labels: labels, .. } => match result_dimension {
            None => Some((1, None)),
            Some(d) if d == labels.output_feature_dimension => {
                Some((1, Some(labels.kernel_output_feature_dimension)))
            }
            Some(_) => None,
        },
        Op::Dot { dot_dimension_numbers: numbers } => {
            let Some(result_dimension) = result_dimension else {
                return Some((usize::from(is_constant(1)), None));
            };
            let batch = numbers.lhs_batch_dims.len();
            let sides = [
                (&numbers.lhs_batch_dims, &numbers.lhs_contracting_dims),
                (&numbers.rhs_batch_dims, &numbers.rhs_contracting_dims),
            ];
            let mut first = batch;
            for (position, (batch, contracting)) in sides.into_iter().enumerate() {
                let rank = computation[computation[id].operands()[position]].shape().as_array()?.rank();
                let mut free = (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d));
                let count = rank - batch.len() - contracting.len();
                if (first..first + count).contains(&result_dimension) {
                    return free
                        .nth(result_dimension - first)
                        .filter(|_| is_constant(position))
                        .map(|d| (position, Some(d)));
                }
                first += count;
            }
            None
        }
        _ => None,
    }
}

/// A kernel times a number for each index of a dimension. `None` if a product of finite numbers is
/// not finite.
fn scaled_literal(kernel: &Literal, dimension: Option<usize>, scale: &[f64]) -> Option<Literal> {
    let shape = kernel.array_shape().clone();
    let (stride, count) = match dimension {
        Some(d) => (row_major_strides(&shape.sizes())[d] as usize, shape.size(d) as usize),
        None => (1, 1),
    };
    if scale.len() != 1 && scale.len() != count {
        return None;
    }
    // Runs of elements that one number scales, or rows of elements with a number each.
    let is_row = scale.len() != 1 && stride == 1;
    let run =
        if scale.len() == 1 { kernel.bytes().len() } else { stride.max(if is_row { count } else { 1 }) };
    let scales = |number: usize| if is_row { scale } else { &scale[number % scale.len()..][..1] };
    let data = match shape.element_type {
        PrimitiveType::F32 => scaled_bytes(kernel.bytes(), run, scales, |x, scale| {
            let x = f32::from_le_bytes(x);
            let product = (f64::from(x) * scale) as f32;
            (product.to_le_bytes(), product.is_finite() || !x.is_finite())
        }),
        PrimitiveType::F64 => scaled_bytes(kernel.bytes(), run, scales, |x, scale| {
            let x = f64::from_le_bytes(x);
            let product = x * scale;
            (product.to_le_bytes(), product.is_finite() || !x.is_finite())
        }),
        _ => None,
    }?;
    Literal::from_bytes(shape, data.into())
}

/// Multiplies elements of `N` bytes by numbers, in runs of `run` elements: `scales` returns the
/// numbers of a run, one for all elements or one for each. `None` if `multiply` rejects a product.
fn scaled_bytes<'s, const N: usize>(
    bytes: &[u8],
    run: usize,
    scales: impl Fn(usize) -> &'s [f64],
    multiply: impl Fn([u8; N], f64) -> ([u8; N], bool),
) -> Option<Vec<u8>> {
    let mut scaled = vec![0u8; bytes.len()];
    let mut all_valid = true;
    let length = run.saturating_mul(N).max(N);
    for (number, (to, from)) in scaled.chunks_mut(length).zip(bytes.chunks(length)).enumerate() {
        let elements = to.as_chunks_mut::<N>().0.iter_mut().zip(from.as_chunks::<N>().0);
        match scales(number) {
            &[scale] => elements.for_each(|(to, &from)| {
                let is_valid;
                (*to, is_valid) = multiply(from, scale);
                all_valid &= is_valid;
            }),
            scales => elements.zip(scales).for_each(|((to, &from), &scale)| {
                let is_valid;
                (*to, is_valid) = multiply(from, scale);
                all_valid &= is_valid;
            }),
        }
    }
    all_valid.then_some(scaled)
}

/// Adds `x + constant` as the replacement of `root`.
fn with_offset(
    computation: &mut Computation,
    root: InstructionId,
    x: InstructionId,
    constant: &ChannelConstant,
) -> InstructionId {
    let shape = computation[root].shape().expect_array().clone();
    let metadata = computation[root].metadata().clone();
    let sizes: Vec<i64> = constant.dimension.iter().map(|_| constant.values.len() as i64).collect();
    let vector = ArrayShape::new(shape.element_type, &sizes);
    let values = constant.values.iter().map(|&value| Scalar::Float(value));
    let literal = Literal::from_scalars(vector.clone(), values);
    let constant_id = computation.add("", Op::Constant { literal }, vector.into(), &[], metadata.clone());
    let dimensions = constant.dimension.into_iter().collect();
    let spread = match shape.rank() {
        0 => constant_id,
        _ => {
            let op = Op::Broadcast { dimensions };
            computation.add("", op, shape.clone().into(), &[constant_id], metadata.clone())
        }
    };
    computation.add("", Op::Add {}, shape.into(), &[x, spread], metadata)
}
