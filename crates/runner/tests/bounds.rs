//! What correct code may make of numbers whose last places are not certain, and what it may not.

use runner::compare_run;
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

/// Whether these results may be the code's.
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
    // The number below 1, which is 0 as an integer; its neighbour is 1.
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
    let given = [Literal::from_elements(&[2], &[f32::NAN, 1.0]), places];
    assert!(may_be(&text("copy(x)"), &given, &got([9, 5])));
    assert!(!may_be(&text("copy(x)"), &given, &got([5, 9])));
    assert!(!may_be(&text("abs(x)"), &given, &got([5, 9])));
}
