//! Matrix exponential by scaling and squaring (Higham 2005): a Padé approximant of the matrix
//! scaled down by halving.

use super::lu::solve;
use super::matrix::{identity, in_type_of, matmul, positions};
use crate::expression::Expression;
use shape::PrimitiveType;

/// Coefficients of the approximant, constant term first, and the largest norm with full accuracy
/// for the type.
const DOUBLE: ([f64; 14], f64) = (
    [
        64_764_752_532_480_000.0,
        32_382_376_266_240_000.0,
        7_771_770_303_897_600.0,
        1_187_353_796_428_800.0,
        129_060_195_264_000.0,
        10_559_470_521_600.0,
        670_442_572_800.0,
        33_522_128_640.0,
        1_323_241_920.0,
        40_840_800.0,
        960_960.0,
        16_380.0,
        182.0,
        1.0,
    ],
    5.371_920_351_148_152,
);
const SINGLE: ([f64; 8], f64) =
    ([17_297_280.0, 8_648_640.0, 1_995_840.0, 277_200.0, 25_200.0, 1_512.0, 56.0, 1.0], 3.925_724_783_138_66);

/// Upper bound for the halvings that the exponent range of any type requires.
const MAX_HALVINGS: f64 = 1100.0;

/// Returns `e^a` for square matrices of `f32`, `f64`, or complex numbers.
pub fn exponential(a: Expression<'_>) -> Expression<'_> {
    let function = a.function();
    let sizes = a.sizes();
    let (batch, n) = (sizes[0], sizes[1]);
    if sizes.contains(&0) {
        return a;
    }
    let float = a.element_type().real_part();
    let (coefficients, limit): (&[f64], f64) = match float {
        PrimitiveType::F64 => (&DOUBLE.0, DOUBLE.1),
        _ => (&SINGLE.0, SINGLE.1),
    };
    let norm = a.abs().sum(&[1]).largest_magnitude(&[1]);
    let log2_ratio = (norm / limit).log() / std::f64::consts::LN_2;
    // Rounded up; 0 for NaN.
    let halvings = -((-log2_ratio).floor());
    let halvings = halvings.gt(0.0).select(halvings.min(MAX_HALVINGS), 0.0);
    let halvings = halvings.convert(PrimitiveType::S32);
    let most = halvings.largest_magnitude(&[0]);
    let over = |e: Expression<'_>| function.expression(e.broadcast(&[batch, n, n], &[0]).id());

    // Halving is exact.
    let counts = over(halvings);
    let zero = function.scalar(PrimitiveType::S32, 0.0);
    let halving = function.while_loop(
        &[zero, most, counts, a],
        |_, state| state[0].lt(state[1]),
        |_, state| {
            let continues = state[0].spread_like(state[2]).lt(state[2]);
            let next = continues.select(state[3] * 0.5, state[3]);
            vec![state[0] + 1.0, state[1], state[2], next]
        },
    );
    let (odd, even) = halves(halving[3], coefficients);
    let small = solve(even - odd, even + odd);
    let outputs = function.while_loop(
        &[zero, most, counts, small],
        |_, state| state[0].lt(state[1]),
        |_, state| {
            let continues = state[0].spread_like(state[2]).lt(state[2]);
            let next = continues.select(matmul(state[3], state[3]), state[3]);
            vec![state[0] + 1.0, state[1], state[2], next]
        },
    );
    // The exponential of a diagonal matrix is diagonal. Elimination and products preserve zeros
    // unless something overflows, so use the scalar exponential.
    let (rows, columns) = positions(a);
    let off = in_type_of(a.splat(0.0), a);
    let is_diagonal = rows.equal(columns) | a.equal(0.0);
    let all = (!is_diagonal).convert(PrimitiveType::S32).sum(&[1, 2]).equal(0.0);
    let scalars = rows.equal(columns).select(a.exp(), off);
    over(all).select(scalars, outputs[3])
}

/// Returns the odd and the even part of the approximant's numerator.
fn halves<'f>(a: Expression<'f>, coefficients: &[f64]) -> (Expression<'f>, Expression<'f>) {
    let sizes = a.sizes();
    let one = identity(a.function(), a.element_type(), [sizes[0], sizes[1], sizes[2]]);
    let second = matmul(a, a);
    let fourth = matmul(second, second);
    let sixth = matmul(second, fourth);
    // Every other coefficient starting from `first`, up to the seventh power.
    let low = |first: usize| {
        one * coefficients[first]
            + second * coefficients[first + 2]
            + fourth * coefficients[first + 4]
            + sixth * coefficients[first + 6]
    };
    let high = |first: usize| {
        let sum =
            second * coefficients[first] + fourth * coefficients[first + 2] + sixth * coefficients[first + 4];
        matmul(sixth, sum)
    };
    let (mut odd, mut even) = (low(1), low(0));
    if coefficients.len() > 8 {
        odd = high(9) + odd;
        even = high(8) + even;
    }
    (matmul(a, odd), even)
}
