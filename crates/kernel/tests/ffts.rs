//! Compiled Fourier transforms, compared with the evaluator, which computes in `f64`.

use crate::harness::{Numbers, run, targets};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use target::Target;

/// Returns the baseline, this machine, and a common processor in between.
fn machines() -> Vec<Target> {
    let mut machines = targets();
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        machines.push(Target::new(&codegen::host_triple(), "haswell", "").expect("a processor"));
    }
    machines
}

/// Returns numbers between -1 and 1.
fn noise(shape: &ArrayShape, numbers: &mut Numbers) -> Literal {
    let mut number = || (numbers.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
    let parts = if shape.element_type.is_complex() { 2 } else { 1 };
    let values: Vec<f64> = (0..shape.element_count() * parts).map(|_| number()).collect();
    let bytes: Vec<u8> = match shape.element_type.real_part() {
        PrimitiveType::F32 => values.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect(),
        _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
    };
    Literal::from_bytes(shape.clone(), bytes.into()).expect("as many bytes as the shape has")
}

fn values(literal: &Literal) -> Vec<f64> {
    let value = |scalar: Scalar| match scalar {
        Scalar::Complex(re, im) => vec![re, im],
        Scalar::Float(x) => vec![x],
        other => panic!("expected a floating-point or complex number, got {other:?}"),
    };
    literal.scalars().flat_map(value).collect()
}

/// Transforms an array along the last dimensions. `sizes` are those of the signal.
fn check(kind: &str, part: &str, sizes: &[i64], dimensions: usize) {
    let lengths = &sizes[sizes.len() - dimensions..];
    let mut half = sizes.to_vec();
    *half.last_mut().expect("a dimension") = lengths[dimensions - 1] / 2 + 1;
    let list = |sizes: &[i64]| sizes.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let complex = if part == "f32" { "c64" } else { "c128" };
    let (all, half) = (list(sizes), list(&half));
    let (operand, result) = match kind {
        "RFFT" => (format!("{part}[{all}]"), format!("{complex}[{half}]")),
        "IRFFT" => (format!("{complex}[{half}]"), format!("{part}[{all}]")),
        _ => (format!("{complex}[{all}]"), format!("{complex}[{all}]")),
    };
    let lengths = list(lengths);
    let text = format!(
        "HloModule transform\n\nENTRY main {{\n  x = {operand} parameter(0)\n  \
         ROOT y = {result} fft(x), fft_type={kind}, fft_length={{{lengths}}}\n}}\n"
    );
    let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let entry = module.entry_computation();
    let shape = entry[entry.parameters()[0]].shape().expect_array();
    let shape = ArrayShape::new(shape.element_type, &shape.sizes());
    let argument = noise(&shape, &mut Numbers::new(text.len() as u64 + 7));
    let arguments = [argument];
    let want = values(&evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}")));
    let rms = (want.iter().map(|x| x * x).sum::<f64>() / want.len() as f64).sqrt();
    let most = 8.0;
    let epsilon = if part == "f32" { f64::from(f32::EPSILON) } else { f64::EPSILON };
    for target in machines() {
        let have = run(&module, &target, &arguments, 1).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let have = values(&have[0]);
        assert_eq!(have.len(), want.len());
        for (k, (have, want)) in have.iter().zip(&want).enumerate() {
            let error = (have - want).abs() / (rms + want.abs()) / epsilon;
            assert!(
                error < most,
                "cpu '{}': number {k}: expected {want}, got {have}: {error}\n{text}",
                target.cpu
            );
        }
    }
}

const KINDS: [&str; 4] = ["FFT", "IFFT", "RFFT", "IRFFT"];

#[test]
fn lines_of_every_radix() {
    for n in [2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 30, 32, 33, 63, 100] {
        for kind in KINDS {
            check(kind, "f32", &[37, n], 1);
        }
        check("FFT", "f32", &[n], 1);
        check("IRFFT", "f32", &[n], 1);
    }
}

#[test]
fn lines_of_doubles() {
    for n in [2, 3, 6, 8, 15, 64, 121, 210] {
        for kind in KINDS {
            check(kind, "f64", &[9, n], 1);
        }
        check("RFFT", "f64", &[n], 1);
    }
}

#[test]
fn long_lines() {
    // The roots of the longest lines are products of two.
    for n in [1000, 2187, 6006, 16384, 40960] {
        for kind in KINDS {
            check(kind, "f32", &[n], 1);
        }
        check("FFT", "f64", &[2, n], 1);
    }
    check("IRFFT", "f64", &[40960], 1);
    check("FFT", "f32", &[1 << 17], 1);
}

#[test]
fn several_dimensions() {
    for sizes in [[1, 6, 10], [5, 8, 1], [3, 17 - 2, 33], [2, 32, 20], [4, 1, 64], [7, 3, 2]] {
        for kind in KINDS {
            for dimensions in 1..=3 {
                if sizes[2] > 1 || kind.len() < 5 && kind != "RFFT" && dimensions > 1 {
                    check(kind, "f32", &sizes, dimensions);
                }
            }
        }
    }
    check("FFT", "f64", &[5, 6, 10], 3);
    check("RFFT", "f64", &[5, 6, 10], 3);
    check("FFT", "f32", &[512, 128], 2);
    check("IRFFT", "f32", &[2, 3, 40, 66], 3);
    check("IFFT", "f64", &[2, 16, 27], 2);
    check("FFT", "f32", &[24, 100], 2);
}

#[test]
fn groups_of_lines_of_every_rest() {
    // Lines are transformed in groups of up to 16. The last group overlaps the one before.
    for rows in [2, 3, 5, 8, 15, 16, 18, 33] {
        for n in [2, 20] {
            check("FFT", "f32", &[rows, n], 1);
            check("RFFT", "f32", &[rows, n], 1);
            check("IRFFT", "f32", &[rows, n], 1);
            check("IFFT", "f32", &[n, rows], 2);
        }
    }
}
