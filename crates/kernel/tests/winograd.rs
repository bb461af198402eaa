//! Convolutions by transformed patches, compared with sums of products in `f64`, within the error
//! bound of the matrices.

#[cfg(target_arch = "x86_64")]
mod bytes;

use crate::harness::{Loaded, Numbers, Values, random, targets};
use plan::{Options, Transform, Winograd};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

/// A convolution of a 3x3 window with stride 1.
#[derive(Clone, Copy, Debug)]
struct Case {
    batch: i64,
    /// Lines and columns.
    image: [i64; 2],
    /// Low and high padding of lines and of columns.
    padding: [(i64, i64); 2],
    inputs: i64,
    outputs: i64,
    constant: bool,
    element_type: &'static str,
}

const CASE: Case = Case {
    batch: 1,
    image: [8, 8],
    padding: [(1, 1); 2],
    inputs: 16,
    outputs: 16,
    constant: false,
    element_type: "f32",
};

impl Case {
    fn output(&self) -> [i64; 2] {
        [0, 1].map(|d| self.image[d] + self.padding[d].0 + self.padding[d].1 - 2)
    }

    /// Returns the module. `r` is the convolution's result with a bias, a residual, and a relu.
    fn text(&self, kernel: &Literal) -> String {
        let (t, [h, w], [y, x]) = (self.element_type, self.image, self.output());
        let (n, ci, co, [rows, columns]) = (self.batch, self.inputs, self.outputs, self.padding);
        let kernel = if self.constant {
            let numbers: Vec<String> = kernel.scalars().map(|s| format!("{}", float(s))).collect();
            let rows: Vec<String> =
                numbers.chunks(co as usize).map(|row| format!("{{{}}}", row.join(","))).collect();
            let taps: Vec<String> =
                rows.chunks(ci as usize).map(|tap| format!("{{{}}}", tap.join(","))).collect();
            let lines: Vec<String> = taps.chunks(3).map(|line| format!("{{{}}}", line.join(","))).collect();
            format!("w = {t}[3,3,{ci},{co}] constant({{{}}})", lines.join(","))
        } else {
            format!("w = {t}[3,3,{ci},{co}] parameter(3)")
        };
        let result = format!("{t}[{n},{y},{x},{co}]");
        format!(
            "HloModule winograd\n\nbody {{\n  x = {t}[{n},{h},{w},{ci}] parameter(0)\n  w = {t}[3,3,{ci},{co}] parameter(1)\n  \
             bias = {t}[{co}] parameter(2)\n  residual = {result} parameter(3)\n  \
             c = {result} convolution(x, w), window={{size=3x3 pad={}_{}x{}_{}}}, dim_labels=b01f_01io->b01f\n  \
             wide = {result} broadcast(bias), dimensions={{3}}\n  sum = {result} add(c, wide)\n  \
             more = {result} add(sum, residual)\n  zero = {t}[] constant(0)\n  \
             zeros = {result} broadcast(zero), dimensions={{}}\n  ROOT r = {result} maximum(more, zeros)\n}}\n\n\
             ENTRY main {{\n  x = {t}[{n},{h},{w},{ci}] parameter(0)\n  bias = {t}[{co}] parameter(1)\n  \
             residual = {result} parameter(2)\n  {kernel}\n  \
             ROOT r = {result} fusion(x, w, bias, residual), kind=kOutput, calls=body\n}}\n",
            rows.0, rows.1, columns.0, columns.1
        )
    }

    fn shapes(&self) -> [ArrayShape; 4] {
        let t = match self.element_type {
            "f64" => PrimitiveType::F64,
            "bf16" => PrimitiveType::Bf16,
            _ => PrimitiveType::F32,
        };
        let ([h, w], [y, x]) = (self.image, self.output());
        [
            ArrayShape::new(t, &[self.batch, h, w, self.inputs]),
            ArrayShape::new(t, &[self.outputs]),
            ArrayShape::new(t, &[self.batch, y, x, self.outputs]),
            ArrayShape::new(t, &[3, 3, self.inputs, self.outputs]),
        ]
    }

    /// Returns the pixel of an image, or 0 in the padding.
    fn pixel(&self, input: &[f64], image: i64, at: [i64; 2], channel: i64) -> f64 {
        let [h, w] = self.image;
        if !(0..h).contains(&at[0]) || !(0..w).contains(&at[1]) {
            return 0.0;
        }
        input[(((image * h + at[0]) * w + at[1]) * self.inputs + channel) as usize]
    }

    fn weight(&self, given: &[Vec<f64>], [row, column]: [i64; 2], input: i64, feature: i64) -> f64 {
        given[3][(((row * 3 + column) * self.inputs + input) * self.outputs + feature) as usize]
    }

    /// Returns an element of the result, and the sum of the magnitudes that contribute to it.
    fn expected(&self, given: &[Vec<f64>], at: [i64; 4]) -> (f64, f64) {
        let [image, line, column, feature] = at;
        let [y, x] = self.output();
        let from = [line - self.padding[0].0, column - self.padding[1].0];
        let (mut sum, mut size) = (0.0, 0.0);
        for i in 0..self.inputs {
            for (r, c) in (0..9).map(|k| (k / 3, k % 3)) {
                let pixel = self.pixel(&given[0], image, [from[0] + r, from[1] + c], i);
                let product = pixel * self.weight(given, [r, c], i, feature);
                (sum, size) = (sum + product, size + product.abs());
            }
        }
        let bias = given[1][feature as usize];
        let residual = given[2][(((image * y + line) * x + column) * self.outputs + feature) as usize];
        ((sum + bias + residual).max(0.0), size + bias.abs() + residual.abs())
    }

    /// `|A| (|G||g||G'| * |B||d||B'|) |A'|`, summed over the inputs. Rounding errors are relative
    /// to this.
    fn transformed_size(&self, given: &[Vec<f64>], transform: Transform, at: [i64; 4]) -> f64 {
        let [image, line, column, feature] = at;
        let (m, n) = (transform.outputs, transform.size());
        let corner = [line / m * m - self.padding[0].0, column / m * m - self.padding[1].0];
        let mut size = 0.0;
        for (u, v) in (0..n * n).map(|k| ((k / n) as usize, (k % n) as usize)) {
            let rows = (transform.output[(line % m) as usize], transform.output[(column % m) as usize]);
            let factor = (rows.0[u] * rows.1[v]).abs();
            for i in 0..if factor == 0.0 { 0 } else { self.inputs } {
                let (mut d, mut g) = (0.0, 0.0);
                for (r, c) in (0..n * n).map(|k| (k / n, k % n)) {
                    let factor = transform.input[u][r as usize] * transform.input[v][c as usize];
                    d += (factor * self.pixel(&given[0], image, [corner[0] + r, corner[1] + c], i)).abs();
                }
                for (r, c) in (0..9).map(|k| (k / 3, k % 3)) {
                    let factor = transform.kernel[u][r as usize] * transform.kernel[v][c as usize];
                    g += (factor * self.weight(given, [r, c], i, feature)).abs();
                }
                size += factor * d * g;
            }
        }
        size
    }

    /// Compares compiled code with the expected values on every target and with each transform.
    fn check(&self) {
        let mut numbers = Numbers::new(self.inputs as u64 * 31 + self.image[0] as u64);
        let arguments: Vec<Literal> =
            self.shapes().iter().map(|shape| random(shape, Values::Tame, &mut numbers)).collect();
        let given: Vec<Vec<f64>> = arguments.iter().map(|a| a.scalars().map(float).collect()).collect();
        let text = self.text(&arguments[3]);
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let passed = &arguments[..if self.constant { 3 } else { 4 }];
        let [y, x] = self.output();
        for target in targets() {
            for transform in [Transform::SMALL, Transform::LARGE] {
                let winograd = Winograd::Forced(transform.outputs as u32);
                let options = Options { winograd, ..Options::default() };
                let plan = plan::plan_with(&module, &target, &options).expect("a plan").to_text(&module);
                assert!(plan.contains(&format!("F({0}x{0},3x3)", transform.outputs)), "{plan}");
                let loaded = Loaded::with_options(&module, &target, &options)
                    .unwrap_or_else(|e| panic!("{e}\n{text}"));
                let results = loaded.run(passed, 2, None).expect("it runs");
                for (k, have) in results[0].scalars().map(float).enumerate() {
                    let k = k as i64;
                    let at = [
                        k / self.outputs / x / y,
                        k / self.outputs / x % y,
                        k / self.outputs % x,
                        k % self.outputs,
                    ];
                    let (want, size) = self.expected(&given, at);
                    let mut bound = size * (self.roundings() + self.last_rounding());
                    if (have - want).abs() > bound {
                        bound += self.transformed_size(&given, transform, at) * self.roundings();
                    }
                    assert!(
                        (have - want).abs() <= bound,
                        "{self:?} {at:?} {transform:?} {}: {have}, not {want} ± {bound}",
                        target.cpu
                    );
                }
            }
        }
    }

    /// Bound on the rounding error of an element: the number of consecutive roundings (two
    /// transforms, the sum, and the epilogue) times the unit roundoff.
    fn roundings(&self) -> f64 {
        let unit = if self.element_type == "f64" { f64::EPSILON } else { f64::from(f32::EPSILON) } / 2.0;
        // Additions of each transform, in both dimensions: at most 3, or 5 with the products, and 6
        // for the kernel with them.
        (self.inputs as f64 + 2.0 * 5.0 + 2.0 * 6.0 + 2.0 * 5.0 + 2.0) * unit
    }

    /// Rounding error of the result's type, if that is narrower than the arithmetic.
    fn last_rounding(&self) -> f64 {
        if self.element_type == "bf16" { 3.0 / 512.0 } else { 0.0 }
    }
}

fn float(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Float(x) => x,
        other => panic!("expected a float, got {other:?}"),
    }
}

#[test]
fn images_of_every_size() {
    for lines in [1, 2, 4, 7] {
        for columns in [1, 6, 9] {
            Case { image: [lines, columns], ..CASE }.check();
        }
    }
    Case { image: [30, 17], outputs: 40, ..CASE }.check();
}

#[test]
fn padding_of_every_size() {
    for padding in [[(0, 0); 2], [(2, 2); 2], [(1, 0), (0, 1)], [(-1, 1), (1, -2)], [(4, 0), (0, 5)]] {
        Case { padding, inputs: 5, ..CASE }.check();
        Case { padding, image: [9, 7], constant: true, outputs: 8, ..CASE }.check();
    }
}

#[test]
fn features_of_every_number() {
    for features in [1, 3, 7, 8, 15, 17, 33, 48] {
        Case { inputs: features, image: [6, 6], ..CASE }.check();
        Case { outputs: features, image: [6, 6], ..CASE }.check();
        Case { outputs: features, inputs: 9, image: [4, 4], constant: true, ..CASE }.check();
    }
}

#[test]
fn other_element_types() {
    for element_type in ["f64", "bf16"] {
        Case { element_type, inputs: 12, outputs: 20, ..CASE }.check();
        Case { element_type, image: [5, 5], constant: true, ..CASE }.check();
    }
}

#[test]
fn several_blocks_and_tasks() {
    Case { batch: 3, image: [22, 26], inputs: 20, outputs: 36, ..CASE }.check();
    Case { batch: 2, image: [12, 12], inputs: 160, outputs: 72, constant: true, ..CASE }.check();
    // A kernel that each block transforms.
    Case { image: [6, 6], inputs: 192, outputs: 181, ..CASE }.check();
}
