//! Patches of bytes. They are exact: results equal sums of products in 64 bits.

use crate::emulators::EMULATORS;
use crate::harness::emulator::{self, Emulator};
use crate::harness::{Loaded, Numbers};
use hlo::Module;
use plan::{Options, Winograd};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use target::{ByteProducts, ShortProducts, Target};

/// A convolution of bytes and constant weights with a 3x3 window and stride 1, or a window of one
/// tap.
#[derive(Clone, Copy, Debug)]
struct Case {
    image: [i64; 3],
    /// Low and high padding of lines and of columns.
    padding: [(i64, i64); 2],
    /// Taps of the window, and the stride along each dimension.
    window: i64,
    strides: [i64; 2],
    inputs: i64,
    outputs: i64,
    is_signed: bool,
    /// True if all numbers are the largest or the smallest.
    is_extreme: bool,
}

const CASE: Case = Case {
    image: [1, 8, 8],
    padding: [(1, 1); 2],
    window: 3,
    strides: [1, 1],
    inputs: 16,
    outputs: 16,
    is_signed: true,
    is_extreme: false,
};

/// The processors of this machine's architecture on which products of bytes take several
/// instructions, and whether this machine has theirs.
fn targets() -> Vec<(Target, bool)> {
    let levels = [
        ("x86-64", true),
        ("x86-64-v2", is_x86_feature_detected!("ssse3")),
        ("x86-64-v3", is_x86_feature_detected!("avx2")),
        ("x86-64-v4", is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl")),
    ];
    let of = |(cpu, runs)| (Target::new(&codegen::host_triple(), cpu, "").expect("the host's triple"), runs);
    levels.into_iter().map(of).collect()
}

impl Case {
    fn output(&self) -> [i64; 2] {
        [0, 1].map(|d| {
            let padded = self.image[d + 1] + self.padding[d].0 + self.padding[d].1;
            (padded - self.window) / self.strides[d] + 1
        })
    }

    /// Random bytes as numbers.
    fn bytes(&self, count: i64, is_signed: bool, numbers: &mut Numbers) -> Vec<i64> {
        let first = if is_signed { -128 } else { 0 };
        let byte = |numbers: &mut Numbers| {
            first + if self.is_extreme { 255 * numbers.below(2) } else { numbers.below(256) } as i64
        };
        (0..count).map(|_| byte(numbers)).collect()
    }

    /// The module, whose result is the convolution plus a constant bias.
    fn text(&self, weights: &[i64], biases: &[i64]) -> String {
        let Self { image: [n, h, w], padding: [rows, columns], inputs, outputs, is_signed, window, .. } =
            *self;
        let ([y, x], input) = (self.output(), if is_signed { "s8" } else { "u8" });
        let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        let braced = |parts: Vec<String>| format!("{{{}}}", parts.join(","));
        let nested = |numbers: &[i64]| {
            let rows: Vec<String> =
                numbers.chunks(outputs as usize).map(|row| format!("{{{}}}", list(row))).collect();
            let taps: Vec<String> = rows.chunks(inputs as usize).map(|tap| braced(tap.to_vec())).collect();
            braced(taps.chunks(window as usize).map(|line| braced(line.to_vec())).collect())
        };
        let result = format!("s32[{n},{y},{x},{outputs}]");
        let (weights, biases) = (nested(weights), list(biases));
        format!(
            "HloModule bytes\n\nbody {{\n  x = {input}[{n},{h},{w},{inputs}] parameter(0)\n  \
             w = s8[{window},{window},{inputs},{outputs}] parameter(1)\n  b = s32[{outputs}] parameter(2)\n  \
             c = {result} convolution(x, w), window={{size={window}x{window} stride={}x{} pad={}_{}x{}_{}}}, dim_labels=b01f_01io->b01f\n  \
             wide = {result} broadcast(b), dimensions={{3}}\n  ROOT r = {result} add(c, wide)\n}}\n\n\
             ENTRY main {{\n  x = {input}[{n},{h},{w},{inputs}] parameter(0)\n  \
             w = s8[{window},{window},{inputs},{outputs}] constant({weights})\n  b = s32[{outputs}] constant({{{biases}}})\n  \
             ROOT r = {result} fusion(x, w, b), kind=kOutput, calls=body\n}}\n",
            self.strides[0], self.strides[1], rows.0, rows.1, columns.0, columns.1
        )
    }

    /// All elements of the result.
    fn expected(&self, input: &[i64], weights: &[i64], biases: &[i64]) -> Vec<i64> {
        let ([images, h, w], [y, x]) = (self.image, self.output());
        let mut all = Vec::new();
        for place in 0..images * y * x * self.outputs {
            let (pixel, output) = (place / self.outputs, place % self.outputs);
            let (image, line, column) = (pixel / x / y, pixel / x % y, pixel % x);
            let mut sum = biases[output as usize];
            for tap in 0..self.window * self.window {
                let [line, column] = [line * self.strides[0], column * self.strides[1]];
                let (row, across) = (tap / self.window, tap % self.window);
                let at = [line - self.padding[0].0 + row, column - self.padding[1].0 + across];
                if !(0..h).contains(&at[0]) || !(0..w).contains(&at[1]) {
                    continue;
                }
                let first = ((image * h + at[0]) * w + at[1]) * self.inputs;
                for k in 0..self.inputs {
                    let weight = weights[((tap * self.inputs + k) * self.outputs + output) as usize];
                    sum += input[(first + k) as usize] * weight;
                }
            }
            all.push(sum);
        }
        all
    }

    /// The module, its argument, and all elements of its result.
    fn prepare(&self) -> Prepared {
        let mut numbers = Numbers::new(self.inputs as u64 * 31 + self.image[1] as u64);
        let [images, h, w] = self.image;
        let sizes = [images, h, w, self.inputs];
        let input = self.bytes(sizes.iter().product(), self.is_signed, &mut numbers);
        let weights = self.bytes(self.window * self.window * self.inputs * self.outputs, true, &mut numbers);
        let biases: Vec<i64> = (0..self.outputs).map(|k| 977 * k - 4000).collect();
        let text = self.text(&weights, &biases);
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{self:?}"));
        let (ty, scalar): (_, fn(i64) -> Scalar) = if self.is_signed {
            (PrimitiveType::S8, Scalar::Signed)
        } else {
            (PrimitiveType::U8, |byte| Scalar::Unsigned(byte as u64))
        };
        let argument = Literal::from_scalars(ArrayShape::new(ty, &sizes), input.iter().map(|&b| scalar(b)));
        let expected = self.expected(&input, &weights, &biases).into_iter().map(Scalar::Signed).collect();
        let case = emulator::Case { name: format!("{self:?}"), module, arguments: vec![argument] };
        Prepared { case, expected }
    }

    /// The options that use patches, which must be in the plan.
    fn options(&self, module: &Module, target: &Target) -> Options {
        let (outputs, form) = if self.window == 1 { (1, "pairs of 16 bits") } else { (2, "F(2x2,3x3)") };
        let options = Options { winograd: Winograd::Forced(outputs), ..Options::default() };
        let plan = plan::plan_with(module, target, &options).expect("a plan").to_text(module);
        assert!(plan.contains(form), "{}: {plan}", target.cpu);
        options
    }
}

/// A module, its argument, and what its result must be.
struct Prepared {
    case: emulator::Case,
    expected: Vec<Scalar>,
}

impl Prepared {
    fn check(&self, have: &Literal, processor: &str) {
        let have: Vec<Scalar> = have.scalars().collect();
        assert_eq!(have.len(), self.expected.len(), "{}", self.case.name);
        let wrong = have.iter().zip(&self.expected).position(|(have, want)| have != want);
        let wrong = wrong.map(|k| (k, have[k], self.expected[k]));
        assert_eq!(wrong, None, "{} {processor}", self.case.name);
    }
}

/// Runs cases on this machine.
fn check(cases: &[Case]) {
    for case in cases {
        let prepared = case.prepare();
        let emulator::Case { module, arguments, .. } = &prepared.case;
        for (target, runs) in targets() {
            let options = case.options(module, &target);
            if !runs {
                crate::harness::compile(module, &target, &options, "entry").expect("an object");
                continue;
            }
            let loaded = Loaded::with_options(module, &target, &options).expect("it is compiled");
            let results = loaded.run(arguments, 2, None).expect("it runs");
            prepared.check(&results[0], &target.cpu);
        }
    }
}

fn of_both_kinds() -> Vec<Case> {
    let of = |is_signed| {
        [
            Case { is_signed, ..CASE },
            Case { is_signed, is_extreme: true, inputs: 64, ..CASE },
            // As many inputs as sums of 31 bits take.
            Case { is_signed, is_extreme: true, inputs: 1824, image: [1, 2, 2], ..CASE },
        ]
    };
    [true, false].into_iter().flat_map(of).collect()
}

fn of_every_size() -> Vec<Case> {
    let sizes = [(1, 1), (2, 5), (7, 6), (30, 17)];
    let paddings = [[(0, 0); 2], [(2, 2); 2], [(1, 0), (0, 1)], [(-1, 1), (1, -2)], [(4, 0), (0, 5)]];
    let of_size = |(lines, columns)| Case { image: [1, lines, columns], outputs: 40, ..CASE };
    let of_padding = |padding| Case { image: [2, 9, 7], padding, inputs: 4, outputs: 8, ..CASE };
    sizes.into_iter().map(of_size).chain(paddings.into_iter().map(of_padding)).collect()
}

fn of_features() -> Vec<Case> {
    let of_inputs = |inputs| Case { inputs, image: [1, 6, 6], ..CASE };
    let of_outputs = |outputs| Case { outputs, image: [1, 5, 6], is_signed: false, ..CASE };
    let inputs = [4, 8, 12, 20, 36, 60].map(of_inputs);
    inputs.into_iter().chain([4, 7, 8, 15, 17, 33, 48].map(of_outputs)).collect()
}

fn of_blocks() -> Vec<Case> {
    vec![
        Case { image: [3, 22, 26], inputs: 20, outputs: 36, ..CASE },
        // Kernels that exceed the second-level cache: transformed by columns, and as a whole.
        Case { image: [1, 10, 10], inputs: 128, outputs: 136, ..CASE },
        Case { image: [2, 24, 24], inputs: 128, outputs: 130, ..CASE },
    ]
}

fn of_one_tap() -> Vec<Case> {
    let case = Case { window: 1, padding: [(0, 0); 2], ..CASE };
    let strided = [([1, 1], [2, 7, 9]), ([2, 2], [1, 9, 8]), ([1, 3], [1, 4, 10])];
    let of = |(strides, image)| {
        [true, false].map(|is_signed| Case { strides, image, is_signed, outputs: 24, ..case })
    };
    let others = [
        Case { inputs: 2048, is_extreme: true, image: [1, 3, 3], ..case },
        Case { inputs: 20, outputs: 7, ..case },
        // A kernel that each block transforms.
        Case { inputs: 512, outputs: 520, image: [1, 5, 5], ..case },
    ];
    strided.into_iter().flat_map(of).chain(others).collect()
}

#[test]
fn bytes_of_both_kinds() {
    check(&of_both_kinds());
}

#[test]
fn images_of_every_size() {
    check(&of_every_size());
}

#[test]
fn features_of_every_number() {
    check(&of_features());
}

#[test]
fn several_blocks_and_tasks() {
    check(&of_blocks());
}

#[test]
fn windows_of_one_tap() {
    check(&of_one_tap());
}

/// Processors that multiply four numbers of 16 bits by one lane of a vector.
#[test]
fn patches_of_bytes_run_on_other_processors() {
    let transformed = [of_both_kinds(), of_every_size(), of_features(), of_blocks()].concat();
    let cases = [transformed, of_one_tap()].map(|cases| {
        let prepared: Vec<Prepared> = cases.iter().map(Case::prepare).collect();
        (cases, prepared)
    });
    let multiplies_by_lane = |emulator: &&Emulator| {
        let target = emulator.target();
        target.short_products == Some(ShortProducts::ByLane)
            && target.byte_products == Some(ByteProducts::Halves)
    };
    let emulators: Vec<&Emulator> = EMULATORS.iter().filter(multiplies_by_lane).collect();
    assert_eq!(emulators.len(), 2, "64 and 32 bits");
    for emulator in emulators {
        if !emulator.is_installed() {
            println!("skipped: {} needs {}", emulator.name(), emulator.compiler);
            continue;
        }
        let target = emulator.target();
        for (cases, prepared) in &cases {
            let mut options = Options::default();
            for (case, prepared) in cases.iter().zip(prepared) {
                options = case.options(&prepared.case.module, &target);
            }
            let modules: Vec<&emulator::Case> = prepared.iter().map(|prepared| &prepared.case).collect();
            for (prepared, have) in prepared.iter().zip(emulator.run_with(&modules, &options)) {
                prepared.check(&have[0], &emulator.name());
            }
            println!("{} cases on {}", cases.len(), emulator.name());
        }
    }
}
