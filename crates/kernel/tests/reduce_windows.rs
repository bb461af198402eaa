//! Compiled windowed reductions compared with the evaluator.

use crate::harness::{Numbers, Tolerance, Values, check};
use shape::Literal;

/// One dimension: its elements, and the window.
#[derive(Clone, Copy, Debug)]
struct Axis {
    input: i64,
    size: i64,
    stride: i64,
    padding: (i64, i64),
    window_dilation: i64,
    base_dilation: i64,
}

impl Axis {
    fn new(input: i64, size: i64) -> Self {
        Self { input, size, stride: 1, padding: (0, 0), window_dilation: 1, base_dilation: 1 }
    }

    fn whole(input: i64) -> Self {
        Self::new(input, 1)
    }

    fn stride(self, stride: i64) -> Self {
        Self { stride, ..self }
    }

    fn pad(self, low: i64, high: i64) -> Self {
        Self { padding: (low, high), ..self }
    }

    fn dilate(self, window_dilation: i64, base_dilation: i64) -> Self {
        Self { window_dilation, base_dilation, ..self }
    }

    fn count(&self) -> i64 {
        let base = if self.input == 0 { 0 } else { (self.input - 1) * self.base_dilation + 1 };
        let base = base + self.padding.0 + self.padding.1;
        let room = base - ((self.size - 1) * self.window_dilation + 1);
        if base <= 0 || room < 0 { 0 } else { room / self.stride + 1 }
    }
}

fn join(numbers: impl IntoIterator<Item = String>, separator: &str) -> String {
    numbers.into_iter().collect::<Vec<_>>().join(separator)
}

fn sizes(axes: &[Axis], size: impl Fn(&Axis) -> i64) -> String {
    join(axes.iter().map(|a| size(a).to_string()), ",")
}

fn window(axes: &[Axis]) -> String {
    let field = |value: &dyn Fn(&Axis) -> String| join(axes.iter().map(value), "x");
    if axes.is_empty() {
        return String::new();
    }
    format!(
        ", window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={}}}",
        field(&|a| a.size.to_string()),
        field(&|a| a.stride.to_string()),
        field(&|a| format!("{}_{}", a.padding.0, a.padding.1)),
        field(&|a| a.base_dilation.to_string()),
        field(&|a| a.window_dilation.to_string())
    )
}

/// Returns a module that reduces windows of `x`, which `producer` computes from parameter `a`.
fn module(op: &str, element_type: &str, axes: &[Axis], producer: &str) -> String {
    let (input, result) = (sizes(axes, |a| a.input), sizes(axes, Axis::count));
    let t = element_type;
    format!(
        "HloModule windows\n\nreducer {{\n  x = {t}[] parameter(0)\n  y = {t}[] parameter(1)\n  ROOT r = {t}[] {op}(x, y)\n}}\n\nENTRY main {{\n  a = {t}[{input}] parameter(0)\n  i = {t}[] parameter(1)\n{producer}  ROOT r = {t}[{result}] reduce-window({}, i){}, to_apply=reducer\n}}\n",
        if producer.is_empty() { "a" } else { "x" },
        window(axes)
    )
}

fn check_all(axes: &[Axis]) {
    check(&module("add", "f32", axes, ""), &[Values::Tame], Tolerance::Relative(1e-4));
    check(&module("maximum", "s32", axes, ""), &[Values::Hard], Tolerance::Exact);
}

#[test]
fn pools_of_images() {
    let images: [[Axis; 2]; 9] = [
        [Axis::new(8, 2).stride(2), Axis::new(6, 2).stride(2)],
        [Axis::new(7, 3).stride(2).pad(1, 1), Axis::new(9, 3).stride(2).pad(1, 1)],
        [Axis::new(5, 3).pad(1, 1), Axis::new(4, 2).pad(0, 1)],
        [Axis::new(7, 7), Axis::new(7, 7)],
        [Axis::new(3, 5).pad(2, 2), Axis::new(2, 3).pad(1, 1)],
        [Axis::new(9, 3).dilate(2, 1).pad(2, 2), Axis::new(6, 2).stride(3)],
        [Axis::new(4, 1).stride(2), Axis::new(40, 13).stride(2).pad(6, 6)],
        [Axis::new(6, 3).pad(-1, 2), Axis::new(6, 2).pad(1, -2)],
        [Axis::new(30, 11).pad(5, 5), Axis::new(70, 12).stride(2).pad(7, 3)],
    ];
    for [h, w] in images {
        for features in [3, 67] {
            check_all(&[Axis::whole(2), h, w, Axis::whole(features)]);
        }
        check_all(&[Axis::whole(2), Axis::whole(3), h, w]);
        check_all(&[w, Axis::whole(3), h]);
    }
}

#[test]
fn every_operation_and_type() {
    let axes = [Axis::new(6, 3).pad(1, 1), Axis::new(5, 2).stride(2), Axis::whole(21)];
    let ops: [(&str, &[&str]); 4] = [
        ("add", &["s8", "u8", "s32", "u64", "f32", "f64", "f16", "bf16", "pred", "s4", "c64"]),
        ("multiply", &["s16", "u32", "f32", "f64", "bf16", "c128"]),
        ("maximum", &["s8", "u8", "s64", "u64", "f32", "f64", "f16", "bf16", "f8e4m3fn", "pred", "u4"]),
        ("minimum", &["s8", "u8", "s64", "u64", "f32", "f64", "f16", "bf16", "f8e5m2", "pred", "s2"]),
    ];
    for (op, types) in ops {
        for element_type in types {
            let is_order = matches!(op, "maximum" | "minimum");
            let is_exact = is_order || !(element_type.starts_with(['f', 'c']) || *element_type == "bf16");
            let (values, tolerance) = if is_exact {
                (Values::Hard, Tolerance::Exact)
            } else {
                (Values::Tame, Tolerance::Relative(2e-2))
            };
            check(&module(op, element_type, &axes, ""), &[values], tolerance);
        }
    }
}

#[test]
fn an_order_that_matters_is_kept() {
    // x - y is neither associative nor commutative.
    for axes in [
        vec![Axis::new(7, 3).pad(1, 1), Axis::new(6, 2).stride(2), Axis::whole(9)],
        vec![Axis::whole(3), Axis::new(20, 20).pad(19, 0)],
        vec![Axis::new(20, 20).pad(0, 19), Axis::whole(5)],
        vec![Axis::new(20, 20).pad(19, 0), Axis::new(4, 2)],
    ] {
        check(&module("subtract", "s32", &axes, ""), &[Values::Hard], Tolerance::Exact);
    }
}

#[test]
fn cumulative_sums_along_every_dimension() {
    for n in [33] {
        let along = [
            Axis::new(n, n).pad(n - 1, 0),
            Axis::new(n, n).pad(0, n - 1),
            // Exclusive sums: each element is missing from its own sum.
            Axis::new(n, n).pad(n, -1),
            Axis::new(n, n).pad(-1, n),
            // Totals that are complete before the end, and totals that start late.
            Axis::new(n, 2 * n).pad(2 * n, n),
            Axis::new(n, 2 * n).pad(n, 2 * n),
            Axis::new(n, n).pad(n + 3, 2),
            Axis::new(n, n / 2).pad(n - 1, 0),
        ];
        for axis in along {
            check_all(&[Axis::whole(2), axis, Axis::whole(13)]);
            check_all(&[Axis::whole(3), axis]);
            check_all(&[Axis::new(3, 2), axis, Axis::new(5, 3).pad(1, 1)]);
        }
    }
}

/// Allowed relative error of running `F32` sums of both signs. They come near 0 with the errors of
/// earlier, larger sums.
const OF_SINGLES: f64 = 1e-5;

/// Windows that grow forward or backward, with and without the element itself. Some contain all
/// elements or none.
fn growing(n: i64) -> Vec<Axis> {
    vec![
        Axis::new(n, n).pad(n - 1, 0),
        Axis::new(n, n).pad(0, n - 1),
        Axis::new(n, n).pad(n, -1),
        Axis::new(n, n).pad(-1, n),
        Axis::new(n, 2 * n).pad(2 * n, n),
        Axis::new(n, 2 * n).pad(n, 2 * n),
    ]
}

#[test]
fn running_totals_of_rows_as_long_as_vectors_and_longer() {
    for n in [1, 2, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 65, 67, 130, 201] {
        for axis in growing(n) {
            let text = module("add", "s32", &[Axis::whole(3), axis], "");
            check(&text, &[Values::Hard], Tolerance::Exact);
        }
        let text = module("add", "f32", &[Axis::new(n, n).pad(n - 1, 0)], "");
        check(&text, &[Values::Tame], Tolerance::Relative(OF_SINGLES));
    }
}

#[test]
fn running_totals_of_every_operation_and_type() {
    let ops: [(&str, &[&str]); 5] = [
        ("add", &["s8", "u16", "u64", "s4", "pred", "f16", "bf16", "f64", "c64", "c128"]),
        ("multiply", &["s8", "u32", "s64", "u4", "f32", "f64", "c64"]),
        ("maximum", &["s8", "u32", "s64", "f32", "f64", "f16", "bf16", "f8e4m3fn", "pred", "u4"]),
        ("minimum", &["u8", "s16", "f32", "f64", "f16", "bf16", "f8e5m2", "pred", "s2"]),
        ("xor", &["s8", "u16", "s32", "u64", "pred"]),
    ];
    for (op, types) in ops {
        for t in types {
            let is_order = matches!(op, "maximum" | "minimum");
            let is_exact = is_order || !(t.starts_with(['f', 'c']) || *t == "bf16");
            let (values, tolerance) = match (is_exact, op) {
                (true, _) => (Values::Hard, Tolerance::Exact),
                // Products of more numbers would overflow.
                (_, "multiply") => (Values::Below(2), Tolerance::Exact),
                (_, _) if *t == "f64" || *t == "c128" => (Values::Tame, Tolerance::Relative(1e-13)),
                (_, _) if t.ends_with("16") => (Values::Tame, Tolerance::Relative(1e-2)),
                _ => (Values::Tame, Tolerance::Relative(OF_SINGLES)),
            };
            for axis in growing(83) {
                check(&module(op, t, &[Axis::whole(2), axis], ""), &[values], tolerance);
                check(&module(op, t, &[axis, Axis::whole(5)], ""), &[values], tolerance);
            }
        }
    }
}

#[test]
fn running_totals_begin_with_any_value_and_fuse_producers() {
    let axes = [Axis::whole(3), Axis::new(50, 50).pad(49, 0)];
    let producer = "  b = s32[3,50] iota(), iota_dimension=1\n  x = s32[3,50] subtract(a, b)\n";
    check(&module("add", "s32", &axes, producer), &[Values::Hard], Tolerance::Exact);
    check(&module("multiply", "u32", &axes, producer_of("u32").as_str()), &[Values::Hard], Tolerance::Exact);
    let axes = [Axis::whole(3), Axis::new(50, 50).pad(0, 49)];
    check(&module("add", "s32", &axes, producer), &[Values::Hard], Tolerance::Exact);
    // Windows of several elements along another dimension are combined first.
    for along in growing(40) {
        let axes = [Axis::new(7, 3).pad(1, 1), along];
        check(&module("add", "s32", &axes, ""), &[Values::Hard], Tolerance::Exact);
    }
}

fn producer_of(element_type: &str) -> String {
    let t = element_type;
    format!("  b = {t}[3,50] iota(), iota_dimension=1\n  x = {t}[3,50] subtract(a, b)\n")
}

#[test]
fn errors_of_running_sums_do_not_grow_with_their_length() {
    let n: i64 = 200_000;
    let axis = Axis::new(n, n).pad(n - 1, 0);
    // Elements of the same sign, such that two consecutive sums do not round in the same direction
    // for long.
    let mut numbers = Numbers::new(7);
    let elements: Vec<f32> = (0..n).map(|_| numbers.unit() as f32 + 0.1).collect();
    let mut exact = 0.0;
    let exact: Vec<f64> = elements
        .iter()
        .map(|&x| {
            exact += f64::from(x);
            exact
        })
        .collect();
    for (axes, sizes) in [([Axis::whole(1), axis], [1, n]), ([axis, Axis::whole(1)], [n, 1])] {
        let parsed = hlo::parse(&module("add", "f32", &axes, "")).expect("a valid text");
        let arguments = [Literal::from_elements(&sizes, &elements), Literal::scalar(0f32)];
        for target in crate::harness::targets() {
            let sums = crate::harness::run(&parsed, &target, &arguments, 1).expect("a program")[0]
                .to_vec::<f32>()
                .expect("floats");
            for (sum, exact) in sums.iter().zip(&exact) {
                let error = (f64::from(*sum) - exact).abs() / exact;
                assert!(error < 2.0 * f64::from(f32::EPSILON), "{sum} instead of {exact}");
            }
        }
    }
}

#[test]
fn running_sums_stay_infinite_after_an_infinity() {
    let n: i64 = 100;
    for (axes, sizes) in [
        ([Axis::whole(1), Axis::new(n, n).pad(n - 1, 0)], [1, n]),
        ([Axis::new(n, n).pad(n - 1, 0), Axis::whole(1)], [n, 1]),
    ] {
        let parsed = hlo::parse(&module("add", "f32", &axes, "")).expect("a valid text");
        for (at, big) in [(3, f32::INFINITY), (50, f32::NEG_INFINITY), (16, f32::MAX)] {
            let mut elements = vec![1f32; n as usize];
            elements[at] = big;
            if big == f32::MAX {
                elements[at + 20] = big;
            }
            let arguments = [Literal::from_elements(&sizes, &elements), Literal::scalar(0f32)];
            for target in crate::harness::targets() {
                let sums = crate::harness::run(&parsed, &target, &arguments, 1).expect("a program")[0]
                    .to_vec::<f32>()
                    .expect("floats");
                let from = if big == f32::MAX { at + 20 } else { at };
                let want = if big == f32::MAX { f32::INFINITY } else { big };
                assert!(sums[from..].iter().all(|&sum| sum == want), "{sums:?}");
                assert!(sums[..from].iter().all(|sum| sum.is_finite()), "{sums:?}");
            }
        }
    }
}

#[test]
fn dilated_bases() {
    for axes in [
        vec![Axis::new(5, 3).dilate(1, 2).pad(1, 1), Axis::whole(9)],
        vec![Axis::new(5, 3).dilate(2, 3).pad(2, 4).stride(2), Axis::new(3, 2).dilate(1, 2)],
        vec![Axis::whole(3), Axis::new(20, 2).dilate(1, 2)],
        vec![Axis::new(7, 1).dilate(1, 3).pad(-2, 5), Axis::new(1, 3).dilate(1, 7).pad(4, 4)],
    ] {
        check_all(&axes);
    }
}

#[test]
fn empty_and_scalar() {
    check_all(&[]);
    check_all(&[Axis::new(0, 2).pad(2, 2), Axis::whole(5)]);
    check_all(&[Axis::new(0, 2).pad(2, 2).dilate(1, 2), Axis::whole(5)]);
    check_all(&[Axis::new(0, 2).pad(1, 0), Axis::whole(5)]);
    check_all(&[Axis::new(3, 4), Axis::whole(5)]);
    check_all(&[Axis::whole(1), Axis::new(1, 1).pad(2, 2)]);
}

#[test]
fn producers_are_fused_into_windows() {
    let producer = "  x = f32[6,5,12] exponential(a)\n";
    let axes = [Axis::new(6, 2).stride(2), Axis::new(5, 1), Axis::whole(12)];
    let text = module("add", "f32", &axes, "").replace(
        "ENTRY main {\n",
        "fused {\n  a = f32[6,5,12] parameter(0)\n  i = f32[] parameter(1)\n  x = f32[6,5,12] exponential(a)\n  ROOT r = f32[3,5,12] reduce-window(x, i), window={size=2x1x1 stride=2x1x1}, to_apply=reducer\n}\n\nENTRY main {\n",
    );
    let call = text.rfind("  ROOT r").expect("the last root");
    let text =
        format!("{}  ROOT r = f32[3,5,12] fusion(a, i), kind=kInput, calls=fused\n}}\n", &text[..call]);
    check(&text, &[Values::Tame], Tolerance::Relative(1e-5));
    check(&module("add", "f32", &axes, producer), &[Values::Tame], Tolerance::Relative(1e-5));
}

#[test]
fn several_arrays_at_once() {
    // The largest element of each window, and its position.
    for (axes, input, result) in [
        ("{size=2x3x1 stride=2x2x1 pad=0_0x1_1x0_0}", "6,7,9", "3,4,9"),
        ("{size=1x16x1 pad=0_0x15_0x0_0}", "2,16,9", "2,16,9"),
        ("{size=2x1x3 lhs_dilate=1x1x2}", "3,2,5", "2,2,7"),
    ] {
        let text = format!(
            "HloModule largest\n\nreducer {{\n  x = f32[] parameter(0)\n  i = s32[] parameter(1)\n  y = f32[] parameter(2)\n  j = s32[] parameter(3)\n  p = pred[] compare(x, y), direction=GE\n  z = f32[] select(p, x, y)\n  k = s32[] select(p, i, j)\n  ROOT r = (f32[], s32[]) tuple(z, k)\n}}\n\nENTRY main {{\n  a = f32[{input}] parameter(0)\n  n = s32[{input}] parameter(1)\n  lowest = f32[] constant(-inf)\n  none = s32[] constant(-1)\n  ROOT r = (f32[{result}], s32[{result}]) reduce-window(a, n, lowest, none), window={axes}, to_apply=reducer\n}}\n"
        );
        check(&text, &[Values::Tame, Values::Below(1000)], Tolerance::Exact);
    }
}

#[test]
fn large_pools_are_cut_into_tasks() {
    for axes in [
        vec![
            Axis::whole(1),
            Axis::new(56, 3).stride(2).pad(0, 1),
            Axis::new(56, 3).stride(2).pad(1, 0),
            Axis::whole(64),
        ],
        vec![Axis::whole(5), Axis::new(150, 150).pad(149, 0), Axis::whole(130)],
        vec![Axis::new(33, 2).dilate(1, 2), Axis::new(40, 3), Axis::whole(40)],
    ] {
        let text = module("add", "f32", &axes, "");
        let parsed = hlo::parse(&text).expect("a valid text");
        let plan = plan::plan(&parsed, &crate::harness::targets()[0]).expect("a plan");
        let tasks = plan.computations[&parsed.entry()].instructions.values().map(|p| p.tasks).max();
        assert!(tasks > Some(1), "{text}");
        check(&text, &[Values::Tame], Tolerance::Relative(1e-4));
    }
}

#[test]
fn random_windows() {
    let mut numbers = Numbers::new(7);
    let mut number = |low: i64, high: i64| low + numbers.below((high - low + 1) as u64) as i64;
    for _ in 0..40 {
        let rank = number(1, 4) as usize;
        let axes: Vec<Axis> = (0..rank)
            .map(|_| match number(0, 2) {
                0 => Axis::whole(number(1, 20)),
                kind => {
                    let input = number(0, 9);
                    let dilation = if kind == 1 { (1, 1) } else { (number(1, 3), number(1, 3)) };
                    Axis::new(input, number(1, 5))
                        .stride(number(1, 3))
                        .pad(number(-2, 5), number(-2, 5))
                        .dilate(dilation.0, dilation.1)
                }
            })
            .collect();
        if axes.iter().map(Axis::count).product::<i64>() > 4000 {
            continue;
        }
        check_all(&axes);
    }
}
