//! Row patterns compiled as one kernel, compared with the evaluator on the module before the pass.

use crate::harness::{Loaded, Numbers, Tolerance, Values, difference, random, targets};
use passes::{Pass, RowFusion};
use shape::{ArrayShape, Literal};

/// A pattern over an array `x`. Its rows are the dimensions from `first` on.
struct Pattern<'p> {
    element_type: &'p str,
    sizes: &'p [i64],
    first: usize,
}

fn list<T: ToString>(numbers: impl IntoIterator<Item = T>) -> String {
    numbers.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(",")
}

impl Pattern<'_> {
    fn whole(&self) -> String {
        format!("{}[{}]", self.element_type, list(self.sizes))
    }

    fn row(&self) -> String {
        format!("{}[{}]", self.element_type, list(&self.sizes[..self.first]))
    }

    fn columns(&self) -> String {
        format!("{}[{}]", self.element_type, list(&self.sizes[self.first..]))
    }

    /// Returns a module of `body`. In it, `W`, `R`, `C`, and `S` are the types of whole arrays, of
    /// one element per row, of one row, and of scalars. `along` and `down` are the dimensions of a
    /// row and those of the rows.
    fn module(&self, body: &str) -> hlo::Module {
        let s = format!("{}[]", self.element_type);
        let mut text = String::from("HloModule rows\n\n");
        for (name, op) in [("sum", "add"), ("most", "maximum")] {
            text += &format!(
                "{name} {{\n  x = {s} parameter(0)\n  y = {s} parameter(1)\n  ROOT r = {s} {op}(x, y)\n}}\n\n"
            );
        }
        let body = body
            .replace("W ", &format!("{} ", self.whole()))
            .replace("R ", &format!("{} ", self.row()))
            .replace("C ", &format!("{} ", self.columns()))
            .replace("S ", &format!("{s} "))
            .replace("(R, W)", &format!("({}, {})", self.row(), self.whole()))
            .replace("along", &list(self.first..self.sizes.len()))
            .replace("down", &list(0..self.first))
            .replace("COUNT", &self.sizes[self.first..].iter().product::<i64>().to_string());
        text += &format!("ENTRY main {{\n{body}}}\n");
        hlo::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
    }
}

const SOFTMAX: &str = "  x = W parameter(0)
  low = S constant(-inf)
  zero = S constant(0)
  m = R reduce(x, low), dimensions={along}, to_apply=most
  mb = W broadcast(m), dimensions={down}
  d = W subtract(x, mb)
  e = W exponential(d)
  s = R reduce(e, zero), dimensions={along}, to_apply=sum
  sb = W broadcast(s), dimensions={down}
  ROOT r = W divide(e, sb)
";

const LAYER_NORM: &str = "  a = W parameter(0)
  residual = W parameter(1)
  gamma = C parameter(2)
  beta = C parameter(3)
  x = W add(a, residual)
  zero = S constant(0)
  count = S constant(COUNT)
  small = S constant(0.001)
  counts = R broadcast(count), dimensions={}
  smalls = R broadcast(small), dimensions={}
  total = R reduce(x, zero), dimensions={along}, to_apply=sum
  mean = R divide(total, counts)
  mb = W broadcast(mean), dimensions={down}
  d = W subtract(x, mb)
  q = W multiply(d, d)
  squares = R reduce(q, zero), dimensions={along}, to_apply=sum
  variance = R divide(squares, counts)
  shifted = R add(variance, smalls)
  scale = R rsqrt(shifted)
  sb = W broadcast(scale), dimensions={down}
  gb = W broadcast(gamma), dimensions={along}
  bb = W broadcast(beta), dimensions={along}
  n = W multiply(d, sb)
  g = W multiply(n, gb)
  ROOT r = W add(g, bb)
";

/// The loss of each row and its gradient, as in TensorFlow's softmax cross entropy.
const CROSS_ENTROPY: &str = "  x = W parameter(0)
  labels = W parameter(1)
  low = S constant(-inf)
  zero = S constant(0)
  m = R reduce(x, low), dimensions={along}, to_apply=most
  mb = W broadcast(m), dimensions={down}
  d = W subtract(x, mb)
  e = W exponential(d)
  s = R reduce(e, zero), dimensions={along}, to_apply=sum
  l = R log(s)
  lb = W broadcast(l), dimensions={down}
  t = W subtract(lb, d)
  p = W multiply(labels, t)
  loss = R reduce(p, zero), dimensions={along}, to_apply=sum
  sb = W broadcast(s), dimensions={down}
  q = W divide(e, sb)
  gradient = W subtract(q, labels)
  ROOT r = (R, W) tuple(loss, gradient)
";

/// Runs the pass, expects this number of kernels, and compares the results on every target.
fn check(module: &hlo::Module, kernels: usize, values: Values, tolerance: Tolerance) {
    let mut fused = module.clone();
    RowFusion::default().run(&mut fused).map(|_| ()).unwrap_or_else(|e| panic!("{e}"));
    hlo::verify(&fused).unwrap_or_else(|e| panic!("{e}\n{}", fused.to_text()));
    let entry = module.entry_computation();
    let mut numbers = Numbers::new(module.to_text().len() as u64 + 7);
    let mut argument = |id: &hlo::InstructionId| {
        let shape = entry[*id].shape().expect_array();
        random(&ArrayShape::new(shape.element_type, &shape.sizes()), values, &mut numbers)
    };
    let arguments: Vec<Literal> = entry.parameters().iter().map(&mut argument).collect();
    let elements = |literal: Literal| match literal {
        Literal::Tuple(elements) => elements,
        array => vec![array],
    };
    let want = elements(evaluator::evaluate(module, &arguments).unwrap_or_else(|e| panic!("{e}")));
    for target in targets() {
        let text = || format!("cpu '{}'\n{}", target.cpu, fused.to_text());
        let loaded = Loaded::new(&fused, &target).unwrap_or_else(|e| panic!("{e}\n{}", text()));
        assert_eq!(loaded.kernels, kernels, "{}", text());
        let have = loaded.run(&arguments, 2, None).unwrap_or_else(|e| panic!("{e}\n{}", text()));
        for (k, (have, want)) in have.iter().zip(&want).enumerate() {
            if let Some(difference) = difference(have, want, tolerance) {
                panic!("result {k}: {difference}\n{}", text());
            }
        }
    }
}

/// Sizes around the vector widths, and the first dimension of the rows.
const SHAPES: [(&[i64], usize); 16] = [
    (&[1, 2], 1),
    (&[3, 3], 1),
    (&[2, 4], 1),
    (&[5, 7], 1),
    (&[4, 8], 1),
    (&[3, 15], 1),
    (&[3, 16], 1),
    (&[2, 17], 1),
    (&[2, 3, 33], 2),
    (&[2, 1, 70], 2),
    (&[1, 1, 128], 2),
    (&[3, 197], 1),
    (&[2, 600], 1),
    (&[40], 0),
    (&[3, 5, 24], 1),
    (&[2, 1, 3, 1, 9], 2),
];

#[test]
fn softmax() {
    for (sizes, first) in SHAPES {
        for element_type in ["f32", "f64"] {
            let module = Pattern { element_type, sizes, first }.module(SOFTMAX);
            check(&module, 1, Values::Tame, Tolerance::Relative(1e-6));
            check(&module, 1, Values::Hard, Tolerance::Relative(1e-6));
        }
    }
}

#[test]
fn normalization_of_a_sum() {
    for (sizes, first) in SHAPES {
        let module = Pattern { element_type: "f32", sizes, first }.module(LAYER_NORM);
        check(&module, 1, Values::Tame, Tolerance::Relative(1e-4));
    }
}

#[test]
fn cross_entropy_and_its_gradient() {
    for (sizes, first) in SHAPES {
        let module = Pattern { element_type: "f32", sizes, first }.module(CROSS_ENTROPY);
        check(&module, 1, Values::Tame, Tolerance::Relative(1e-4));
    }
}

#[test]
fn narrow_types() {
    for element_type in ["f16", "bf16"] {
        for (sizes, first) in [(&[3, 19][..], 1), (&[2, 130], 1)] {
            let module = Pattern { element_type, sizes, first }.module(SOFTMAX);
            check(&module, 1, Values::Tame, Tolerance::Relative(2e-2));
        }
    }
}

/// In a square array, broadcasting row reductions along the columns reads values of other rows.
#[test]
fn a_value_of_another_row_comes_from_memory() {
    let text =
        SOFTMAX.replace("mb = W broadcast(m), dimensions={down}", "mb = W broadcast(m), dimensions={1}");
    let module = Pattern { element_type: "f32", sizes: &[20, 20], first: 1 }.module(&text);
    check(&module, 2, Values::Tame, Tolerance::Relative(1e-5));
}
