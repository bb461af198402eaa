//! Every elementwise opcode, compiled for every element type, compared with the evaluator.

use crate::harness::{Tolerance, Values, check, run, targets};
use shape::Literal;
use std::fmt::Write as _;

const INTEGERS: [&str; 12] = ["s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64"];
const FLOATS: [&str; 6] = ["f8e5m2", "f8e4m3fn", "f16", "bf16", "f32", "f64"];
const COMPLEX: [&str; 2] = ["c64", "c128"];

/// Sizes around the vector widths of all targets.
const SIZES: [usize; 9] = [0, 1, 3, 4, 5, 15, 16, 17, 50];

/// Returns a module that applies each function to parameters of one type.
fn module(parameters: &[String], instructions: &[(String, String)]) -> String {
    let mut text = String::from("HloModule elementwise\n\nENTRY main {\n");
    for (k, shape) in parameters.iter().enumerate() {
        let _ = writeln!(text, "  p{k} = {shape} parameter({k})");
    }
    for (k, (shape, call)) in instructions.iter().enumerate() {
        let _ = writeln!(text, "  r{k} = {shape} {call}");
    }
    let shapes: Vec<&str> = instructions.iter().map(|(shape, _)| shape.as_str()).collect();
    let names: Vec<String> = (0..instructions.len()).map(|k| format!("r{k}")).collect();
    let _ = writeln!(text, "  ROOT all = ({}) tuple({})\n}}", shapes.join(", "), names.join(", "));
    text
}

fn each_size(element_type: &str, parameters: usize, calls: &[&str], values: Values, tolerance: Tolerance) {
    for size in SIZES {
        let shape = format!("{element_type}[{size}]");
        let instructions: Vec<_> = calls.iter().map(|c| (shape.clone(), (*c).to_owned())).collect();
        check(&module(&vec![shape; parameters], &instructions), &[values], tolerance);
    }
}

#[test]
fn integer_arithmetic() {
    let calls = [
        "add(p0, p1)",
        "subtract(p0, p1)",
        "multiply(p0, p1)",
        "divide(p0, p1)",
        "remainder(p0, p1)",
        "maximum(p0, p1)",
        "minimum(p0, p1)",
        "and(p0, p1)",
        "or(p0, p1)",
        "xor(p0, p1)",
        "power(p0, p1)",
        "shift-left(p0, p1)",
        "shift-right-arithmetic(p0, p1)",
        "shift-right-logical(p0, p1)",
        "clamp(p0, p1, p2)",
        "not(p0)",
        "negate(p0)",
        "popcnt(p0)",
        "count-leading-zeros(p0)",
        "copy(p0)",
    ];
    for element_type in INTEGERS {
        each_size(element_type, 3, &calls, Values::Hard, Tolerance::Exact);
    }
    for element_type in INTEGERS.iter().filter(|t| t.starts_with('s')) {
        each_size(element_type, 1, &["abs(p0)", "sign(p0)"], Values::Hard, Tolerance::Exact);
    }
}

/// Vectors are divided as floats, whose quotients are close to integers here.
#[test]
fn quotients_next_to_integers() {
    for (ty, half) in [("s8", 4), ("u8", 4), ("s16", 8), ("u16", 8), ("s32", 16), ("u32", 16)] {
        let shape = format!("{ty}[5000]");
        let mut text = format!(
            "HloModule quotients\n\nENTRY main {{\n  p = {shape} parameter(0)\n  divisor = {shape} parameter(1)\n  \
             width = {ty}[] constant({half})\n  widths = {shape} broadcast(width), dimensions={{}}\n  \
             one = {ty}[] constant(1)\n  ones = {shape} broadcast(one), dimensions={{}}\n  \
             factor = {shape} shift-right-arithmetic(p, widths)\n  whole = {shape} multiply(factor, divisor)\n  \
             below = {shape} subtract(whole, ones)\n  above = {shape} add(whole, ones)\n"
        );
        let mut results = Vec::new();
        for op in ["divide", "remainder"] {
            for dividend in ["whole", "below", "above"] {
                let _ = writeln!(text, "  {op}-{dividend} = {shape} {op}({dividend}, divisor)");
                results.push(format!("{op}-{dividend}"));
            }
        }
        let shapes = vec![shape.as_str(); results.len()].join(", ");
        let _ = writeln!(text, "  ROOT all = ({shapes}) tuple({})\n}}", results.join(", "));
        check(&text, &[Values::Hard], Tolerance::Exact);
    }
}

#[test]
fn truth_values() {
    let calls = [
        "add(p0, p1)",
        "multiply(p0, p1)",
        "maximum(p0, p1)",
        "minimum(p0, p1)",
        "and(p0, p1)",
        "or(p0, p1)",
        "xor(p0, p1)",
        "not(p0)",
        "copy(p0)",
        "select(p0, p1, p2)",
        "compare(p0, p1), direction=LT",
        "compare(p0, p1), direction=GE",
        "compare(p0, p1), direction=EQ",
    ];
    each_size("pred", 3, &calls, Values::Hard, Tolerance::Exact);
}

#[test]
fn exact_float_functions() {
    let calls = [
        "add(p0, p1)",
        "subtract(p0, p1)",
        "multiply(p0, p1)",
        "divide(p0, p1)",
        "maximum(p0, p1)",
        "minimum(p0, p1)",
        "clamp(p0, p1, p2)",
        "negate(p0)",
        "abs(p0)",
        "sign(p0)",
        "sqrt(p0)",
        "floor(p0)",
        "ceil(p0)",
        "round-nearest-even(p0)",
        "round-nearest-afz(p0)",
        "copy(p0)",
    ];
    for element_type in FLOATS {
        each_size(element_type, 3, &calls, Values::Hard, Tolerance::Exact);
        each_size(element_type, 3, &["rsqrt(p0)"], Values::Hard, Tolerance::Relative(2e-7));
    }
}

#[test]
fn reduced_precision() {
    for element_type in ["f32", "f64"] {
        let calls = [
            "reduce-precision(p0), exponent_bits=5, mantissa_bits=10",
            "reduce-precision(p0), exponent_bits=8, mantissa_bits=7",
            "reduce-precision(p0), exponent_bits=4, mantissa_bits=3",
            "reduce-precision(p0), exponent_bits=8, mantissa_bits=23",
            "reduce-precision(p0), exponent_bits=3, mantissa_bits=0",
        ];
        each_size(element_type, 1, &calls, Values::Hard, Tolerance::Exact);
    }
}

#[test]
fn comparisons_of_all_types() {
    for element_type in INTEGERS.iter().chain(&FLOATS).chain(&COMPLEX).chain(&["pred"]) {
        let is_complex = element_type.starts_with('c');
        let directions: &[&str] =
            if is_complex { &["EQ", "NE"] } else { &["EQ", "NE", "GE", "GT", "LE", "LT"] };
        for size in SIZES {
            let mut calls = Vec::new();
            for direction in directions {
                calls.push((format!("pred[{size}]"), format!("compare(p0, p1), direction={direction}")));
                if element_type.contains('f') {
                    let total = format!("compare(p0, p1), direction={direction}, type=TOTALORDER");
                    calls.push((format!("pred[{size}]"), total));
                }
            }
            if element_type.contains('f') {
                calls.push((format!("pred[{size}]"), "is-finite(p0)".to_owned()));
            }
            let shape = format!("{element_type}[{size}]");
            check(&module(&[shape.clone(), shape.clone()], &calls), &[Values::Hard], Tolerance::Exact);
            check(&module(&[shape.clone(), shape], &calls), &[Values::Below(2)], Tolerance::Exact);
        }
    }
}

#[test]
fn conversions_between_all_pairs() {
    let all: Vec<&str> = INTEGERS.iter().chain(&FLOATS).chain(&["pred"]).copied().collect();
    for from in &all {
        for size in [3, 17, 50] {
            let to: Vec<_> = all
                .iter()
                .chain(&COMPLEX)
                .map(|to| (format!("{to}[{size}]"), "convert(p0)".to_owned()))
                .collect();
            check(&module(&[format!("{from}[{size}]")], &to), &[Values::Hard], Tolerance::Exact);
        }
    }
    for from in COMPLEX {
        let to: Vec<_> = COMPLEX.iter().map(|to| (format!("{to}[7]"), "convert(p0)".to_owned())).collect();
        check(&module(&[format!("{from}[7]")], &to), &[Values::Hard], Tolerance::Exact);
    }
}

/// The numbers next to the limits of each integer type become what Rust's `as` makes of them.
#[test]
fn conversions_at_the_limits_of_integers() {
    let limits = [31, 32, 63, 64].map(|bits| 2f64.powi(bits));
    let near = |limit: f64| {
        let single = limit as f32;
        [limit, limit.next_down(), limit.next_up(), single.next_down().into(), single.next_up().into()]
    };
    let all: Vec<f64> = limits.into_iter().flat_map(near).flat_map(|x| [x, -x]).collect();
    let others = [0.0, -0.0, 0.99, -0.99, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let doubles: Vec<f64> = all.into_iter().chain(others).collect();
    let floats: Vec<f32> = doubles.iter().map(|&x| x as f32).collect();
    let n = doubles.len();
    let calls: Vec<_> = ["s32", "u32", "s64", "u64"]
        .iter()
        .map(|to| (format!("{to}[{n}]"), "convert(p0)".to_owned()))
        .collect();
    for target in targets() {
        let of = |from: &str, argument: Literal| {
            let text = module(&[format!("{from}[{n}]")], &calls);
            run(&hlo::parse(&text).expect("a module"), &target, &[argument], 1).expect("it runs")
        };
        let size = [n as i64];
        let have = of("f64", Literal::from_elements(&size, &doubles));
        assert_eq!(have[0].to_vec::<i32>(), Some(doubles.iter().map(|&x| x as i32).collect()));
        assert_eq!(have[1].to_vec::<u32>(), Some(doubles.iter().map(|&x| x as u32).collect()));
        assert_eq!(have[2].to_vec::<i64>(), Some(doubles.iter().map(|&x| x as i64).collect()));
        assert_eq!(have[3].to_vec::<u64>(), Some(doubles.iter().map(|&x| x as u64).collect()));
        let have = of("f32", Literal::from_elements(&size, &floats));
        assert_eq!(have[0].to_vec::<i32>(), Some(floats.iter().map(|&x| x as i32).collect()));
        assert_eq!(have[1].to_vec::<u32>(), Some(floats.iter().map(|&x| x as u32).collect()));
        assert_eq!(have[2].to_vec::<i64>(), Some(floats.iter().map(|&x| x as i64).collect()));
        assert_eq!(have[3].to_vec::<u64>(), Some(floats.iter().map(|&x| x as u64).collect()));
    }
}

#[test]
fn bits_as_another_type() {
    let by_width: [&[&str]; 6] = [
        &["s2", "u2"],
        &["s4", "u4"],
        &["s8", "u8", "f8e5m2", "f8e4m3fn"],
        &["s16", "u16", "f16", "bf16"],
        &["s32", "u32", "f32"],
        &["s64", "u64", "f64"],
    ];
    for types in by_width {
        for from in types {
            let calls: Vec<_> =
                types.iter().map(|to| (format!("{to}[50]"), "bitcast-convert(p0)".to_owned())).collect();
            check(&module(&[format!("{from}[50]")], &calls), &[Values::Tame], Tolerance::Exact);
        }
    }
    let narrowing = [
        ("s32[6]", "u8[6,4]"),
        ("f32[6]", "s16[6,2]"),
        ("u64[5]", "u32[5,2]"),
        ("f64[3]", "u8[3,8]"),
        ("s16[7]", "s4[7,4]"),
        ("u8[5]", "u2[5,4]"),
        ("s64[2,3]", "u16[2,3,4]"),
    ];
    for (wide, narrow) in narrowing {
        let split = [(narrow.to_owned(), "bitcast-convert(p0)".to_owned())];
        check(&module(&[wide.to_owned()], &split), &[Values::Hard], Tolerance::Exact);
        if !wide.starts_with('f') {
            let join = [(wide.to_owned(), "bitcast-convert(p0)".to_owned())];
            check(&module(&[narrow.to_owned()], &join), &[Values::Hard], Tolerance::Exact);
        }
    }
}

#[test]
fn complex_arithmetic() {
    let parts = ["f32", "f64"];
    for (element_type, part) in COMPLEX.iter().zip(parts) {
        let tolerance = Tolerance::Relative(if part == "f32" { 3e-7 } else { 1e-15 });
        let calls = [
            "add(p0, p1)",
            "subtract(p0, p1)",
            "negate(p0)",
            "copy(p0)",
            "multiply(p0, p1)",
            "divide(p0, p1)",
            "sqrt(p0)",
            "rsqrt(p0)",
            "sign(p0)",
        ];
        each_size(element_type, 2, &calls, Values::Tame, tolerance);
        let exact = ["add(p0, p1)", "subtract(p0, p1)", "negate(p0)"];
        each_size(element_type, 2, &exact, Values::Hard, Tolerance::Exact);
        for size in SIZES {
            let real = |call: &str| (format!("{part}[{size}]"), call.to_owned());
            let calls = [real("real(p0)"), real("imag(p0)"), real("abs(p0)")];
            check(&module(&[format!("{element_type}[{size}]")], &calls), &[Values::Tame], tolerance);
            let calls = [(format!("{element_type}[{size}]"), "complex(p0, p1)".to_owned())];
            let shape = format!("{part}[{size}]");
            check(&module(&[shape.clone(), shape], &calls), &[Values::Hard], Tolerance::Exact);
        }
    }
}

#[test]
fn transcendental_functions() {
    let calls = [
        "exponential(p0)",
        "exponential-minus-one(p0)",
        "log(p0)",
        "log-plus-one(p0)",
        "logistic(p0)",
        "sine(p0)",
        "cosine(p0)",
        "tan(p0)",
        "sinh(p0)",
        "cosh(p0)",
        "tanh(p0)",
        "asin(p0)",
        "acos(p0)",
        "asinh(p0)",
        "acosh(p0)",
        "atanh(p0)",
        "power(p0, p1)",
        "atan2(p0, p1)",
    ];
    for (element_type, limit) in
        [("f32", 1e-6), ("f64", 1e-14), ("c64", 2e-6), ("c128", 1e-13), ("bf16", 8e-3), ("f16", 1e-3)]
    {
        for size in [5, 50] {
            let shape = format!("{element_type}[{size}]");
            let instructions: Vec<_> = calls.iter().map(|c| (shape.clone(), (*c).to_owned())).collect();
            check(
                &module(&[shape.clone(), shape], &instructions),
                &[Values::Tame],
                Tolerance::Relative(limit),
            );
        }
    }
    let real = ["cbrt(p0)", "erf(p0)", "remainder(p0, p1)"];
    each_size("f32", 2, &real, Values::Tame, Tolerance::Relative(1e-6));
    each_size("f64", 2, &real, Values::Tame, Tolerance::Relative(1e-14));
}

/// `1 + erf(x)` is one function, even where it nearly vanishes. The product is 0 there.
#[test]
fn gelu() {
    for size in [1, 3, 16, 50, 3000] {
        let text = format!(
            "HloModule gelu\n\nfused {{\n  x = f32[{size}] parameter(0)\n  c = f32[] constant(0.707106769)\n  \
             cs = f32[{size}] broadcast(c), dimensions={{}}\n  one = f32[] constant(1)\n  \
             ones = f32[{size}] broadcast(one), dimensions={{}}\n  y = f32[{size}] multiply(x, cs)\n  \
             e = f32[{size}] erf(y)\n  p = f32[{size}] add(ones, e)\n  ROOT r = f32[{size}] multiply(x, p)\n}}\n\n\
             ENTRY main {{\n  x = f32[{size}] parameter(0)\n  ROOT f = f32[{size}] fusion(x), kind=kLoop, calls=fused\n}}\n"
        );
        check(&text, &[Values::Tame], Tolerance::Relative(4e-7));
        check(&text, &[Values::Hard], Tolerance::Relative(4e-7));
    }
}
