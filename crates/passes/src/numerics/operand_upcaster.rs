//! Products of arrays that are narrower than their sums.

use crate::pass::{Changed, Pass};
use crate::query::is_static;
use hlo::{Computation, InstructionId, Module, Op};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::collections::BTreeMap;
use support::Result;

/// `contraction(x, y) => convert(contraction(convert(x), convert(y)))`, where neither x nor y is
/// constant and at least one is narrower than the sums: `f32` for narrower floats, `f64` for
/// results of `f64`, and `s32` or the wider type of the result for integers. Sums of small integers
/// are `f32` where that is exact.
///
/// Kernels widen packed operands one by one, in every task, whereas a conversion is a loop of
/// vectors that is often part of the operand's own kernel. Constant weights are packed when the
/// program is compiled, and stay narrow: tiles widen a vector of them for many products. The other
/// operand of constant floats is widened as well, unless the target multiplies such pairs.
///
/// Exact except for the order of sums.
pub struct OperandUpcaster {
    /// True if the target has instructions for `f32`.
    pub has_floats: bool,
    /// True if the target has instructions for sums of products of two `bf16`.
    pub has_bf16_products: bool,
}

impl Pass for OperandUpcaster {
    fn name(&self) -> &'static str {
        "operand-upcaster"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for id in crate::query::executed_computations(module) {
            let computation = module.computation_mut(id);
            let mut wide = BTreeMap::new();
            let mut has_replaced = false;
            for root in computation.post_order() {
                if let Some(sums) = self.sums(computation, root) {
                    widen(computation, root, sums, &mut wide);
                    has_replaced = true;
                }
            }
            if has_replaced {
                crate::simplify::dce::sweep(computation);
                changed = true;
            }
        }
        Ok(changed.into())
    }
}

impl OperandUpcaster {
    /// The type of a contraction's sums, if an operand is to be widened.
    fn sums(&self, computation: &Computation, id: InstructionId) -> Option<PrimitiveType> {
        let instruction = &computation[id];
        if !is_static(computation, id) {
            return None;
        }
        let &[x, y] = instruction.operands() else { return None };
        let array = |id: InstructionId| computation[id].shape().as_array();
        let (x_shape, y_shape, result) = (array(x)?, array(y)?, array(id)?.element_type);
        let summands: i64 = match instruction.op() {
            Op::Dot { dot_dimension_numbers: numbers } => {
                numbers.rhs_contracting_dims.iter().map(|&d| y_shape.size(d)).product()
            }
            Op::Convolution { dim_labels, .. } => {
                let outputs = y_shape.size(dim_labels.kernel_output_feature_dimension);
                y_shape.element_count().checked_div(outputs)?
            }
            _ => return None,
        };
        let factors = [x_shape.element_type, y_shape.element_type];
        let sums = self.sum_type(factors, summands, result)?;
        let can_widen = factors.iter().all(|&factor| factor == sums || factor.bit_width() < sums.bit_width());
        let is_narrow = factors.iter().any(|&factor| factor != sums);
        let constants = [x, y].map(|id| is_constant(computation, id));
        let is_widened = match (factors, constants) {
            (_, [false, false]) => true,
            (_, [true, true]) => false,
            ([PrimitiveType::Bf16, PrimitiveType::Bf16], [is_left, _]) => match instruction.op() {
                op @ Op::Convolution { .. } => !self.has_bf16_products || has_single_input(op, y_shape),
                // Neither have summands that are not neighbors. Pairs of a dot's summands take
                // little time even without an instruction.
                Op::Dot { dot_dimension_numbers: numbers } => {
                    let (other, contracting) = if is_left {
                        (y_shape, &numbers.rhs_contracting_dims)
                    } else {
                        (x_shape, &numbers.lhs_contracting_dims)
                    };
                    !contracting.iter().any(|&d| d + 1 == other.rank())
                }
                _ => false,
            },
            ([x, y], [is_x, _]) => {
                let other = if is_x { y } else { x };
                other.is_floating_point() && other != sums
            }
        };
        (can_widen && is_narrow && is_widened).then_some(sums)
    }

    /// The type in which products of two types are added.
    fn sum_type(
        &self,
        factors: [PrimitiveType; 2],
        summands: i64,
        result: PrimitiveType,
    ) -> Option<PrimitiveType> {
        let all = |test: fn(PrimitiveType) -> bool| factors.into_iter().chain([result]).all(test);
        if all(|t| t.is_floating_point()) {
            let is_double = result == PrimitiveType::F64;
            return Some(if is_double { PrimitiveType::F64 } else { PrimitiveType::F32 });
        }
        if !all(PrimitiveType::is_integer) || result.bit_width() < 32 {
            return None;
        }
        // Integers up to this magnitude are exact, and sums of them in any order.
        const EXACT: i64 = 1 << 24;
        let largest = |factor: PrimitiveType| {
            1i64.checked_shl(factor.bit_width() - u32::from(factor.is_signed_integer()))
        };
        let product = largest(factors[0])?.checked_mul(largest(factors[1])?);
        let is_exact = product.and_then(|p| p.checked_mul(summands)).is_some_and(|sum| sum <= EXACT);
        let has_sign = result.is_signed_integer() || !factors.iter().any(|factor| factor.is_signed_integer());
        Some(if self.has_floats && is_exact && has_sign { PrimitiveType::F32 } else { result })
    }
}

fn is_constant(computation: &Computation, id: InstructionId) -> bool {
    matches!(computation[id].op(), Op::Constant { .. })
}

/// True for a convolution whose groups have one input feature, such as a depthwise one. It has no
/// pairs, and each of its few weights is read for each pixel.
fn has_single_input(op: &Op, kernel: &ArrayShape) -> bool {
    matches!(op, Op::Convolution { dim_labels, .. } if kernel.size(dim_labels.kernel_input_feature_dimension) == 1)
}

/// Widens a contraction's operands. `wide` are the wide forms of arrays. Constant weights stay
/// narrow, those of a dot with a conversion that its kernel contains.
fn widen(
    computation: &mut Computation,
    id: InstructionId,
    sums: PrimitiveType,
    wide: &mut BTreeMap<(InstructionId, PrimitiveType), InstructionId>,
) {
    let (op, operands) = (computation[id].op().clone(), computation[id].operands().to_vec());
    let of_type = |computation: &Computation, id: InstructionId| {
        let shape = computation[id].shape().expect_array();
        Shape::Array(ArrayShape::new(sums, &shape.sizes()))
    };
    let mut widened = Vec::with_capacity(operands.len());
    for (number, operand) in operands.into_iter().enumerate() {
        let (shape, metadata) = (of_type(computation, operand), computation[operand].metadata().clone());
        let is_wide = computation[operand].shape().expect_array().element_type == sums;
        let is_weights_of_dot = number == 1 && matches!(op, Op::Dot { .. });
        let is_constant = is_constant(computation, operand);
        widened.push(match computation[operand].op() {
            _ if is_wide => operand,
            Op::Constant { literal } if has_single_input(&op, literal.array_shape()) => {
                let wide = ArrayShape::new(sums, &literal.array_shape().sizes());
                let literal = Literal::from_scalars(wide, literal.scalars());
                computation.add("", Op::Constant { literal }, shape, &[], metadata)
            }
            Op::Constant { .. } if !is_weights_of_dot => operand,
            _ => {
                let convert = || computation.add("", Op::Convert {}, shape, &[operand], metadata);
                if is_constant { convert() } else { *wide.entry((operand, sums)).or_insert_with(convert) }
            }
        });
    }
    let (shape, metadata) = (computation[id].shape().clone(), computation[id].metadata().clone());
    let of_sums = of_type(computation, id);
    let is_result = shape == of_sums;
    let mut result = computation.add("", op, of_sums, &widened, metadata.clone());
    if !is_result {
        result = computation.add("", Op::Convert {}, shape, &[result], metadata);
    }
    computation.replace_all_uses(id, result);
}
