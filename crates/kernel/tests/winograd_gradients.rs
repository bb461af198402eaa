//! Gradients of 3x3 kernels by transformed patches, compared with sums of products in `f64`, within
//! the error bound of the matrices.

use crate::harness::{Loaded, Numbers, Values, random, targets};
use plan::{GradientTransform, Options, Winograd};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

/// The gradient of a 3x3 kernel with stride 1.
#[derive(Clone, Copy, Debug)]
struct Case {
    images: i64,
    /// Lines and columns of the input.
    input: [i64; 2],
    /// Low and high padding of lines and of columns.
    padding: [(i64, i64); 2],
    inputs: i64,
    outputs: i64,
    element_type: &'static str,
}

const CASE: Case =
    Case { images: 2, input: [8, 8], padding: [(1, 1); 2], inputs: 16, outputs: 16, element_type: "f32" };

impl Case {
    /// Returns the lines and columns of the gradient.
    fn gradient(&self) -> [i64; 2] {
        [0, 1].map(|d| self.input[d] + self.padding[d].0 + self.padding[d].1 - 2)
    }

    /// Returns the kernel's gradient, followed by an optimizer step.
    fn text(&self) -> String {
        let (t, [h, w], [y, x]) = (self.element_type, self.input, self.gradient());
        let (n, ci, co, [rows, columns]) = (self.images, self.inputs, self.outputs, self.padding);
        let result = format!("{t}[3,3,{ci},{co}]");
        let operands = format!(
            "  x = {t}[{n},{h},{w},{ci}] parameter(0)\n  g = {t}[{n},{y},{x},{co}] parameter(1)\n  \
             before = {result} parameter(2)\n"
        );
        format!(
            "HloModule gradient\n\nbody {{\n{operands}  c = {result} convolution(x, g), \
             window={{size={y}x{x} pad={}_{}x{}_{}}}, dim_labels=f01b_i01o->01bf\n  \
             ROOT r = {result} subtract(before, c)\n}}\n\nENTRY main {{\n{operands}  \
             ROOT r = {result} fusion(x, g, before), kind=kOutput, calls=body\n}}\n",
            rows.0, rows.1, columns.0, columns.1
        )
    }

    fn arguments(&self) -> [Literal; 3] {
        let t = if self.element_type == "f64" { PrimitiveType::F64 } else { PrimitiveType::F32 };
        let ([h, w], [y, x]) = (self.input, self.gradient());
        let mut numbers = Numbers::new(self.inputs as u64 * 37 + self.input[1] as u64);
        [
            [self.images, h, w, self.inputs],
            [self.images, y, x, self.outputs],
            [3, 3, self.inputs, self.outputs],
        ]
        .map(|sizes| random(&ArrayShape::new(t, &sizes), Values::Tame, &mut numbers))
    }

    /// Returns an element of `[image, line, column, feature]`, or 0 outside.
    fn element(array: &[f64], sizes: [i64; 2], features: i64, at: [i64; 4]) -> f64 {
        let [image, line, column, feature] = at;
        if !(0..sizes[0]).contains(&line) || !(0..sizes[1]).contains(&column) {
            return 0.0;
        }
        array[(((image * sizes[0] + line) * sizes[1] + column) * features + feature) as usize]
    }

    /// Returns the sum of a tap and a pair of features, and the sum of the magnitudes that
    /// contribute to it: directly, and as `|A| (|G||g||G'| * |B||d||B'|) |A'|` of the patches.
    fn expected(&self, given: &[Vec<f64>], [row, column, input, output]: [i64; 4]) -> (f64, f64) {
        let [y, x] = self.gradient();
        let low = [self.padding[0].0, self.padding[1].0];
        let pixel = |n, l, c| Self::element(&given[0], self.input, self.inputs, [n, l, c, input]);
        let other = |n, l, c| Self::element(&given[1], [y, x], self.outputs, [n, l, c, output]);
        let (mut sum, mut size) = (0.0, 0.0);
        for n in 0..self.images {
            for (l, c) in (0..y).flat_map(|l| (0..x).map(move |c| (l, c))) {
                sum += pixel(n, l + row - low[0], c + column - low[1]) * other(n, l, c);
            }
            for (l, c) in (0..(y + 1) / 2).flat_map(|l| (0..(x + 1) / 2).map(move |c| (2 * l, 2 * c))) {
                for (u, v) in (0..16).map(|k| (k / 4, k % 4)) {
                    let factor = GradientTransform::OUTPUT[row as usize][u]
                        * GradientTransform::OUTPUT[column as usize][v];
                    if factor == 0.0 {
                        continue;
                    }
                    let two = |matrix: &[&[f64]], r: usize, s: usize| (matrix[u][r] * matrix[v][s]).abs();
                    let (mut d, mut g) = (0.0, 0.0);
                    for (r, s) in (0..16).map(|k| (k / 4, k % 4)) {
                        let at = pixel(n, l + r as i64 - low[0], c + s as i64 - low[1]);
                        d += two(GradientTransform::INPUT, r, s) * at.abs();
                    }
                    for (r, s) in (0..4).map(|k| (k / 2, k % 2)) {
                        g += two(GradientTransform::GRADIENT, r, s)
                            * other(n, l + r as i64, c + s as i64).abs();
                    }
                    size += factor.abs() * d * g;
                }
            }
        }
        let before = given[2][(((row * 3 + column) * self.inputs + input) * self.outputs + output) as usize];
        (before - sum, size + before.abs())
    }

    /// Compares compiled code with the expected values on every target.
    fn check(&self) {
        let arguments = self.arguments();
        let given: Vec<Vec<f64>> = arguments.iter().map(|a| a.scalars().map(float).collect()).collect();
        let text = self.text();
        let module = hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let expected: Vec<(f64, f64)> = (0..9 * self.inputs * self.outputs)
            .map(|k| {
                let (tap, k) = (k / self.outputs / self.inputs, k % (self.inputs * self.outputs));
                self.expected(&given, [tap / 3, tap % 3, k / self.outputs, k % self.outputs])
            })
            .collect();
        let options = Options { winograd: Winograd::Forced(2), ..Options::default() };
        for target in targets() {
            let plan = plan::plan_with(&module, &target, &options).expect("a plan").to_text(&module);
            assert!(plan.contains("F(3x3,2x2)"), "{plan}");
            let loaded =
                Loaded::with_options(&module, &target, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let results = loaded.run(&arguments, 2, None).expect("it runs");
            for (k, (have, &(want, size))) in results[0].scalars().map(float).zip(&expected).enumerate() {
                let bound = size * self.roundings();
                assert!(
                    (have - want).abs() <= bound,
                    "{self:?} element {k} {}: {have}, not {want} ± {bound}",
                    target.cpu
                );
            }
        }
    }

    /// Bound on the rounding error of an element: the number of consecutive roundings (transforms,
    /// sums of patches and of blocks, taps, and the epilogue) times the unit roundoff.
    fn roundings(&self) -> f64 {
        let unit = if self.element_type == "f64" { f64::EPSILON } else { f64::from(f32::EPSILON) } / 2.0;
        let [y, x] = self.gradient().map(|n| (n + 1) / 2);
        let patches = self.images * y * x;
        ((patches + patches / 16) as f64 + 2.0 * 2.0 + 2.0 * 1.0 + 2.0 * 3.0 + 3.0) * unit
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
    for lines in [1, 2, 5] {
        for columns in [1, 4, 9] {
            Case { input: [lines, columns], ..CASE }.check();
        }
    }
    Case { images: 5, input: [13, 12], inputs: 3, ..CASE }.check();
}

#[test]
fn padding_of_every_size() {
    for padding in [[(0, 0); 2], [(2, 2); 2], [(1, 0), (0, 1)], [(-1, 1), (1, -2)], [(4, 0), (0, 5)]] {
        Case { padding, inputs: 5, outputs: 9, ..CASE }.check();
    }
}

#[test]
fn features_of_every_number() {
    for (inputs, outputs) in [(1, 1), (7, 33), (40, 24), (37, 20)] {
        Case { images: 1, input: [5, 6], inputs, outputs, ..CASE }.check();
    }
    // Several tasks, of both kinds of features.
    Case { images: 1, input: [4, 5], inputs: 64, outputs: 256, ..CASE }.check();
}

#[test]
fn doubles() {
    Case { element_type: "f64", inputs: 9, outputs: 12, ..CASE }.check();
}
