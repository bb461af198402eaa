//! The elementary functions, compiled and run, compared with more precise values.
//!
//! `F32` results are compared with `F64` results of `libm`, and `F64` results with
//! `data/math_points.txt`, the output of `data/make_math_points.py`. The error is at most 2 units
//! in the last place in `F32`, and at most 2 numbers from the nearest one in `F64`.

use crate::functions::{CASES, Case, bytes_of, compile, executable, targets, ulps};
use jit::AlignedBytes;
use nest::ScalarType;
use target::Target;

/// Runs a function on operands given as bytes. Returns the bytes of the result.
fn run(case: &Case, target: &Target, scalar: ScalarType, lanes: u32, operands: &[Vec<u8>]) -> Vec<u8> {
    let executable = executable(case, target, scalar, lanes, operands[0].len());
    let mut instance = executable.instance().expect("small buffers");
    let mut owned: Vec<AlignedBytes> =
        operands.iter().map(|o| AlignedBytes::from_bytes(o).expect("a small buffer")).collect();
    let mut views: Vec<&mut [u8]> = owned.iter_mut().map(|o| &mut **o).collect();
    instance.run(&mut views).expect("the code runs");
    instance.result(0).to_vec()
}

const SPECIAL: [f32; 38] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    -3.0,
    2.5,
    1e-45,
    -1e-45,
    1.1754942e-38,
    f32::MIN_POSITIVE,
    -f32::MIN_POSITIVE,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    1.0000001,
    0.99999994,
    -1.0000001,
    -0.99999994,
    88.72283,
    88.72284,
    -87.33654,
    -103.97207,
    -103.97209,
    3199.9,
    3200.0,
    16777217.0,
    16777215.0,
    -8388609.0,
    // e^x is half a unit in the last place of 1 here.
    -16.29456,
    // The difference to pi/2 is above 1 here, and the arc sine below it.
    0.83841634,
    -0.83841634,
];

/// Returns operand tuples of `F32`: special values, pairs of them, and samples of all numbers.
fn operands(case: &Case) -> Vec<Vec<f32>> {
    let sampled = (0..=u32::MAX).step_by(9973).map(f32::from_bits);
    let mut columns: Vec<Vec<f32>> = if case.operands == 1 {
        vec![SPECIAL.iter().copied().chain(sampled).collect()]
    } else {
        let mut state = 0x9E37_79B9_7F4A_7C15u64;
        let partner = |x: f32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let number = (state >> 40) as f32 / 2f32.powi(24);
            match state % 6 {
                0 => f32::from_bits((state >> 32) as u32),
                1 => (number * 200.0).floor() - 100.0,
                2 => x * (4.0 * number),
                3 => 10.0 * number - 5.0,
                // Operands whose power neither overflows nor underflows.
                4 => 88.0 / x.abs().ln() * (2.2 * number - 1.1),
                _ => 1e6 * number - 5e5,
            }
        };
        let pairs = SPECIAL.iter().flat_map(|&x| SPECIAL.iter().map(move |&y| (x, y)));
        let (x, y): (Vec<f32>, Vec<f32>) = pairs.unzip();
        let x: Vec<f32> = x.into_iter().chain(sampled.clone()).collect();
        vec![x, y.into_iter().chain(sampled.map(partner)).collect()]
    };
    for column in &mut columns {
        column.resize(column.len().next_multiple_of(96), 1.0);
    }
    columns
}

#[test]
fn singles_are_within_two_units() {
    for case in CASES {
        let columns = operands(case);
        let tuple = |i: usize| columns.iter().map(|c| f64::from(c[i])).collect::<Vec<f64>>();
        let values: Vec<f64> = (0..columns[0].len()).map(|i| (case.reference)(&tuple(i))).collect();
        let bytes: Vec<_> = columns.iter().map(|c| bytes_of(c.iter().map(|x| x.to_ne_bytes()))).collect();
        for target in targets() {
            let result = run(case, &target, ScalarType::F32, target.lanes(4), &bytes);
            for (i, (got, &value)) in result.chunks_exact(4).zip(&values).enumerate() {
                let got = f32::from_ne_bytes(got.try_into().expect("4 bytes"));
                assert!(
                    ulps(got, value) <= 2.0,
                    "{} of {:?} on '{}' is {got:e}, not {value:e}",
                    case.name,
                    tuple(i),
                    target.cpu
                );
            }
        }
    }
}

/// Returns the recorded points of a function: operands and result.
fn points(case: &Case) -> Vec<Vec<f64>> {
    let number = |word: &str| f64::from_bits(u64::from_str_radix(word, 16).expect("hexadecimal bits"));
    let lines = include_str!("data/math_points.txt").lines();
    lines
        .filter_map(|line| line.strip_prefix(case.name)?.strip_prefix(' '))
        .map(|line| line.split(' ').map(number).collect())
        .collect()
}

/// Returns the number of `F64` numbers between two. Infinity follows the largest one.
fn distance(a: f64, b: f64) -> u64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() { 0 } else { u64::MAX };
    }
    if a.is_sign_negative() != b.is_sign_negative() || (a == 0.0) != (b == 0.0) && a.abs() + b.abs() > 1e-300
    {
        return u64::MAX;
    }
    a.to_bits().abs_diff(b.to_bits())
}

#[test]
fn doubles_are_within_two_units() {
    for case in CASES {
        let mut points = points(case);
        assert!(points.len() > 45, "expected more recorded points of {}", case.name);
        points.resize(points.len().next_multiple_of(8), points[0].clone());
        let column = |k: usize| bytes_of(points.iter().map(|p| p[k].to_ne_bytes()));
        let bytes: Vec<_> = (0..case.operands).map(column).collect();
        for target in targets() {
            let result = run(case, &target, ScalarType::F64, target.lanes(8), &bytes);
            for (got, point) in result.chunks_exact(8).zip(&points) {
                let got = f64::from_ne_bytes(got.try_into().expect("8 bytes"));
                let (value, operands) = point.split_last().expect("a result");
                // Remainders are exact.
                let bound = if case.name == "fmod" { 0 } else { 2 };
                assert!(
                    distance(got, *value) <= bound,
                    "{} of {operands:?} on '{}': got {got:e}, expected {value:e}",
                    case.name,
                    target.cpu
                );
            }
        }
    }
}

#[test]
fn remainders_of_singles_are_exact() {
    let case = CASES.iter().find(|case| case.name == "fmod").expect("a case");
    let columns = operands(case);
    let bytes: Vec<_> = columns.iter().map(|c| bytes_of(c.iter().map(|x| x.to_ne_bytes()))).collect();
    for target in targets() {
        let result = run(case, &target, ScalarType::F32, target.lanes(4), &bytes);
        for (i, got) in result.chunks_exact(4).enumerate() {
            let got = f32::from_ne_bytes(got.try_into().expect("4 bytes"));
            let (x, y) = (columns[0][i], columns[1][i]);
            let value = x % y;
            let same = got.to_bits() == value.to_bits() || got.is_nan() && value.is_nan();
            assert!(same, "fmod({x:e}, {y:e}) on '{}': got {got:e}, expected {value:e}", target.cpu);
        }
    }
}

#[test]
fn the_number_of_lanes_does_not_matter() {
    // These functions contain branches on all lanes, and a loop.
    for name in ["log", "sin", "fmod", "pow"] {
        let case = CASES.iter().find(|case| case.name == name).expect("a case");
        let columns: Vec<Vec<f32>> = operands(case).into_iter().map(|c| c[..1152].to_vec()).collect();
        let single: Vec<_> = columns.iter().map(|c| bytes_of(c.iter().map(|x| x.to_ne_bytes()))).collect();
        let double: Vec<_> =
            columns.iter().map(|c| bytes_of(c.iter().map(|&x| f64::from(x).to_ne_bytes()))).collect();
        for target in targets() {
            for (scalar, bytes) in [(ScalarType::F32, &single), (ScalarType::F64, &double)] {
                let expected = run(case, &target, scalar, 1, bytes);
                for lanes in [2, 3, 8, 16, 96] {
                    let got = run(case, &target, scalar, lanes, bytes);
                    assert_eq!(
                        without_nan(scalar, &got),
                        without_nan(scalar, &expected),
                        "{name}, {lanes} lanes"
                    );
                }
            }
        }
    }
}

/// Returns the bits of floats, with all NaNs made equal.
fn without_nan(scalar: ScalarType, bytes: &[u8]) -> Vec<u64> {
    let size = scalar.byte_size();
    let bits = |bytes: &[u8]| {
        if size == 4 {
            let x = f32::from_ne_bytes(bytes.try_into().expect("4 bytes"));
            if x.is_nan() { u64::MAX } else { u64::from(x.to_bits()) }
        } else {
            let x = f64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
            if x.is_nan() { u64::MAX } else { x.to_bits() }
        }
    };
    bytes.chunks_exact(size).map(bits).collect()
}

/// Targets with 128-bit vectors. One of them has 32-bit registers.
const TRIPLES: [(&str, &str); 3] = [
    ("x86_64-unknown-linux-gnu", ""),
    ("aarch64-unknown-linux-gnu", ""),
    ("i686-unknown-linux-gnu", "pentium4"),
];

#[test]
fn no_library_is_called() {
    // The code generator rejects objects with undefined symbols.
    for (triple, cpu) in TRIPLES {
        let target = Target::new(triple, cpu, "").expect("a triple");
        for case in CASES {
            for (scalar, lanes) in
                [(ScalarType::F32, 1), (ScalarType::F32, 4), (ScalarType::F64, 1), (ScalarType::F64, 2)]
            {
                compile(case, &target, scalar, lanes, 8);
            }
        }
    }
}
