//! Effect of an instruction's own rounding on its result, including NaN.

use super::estimate::{ANY_NAN, Estimate, Known, distance, epsilon, magnitudes};
use super::rules::{Rule, own_ulps};
use crate::fill::extremes;
use hlo::{ComparisonDirection as Direction, Instruction, Op, Traits};
use shape::{Literal, PrimitiveType, Scalar};

/// Upper bound of the error of sums of products of `bf16` on processors whose instructions treat
/// subnormal factors and sums as zero.
pub(super) fn flushed_products(rule: &Rule, operands: &[Literal], terms: f64) -> f64 {
    let is_bf16 = |operand: &Literal| operand.array_shape().element_type == PrimitiveType::Bf16;
    if *rule != Rule::Product || !operands.iter().all(is_bf16) {
        return 0.0;
    }
    let factors: f64 = operands.iter().map(largest_finite).sum();
    f64::from(f32::MIN_POSITIVE) * terms * (factors + 2.0)
}

/// Returns the largest finite magnitude of an array, at least 1. A part of a complex number may be
/// infinite beside a finite one.
pub(super) fn largest_finite(array: &Literal) -> f64 {
    let magnitudes = if array.array_shape().element_type.is_complex() {
        real_parts(array).into_iter().zip(imaginary_parts(array)).flat_map(finite_magnitudes).collect()
    } else {
        magnitudes(array)
    };
    magnitudes.into_iter().filter(|v| v.is_finite()).fold(1.0, f64::max)
}

fn finite_magnitudes((re, im): (f64, f64)) -> [f64; 3] {
    [re, im, re.hypot(im)]
}

/// Bounds on the sums of an instruction.
pub(super) struct SumBounds {
    /// Number of terms of each sum.
    pub(super) terms: f64,
    /// Upper bound of sums of finite terms.
    pub(super) finite_sum: f64,
    /// The same bound if a transform mixes the terms of several results, else 0.
    pub(super) mixed: f64,
}

/// Returns `min(n, 8 sqrt(n)) u sum |x|` plus the rounding of the result. If transforms mix the
/// terms of several results, adds a share of the largest possible sum.
///
/// `values` are the magnitudes of the results or of parts of them.
pub(super) fn sum_errors(
    element_type: PrimitiveType,
    values: Vec<f64>,
    sums: &[f64],
    bounds: &SumBounds,
) -> Vec<f64> {
    let &SumBounds { terms, finite_sum, mixed } = bounds;
    // Types narrower than `f32` are summed in `f32`.
    let narrow = epsilon(element_type) > epsilon(PrimitiveType::F32);
    let summed = if narrow { PrimitiveType::F32 } else { element_type };
    let (precision, (largest, _, smallest)) = (epsilon(summed) / 2.0, extremes(summed));
    let factor = terms.min(8.0 * terms.sqrt()) * precision;
    let mixed = 64.0 * precision * mixed;
    let error = |(value, &sum): (f64, &f64)| {
        if sum.is_nan() {
            // NaN is among the terms regardless of the order.
            return 0.0;
        }
        // Partial sums may overflow in the precision of the type but not in the evaluator's.
        if (sum.is_infinite() && finite_sum > largest) || (sum.is_finite() && sum * (1.0 + factor) > largest)
        {
            return f64::INFINITY;
        }
        if sum.is_infinite() {
            return 0.0;
        }
        factor * sum + mixed + ulp(element_type, value) + terms * smallest
    };
    values.into_iter().zip(sums).map(error).collect()
}

/// Returns the magnitudes of the real parts.
pub(super) fn real_parts(array: &Literal) -> Vec<f64> {
    parts(array, |re, _| re)
}

/// Returns the magnitudes of the imaginary parts.
pub(super) fn imaginary_parts(array: &Literal) -> Vec<f64> {
    parts(array, |_, im| im)
}

fn parts(array: &Literal, part: fn(f64, f64) -> f64) -> Vec<f64> {
    let magnitude = |scalar| match scalar {
        Scalar::Complex(re, im) => part(re, im).abs(),
        other => other.as_f64().map_or(f64::NAN, f64::abs),
    };
    array.scalars().map(magnitude).collect()
}

pub(super) fn elementwise_errors(
    instruction: &Instruction,
    array: &Literal,
    operands: &[Literal],
) -> Vec<f64> {
    let element_type = array.array_shape().element_type;
    // The magnitude of a complex number is real, but no more exact than a complex result.
    let of_type = match operands.first().map(|o| o.array_shape().element_type) {
        Some(operand) if operand.is_complex() => operand,
        _ => element_type,
    };
    if matches!(instruction.op(), Op::Maximum {} | Op::Minimum {} | Op::Clamp {}) {
        return either_zero(array, operands);
    }
    let ulps = own_ulps(instruction.op(), of_type);
    if ulps == 0.0 {
        return vec![0.0; array.array_shape().element_count() as usize];
    }
    // A product or sum that is contracted into another operation may avoid an overflow.
    let contracts = matches!(instruction.op(), Op::Multiply {} | Op::Add {} | Op::Subtract {});
    let finite = |k: usize| -> bool {
        operands.iter().all(|o| {
            let k = if o.array_shape().rank() == 0 { 0 } else { k };
            match o.scalar_at(k) {
                Scalar::Float(value) => value.is_finite(),
                Scalar::Complex(re, im) => re.is_finite() && im.is_finite(),
                _ => true,
            }
        })
    };
    let error = |(k, value): (usize, f64)| match value {
        _ if of_type.is_complex() && complex_is_undecided(instruction.op(), operands, k) => f64::INFINITY,
        v if v.is_finite() => {
            let condition = complex_condition(instruction.op(), operands, k).max(1.0);
            ulps * ulp(element_type, v) * condition
                + complex_atan2_error(instruction.op(), operands, array.scalar_at(k), k)
        }
        // Infinite in an unknown direction.
        _ if complex_condition(instruction.op(), operands, k) == f64::INFINITY => f64::INFINITY,
        _ if contracts && finite(k) => f64::INFINITY,
        _ => 0.0,
    };
    magnitudes(array).into_iter().enumerate().map(error).collect()
}

/// Returns the smallest error for zeros that may have either sign, because there are zeros of both
/// signs to choose from; otherwise 0.
fn either_zero(array: &Literal, operands: &[Literal]) -> Vec<f64> {
    let smallest = extremes(array.array_shape().element_type).2;
    let is_zero = |value: Scalar, negative: bool| matches!(value, Scalar::Float(x) if x == 0.0 && x.is_sign_negative() == negative);
    let has = |k: usize, negative: bool| {
        operands
            .iter()
            .any(|o| is_zero(o.scalar_at(if o.array_shape().rank() == 0 { 0 } else { k }), negative))
    };
    let error = |(k, value): (usize, Scalar)| match value {
        Scalar::Float(x) if x == 0.0 && has(k, true) && has(k, false) => smallest,
        _ => 0.0,
    };
    array.scalars().enumerate().map(error).collect()
}

/// Returns the complex number at an index. A scalar applies to all indices.
fn complex_at(operand: &Literal, k: usize) -> Option<(f64, f64)> {
    match operand.scalar_at(if operand.array_shape().rank() == 0 { 0 } else { k }) {
        Scalar::Complex(re, im) => Some((re, im)),
        _ => None,
    }
}

/// Returns the possible distance of remainders if an operand may move so far that the integer
/// quotient changes; otherwise 0. It is infinite if the divisor may be 0.
pub(super) fn unknown_remainder(operands: &[Literal], moved: usize, k: usize, error: f64) -> f64 {
    let at = |operand: usize| {
        let operand = &operands[operand];
        operand.scalar_at(if operand.array_shape().rank() == 0 { 0 } else { k }).as_f64().unwrap_or(f64::NAN)
    };
    let (x, y) = (at(0), at(1));
    let (quotients, largest) = match moved {
        0 => (error / y.abs(), y.abs()),
        _ => ((x / y).abs() * (error / y.abs()), y.abs() + error),
    };
    if error == 0.0 {
        return 0.0;
    }
    if moved == 1 && error >= y.abs() {
        return f64::INFINITY;
    }
    let (quotient, reach) = (x / y, quotients + (x / y).abs() * f64::EPSILON);
    if quotients > 0.25 {
        2.0 * largest
    } else if (quotient - reach).trunc() != (quotient + reach).trunc() {
        // At a multiple of the divisor, a remainder near the divisor becomes one near zero.
        largest
    } else {
        0.0
    }
}

/// Distance of angles across the cut, with a margin for rounding in narrow types.
const TURN: f64 = 2.0 * std::f64::consts::PI * 1.125;

/// Returns the distance of a real number from the nearest pole of the tangent, an odd multiple of a
/// quarter turn.
fn from_pole(x: Scalar) -> f64 {
    const QUARTER: f64 = std::f64::consts::FRAC_PI_2;
    let Scalar::Float(x) = x else { return f64::INFINITY };
    let nearest = 2.0 * ((x / QUARTER - 1.0) / 2.0).round() + 1.0;
    (x - nearest * QUARTER).abs()
}

/// Adds errors where shifted operands pass a discontinuity: equal numbers, zero as a boolean or a
/// divisor, the cut of angles, poles of the tangent.
pub(super) fn mark_between(op: &Op, operands: &[&Estimate], value: &Literal, errors: &mut [f64]) {
    let known = |k: usize| match operands.get(k) {
        Some(Estimate::Array(known)) => Some(known),
        _ => None,
    };
    let error_of = |known: &Known, k: usize| known.error.as_ref().map_or(0.0, |errors| errors[k]);
    let from_zero = |known: &Known, k: usize| match known.value.scalar_at(k) {
        Scalar::Complex(re, im) => re.hypot(im),
        other => other.as_f64().map_or(f64::NAN, f64::abs),
    };
    let to_pred = value.array_shape().element_type == PrimitiveType::Pred;
    for (k, error) in errors.iter_mut().enumerate() {
        // From one side of the negative real axis, to which -0 belongs, to the other.
        if let (Op::Atan2 {}, Some(y), Some(x)) = (op, known(0), known(1))
            && let (Scalar::Float(at), Scalar::Float(side)) = (y.value.scalar_at(k), x.value.scalar_at(k))
        {
            let may_be = error_of(y, k);
            if may_be > 0.0 && at.abs() <= may_be && (side - error_of(x, k)).is_sign_negative() {
                *error = error.max(TURN);
            }
            continue;
        }
        let (may_be, tips) = match (op, known(0), known(1)) {
            (Op::Compare { direction: Direction::Eq | Direction::Ne, .. }, Some(x), Some(y)) => {
                let may_be = error_of(x, k) + error_of(y, k);
                (may_be, distance(x.value.scalar_at(k), y.value.scalar_at(k)) <= may_be)
            }
            (Op::Convert {}, Some(x), _) if to_pred => {
                let may_be = error_of(x, k);
                (may_be, from_zero(x, k) <= may_be)
            }
            (Op::Divide {}, _, Some(y)) => {
                let may_be = error_of(y, k);
                (may_be, from_zero(y, k) <= may_be)
            }
            (Op::Tan {}, Some(x), _) => {
                let may_be = error_of(x, k);
                (may_be, from_pole(x.value.scalar_at(k)) <= may_be)
            }
            _ => return,
        };
        if may_be > 0.0 && tips {
            *error = if to_pred { 1.0 } else { f64::INFINITY };
        }
    }
}

/// True if products of parts overflow, where one may cancel another.
fn complex_is_undecided(op: &Op, operands: &[Literal], k: usize) -> bool {
    let (Op::Multiply {}, [x, y]) = (op, operands) else { return false };
    let largest = extremes(x.array_shape().element_type).0;
    let (Some((a, b)), Some((c, d))) = (complex_at(x, k), complex_at(y, k)) else { return false };
    [a * c, b * d, a * d, b * c]
        .into_iter()
        .zip([(a, c), (b, d), (a, d), (b, c)])
        .any(|(product, (x, y))| x.is_finite() && y.is_finite() && product.abs() > largest)
}

/// Returns `|w log z|` of a power: the factor by which an error of the logarithm is amplified.
fn complex_condition(op: &Op, operands: &[Literal], k: usize) -> f64 {
    let (Op::Power {}, [base, exponent]) = (op, operands) else { return 1.0 };
    let (Some((a, b)), Some((c, d))) = (complex_at(base, k), complex_at(exponent, k)) else { return 1.0 };
    let logarithm = a.hypot(b).ln().hypot(b.atan2(a));
    let condition = logarithm * c.hypot(d);
    // Beyond this, even the direction is unknown.
    let known = condition * epsilon(base.array_shape().element_type) < 1.0 / 64.0;
    if known || !condition.is_finite() { condition } else { f64::INFINITY }
}

/// Returns the error of the `f64` arithmetic of `-i log((x + i y) / sqrt(x^2 + y^2))`. The argument
/// of the logarithm is off by a few units, more if the sums cancel, and may be on either side of
/// the negative real axis. The result may be much smaller than a unit.
fn complex_atan2_error(op: &Op, operands: &[Literal], result: Scalar, k: usize) -> f64 {
    let (Op::Atan2 {}, [y, x]) = (op, operands) else { return 0.0 };
    let (Some((a, b)), Some((c, d))) = (complex_at(y, k), complex_at(x, k)) else { return 0.0 };
    let (y_size, x_size) = (a.hypot(b), c.hypot(d));
    let sum = (c - b).hypot(d + a);
    let squares = sum * (c + b).hypot(d - a);
    let condition = (x_size + y_size) / sum + (x_size * x_size + y_size * y_size) / squares;
    let error = 16.0 * epsilon(PrimitiveType::F64) * condition;
    let is_on_cut =
        matches!(result, Scalar::Complex(angle, _) if angle.abs() + error >= std::f64::consts::PI);
    let is_certain = error < 1.0 / 64.0;
    if !is_certain {
        f64::INFINITY
    } else if is_on_cut {
        TURN
    } else {
        error
    }
}

/// Assigns the error of any NaN to NaNs that arithmetic produced, or that were uncertain operands.
pub(super) fn mark_nan(op: &Op, operands: &[&Estimate], array: &Literal, errors: &mut [f64]) {
    let element_type = array.array_shape().element_type;
    if !(element_type.is_floating_point() || element_type.is_complex()) {
        return;
    }
    let certain = |k: usize| {
        hands_on(op)
            && operands.iter().flat_map(|o| o.arrays()).all(|o| match &o.error {
                Some(errors) if errors.len() == array.array_shape().element_count() as usize => {
                    errors[k] == 0.0
                }
                Some(errors) => errors.iter().all(|&e| e == 0.0),
                None => true,
            })
    };
    let is_nan = |scalar: Scalar| match scalar {
        Scalar::Float(x) => x.is_nan(),
        Scalar::Complex(re, im) => re.is_nan() || im.is_nan(),
        _ => false,
    };
    for (k, (scalar, error)) in array.scalars().zip(errors).enumerate() {
        if *error == 0.0 && is_nan(scalar) && !certain(k) && !moves(op) {
            *error = ANY_NAN;
        }
    }
}

/// True if errors move along with the elements.
fn moves(op: &Op) -> bool {
    op.opcode().traits().contains(Traits::REINDEXES)
        || matches!(
            op,
            Op::BitcastConvert {}
                | Op::Concatenate { .. }
                | Op::Constant { .. }
                | Op::DynamicSlice { .. }
                | Op::DynamicUpdateSlice {}
                | Op::Gather { .. }
                | Op::Pad { .. }
                | Op::Sort { .. }
                | Op::TopK { .. }
        )
}

/// True if the NaN of an operand is passed on unchanged, except for its sign.
fn hands_on(op: &Op) -> bool {
    matches!(
        op,
        Op::Abs {} | Op::Complex {} | Op::Copy {} | Op::Imag {} | Op::Negate {} | Op::Real {} | Op::Select {}
    )
}

/// Returns a bound for the whole array, for transforms and solvers, whose errors are small only
/// relative to the largest element. An infinity may be anything if finite terms may overflow before
/// they meet an infinite one.
pub(super) fn normwise_errors(array: &Literal, bounds: &SumBounds) -> Vec<f64> {
    let &SumBounds { terms, finite_sum, .. } = bounds;
    let element_type = array.array_shape().element_type;
    let magnitudes = magnitudes(array);
    let largest = magnitudes.iter().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
    let error = 64.0 * terms.min(8.0 * terms.sqrt()).max(1.0) * ulp(element_type, largest);
    let may_overflow = finite_sum > extremes(element_type).0;
    let of = |v: &f64| match v {
        v if v.is_finite() => error,
        v if v.is_infinite() && may_overflow => f64::INFINITY,
        _ => 0.0,
    };
    magnitudes.iter().map(of).collect()
}

/// Returns the approximate distance between neighbors of a number, rounded up.
fn ulp(element_type: PrimitiveType, value: f64) -> f64 {
    (value.abs() * epsilon(element_type)).max(extremes(element_type).2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::ComparisonType;
    use shape::ArrayShape;

    fn complex(re: f64, im: f64) -> Literal {
        Literal::from_scalars(ArrayShape::new(PrimitiveType::C64, &[1]), [Scalar::Complex(re, im)])
    }

    #[test]
    fn products_of_parts_that_overflow_decide_nothing() {
        let undecided = |x: Literal, y: Literal| complex_is_undecided(&Op::Multiply {}, &[x, y], 0);
        assert!(undecided(complex(1e30, 1.0), complex(1e30, 1.0)));
        assert!(!undecided(complex(1e18, 1.0), complex(1e18, 1.0)));
        // Infinite parts do not depend on the order.
        assert!(!undecided(complex(f64::INFINITY, 1.0), complex(2.0, 1.0)));
    }

    #[test]
    fn a_finite_part_beside_an_infinite_one_counts() {
        let large = largest_finite(&complex(f64::NEG_INFINITY, 3e38));
        assert!((large / 3e38 - 1.0).abs() < 1e-6, "{large}");
        assert_eq!(largest_finite(&complex(3.0, 4.0)), 5.0);
    }

    #[test]
    fn an_infinite_sum_of_terms_that_may_overflow_is_anything() {
        let array = Literal::from_elements(&[2], &[f32::INFINITY, 1.0]);
        let errors =
            |finite_sum: f64| normwise_errors(&array, &SumBounds { terms: 4.0, finite_sum, mixed: 0.0 });
        assert_eq!(errors(1e38)[0], 0.0);
        assert_eq!(errors(1e39)[0], f64::INFINITY);
        assert!(errors(1e39)[1] < 1e-3);
    }

    #[test]
    fn powers_are_as_good_as_their_logarithms() {
        let condition = |w: f64| complex_condition(&Op::Power {}, &[complex(0.0, 1.0), complex(w, 0.0)], 0);
        assert!((condition(10.0) - 5.0 * std::f64::consts::PI).abs() < 1e-12);
        assert_eq!(condition(1e9), f64::INFINITY);
    }

    #[test]
    fn an_infinite_power_of_unknown_direction_is_anything() {
        let text = "HloModule m\n\nENTRY main {\n  x = c64[1] parameter(0)\n  y = c64[1] parameter(1)\n  \
                    ROOT r = c64[1] power(x, y)\n}\n";
        let module = hlo::parse(text).expect("a module");
        let entry = module.entry_computation();
        let error = |exponent: f64| {
            let infinite = complex(f64::INFINITY, f64::INFINITY);
            let operands = [complex(3.0, 4.0), complex(exponent, 0.0)];
            elementwise_errors(&entry[entry.root()], &infinite, &operands)
        };
        assert_eq!(error(1e9), [f64::INFINITY]);
        assert_eq!(error(100.0), [0.0]);
    }

    #[test]
    fn an_angle_is_as_good_as_the_logarithm_of_its_direction() {
        let with = |angle: f64, y: Literal, x: Literal| {
            complex_atan2_error(&Op::Atan2 {}, &[y, x], Scalar::Complex(angle, 0.0), 0)
        };
        let error = |y: Literal, x: Literal| with(1.0, y, x);
        let unit = epsilon(PrimitiveType::F64);
        let small = error(complex(1e-8, 1e-9), complex(1.0, 0.0));
        assert!((16.0 * unit..64.0 * unit).contains(&small), "{small}");
        // x + i y cancels.
        let near_pole = error(complex(0.0, 1.0), complex(1.0 + 1e-6, 0.0));
        assert!(near_pole > 1e6 * unit, "{near_pole}");
        assert_eq!(error(complex(0.0, 1.0), complex(1.0, 0.0)), f64::INFINITY);
        // Rounding decides whether -x / sqrt(x^2) is above or below the negative real axis.
        let half_turn = std::f64::consts::PI;
        assert_eq!(with(half_turn, complex(0.0, 0.0), complex(-3.0, 1.0)), TURN);
        assert!(with(half_turn - 1e-9, complex(1e-9, 0.0), complex(-1.0, 0.0)) < 64.0 * unit);
    }

    #[test]
    fn of_zeros_of_both_signs_either_may_be_chosen() {
        let array = |values: &[f32]| Literal::from_elements(&[values.len() as i64], values);
        let (low, x, high) = (Literal::scalar(0f32), array(&[-0.0, 0.0, 1.0, -1.0]), Literal::scalar(2f32));
        let errors = either_zero(&array(&[-0.0, 0.0, 1.0, 0.0]), &[low, x, high]);
        assert!(errors[0] > 0.0 && errors[0] < 1e-37);
        assert_eq!(errors[1..], [0.0; 3]);
    }

    #[test]
    fn remainders_of_other_quotients_are_anything() {
        let operands = [Literal::from_elements(&[1], &[7f32]), Literal::from_elements(&[1], &[2f32])];
        assert_eq!(unknown_remainder(&operands, 0, 0, 0.25), 0.0);
        assert_eq!(unknown_remainder(&operands, 0, 0, 1.0), 4.0);
        assert_eq!(unknown_remainder(&operands, 1, 0, 0.5), 5.0);
        assert_eq!(unknown_remainder(&operands, 1, 0, 2.0), f64::INFINITY);
        // 6.1 may be below 6.
        let operands = [Literal::from_elements(&[1], &[6.1f32]), Literal::from_elements(&[1], &[2f32])];
        assert_eq!(unknown_remainder(&operands, 0, 0, 0.2), 2.0);
        assert_eq!(unknown_remainder(&operands, 0, 0, 0.05), 0.0);
        assert_eq!(unknown_remainder(&operands, 1, 0, 0.1), 2.1);
        assert_eq!(unknown_remainder(&operands, 0, 0, 0.0), 0.0);
    }

    #[test]
    fn zero_lies_between_numbers_of_two_signs() {
        let known = |values: &[f32], errors: &[f64]| {
            Estimate::Array(Known::new(Literal::from_elements(&[2], values), errors.to_vec()))
        };
        let marked = |op: &Op, operands: &[&Estimate], value: &Literal| {
            let mut errors = vec![0.0; 2];
            mark_between(op, operands, value, &mut errors);
            errors
        };
        let (bools, floats) =
            (Literal::from_elements(&[2], &[true; 2]), Literal::from_elements(&[2], &[1f32; 2]));
        let (x, y) = (known(&[0.25, 4.0], &[0.5, 0.5]), known(&[1.0, 3.0], &[0.25, 0.25]));
        assert_eq!(marked(&Op::Convert {}, &[&x], &bools), [1.0, 0.0]);
        assert_eq!(marked(&Op::Convert {}, &[&x], &floats), [0.0, 0.0]);
        assert_eq!(marked(&Op::Divide {}, &[&y, &x], &floats), [f64::INFINITY, 0.0]);
        let compare = |direction| Op::Compare { direction, comparison_type: ComparisonType::Default };
        assert_eq!(marked(&compare(Direction::Eq), &[&x, &y], &bools), [1.0, 0.0]);
        assert_eq!(marked(&compare(Direction::Lt), &[&x, &y], &bools), [0.0, 0.0]);
        let negative = known(&[-1.0, -1.0], &[0.0, 0.0]);
        assert_eq!(marked(&Op::Atan2 {}, &[&x, &negative], &floats), [TURN, 0.0]);
        assert_eq!(marked(&Op::Atan2 {}, &[&x, &y], &floats), [0.0, 0.0]);
        let zeros = known(&[-0.0, 0.0], &[0.0, 0.0]);
        let near = known(&[0.0, 0.0], &[0.5, 0.5]);
        assert_eq!(marked(&Op::Atan2 {}, &[&near, &zeros], &floats), [TURN, 0.0]);
        // The adjacent poles are at 1.5708 and -4.7124.
        let angles = |error: f64| known(&[1.57, -4.72], &[error; 2]);
        assert_eq!(marked(&Op::Tan {}, &[&angles(0.001)], &floats), [f64::INFINITY, 0.0]);
        assert_eq!(marked(&Op::Tan {}, &[&angles(0.01)], &floats), [f64::INFINITY; 2]);
    }

    #[test]
    fn which_nan_arithmetic_makes_is_not_known() {
        let nan = Literal::from_elements(&[2], &[f32::NAN, 1.0]);
        let marked = |op: &Op, error: f64| {
            let operand = Estimate::Array(Known::new(nan.clone(), vec![error, 0.0]));
            let mut errors = vec![0.0; 2];
            mark_nan(op, &[&operand], &nan, &mut errors);
            errors
        };
        assert_eq!(marked(&Op::Sqrt {}, 0.0), [ANY_NAN, 0.0]);
        assert_eq!(marked(&Op::Negate {}, 0.0), [0.0, 0.0]);
        assert_eq!(marked(&Op::Negate {}, ANY_NAN), [ANY_NAN, 0.0]);
    }
}
