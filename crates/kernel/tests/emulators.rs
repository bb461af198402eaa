//! Products of narrow numbers on processors that this machine is not, compared with the evaluator.

use crate::harness::emulator::{Case, Emulator};
use crate::harness::{Numbers, Tolerance, Values, difference, random};
use crate::products::byte_lookups::lookup;
use crate::products::group_products::{TYPES, biased, constant, convolution, dot, tolerance, values};
use crate::products::narrow_operands::{NARROW, widened};
use crate::products::narrow_weights::{Form, kernel};
use shape::{ArrayShape, Literal, PrimitiveType};

const AARCH64: &str = "aarch64-unknown-linux-gnu";
const RISCV64: &str = "riscv64-unknown-linux-gnu";
const X86_64: &str = "x86_64-unknown-linux-gnu";

pub(crate) const fn emulator(
    triple: &'static str,
    [cpu, features]: [&'static str; 2],
    command: &'static [&'static str],
    compiler: &'static str,
    required_if: &'static str,
) -> Emulator {
    Emulator { triple, cpu, features, command, compiler, source: None, required_if }
}

/// The processors, by the instructions that multiply bytes and narrow floats.
pub const EMULATORS: [Emulator; 10] = [
    // None.
    emulator(
        AARCH64,
        ["cortex-a53", ""],
        &["qemu-aarch64", "-cpu", "cortex-a53"],
        "aarch64-linux-gnu-gcc",
        "CI",
    ),
    // sdot.
    emulator(
        AARCH64,
        ["neoverse-n1", ""],
        &["qemu-aarch64", "-cpu", "neoverse-n1"],
        "aarch64-linux-gnu-gcc",
        "CI",
    ),
    // i8mm and bf16.
    emulator(AARCH64, ["neoverse-n2", ""], &["qemu-aarch64", "-cpu", "max"], "aarch64-linux-gnu-gcc", "CI"),
    // Long vectors of SVE, which products of groups do not use.
    emulator(
        AARCH64,
        ["neoverse-v1", ""],
        &["qemu-aarch64", "-cpu", "max,sve-default-vector-length=32"],
        "aarch64-linux-gnu-gcc",
        "CI",
    ),
    emulator(
        "armv7-unknown-linux-gnueabihf",
        ["", "+neon"],
        &["qemu-arm", "-cpu", "cortex-a9"],
        "arm-linux-gnueabihf-gcc",
        "TEST_CROSS",
    ),
    emulator(RISCV64, ["", ""], &["qemu-riscv64"], "riscv64-linux-gnu-gcc", "TEST_CROSS"),
    emulator(
        RISCV64,
        ["", "+v"],
        &["qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"],
        "riscv64-linux-gnu-gcc",
        "TEST_CROSS",
    ),
    // pmaddwd of SSE2, then pmaddubsw, too, of SSSE3 and of AVX2.
    emulator(X86_64, ["", ""], &["qemu-x86_64", "-cpu", "Conroe"], "x86_64-linux-gnu-gcc", "TEST_CROSS"),
    emulator(
        X86_64,
        ["x86-64-v2", ""],
        &["qemu-x86_64", "-cpu", "Nehalem"],
        "x86_64-linux-gnu-gcc",
        "TEST_CROSS",
    ),
    emulator(
        X86_64,
        ["x86-64-v3", ""],
        &["qemu-x86_64", "-cpu", "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"],
        "x86_64-linux-gnu-gcc",
        "TEST_CROSS",
    ),
];

/// A case and what its results must be.
pub(crate) struct Expected {
    pub(crate) case: Case,
    pub(crate) want: Literal,
    pub(crate) tolerance: Tolerance,
}

impl Expected {
    /// A module whose integers may be of any size. `passes` run before the module is compiled, but
    /// not before it is evaluated.
    pub(crate) fn new(name: String, text: &str, passes: &[&str]) -> Self {
        let mut module = hlo::parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let entry = module.entry_computation();
        let mut numbers = Numbers::new(text.len() as u64);
        let shapes = entry.parameters().iter().map(|&p| entry[p].shape().expect_array());
        let arguments: Vec<Literal> =
            shapes.map(|shape| random(shape, values(shape.element_type), &mut numbers)).collect();
        let want = evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for name in passes {
            let pass = passes::by_name(name).expect("a pass");
            let _ = pass.run(&mut module).unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
        let tolerance = tolerance(want.array_shape().element_type);
        Self { case: Case { name, module, arguments }, want, tolerance }
    }

    /// A dot of numbers below 8 and weights in few bits.
    fn weights(form: &Form, extents: [i64; 3]) -> Self {
        let mut numbers = Numbers::new(extents.iter().sum::<i64>() as u64);
        let text = kernel(form, extents, &mut numbers);
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let [rows, _, summands] = extents;
        let x = ArrayShape::new(PrimitiveType::F32, &[rows, summands]);
        let arguments = vec![random(&x, Values::Below(8), &mut numbers)];
        let want = evaluator::evaluate(&module, &arguments).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let largest = want.floats().expect("floats").into_iter().fold(1.0, |most: f64, x| most.max(x.abs()));
        let name = format!("{} weights {extents:?}", form.numbers);
        Self { case: Case { name, module, arguments }, want, tolerance: Tolerance::Absolute(2e-6 * largest) }
    }
}

/// Dots with tails in each dimension.
fn dots() -> Vec<Expected> {
    let extents = [
        [12, 64, 64],
        [7, 48, 33],
        [1, 40, 18],
        [5, 21, 7],
        [13, 4, 20],
        [2, 17, 9],
        [33, 20, 70],
        [22, 20, 20],
    ];
    let of =
        |lhs| extents.map(|extents| Expected::new(format!("{lhs} dot {extents:?}"), &dot(lhs, extents), &[]));
    let with_bias = |lhs: PrimitiveType| {
        [[12, 64, 64], [7, 48, 33], [1, 40, 18]].map(|extents| {
            Expected::new(format!("{lhs} dot {extents:?} and bias"), &biased(&dot(lhs, extents)), &[])
        })
    };
    let of_few_rows = |stored: PrimitiveType| {
        [([1, 40, 64], true), ([1, 21, 33], false), ([4, 20, 130], true)].map(|(extents, is_along_k)| {
            let text = widened(stored, extents, is_along_k);
            Expected::new(format!("{stored} rows {extents:?} {is_along_k}"), &text, &[])
        })
    };
    let bytes = TYPES.into_iter().filter(|lhs| lhs.is_integer());
    let few_rows = NARROW.into_iter().flat_map(of_few_rows);
    TYPES.into_iter().flat_map(of).chain(bytes.flat_map(with_bias)).chain(few_rows).collect()
}

/// Pixels, windows with padding, strides and dilations, lines that are one run, and depthwise
/// convolutions.
fn convolutions() -> Vec<Expected> {
    let cases = [
        ([2, 5, 7, 8], [1, 1, 8, 48], "size=1x1", [2, 5, 7, 48], 1),
        ([1, 6, 6, 13], [1, 1, 13, 21], "size=1x1", [1, 6, 6, 21], 1),
        ([1, 9, 8, 16], [3, 3, 16, 40], "size=3x3 pad=1_1x1_1", [1, 9, 8, 40], 1),
        ([2, 6, 5, 3], [3, 3, 3, 19], "size=3x3 pad=1_1x1_1", [2, 6, 5, 19], 1),
        ([1, 11, 9, 11], [3, 3, 11, 24], "size=3x3 stride=2x2 pad=0_1x1_1", [1, 5, 5, 24], 1),
        ([2, 8, 9, 3], [3, 3, 3, 16], "size=3x3", [2, 6, 7, 16], 1),
        ([2, 5, 5, 15], [3, 3, 5, 36], "size=3x3 pad=1_1x1_1", [2, 5, 5, 36], 3),
        ([1, 6, 9, 40], [3, 3, 1, 40], "size=3x3 stride=2x2 pad=1_1x1_1", [1, 3, 5, 40], 40),
        ([1, 9, 10, 24], [3, 3, 1, 24], "size=3x3", [1, 7, 8, 24], 24),
        ([2, 11, 9, 5], [5, 5, 1, 5], "size=5x5 stride=2x2", [2, 4, 3, 5], 5),
    ];
    let of = |lhs| {
        cases.map(|(image, kernel, window, result, groups)| {
            let text = convolution(lhs, image, kernel, window, result, groups);
            Expected::new(format!("{lhs} convolution {image:?} {kernel:?} {window}"), &text, &[])
        })
    };
    TYPES.into_iter().flat_map(of).collect()
}

/// A layer of quantized numbers: a contraction less a zero point, a bias, a scale for each feature,
/// the zero point of the result, and the limits of a byte.
pub(crate) fn layer(x: &str, contraction: &str, [image, weights, result]: [&[i64]; 3], zero: i64) -> String {
    let list = |sizes: &[i64]| sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let mut numbers = Numbers::new(weights.iter().sum::<i64>() as u64);
    // Weights in the narrow range, as converters make them. Those of dots have all values.
    let kernel = constant(PrimitiveType::S8, weights, &mut numbers).replace("-128", "-127");
    let features = *result.last().expect("features");
    let each =
        |of: &dyn Fn(i64) -> i64| (0..features).map(|k| of(k).to_string()).collect::<Vec<_>>().join(",");
    let (biases, scales) = (each(&|k| 977 * k - 4000), each(&|k| (1 << 20) + 32749 * k));
    let (image, weights, axis) = (list(image), list(weights), result.len() - 1);
    let result = list(result);
    format!(
        "HloModule layers\n\nENTRY main {{\n  x = {x}[{image}] parameter(0)\n  wide = s32[{image}] convert(x)\n  \
         zero = s32[] constant({zero})\n  zeros = s32[{image}] broadcast(zero), dimensions={{}}\n  \
         c = s32[{image}] subtract(wide, zeros)\n  w = s8[{weights}] constant({kernel})\n  \
         k = s32[{weights}] convert(w)\n  d = s32[{result}] {contraction}\n  \
         b = s32[{features}] constant({{{biases}}})\n  bs = s32[{result}] broadcast(b), dimensions={{{axis}}}\n  \
         sum = s32[{result}] add(d, bs)\n  long = s64[{result}] convert(sum)\n  \
         f = s64[{features}] constant({{{scales}}})\n  fs = s64[{result}] broadcast(f), dimensions={{{axis}}}\n  \
         p = s64[{result}] multiply(long, fs)\n  h = s64[] constant(1073741824)\n  \
         hs = s64[{result}] broadcast(h), dimensions={{}}\n  r = s64[{result}] add(p, hs)\n  \
         n = s64[] constant(31)\n  ns = s64[{result}] broadcast(n), dimensions={{}}\n  \
         q = s64[{result}] shift-right-arithmetic(r, ns)\n  short = s32[{result}] convert(q)\n  \
         o = s32[] constant(5)\n  os = s32[{result}] broadcast(o), dimensions={{}}\n  \
         at = s32[{result}] add(short, os)\n  low = s32[] constant(-128)\n  high = s32[] constant(127)\n  \
         in = s32[{result}] clamp(low, at, high)\n  ROOT y = s8[{result}] convert(in)\n}}\n"
    )
}

/// Layers of both kinds of bytes: a dot, a padded convolution, and a depthwise one.
fn layers() -> Vec<Expected> {
    const DOT: &str = "dot(c, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    const LABELS: &str = "dim_labels=b01f_01io->b01f";
    let padded = format!("convolution(c, k), window={{size=3x3 pad=1_1x1_1}}, {LABELS}");
    let depthwise = format!("{padded}, feature_group_count=24");
    let cases: [(&str, [&[i64]; 3]); 3] = [
        (DOT, [&[9, 37], &[37, 26], &[9, 26]]),
        (&padded, [&[1, 7, 6, 9], &[3, 3, 9, 20], &[1, 7, 6, 20]]),
        (&depthwise, [&[1, 7, 6, 24], &[3, 3, 1, 24], &[1, 7, 6, 24]]),
    ];
    let of = |(x, zero): (&str, i64)| {
        cases.map(|(contraction, sizes)| {
            let text = layer(x, contraction, sizes, zero);
            let passes = ["byte-contraction", "integer-narrowing", "fusion", "dce"];
            Expected::new(format!("{x} layer of {contraction}"), &text, &passes)
        })
    };
    [("s8", -3), ("u8", 131), ("s8", 0)].into_iter().flat_map(of).collect()
}

/// Lookups in tables of bytes.
fn lookups() -> Vec<Expected> {
    let sizes = ["100", "7,33", "3,5"];
    sizes
        .map(|sizes| {
            let dimensions = if sizes.contains(',') { "0,1" } else { "0" };
            let text = format!(
                "HloModule lookups\n\n{}\nENTRY main {{\n  x = s8[{sizes}] parameter(0)\n  \
                 ROOT y = u8[{sizes}] map(x), dimensions={{{dimensions}}}, to_apply=lookup\n}}\n",
                lookup("s8", "u8")
            );
            Expected::new(format!("lookup [{sizes}]"), &text, &[])
        })
        .into()
}

/// Dots with weights in few bits.
fn weights() -> Vec<Expected> {
    use PrimitiveType::{Bf16, F16, F32, S4, S8, U4};
    let forms = [
        (S4, Some((F16, 32))),
        (U4, Some((F32, 32))),
        (S8, Some((Bf16, 32))),
        (S8, None),
        (Bf16, None),
        (F16, None),
    ];
    let of = |(numbers, scales)| {
        let form = Form { numbers, scales, is_transposed: false };
        [[1, 48, 64], [5, 40, 96]].map(|extents| Expected::weights(&form, extents))
    };
    forms.into_iter().flat_map(of).collect()
}

#[test]
fn products_of_narrow_numbers_run_on_other_processors() {
    let all: Vec<Expected> =
        [dots(), convolutions(), layers(), lookups(), weights()].into_iter().flatten().collect();
    let cases: Vec<&Case> = all.iter().map(|expected| &expected.case).collect();
    for emulator in &EMULATORS {
        if !emulator.is_installed() {
            println!("skipped: {} needs {}", emulator.name(), emulator.compiler);
            continue;
        }
        for (expected, have) in all.iter().zip(emulator.run(&cases)) {
            let apart = difference(&have[0], &expected.want, expected.tolerance);
            assert_eq!(apart, None, "{} on {}", expected.case.name, emulator.name());
        }
        println!("{} cases on {}", all.len(), emulator.name());
    }
}
