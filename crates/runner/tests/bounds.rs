//! Results that correct code may or may not return for uncertain operands.

use runner::compare_run;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

/// True if correct code may return these results.
fn may_be(text: &str, arguments: &[Literal], got: &[Literal]) -> bool {
    let module = hlo::parse(text).expect("a module");
    hlo::verify(&module).expect("a module");
    let compared = compare_run(&module, &module, arguments, got, 1 << 20).expect("values");
    compared.expect("within the budget").iter().all(runner::Comparison::passed)
}

#[test]
fn a_square_moves_as_far_as_both_of_its_factors() {
    let text = "HloModule m\n\nENTRY main {\n  x = f32[1] parameter(0)\n  l = f32[1] logistic(x)\n  c = s4[1] convert(l)\n  \
                m = s4[1] multiply(c, c)\n  ROOT t = (s4[1]) tuple(m)\n}\n";
    let got =
        |value: i64| Literal::from_scalars(ArrayShape::new(PrimitiveType::S4, &[1]), [Scalar::Signed(value)]);
    // The number below 1, which is 0 as an integer; its neighbor is 1.
    let x = [Literal::from_elements(&[1], &[16.6f32])];
    assert!(may_be(text, &x, &[got(0)]));
    assert!(may_be(text, &x, &[got(1)]));
    assert!(!may_be(text, &x, &[got(3)]));
    assert!(!may_be(text, &[Literal::from_elements(&[1], &[3f32])], &[got(1)]));
}

#[test]
fn only_nan_that_arithmetic_made_may_be_sorted_to_either_end() {
    let text = |keys: &str| {
        format!(
            "HloModule m\n\nbefore {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = s32[] parameter(2)\n  \
             d = s32[] parameter(3)\n  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER\n}}\n\n\
             ENTRY main {{\n  x = f32[2] parameter(0)\n  i = s32[2] parameter(1)\n  k = f32[2] {keys}\n  \
             s = (f32[2], s32[2]) sort(k, i), dimensions={{0}}, to_apply=before\n  \
             v = s32[2] get-tuple-element(s), index=1\n  ROOT t = (s32[2]) tuple(v)\n}}\n"
        )
    };
    let places = Literal::from_elements(&[2], &[5i32, 9]);
    let got = |order: [i32; 2]| [Literal::from_elements(&[2], &order)];
    let either = [Literal::from_elements(&[2], &[-1f32, 1.0]), places.clone()];
    assert!(may_be(&text("log(x)"), &either, &got([5, 9])));
    assert!(may_be(&text("log(x)"), &either, &got([9, 5])));
    let arguments = [Literal::from_elements(&[2], &[f32::NAN, 1.0]), places];
    assert!(may_be(&text("copy(x)"), &arguments, &got([9, 5])));
    assert!(!may_be(&text("copy(x)"), &arguments, &got([5, 9])));
    assert!(!may_be(&text("abs(x)"), &arguments, &got([5, 9])));
}

#[test]
fn errors_of_factors_add_up_whatever_their_signs() {
    let text = "HloModule m\n\nproduct {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] multiply(a, b)\n}\n\n\
                ENTRY main {\n  x = f32[2] parameter(0)\n  y = f32[2] parameter(1)\n  e = f32[2] exponential(x)\n  \
                f = f32[2] multiply(e, y)\n  one = f32[] constant(1)\n  \
                p = f32[] reduce(f, one), dimensions={0}, to_apply=product\n  ROOT t = (f32[]) tuple(p)\n}\n";
    let arguments =
        [Literal::from_elements(&[2], &[1f32, 1.0]), Literal::from_elements(&[2], &[1000f32, -1000.0])];
    // Both exponentials are two units larger, so the product is four units farther from zero.
    let far = |units: i32| {
        let e = 1f32.exp();
        let moved = f64::from(f32::from_bits((e.to_bits() as i32 + units) as u32));
        [Literal::scalar(-(moved * moved * 1e6) as f32)]
    };
    assert!(may_be(text, &arguments, &far(2)));
    assert!(!may_be(text, &arguments, &far(1000)));
}

#[test]
fn a_part_that_is_no_number_leaves_the_other_one_its_rounding() {
    let text = "HloModule m\n\nsum {\n  a = c64[] parameter(0)\n  b = c64[] parameter(1)\n  ROOT c = c64[] add(a, b)\n}\n\n\
                ENTRY main {\n  x = c64[4] parameter(0)\n  zero = c64[] constant((0, 0))\n  \
                s = c64[] reduce(x, zero), dimensions={0}, to_apply=sum\n  ROOT t = (c64[]) tuple(s)\n}\n";
    let complex = |values: &[(f64, f64)], sizes: &[i64]| {
        let scalars: Vec<Scalar> = values.iter().map(|&(re, im)| Scalar::Complex(re, im)).collect();
        Literal::from_scalars(ArrayShape::new(PrimitiveType::C64, sizes), scalars)
    };
    for part in [f64::NAN, f64::INFINITY] {
        let x = [complex(&[(1.0, part), (1e-8, 0.0), (1e-8, 1.0), (1e-8, 2.0)], &[4])];
        let got = |units: f64| [complex(&[(1.0 + units * 2f64.powi(-23), part)], &[])];
        assert!(may_be(text, &x, &got(0.0)) && may_be(text, &x, &got(1.0)), "{part}");
        assert!(!may_be(text, &x, &got(100.0)), "{part}");
        assert!(!may_be(text, &x, &[complex(&[(1.0, 3.0)], &[])]), "{part}");
    }
}

#[test]
fn a_pole_on_the_way_may_be_met() {
    // The exponential of a number near 0 may be 1.
    let text = "HloModule m\n\nENTRY main {\n  x = f32[1] parameter(0)\n  one = f32[1] parameter(1)\n  e = f32[1] exponential(x)\n  \
                d = f32[1] subtract(e, one)\n  p = pred[1] convert(d)\n  q = f32[1] divide(one, d)\n  \
                ROOT t = (pred[1], f32[1]) tuple(p, q)\n}\n";
    let arguments = |x: f32| [Literal::from_elements(&[1], &[x]), Literal::from_elements(&[1], &[1f32])];
    let got = |p: bool, q: f32| [Literal::from_elements(&[1], &[p]), Literal::from_elements(&[1], &[q])];
    assert!(may_be(text, &arguments(3e-7), &got(false, f32::INFINITY)));
    assert!(!may_be(text, &arguments(1.0), &got(false, 0.581_976_7)));
    assert!(!may_be(text, &arguments(1.0), &got(true, f32::INFINITY)));
}
