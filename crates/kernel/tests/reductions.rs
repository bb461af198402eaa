//! Compiled reductions, alone and with their producers, compared with the evaluator.

use crate::harness::{Tolerance, Values, check, targets};
use shape::{Literal, Scalar};
use target::Target;

fn reducer(op: &str, element_type: &str) -> String {
    format!(
        "reducer {{\n  x = {element_type}[] parameter(0)\n  y = {element_type}[] parameter(1)\n  ROOT r = {element_type}[] {op}(x, y)\n}}\n"
    )
}

fn reduce(op: &str, element_type: &str, sizes: &[i64], dimensions: &[usize]) -> String {
    let list = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let kept: Vec<i64> = (0..sizes.len()).filter(|d| !dimensions.contains(d)).map(|d| sizes[d]).collect();
    let reduced: Vec<String> = dimensions.iter().map(usize::to_string).collect();
    format!(
        "HloModule reductions\n\n{}\nENTRY main {{\n  a = {element_type}[{}] parameter(0)\n  i = {element_type}[] parameter(1)\n  ROOT r = {element_type}[{}] reduce(a, i), dimensions={{{}}}, to_apply=reducer\n}}\n",
        reducer(op, element_type),
        list(sizes),
        list(&kept),
        reduced.join(",")
    )
}

#[test]
fn sums_over_every_choice_of_dimensions() {
    let shapes: [&[i64]; 12] = [
        &[1],
        &[3],
        &[16],
        &[17],
        &[70],
        &[300],
        &[5, 50],
        &[50, 5],
        &[3, 1, 20],
        &[4, 3, 35],
        &[2, 3, 2, 19],
        &[0, 4],
    ];
    for sizes in shapes {
        for mask in 0..1usize << sizes.len() {
            let dimensions: Vec<usize> = (0..sizes.len()).filter(|d| mask >> d & 1 == 1).collect();
            check(&reduce("add", "f32", sizes, &dimensions), &[Values::Tame], Tolerance::Relative(1e-5));
            check(&reduce("maximum", "s32", sizes, &dimensions), &[Values::Hard], Tolerance::Exact);
        }
    }
}

#[test]
fn every_operation_and_type() {
    let ops: [(&str, &[&str]); 4] = [
        ("add", &["s8", "u8", "s32", "u64", "f32", "f64", "f16", "bf16", "pred", "s4", "c64"]),
        ("multiply", &["s16", "u32", "f32", "f64", "bf16", "pred", "c128"]),
        ("maximum", &["s8", "u8", "s64", "u64", "f32", "f64", "f16", "bf16", "f8e4m3fn", "pred", "u4", "s2"]),
        ("minimum", &["s8", "u8", "s64", "u64", "f32", "f64", "f16", "bf16", "f8e5m2", "pred", "u2", "s4"]),
    ];
    for (op, types) in ops {
        for element_type in types {
            let is_sum = op == "add" || op == "multiply";
            let is_narrow = ["f16", "bf16"].contains(element_type);
            let tolerance = if !is_sum {
                Tolerance::Exact
            } else if is_narrow {
                Tolerance::Relative(0.1)
            } else {
                Tolerance::Relative(1e-4)
            };
            let values =
                if is_sum && !element_type.contains(['s', 'u']) { Values::Tame } else { Values::Hard };
            for dimensions in [vec![0], vec![1], vec![0, 1]] {
                check(&reduce(op, element_type, &[6, 45], &dimensions), &[values], tolerance);
            }
        }
    }
    for op in ["and", "or", "xor"] {
        for element_type in ["pred", "s8", "u4", "u64"] {
            for dimensions in [vec![0], vec![1], vec![0, 1]] {
                check(&reduce(op, element_type, &[6, 45], &dimensions), &[Values::Hard], Tolerance::Exact);
            }
        }
    }
}

#[test]
fn a_nan_or_an_infinity_reaches_the_result() {
    for op in ["maximum", "minimum"] {
        check(&reduce(op, "f32", &[40, 20], &[1]), &[Values::Hard], Tolerance::Exact);
        check(&reduce(op, "f64", &[40, 20], &[0]), &[Values::Hard], Tolerance::Exact);
    }
}

/// Returns the position of the largest element; the first one if several are equal.
#[test]
fn several_accumulators() {
    let body = "argmax {
  v0 = f32[] parameter(0)
  i0 = s32[] parameter(1)
  v1 = f32[] parameter(2)
  i1 = s32[] parameter(3)
  ge = pred[] compare(v0, v1), direction=GE
  v = f32[] select(ge, v0, v1)
  eq = pred[] compare(v0, v1), direction=EQ
  least = s32[] minimum(i0, i1)
  chosen = s32[] select(ge, i0, i1)
  i = s32[] select(eq, least, chosen)
  ROOT r = (f32[], s32[]) tuple(v, i)
}
";
    for (dimension, result) in [(0, 30), (1, 7)] {
        let text = format!(
            "HloModule argmax\n\n{body}\nENTRY main {{\n  a = f32[7,30] parameter(0)\n  n = s32[7,30] iota(), iota_dimension={dimension}\n  low = f32[] constant(-inf)\n  zero = s32[] constant(0)\n  ROOT r = (f32[{result}], s32[{result}]) reduce(a, n, low, zero), dimensions={{{dimension}}}, to_apply=argmax\n}}\n"
        );
        check(&text, &[Values::Below(9)], Tolerance::Exact);
    }
}

#[test]
fn producers_are_computed_in_the_loop_of_the_reduction() {
    for (dimensions, result, broadcast) in
        [("1", "f32[9]", "0"), ("0", "f32[37]", "1"), ("0,1", "f32[]", "0")]
    {
        let size = if broadcast == "0" { 9 } else { 37 };
        let text = format!(
            "HloModule fused\n\n{}\nfused {{\n  a = f32[9,37] parameter(0)\n  m = f32[{size}] parameter(1)\n  i = f32[] parameter(2)\n  b = f32[9,37] broadcast(m), dimensions={{{broadcast}}}\n  d = f32[9,37] subtract(a, b)\n  s = f32[9,37] multiply(d, d)\n  ROOT r = {result} reduce(s, i), dimensions={{{dimensions}}}, to_apply=reducer\n}}\n\nENTRY main {{\n  a = f32[9,37] parameter(0)\n  m = f32[{size}] parameter(1)\n  i = f32[] constant(0)\n  ROOT f = {result} fusion(a, m, i), kind=kInput, calls=fused\n}}\n",
            reducer("add", "f32")
        );
        check(&text, &[Values::Tame], Tolerance::Relative(1e-5));
    }
}

#[test]
fn a_reduction_of_a_transposed_array() {
    let text = format!(
        "HloModule fused\n\n{}\nfused {{\n  a = f32[9,5,37] parameter(0)\n  i = f32[] parameter(1)\n  t = f32[5,37,9] transpose(a), dimensions={{1,2,0}}\n  n = f32[5,37,9] negate(t)\n  ROOT r = f32[37] reduce(n, i), dimensions={{0,2}}, to_apply=reducer\n}}\n\nENTRY main {{\n  a = f32[9,5,37] parameter(0)\n  i = f32[] constant(0.5)\n  ROOT f = f32[37] fusion(a, i), kind=kInput, calls=fused\n}}\n",
        reducer("add", "f32")
    );
    check(&text, &[Values::Tame], Tolerance::Relative(1e-5));
}

/// Returns the largest error of a long sum of equal numbers, relative to the sum. Adding one number
/// after another has an error of at least 1e-4.
fn error_of_equal_summands(text: &str, count: usize) -> f64 {
    let module = hlo::parse(text).expect("a module");
    let entry = module.entry_computation();
    let a = entry[entry.parameters()[0]].shape().expect_array().clone();
    let value = 0.1f32;
    let arguments = [
        Literal::from_scalars(a.clone(), vec![Scalar::Float(f64::from(value)); a.element_count() as usize]),
        Literal::scalar(0f32),
    ];
    let want = f64::from(value) * count as f64;
    let error = |sum: Scalar| match sum {
        Scalar::Float(sum) => (sum / want - 1.0).abs(),
        _ => f64::INFINITY,
    };
    let worst = |target: &Target| {
        let results = crate::harness::run(&module, target, &arguments, 1).expect("it runs");
        results.iter().flat_map(|result| result.scalars().map(error).collect::<Vec<_>>()).fold(0.0, f64::max)
    };
    targets().iter().map(worst).fold(0.0, f64::max)
}

#[test]
fn long_sums_keep_their_digits() {
    // Columns, rows, and both; lengths with and without divisors; loops that cannot be merged.
    let shapes: [(&[i64], &[usize]); 8] = [
        (&[1 << 16, 16], &[0]),
        (&[65_537, 5], &[0]),
        (&[3, 1 << 20], &[1]),
        (&[1_000_003], &[0]),
        (&[1 << 10, 1 << 10], &[0, 1]),
        (&[64, 3, 2048], &[0, 2]),
        (&[521, 7, 131, 16], &[0, 2]),
        (&[50_000, 3], &[0]),
    ];
    for (sizes, dimensions) in shapes {
        let count = dimensions.iter().map(|&d| sizes[d] as usize).product();
        let error = error_of_equal_summands(&reduce("add", "f32", sizes, dimensions), count);
        assert!(error < 1e-5, "{sizes:?} over {dimensions:?}: {error:e}");
    }
}

/// A sum and a sum of absolute values in one loop nest.
#[test]
fn long_sums_of_several_results_keep_their_digits() {
    let shape = "f32[60001,16]";
    let text = format!(
        "HloModule sums\n\n{}\nfused {{\n  a = {shape} parameter(0)\n  i = f32[] parameter(1)\n  m = {shape} abs(a)\n  r = f32[16] reduce(a, i), dimensions={{0}}, to_apply=reducer\n  s = f32[16] reduce(m, i), dimensions={{0}}, to_apply=reducer\n  ROOT t = (f32[16], f32[16]) tuple(r, s)\n}}\n\nENTRY main {{\n  a = {shape} parameter(0)\n  i = f32[] parameter(1)\n  ROOT f = (f32[16], f32[16]) fusion(a, i), kind=kInput, calls=fused\n}}\n",
        reducer("add", "f32")
    );
    let error = error_of_equal_summands(&text, 60_001);
    assert!(error < 1e-5, "{error:e}");
}
