//! Detects where correct code may return anything for some numbers, because intermediate results
//! depend on the algorithm.
//!
//! - Winograd's transforms add and subtract neighboring pixels of a convolution, so an infinity, a
//!   NaN, or a number much larger than its neighbors affects neighboring results.
//! - Products of many factors may overflow or underflow in one order but not in another.
//! - Normalization squares its input, or multiplies sums of it, in various forms. Code computes
//!   inference as `x s + (offset - mean s)`, so an infinite scale cancels to NaN.

use super::estimate::magnitudes;
use crate::fill::extremes;
use hlo::{Instruction, Module, Op};
use shape::Literal;

/// Upper bound of the sum of factors applied to an input in both dimensions, times that of a weight
/// and of the outputs.
const AMPLIFICATION: f64 = (1u64 << 12) as f64;

/// A number larger than the mean by this factor absorbs numbers added to it.
const WILD: f64 = (1u64 << 12) as f64;

/// True if code may use the transforms: for a 3x3 window with stride 1, or its gradient.
pub(super) fn may_apply(instruction: &Instruction, operands: &[Literal]) -> bool {
    let Op::Convolution { window, dim_labels: labels, .. } = instruction.op() else { return false };
    // For a kernel's gradient, the taps are the result.
    let result = instruction.shape().expect_array();
    let has_taps = |d: usize, size: i64| size == 3 || result.size(labels.output_spatial_dimensions[d]) == 3;
    let is_plain =
        window.dimensions.len() == 2
            && window.dimensions.iter().enumerate().all(|(d, w)| {
                has_taps(d, w.size) && (w.stride, w.window_dilation, w.base_dilation) == (1, 1, 1)
            });
    let is_float = |o: &Literal| o.array_shape().element_type.is_floating_point();
    is_plain && operands.iter().all(is_float)
}

/// True if the transforms, if used, may yield results other than the definition's: for numbers that
/// are not finite, of very different magnitude, or close to overflow.
pub(super) fn may_differ(instruction: &Instruction, operands: &[Literal], terms: f64) -> bool {
    if !may_apply(instruction, operands) {
        return false;
    }
    let mut product = terms * AMPLIFICATION;
    for operand in operands {
        let magnitudes = magnitudes(operand);
        let largest = magnitudes.iter().copied().fold(0.0, f64::max);
        let mean = magnitudes.iter().sum::<f64>() / magnitudes.len().max(1) as f64;
        // Comparisons with NaN are false.
        if !(magnitudes.iter().all(|m| m.is_finite()) && largest <= WILD * mean) {
            return true;
        }
        product *= largest.max(1.0);
    }
    product > extremes(instruction.shape().expect_array().element_type).0
}

/// True if partial results may overflow or underflow in an order or form of computation other than
/// the evaluator's.
pub(super) fn may_leave_range(
    module: &Module,
    instruction: &Instruction,
    operands: &[Literal],
    terms: f64,
) -> bool {
    let factors = match instruction.op() {
        Op::Reduce { to_apply, .. } | Op::ReduceWindow { to_apply, .. } | Op::Scatter { to_apply, .. } => {
            let mut ops = module[*to_apply].instructions().map(|(_, i)| i.op());
            if !ops.any(|op| matches!(op, Op::Multiply {})) {
                return false;
            }
            terms
        }
        // Transforms and solvers that mix all elements, in an order other than the definition's.
        Op::Fft { .. } | Op::Cholesky { .. } | Op::TriangularSolve { .. } => 2.0,
        Op::BatchNormGrad { .. } | Op::BatchNormInference { .. } | Op::BatchNormTraining { .. } => 6.0,
        _ => return false,
    };
    let element_type = operands[0].array_shape().element_type;
    let is_complex = element_type.is_complex();
    let mixes = matches!(instruction.op(), Op::Fft { .. } | Op::Cholesky { .. } | Op::TriangularSolve { .. });
    // Narrow types may or may not be computed in `f32`.
    let (largest, smallest, _) = extremes(element_type);
    let range = largest.log2().min(-smallest.log2());
    let is_inference = matches!(instruction.op(), Op::BatchNormInference { .. });
    if is_inference && operands[1..].iter().any(|o| magnitudes(o).iter().any(|m| !m.is_finite())) {
        return true;
    }
    let is_number = |o: &&Literal| o.array_shape().element_type == element_type;
    let magnitudes = operands.iter().filter(is_number).flat_map(magnitudes);
    let mut farthest = 0.0;
    for magnitude in magnitudes {
        if (is_complex || mixes) && !magnitude.is_finite() {
            return true;
        }
        if magnitude.is_finite() && magnitude != 0.0 {
            farthest = f64::max(farthest, magnitude.log2().abs());
        }
    }
    let is_float = is_complex || element_type.is_floating_point();
    is_float && farthest * factors > range
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::{ArrayShape, PrimitiveType, Scalar};

    fn differ(window: &str, numbers: [f64; 4]) -> bool {
        let text = format!(
            "HloModule m\n\nENTRY main {{\n  x = f32[1,2,2,1] parameter(0)\n  w = f32[3,3,1,1] parameter(1)\n  \
             ROOT c = f32[1,2,2,1] convolution(x, w), window={{{window}}}, dim_labels=b01f_01io->b01f\n}}\n"
        );
        let module = hlo::parse(&text).expect("a module");
        let entry = module.entry_computation();
        let array = |sizes: &[i64], numbers: &[f64]| {
            let shape = ArrayShape::new(PrimitiveType::F32, sizes);
            Literal::from_scalars(shape, numbers.iter().map(|&x| Scalar::Float(x)).collect::<Vec<_>>())
        };
        let operands = [array(&[1, 2, 2, 1], &numbers), array(&[3, 3, 1, 1], &[0.5; 9])];
        may_differ(&entry[entry.root()], &operands, 9.0)
    }

    #[test]
    fn long_products_may_leave_the_range_and_sums_do_not() {
        let leaves = |op: &str, number: f64| {
            let text = format!(
                "HloModule m\n\nr {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT z = f32[] {op}(x, y)\n}}\n\n\
                 ENTRY main {{\n  x = f32[64] parameter(0)\n  i = f32[] constant(1)\n  \
                 ROOT c = f32[] reduce(x, i), dimensions={{0}}, to_apply=r\n}}\n"
            );
            let module = hlo::parse(&text).expect("a module");
            let entry = module.entry_computation();
            let operands = [Literal::from_elements(&[1], &[number as f32]), Literal::scalar(1f32)];
            may_leave_range(&module, &entry[entry.root()], &operands, 65.0)
        };
        assert!(leaves("multiply", 8.0));
        assert!(leaves("multiply", 0.125));
        assert!(!leaves("multiply", 1.5));
        assert!(!leaves("add", 8.0));
    }

    #[test]
    fn only_what_the_features_have_may_take_itself_away() {
        let text = "HloModule m\n\nENTRY main {\n  x = f32[2,2] parameter(0)\n  s = f32[2] parameter(1)\n  \
                    ROOT c = f32[2,2] batch-norm-inference(x, s, s, s, s), epsilon=0.5, feature_index=1\n}\n";
        let module = hlo::parse(text).expect("a module");
        let entry = module.entry_computation();
        let leaves = |x: f32, s: f32| {
            let s = Literal::from_elements(&[2], &[s, 1.0]);
            let operands =
                [Literal::from_elements(&[2, 2], &[x; 4]), s.clone(), s.clone(), s.clone(), s.clone()];
            may_leave_range(&module, &entry[entry.root()], &operands, 1.0)
        };
        assert!(leaves(1.0, f32::INFINITY));
        assert!(!leaves(f32::INFINITY, 1.0));
    }

    #[test]
    fn only_wild_numbers_in_windows_with_transforms_are_left_out() {
        let same = "size=3x3 pad=1_1x1_1";
        assert!(!differ(same, [1.0, -2.0, 0.0, 100.0]));
        assert!(differ(same, [1.0, f64::INFINITY, 0.0, 1.0]));
        assert!(differ(same, [1.0, f64::NAN, 0.0, 1.0]));
        assert!(differ(same, [1e36, 1e36, 0.0, 1e36]));
        assert!(!differ("size=3x3 pad=2_2x2_2 rhs_dilate=2x2", [1.0, f64::NAN, 0.0, 1.0]));
    }
}
