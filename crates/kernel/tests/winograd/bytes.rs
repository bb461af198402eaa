//! Patches of bytes. They are exact: results equal sums of products in 64 bits.

use crate::harness::{Loaded, Numbers};
use plan::{Options, Winograd};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use target::Target;

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

    fn check(&self) {
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
        let expected: Vec<Scalar> =
            self.expected(&input, &weights, &biases).into_iter().map(Scalar::Signed).collect();
        for (target, runs) in targets() {
            let (outputs, form) = if self.window == 1 { (1, "pairs of 16 bits") } else { (2, "F(2x2,3x3)") };
            let options = Options { winograd: Winograd::Forced(outputs), ..Options::default() };
            let plan = plan::plan_with(&module, &target, &options).expect("a plan").to_text(&module);
            assert!(plan.contains(form), "{}: {plan}", target.cpu);
            if !runs {
                crate::harness::compile(&module, &target, &options, "entry").expect("an object");
                continue;
            }
            let loaded = Loaded::with_options(&module, &target, &options).expect("it is compiled");
            let results = loaded.run(std::slice::from_ref(&argument), 2, None).expect("it runs");
            let have: Vec<Scalar> = results[0].scalars().collect();
            let wrong = have.iter().zip(&expected).position(|(have, want)| have != want);
            assert_eq!(wrong.map(|k| (k, have[k], expected[k])), None, "{self:?} {}", target.cpu);
        }
    }
}

#[test]
fn bytes_of_both_kinds() {
    for is_signed in [true, false] {
        Case { is_signed, ..CASE }.check();
        Case { is_signed, is_extreme: true, inputs: 64, ..CASE }.check();
        // As many inputs as sums of 31 bits take.
        Case { is_signed, is_extreme: true, inputs: 1824, image: [1, 2, 2], ..CASE }.check();
    }
}

#[test]
fn images_of_every_size() {
    for (lines, columns) in [(1, 1), (2, 5), (7, 6), (30, 17)] {
        Case { image: [1, lines, columns], outputs: 40, ..CASE }.check();
    }
    for padding in [[(0, 0); 2], [(2, 2); 2], [(1, 0), (0, 1)], [(-1, 1), (1, -2)], [(4, 0), (0, 5)]] {
        Case { image: [2, 9, 7], padding, inputs: 4, outputs: 8, ..CASE }.check();
    }
}

#[test]
fn features_of_every_number() {
    for inputs in [4, 8, 12, 20, 36, 60] {
        Case { inputs, image: [1, 6, 6], ..CASE }.check();
    }
    for outputs in [4, 7, 8, 15, 17, 33, 48] {
        Case { outputs, image: [1, 5, 6], is_signed: false, ..CASE }.check();
    }
}

#[test]
fn several_blocks_and_tasks() {
    Case { image: [3, 22, 26], inputs: 20, outputs: 36, ..CASE }.check();
    // Kernels that exceed the second-level cache: transformed by columns, and as a whole.
    Case { image: [1, 10, 10], inputs: 128, outputs: 136, ..CASE }.check();
    Case { image: [2, 24, 24], inputs: 128, outputs: 130, ..CASE }.check();
}

#[test]
fn windows_of_one_tap() {
    let case = Case { window: 1, padding: [(0, 0); 2], ..CASE };
    for (strides, image) in [([1, 1], [2, 7, 9]), ([2, 2], [1, 9, 8]), ([1, 3], [1, 4, 10])] {
        for is_signed in [true, false] {
            Case { strides, image, is_signed, outputs: 24, ..case }.check();
        }
    }
    Case { inputs: 2048, is_extreme: true, image: [1, 3, 3], ..case }.check();
    Case { inputs: 20, outputs: 7, ..case }.check();
    // A kernel that each block transforms.
    Case { inputs: 512, outputs: 520, image: [1, 5, 5], ..case }.check();
}
