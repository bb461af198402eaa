//! Products in tile registers (AMX), whose instructions are emulated where the processor does not
//! have them.

use super::group_products::{biased, convolution, dot};
use crate::emulators::{Expected, emulator, layer};
use crate::harness::emulator::{Case, Emulator};
use crate::harness::{compile, difference};
use shape::PrimitiveType::{self, Bf16, S8, U8};

/// Any x86-64 with AVX2, and the emulated instructions.
const MACHINE: Emulator = Emulator {
    source: Some(include_str!("../harness/amx.c")),
    ..emulator(
        "x86_64-unknown-linux-gnu",
        ["x86-64-v3", "+amx-tile,+amx-int8,+amx-bf16"],
        &[],
        "x86_64-linux-gnu-gcc",
        "CI",
    )
};

/// Dots with rows for one or two registers, of the same or of different sizes, and with columns for
/// one or two, which are not all there.
fn dots() -> Vec<(String, String)> {
    let extents = [
        [16, 16, 64],
        [32, 32, 128],
        [33, 48, 64],
        [17, 25, 40],
        [61, 33, 96],
        [12, 100, 192],
        [100, 70, 36],
        [9, 9, 256],
    ];
    let of =
        |lhs: PrimitiveType| extents.map(|extents| (format!("{lhs} dot {extents:?}"), dot(lhs, extents)));
    [S8, U8, Bf16].into_iter().flat_map(of).collect()
}

/// Convolutions whose taps are runs or not, with padding, strides, dilations, groups, and lines
/// shorter and longer than a register.
fn convolutions() -> Vec<(String, String)> {
    let cases = [
        ([2, 5, 7, 64], [1, 1, 64, 48], "size=1x1", [2, 5, 7, 48], 1),
        ([1, 12, 40, 64], [1, 1, 64, 20], "size=1x1 stride=2x2", [1, 6, 20, 20], 1),
        ([1, 18, 20, 16], [3, 3, 16, 40], "size=3x3", [1, 16, 18, 40], 1),
        ([1, 7, 37, 32], [3, 3, 32, 33], "size=3x3 pad=1_1x1_1", [1, 7, 37, 33], 1),
        ([1, 9, 9, 48], [3, 3, 48, 17], "size=3x3 pad=2_2x2_2 rhs_dilate=2x2", [1, 9, 9, 17], 1),
        ([1, 21, 19, 24], [3, 3, 24, 32], "size=3x3 stride=2x2 pad=1_1x1_1", [1, 11, 10, 32], 1),
        ([2, 6, 20, 64], [3, 1, 32, 64], "size=3x1 pad=1_1x0_0", [2, 6, 20, 64], 2),
    ];
    let of = |lhs: PrimitiveType| {
        cases.map(|(image, kernel, window, result, groups)| {
            let text = convolution(lhs, image, kernel, window, result, groups);
            (format!("{lhs} convolution {image:?} {kernel:?} {window}"), text)
        })
    };
    [S8, U8, Bf16].into_iter().flat_map(of).collect()
}

/// True if the code of a module multiplies in tile registers.
fn uses_tiles(module: &hlo::Module) -> bool {
    let compiled = compile(module, &MACHINE.target(), &plan::Options::default(), "entry").expect("code");
    compiled.program.uses_tiles()
}

#[test]
fn products_in_tile_registers_are_the_evaluators() {
    #[cfg(target_arch = "x86_64")]
    let can_run = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    let can_run = false;
    if !can_run || !MACHINE.is_installed() {
        println!("skipped: {} needs AVX2 and {}", MACHINE.name(), MACHINE.compiler);
        return;
    }
    let products: Vec<(String, String)> = dots().into_iter().chain(convolutions()).collect();
    let with_bias = products.iter().filter(|(name, _)| !name.starts_with("bf16"));
    let with_bias = with_bias.map(|(name, text)| (format!("{name} and bias"), biased(text)));
    let with_bias: Vec<(String, String)> = with_bias.collect();
    let layers = layers();
    let of = |(name, text): &(String, String)| Expected::new(name.clone(), text, &[]);
    let all: Vec<Expected> = products.iter().chain(&with_bias).map(of).chain(layers).collect();
    let without: Vec<&str> =
        all.iter().filter(|of| !uses_tiles(&of.case.module)).map(|of| &of.case.name[..]).collect();
    assert!(without.is_empty(), "without tile registers: {without:#?}");
    let cases: Vec<&Case> = all.iter().map(|expected| &expected.case).collect();
    for (expected, have) in all.iter().zip(MACHINE.run(&cases)) {
        let apart = difference(&have[0], &expected.want, expected.tolerance);
        assert_eq!(apart, None, "{}", expected.case.name);
    }
    println!("{} cases on {}", all.len(), MACHINE.name());
}

/// Quantized layers with long epilogues.
fn layers() -> Vec<Expected> {
    const DOT: &str = "dot(c, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let padded = "convolution(c, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    let cases: [(&str, [&[i64]; 3]); 2] = [
        (DOT, [&[29, 64], &[64, 26], &[29, 26]]),
        (padded, [&[1, 7, 18, 32], &[3, 3, 32, 20], &[1, 7, 18, 20]]),
    ];
    let of = |(x, zero): (&str, i64)| {
        cases.map(|(contraction, sizes)| {
            let passes = ["byte-contraction", "integer-narrowing", "fusion", "dce"];
            Expected::new(format!("{x} layer of {contraction}"), &layer(x, contraction, sizes, zero), &passes)
        })
    };
    [("s8", -3), ("u8", 131)].into_iter().flat_map(of).collect()
}
