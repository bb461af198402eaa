//! Compiles C source with the system's C compiler, runs it, and compares results with Rust's
//! arithmetic. Undefined behavior ends the program.

use csource::{Constants, Options, Vectors};
use std::fmt::Write as _;
use std::process::Command;
use target::Target;

/// Numbers at and between the limits of the operations.
fn numbers() -> Vec<f32> {
    let mut all = vec![
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.49999997,
        8388607.5,
        8388609.0,
        1e-40,
        3e-45,
        65519.996,
        65520.0,
        6.1e-5,
        5.96e-8,
        2.98e-8,
        127.5,
        255.4,
        256.0,
        -1.0,
        2147483520.0,
        2147483648.0,
        -2147483648.0,
        -3e9,
        1e20,
        f32::MAX,
        f32::MIN_POSITIVE,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let mut bits = 1u32;
    while all.len() < 512 {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = f32::from_bits(bits);
        all.push(if all.len() % 2 == 0 { number } else { number % 4096.0 });
    }
    all
}

/// Compiles the text with a `main` that reads the words of the argument and prints those of the
/// result, both of 32 bits.
fn run(text: &str, input: &[u32], outputs: usize, flags: &[&str]) -> Vec<u32> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut source = text.to_owned();
    let words: Vec<String> = input.iter().map(|word| format!("{word:#x}u")).collect();
    let _ = write!(
        source,
        "\n#include <stdio.h>\nstatic uint32_t in[] = {{{}}};\nstatic uint32_t out[{outputs}];\n\
         int main(void) {{\n  void *args[1] = {{in}};\n  void *results[1] = {{out}};\n  struct tfcompile_frame frame = {{0}};\n  \
         frame.args = args;\n  frame.results = results;\n  if (f(&frame) != 0) return 1;\n  \
         for (int k = 0; k < {outputs}; k++) printf(\"%u\\n\", (unsigned)out[k]);\n  return 0;\n}}\n",
        words.join(",")
    );
    let (file, program) = (directory.path().join("f.c"), directory.path().join("f"));
    std::fs::write(&file, &source).expect("a file");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Wno-psabi", "-Werror"])
        .args(["-fsanitize=undefined", "-fno-sanitize-recover=all"])
        .args(flags)
        .args([&file, std::path::Path::new("-o"), &program])
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}\n{source}", String::from_utf8_lossy(&compiled.stderr));
    let ran = Command::new(&program).output().expect("a program");
    assert!(ran.status.success(), "{flags:?} {}\n{source}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8_lossy(&ran.stdout).lines().map(|line| line.parse().expect("a number")).collect()
}

fn source(program: &str, vectors: Vectors) -> String {
    let program = nest::parse(program).expect("a program");
    let target = csource::plan_target(&Target::new("x86_64-pc-linux", "", "").expect("a target"), vectors);
    let options = Options::new("f", vectors);
    csource::write(&program, &target, &options, Constants::default()).expect("C").text
}

/// A program that applies statements to each group of `lanes` words: `v20` of the type `from`
/// becomes `v30` of the type `to`. Other values are `v21` to `v26`, in order.
fn each(lanes: usize, from: &str, to: &str, statements: &str, count: usize) -> String {
    let vector = |scalar: &str| if lanes == 1 { scalar.to_owned() } else { format!("{scalar}x{lanes}") };
    let (from, to) = (vector(from), vector(to));
    let statements = statements.replace("FROM", &from).replace("TO", &to);
    let statements = (16..22).fold(statements.replace("v20", "v14"), |text, number| {
        text.replace(&format!("v{}", number + 5), &format!("v{number}"))
    });
    let mut text = format!(
        "entry fn \"f\" (v0 \"frame\": ptr noalias readonly align 8) {{\n  v1: i64 = constant 16\n  v2: ptr = offset v0 + v1 * 1\n  \
         v3: ptr = load v2 align 8\n  v4: ptr = load v3 align 8\n  v5: i64 = constant 24\n  v6: ptr = offset v0 + v5 * 1\n  \
         v7: ptr = load v6 align 8\n  v8: ptr = load v7 align 8\n  v9: i64 = constant 0\n  v10: i64 = constant {count}\n  \
         for v11 in v9..v10 step {lanes} {{\n    v12: ptr = offset v4 + v11 * 4\n    v13: ptr = offset v8 + v11 * 4\n    \
         v14: {from} = load v12 align 4\n{}    store v15 to v13 align 4\n  }}\n}}\n",
        statements.replace("v30", "v15")
    );
    text.push('\n');
    text
}

/// Flags without the instructions that the text uses where the compiler has them.
const PORTABLE: [&str; 3] = ["-U__SSE2__", "-U__SSE4_1__", "-U__F16C__"];

/// Checks an operation on floats, whose results are floats or integers of 32 bits.
fn check(to: &str, statements: &str, expected: impl Fn(f32) -> u32) {
    let input: Vec<u32> = numbers().into_iter().map(f32::to_bits).collect();
    for lanes in [1, 4, 8] {
        let vectors = if lanes == 1 { Vectors::None } else { Vectors::Gcc };
        let text = source(&each(lanes, "f32", to, statements, input.len()), vectors);
        let all: &[&[&str]] = match lanes {
            8 if cfg!(target_arch = "x86_64") => &[&["-mavx2", "-mf16c"]],
            8 => &[],
            _ => &[&[], &PORTABLE],
        };
        for flags in all {
            let got = run(&text, &input, input.len(), flags);
            for (&bits, &got) in input.iter().zip(&got) {
                let want = expected(f32::from_bits(bits));
                let both_nan = to == "f32" && f32::from_bits(want).is_nan() && f32::from_bits(got).is_nan();
                assert!(
                    got == want || both_nan,
                    "{statements} {bits:#x}: {got:#x}, want {want:#x} {lanes} {flags:?}"
                );
            }
        }
    }
}

#[test]
fn square_roots_and_integral_values_are_exact() {
    check("f32", "    v30: TO = sqrt v20\n", |x| x.sqrt().to_bits());
    check("f32", "    v30: TO = floor v20\n", |x| x.floor().to_bits());
    check("f32", "    v30: TO = ceil v20\n", |x| x.ceil().to_bits());
    check("f32", "    v30: TO = trunc v20\n", |x| x.trunc().to_bits());
    check("f32", "    v30: TO = round_even v20\n", |x| x.round_ties_even().to_bits());
}

#[test]
fn conversions_saturate() {
    check("i32", "    v30: TO = convert float_to_signed v20\n", |x| (x as i32) as u32);
    check("i32", "    v30: TO = convert float_to_unsigned v20\n", |x| x as u32);
}

/// Checks an operation on integers of 32 bits.
fn check_integers(statements: &str, expected: impl Fn(u32) -> u32) {
    let mut input =
        vec![0, 1, 2, 31, 32, 33, 0x7fff_ffff, 0x8000_0000, 0x8000_0001, u32::MAX, 0xff00_ff00, 128];
    while input.len() < 64 {
        input.push(input[input.len() - 1].wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    }
    let is_x86 = cfg!(target_arch = "x86_64");
    for lanes in [1, 4, 8, 16] {
        let vectors = if lanes == 1 { Vectors::None } else { Vectors::Gcc };
        let narrow = |scalar: &str| if lanes == 1 { scalar.to_owned() } else { format!("{scalar}x{lanes}") };
        let statements = ["i8", "i16", "i64", "bool"].iter().fold(statements.to_owned(), |text, ty| {
            text.replace(&format!(": {ty} "), &format!(": {} ", narrow(ty)))
        });
        let text = source(&each(lanes, "i32", "i32", &statements, input.len()), vectors);
        let want: Vec<u32> = input.iter().map(|&x| expected(x)).collect();
        let all: &[&[&str]] = match lanes {
            4 => &[&[], &PORTABLE],
            8 if is_x86 => &[&["-mavx2"]],
            16 if is_x86 => &[&["-march=native"]],
            _ => &[&[]],
        };
        for &flags in all {
            assert_eq!(run(&text, &input, input.len(), flags), want, "{statements} {flags:?}");
        }
    }
}

#[test]
fn integers_wrap_around() {
    check_integers("    v30: TO = multiply v20, v20\n", |x| x.wrapping_mul(x));
    check_integers("    v30: TO = multiply_fixed v20, v20\n", |x| {
        let product = i64::from(x as i32) * i64::from(x as i32);
        ((product + (1 << 30)) >> 31) as u32
    });
    check_integers("    v30: TO = count_leading_zeros v20\n", u32::leading_zeros);
    check_integers("    v30: TO = population_count v20\n", u32::count_ones);
}

#[test]
fn integers_become_narrow_and_wide() {
    for (ty, bits) in [("i8", 8), ("i16", 16)] {
        let narrow = format!("    v21: {ty} = convert truncate v20\n");
        check_integers(&format!("{narrow}    v30: TO = convert sign_extend v21\n"), |x| {
            ((x << (32 - bits)) as i32 >> (32 - bits)) as u32
        });
        check_integers(&format!("{narrow}    v30: TO = convert zero_extend v21\n"), |x| {
            x & ((1 << bits) - 1)
        });
    }
    let wide = "    v21: i64 = convert sign_extend v20\n    v22: i64 = multiply v21, v21\n";
    check_integers(&format!("{wide}    v30: TO = convert truncate v22\n"), |x| x.wrapping_mul(x));
    let bytes = "    v21: i64 = convert zero_extend v20\n    v22: i8 = convert truncate v21\n    v23: i16 = convert sign_extend v22\n";
    check_integers(&format!("{bytes}    v30: TO = convert sign_extend v23\n"), |x| (x as i8) as u32);
}

#[test]
fn maxima_and_minima_of_integers_are_signed() {
    let extremum = |predicate: &str, arms: &str| {
        format!(
            "    v21: i32 = constant 100\n    v22: TO = splat v21\n    v23: bool = compare {predicate} v20, v22\n    \
             v30: TO = select v23, {arms}\n"
        )
    };
    check_integers(&extremum("greater", "v20, v22"), |x| (x as i32).max(100) as u32);
    check_integers(&extremum("less", "v22, v20"), |x| (x as i32).max(100) as u32);
    check_integers(&extremum("less", "v20, v22"), |x| (x as i32).min(100) as u32);
    check_integers(&extremum("greater", "v22, v20"), |x| (x as i32).min(100) as u32);
    check_integers(&extremum("above", "v20, v22"), |x| x.max(100));
    for (ty, bits) in [("i8", 24), ("i16", 16)] {
        let text = format!(
            "    v21: i32 = constant 5\n    v22: TO = splat v21\n    v23: {ty} = convert truncate v20\n    \
             v24: {ty} = convert truncate v22\n    v25: bool = compare greater v23, v24\n    \
             v26: {ty} = select v25, v23, v24\n    v30: TO = convert sign_extend v26\n"
        );
        check_integers(&text, |x| ((x << bits) as i32 >> bits).max(5) as u32);
    }
}

#[test]
fn signs_of_bytes_change() {
    let text = "    v21: i32 = constant -2139062144\n    v22: TO = splat v21\n    v30: TO = xor v20, v22\n";
    check_integers(text, |x| x ^ 0x8080_8080);
}

#[test]
fn values_that_a_loop_exchanges_are_assigned_at_once() {
    // Fibonacci's numbers: two values that move into each other's place.
    let text = "entry fn \"f\" (v0 \"frame\": ptr noalias readonly align 8) {\n  v1: i64 = constant 24\n  v2: ptr = offset v0 + v1 * 1\n  \
        v3: ptr = load v2 align 8\n  v4: ptr = load v3 align 8\n  v5: i64 = constant 0\n  v6: i64 = constant 11\n  v7: i32 = constant 0\n  \
        v8: i32 = constant 1\n  v9: i32, v10: i32 = for v11 in v5..v6 step 1 carry (v12 = v7, v13 = v8) {\n    yield v13, v12\n  }\n  \
        store v9 to v4 align 4\n  v14: i64 = constant 4\n  v15: ptr = offset v4 + v14 * 1\n  store v10 to v15 align 4\n}\n";
    let source = source(text, Vectors::None);
    assert_eq!(run(&source, &[0], 2, &[]), [1, 0]);
}

#[test]
fn constants_that_no_compiler_takes_are_refused() {
    let text = "entry fn \"f\" (v0 \"frame\": ptr noalias readonly align 8) {\n}\n";
    let program = nest::parse(text).expect("a program");
    let target = Target::new("x86_64-pc-linux", "", "").expect("a target");
    let options = Options::new("f", Vectors::None);
    let constants = Constants { size: csource::MAX_CONSTANTS + 1, chunks: &[] };
    let error = csource::write(&program, &target, &options, constants).expect_err("too many").to_string();
    assert!(error.contains("--constants=file"), "{error}");
}
