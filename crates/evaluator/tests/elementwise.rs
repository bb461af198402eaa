//! Elementwise instructions compared with XLA on the CPU, NumPy, and manual calculation.

use crate::support::*;
use hlo::*;
use shape::PrimitiveType::*;
use shape::{Literal, Scalar};

fn ints(op: Op, x: &[i32], y: &[i32]) -> Vec<i32> {
    let n = x.len() as i64;
    let (x, y) = (Literal::from_elements(&[n], x), Literal::from_elements(&[n], y));
    run_array(op, S32, &[n], &[&x, &y]).to_vec().expect("s32 elements")
}

fn bytes(op: Op, x: &[u8], y: &[u8]) -> Vec<u8> {
    let n = x.len() as i64;
    let (x, y) = (Literal::from_elements(&[n], x), Literal::from_elements(&[n], y));
    run_array(op, U8, &[n], &[&x, &y]).to_vec().expect("u8 elements")
}

#[test]
fn integer_division_has_a_value_for_every_operand() {
    let (x, y) = (&[7, -7, 5, i32::MIN, 0], &[2, 2, 0, -1, 0]);
    assert_eq!(ints(Op::Divide {}, x, y), [3, -3, -1, -2147483648, -1]);
    assert_eq!(ints(Op::Remainder {}, x, y), [1, -1, 5, 0, 0]);
    assert_eq!(bytes(Op::Divide {}, &[200, 5], &[7, 0]), [28, 255]);
    assert_eq!(bytes(Op::Remainder {}, &[200, 5], &[7, 0]), [4, 5]);
}

#[test]
fn shifts_by_the_width_or_more_leave_zero_or_the_sign() {
    assert_eq!(ints(Op::ShiftLeft {}, &[1, -1, 3, 5], &[31, 32, -1, 4]), [-2147483648, 0, 0, 80]);
    assert_eq!(ints(Op::ShiftRightArithmetic {}, &[-8, -8, 8, -8], &[1, 40, 40, -1]), [-4, -1, 0, -1]);
    assert_eq!(ints(Op::ShiftRightLogical {}, &[-8, -8, 8, -8], &[1, 32, 2, -1]), [2147483644, 0, 2, 0]);
    assert_eq!(bytes(Op::ShiftRightArithmetic {}, &[200, 200, 100], &[1, 9, 1]), [228, 255, 50]);
}

#[test]
fn integers_wrap_at_their_width() {
    assert_eq!(ints(Op::Add {}, &[i32::MAX, -5], &[1, 3]), [i32::MIN, -2]);
    assert_eq!(ints(Op::Multiply {}, &[65536, -3], &[65537, 7]), [65536, -21]);
    assert_eq!(ints(Op::Power {}, &[-3, 2, -1, 2, 7], &[3, 31, -3, -1, 0]), [-27, i32::MIN, -1, 0, 1]);
    assert_eq!(bytes(Op::Subtract {}, &[3], &[5]), [254]);
    let nibbles = Literal::from_scalars(shape::ArrayShape::new(S4, &[2]), [7, -8].map(Scalar::Signed));
    let sum = run_array(Op::Add {}, S4, &[2], &[&nibbles, &nibbles]);
    assert_eq!(sum.to_i64s().unwrap(), [-2, 0]);
    let huge = Literal::from_elements(&[1], &[u64::MAX]);
    assert_eq!(run_array(Op::Multiply {}, U64, &[1], &[&huge, &huge]).to_vec::<u64>().unwrap(), [1]);
    let least = Literal::from_elements(&[2], &[i32::MIN, -3]);
    assert_eq!(run_array(Op::Abs {}, S32, &[2], &[&least]).to_vec::<i32>().unwrap(), [i32::MIN, 3]);
    assert_eq!(run_array(Op::Negate {}, S32, &[2], &[&least]).to_vec::<i32>().unwrap(), [i32::MIN, 3]);
}

#[test]
fn bits_are_counted_within_the_width() {
    let x = Literal::from_elements(&[4], &[0i32, 1, -1, 256]);
    assert_eq!(
        run_array(Op::CountLeadingZeros {}, S32, &[4], &[&x]).to_vec::<i32>().unwrap(),
        [32, 31, 0, 23]
    );
    let x = Literal::from_elements(&[3], &[-1i8, 7, 0]);
    assert_eq!(run_array(Op::PopulationCount {}, S8, &[3], &[&x]).to_vec::<i8>().unwrap(), [8, 3, 0]);
}

#[test]
fn conversions_saturate_from_floats_and_wrap_between_integers() {
    let x = f32s(&[5], &[1e20, -1e20, f32::NAN, 2.9, -2.9]);
    assert_eq!(
        run_array(Op::Convert {}, S32, &[5], &[&x]).to_vec::<i32>().unwrap(),
        [2147483647, -2147483648, 0, 2, -2]
    );
    let x = f32s(&[5], &[300.0, -5.0, f32::NAN, 2.9, 255.5]);
    assert_eq!(run_array(Op::Convert {}, U8, &[5], &[&x]).to_vec::<u8>().unwrap(), [255, 0, 0, 2, 255]);
    let x = Literal::from_elements(&[3], &[300i32, -129, 128]);
    assert_eq!(run_array(Op::Convert {}, S8, &[3], &[&x]).to_vec::<i8>().unwrap(), [44, 127, -128]);
    let x = f32s(&[4], &[0.0, -0.0, f32::NAN, 1e-40]);
    let preds = run_array(Op::Convert {}, Pred, &[4], &[&x]);
    assert_eq!(preds.to_vec::<bool>().unwrap(), [false, false, true, true]);
    let z = Literal::from_elements(&[1], &[[2.5f32, 7.0]]);
    assert_eq!(run_array(Op::Convert {}, F32, &[1], &[&z]), f32s(&[1], &[2.5]));
}

#[test]
fn integers_round_to_floats_once() {
    // One above the tie between two neighbors; rounding to f64 on the way would lose the one.
    let x = Literal::from_elements(&[2], &[(1i64 << 60) + (1 << 36) + 1, (1 << 60) + (1 << 36)]);
    let rounded = run_array(Op::Convert {}, F32, &[2], &[&x]);
    assert_eq!(rounded, f32s(&[2], &[1.152_921_6e18, 1.152_921_5e18]));
    let ulp = 2f32.powi(37);
    assert_eq!(rounded.to_vec::<f32>().unwrap()[0], 2f32.powi(60) + ulp);
}

#[test]
fn bitcasts_keep_the_bytes() {
    let x = f32s(&[2], &[1.5, -2.0]);
    let parts = run_array(Op::BitcastConvert {}, U8, &[2, 4], &[&x]);
    assert_eq!(parts.to_vec::<u8>().unwrap(), [0, 0, 192, 63, 0, 0, 0, 192]);
    let x = Literal::from_elements(&[2, 4], &[1u8, 2, 3, 4, 5, 6, 7, 8]);
    let wholes = run_array(Op::BitcastConvert {}, U32, &[2], &[&x]);
    assert_eq!(wholes.to_vec::<u32>().unwrap(), [67305985, 134678021]);
    // Nibbles occupy a byte each in memory, the low one first.
    let x = Literal::from_elements(&[1], &[0xa3u8]);
    let nibbles = run_array(Op::BitcastConvert {}, S4, &[1, 2], &[&x]);
    assert_eq!(nibbles.to_i64s().unwrap(), [3, -6]);
    assert_eq!(run_array(Op::BitcastConvert {}, U8, &[1], &[&nibbles]), x);
}

#[test]
fn comparisons_follow_ieee_or_the_total_order() {
    let x = f32s(&[4], &[-0.0, f32::NAN, 1.0, f32::NAN]);
    let y = f32s(&[4], &[0.0, f32::NAN, 2.0, 1.0]);
    let compare = |direction, comparison_type| {
        let op = Op::Compare { direction, comparison_type };
        run_array(op, Pred, &[4], &[&x, &y]).to_vec::<bool>().unwrap()
    };
    use ComparisonDirection::*;
    assert_eq!(compare(Eq, ComparisonType::Default), [true, false, false, false]);
    assert_eq!(compare(Ne, ComparisonType::Default), [false, true, true, true]);
    assert_eq!(compare(Lt, ComparisonType::Default), [false, false, true, false]);
    assert_eq!(compare(Lt, ComparisonType::TotalOrder), [true, false, true, false]);
    assert_eq!(compare(Ge, ComparisonType::TotalOrder), [false, true, false, true]);
}

#[test]
fn maximum_minimum_and_clamp_keep_nan() {
    let x = f32s(&[3], &[f32::NAN, 1.0, -0.0]);
    let y = f32s(&[3], &[1.0, f32::NAN, 0.0]);
    for (op, last) in [(Op::Maximum {}, 0.0f32), (Op::Minimum {}, -0.0)] {
        let values = run_array(op, F32, &[3], &[&x, &y]).to_vec::<f32>().unwrap();
        assert!(values[0].is_nan() && values[1].is_nan());
        assert_eq!(values[2].to_bits(), last.to_bits());
    }
    let (low, high) = (Literal::scalar(-1f32), Literal::scalar(1f32));
    let x = f32s(&[4], &[f32::NAN, 5.0, -5.0, 0.5]);
    let values = run_array(Op::Clamp {}, F32, &[4], &[&low, &x, &high]).to_vec::<f32>().unwrap();
    assert!(values[0].is_nan());
    assert_eq!(values[1..], [1.0, -1.0, 0.5]);
}

#[test]
fn f32_arithmetic_rounds_each_operation() {
    let x = f32s(&[2], &[16_777_216.0, 1.0]);
    let y = f32s(&[2], &[1.0, 3.0]);
    assert_eq!(run_array(Op::Add {}, F32, &[2], &[&x, &y]), f32s(&[2], &[16_777_216.0, 4.0]));
    assert_eq!(run_array(Op::Divide {}, F32, &[2], &[&x, &y]), f32s(&[2], &[16_777_216.0, 0.333_333_34]));
}

#[test]
fn functions_round_and_sign_as_their_names_say() {
    let x = f32s(&[5], &[2.5, -2.5, 3.5, -0.0, -0.5]);
    let apply = |op: Op| run_array(op, F32, &[5], &[&x]).to_vec::<f32>().unwrap();
    assert_eq!(apply(Op::RoundNearestEven {}), [2.0, -2.0, 4.0, 0.0, 0.0]);
    assert_eq!(apply(Op::RoundNearestAfz {}), [3.0, -3.0, 4.0, 0.0, -1.0]);
    assert_eq!(apply(Op::Sign {}), [1.0, -1.0, 1.0, 0.0, -1.0]);
    assert!(apply(Op::Sign {})[3].is_sign_negative());
    let y = f32s(&[4], &[1.2345, 1e-6, 70000.0, -3.3]);
    let op = Op::ReducePrecision { exponent_bits: 5, mantissa_bits: 3 };
    assert_eq!(run_array(op, F32, &[4], &[&y]), f32s(&[4], &[1.25, 0.0, f32::INFINITY, -3.25]));
}

#[test]
fn powers_of_special_operands() {
    let x = f32s(&[4], &[f32::NAN, 1.0, -8.0, 0.0]);
    let y = f32s(&[4], &[0.0, f32::NAN, 1.0 / 3.0, -1.0]);
    let values = run_array(Op::Power {}, F32, &[4], &[&x, &y]).to_vec::<f32>().unwrap();
    assert_eq!((values[0], values[1], values[3]), (1.0, 1.0, f32::INFINITY));
    assert!(values[2].is_nan());
}

#[test]
fn select_keeps_the_bits_of_a_nan() {
    let nan = f32::from_bits(0xffa0_0001);
    let (x, y) = (f32s(&[2], &[nan, 1.0]), f32s(&[2], &[2.0, 3.0]));
    let choice = Literal::from_elements(&[2], &[true, false]);
    let chosen = run_array(Op::Select {}, F32, &[2], &[&choice, &x, &y]).to_vec::<f32>().unwrap();
    assert_eq!((chosen[0].to_bits(), chosen[1]), (nan.to_bits(), 3.0));
}

#[test]
fn real_functions() {
    let x = Literal::from_elements(&[4], &[0.3f64, -1.5, 2.0, -0.6]);
    let apply = |op: Op| run_array(op, F64, &[4], &[&x]);
    assert_close(
        &apply(Op::Erf {}),
        &[0.3286267594591274, -0.9661051464753108, 0.9953222650189527, -0.6038560908479259],
    );
    assert_close(
        &apply(Op::Logistic {}),
        &[0.574442516811659, 0.18242552380635635, 0.8807970779778823, 0.35434369377420455],
    );
    assert_close(
        &apply(Op::Cbrt {}),
        &[0.6694329500821695, -1.1447142425533319, 1.2599210498948732, -0.8434326653017492],
    );
}

#[test]
fn stochastic_conversion_rounds_by_the_random_number() {
    let x = f32s(&[4], &[2.25, 2.25, -2.75, 1e9]);
    let random = Literal::from_elements(&[4], &[0x3fff_ffffu32, 0x4000_0000, 0, 0]);
    let rounded = run_array(Op::StochasticConvert {}, S8, &[4], &[&x, &random]);
    assert_eq!(rounded.to_vec::<i8>().unwrap(), [3, 2, -3, 127]);
}
