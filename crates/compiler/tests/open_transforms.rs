//! Fourier transforms whose lengths are chosen in each run, compared with sums of roots of unity in
//! `f64`. Numbers beyond the sizes are NaN, so that a result that depends on them differs.

use compiler::{Executable, File, Input, NoObserver, compile_program, host, in_process_options};
use shape::Literal;
use std::f64::consts::PI;
use std::fmt::Write as _;

/// Largest difference from the definition, as a share of the root of the mean square of a result.
const TOLERANCE: f64 = 2e-6;

/// A complex number.
type Number = (f64, f64);

/// A dimension of the input.
#[derive(Clone, Copy)]
enum Dimension {
    Known(i64),
    /// A name, and the largest size.
    Open(&'static str, i64),
}

use Dimension::{Known, Open};

/// A transform of the last dimensions.
#[derive(Clone, Copy)]
struct Case<'a> {
    op: &'a str,
    dimensions: &'a [Dimension],
    transformed: usize,
    /// Length of the real signal, given the size of the last dimension as `multiple * n + offset`,
    /// for transforms from or to real numbers.
    length: (i64, i64),
}

impl Case<'_> {
    fn reads_reals(&self) -> bool {
        self.op.starts_with('R')
    }

    fn returns_reals(&self) -> bool {
        self.op.starts_with("IR")
    }

    fn is_inverse(&self) -> bool {
        self.op.starts_with('I')
    }

    /// Sizes of the input, given those of the names in order of appearance.
    fn sizes(&self, given: &[i64]) -> Vec<i64> {
        let mut names: Vec<&str> = Vec::new();
        let size = |&dimension: &Dimension| match dimension {
            Known(size) => size,
            Open(name, _) => {
                let position = names.iter().position(|&known| known == name).unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                given[position]
            }
        };
        self.dimensions.iter().map(size).collect()
    }

    /// Names, with the largest sizes.
    fn names(&self) -> Vec<(&str, i64)> {
        let mut names = Vec::new();
        for &dimension in self.dimensions {
            if let Open(name, most) = dimension
                && !names.contains(&(name, most))
            {
                names.push((name, most));
            }
        }
        names
    }

    fn graph(&self) -> String {
        let kind = |name: &str, ty: &str| format!("attr {{ key: \"{name}\" value {{ type: DT_{ty} }} }}");
        let float = kind("T", "FLOAT");
        let mut text = String::new();
        let mut node = |name: &str, op: &str, inputs: &[&str], attributes: &str| {
            let inputs: String = inputs.iter().map(|input| format!("input: \"{input}\" ")).collect();
            writeln!(text, "node {{ name: \"{name}\" op: \"{op}\" {inputs} {attributes} }}")
                .expect("a string");
        };
        let mut constants: Vec<(&str, Vec<i64>, bool)> = Vec::new();
        node("re", "Placeholder", &[], &kind("dtype", "FLOAT"));
        if !self.reads_reals() {
            node("im", "Placeholder", &[], &kind("dtype", "FLOAT"));
            node("x", "Complex", &["re", "im"], &float);
        }
        let x = if self.reads_reals() { "re" } else { "x" };
        let of_reals = self.reads_reals() || self.returns_reals();
        if of_reals {
            let (rank, count) = (self.dimensions.len() as i64, self.transformed as i64);
            constants.push(("from", vec![rank - count], false));
            constants.push(("to", vec![rank], false));
            constants.push(("step", vec![1], false));
            let factors = |last: i64, other: i64| [vec![other; count as usize - 1], vec![last]].concat();
            constants.push(("factor", factors(self.length.0, 1), false));
            constants.push(("more", factors(self.length.1, 0), false));
            node("shape", "Shape", &["re"], &float);
            let slice = format!("{} {}", kind("T", "INT32"), kind("Index", "INT32"));
            node("inner", "StridedSlice", &["shape", "from", "to", "step"], &slice);
            node("scaled", "Mul", &["inner", "factor"], &kind("T", "INT32"));
            node("length", "AddV2", &["scaled", "more"], &kind("T", "INT32"));
            let types = format!("{} {}", kind("Treal", "FLOAT"), kind("Tcomplex", "COMPLEX64"));
            node("y", self.op, &[x, "length"], &types);
        } else {
            node("y", self.op, &[x], &kind("Tcomplex", "COMPLEX64"));
        }
        if self.returns_reals() {
            node("result", "Identity", &["y"], &float);
        } else {
            let parts = format!("{} {}", kind("T", "COMPLEX64"), kind("Tout", "FLOAT"));
            node("result", "Real", &["y"], &parts);
            node("result_im", "Imag", &["y"], &parts);
        }
        for (name, values, _) in constants {
            let numbers: String = values.iter().map(|value| format!("int_val: {value} ")).collect();
            let dims = format!("dim {{ size: {} }}", values.len());
            let tensor = format!("tensor {{ dtype: DT_INT32 tensor_shape {{ {dims} }} {numbers} }}");
            let value = format!("{} attr {{ key: \"value\" value {{ {tensor} }} }}", kind("dtype", "INT32"));
            writeln!(text, "node {{ name: \"{name}\" op: \"Const\" {value} }}").expect("a string");
        }
        text
    }

    fn fetches(&self) -> &'static [&'static str] {
        if self.returns_reals() { &["result"] } else { &["result", "result_im"] }
    }

    fn executable(&self, fetches: &[&str]) -> Executable {
        let dims: String = self
            .dimensions
            .iter()
            .map(|dimension| match dimension {
                Known(size) => format!("dim {{ size: {size} }} "),
                Open(name, _) => format!("dim {{ size: -1 name: \"{name}\" }} "),
            })
            .collect();
        let mut config = String::new();
        for feed in if self.reads_reals() { &["re"][..] } else { &["re", "im"] } {
            writeln!(config, "feed {{ id {{ node_name: \"{feed}\" }} shape {{ {dims} }} }}")
                .expect("a string");
        }
        for fetch in fetches {
            writeln!(config, "fetch {{ id {{ node_name: \"{fetch}\" }} }}").expect("a string");
        }
        for (name, most) in self.names() {
            writeln!(config, "dimension {{ name: \"{name}\" min: 1 max: {most} }}").expect("a string");
        }
        let file = |name, content: String| File { name, content: content.into() };
        let input = Input::parse(file("graph.pbtxt", self.graph()), file("config.pbtxt", config));
        let program = input.expect("a graph").source.import(&mut NoObserver).expect("imports");
        let options = in_process_options(host("").expect("this machine"));
        let compiled = compile_program(program, &options, &mut NoObserver).expect("compiles");
        Executable::load(&compiled).expect("loads")
    }

    /// Returns what the transform of an array is, and its sizes.
    fn expected(&self, x: &[Number], sizes: &[i64]) -> (Vec<Number>, Vec<i64>) {
        let (mut values, mut sizes) = (x.to_vec(), sizes.to_vec());
        let last = sizes.len() - 1;
        let length = self.length.0 * sizes[last] + self.length.1;
        let mut axes: Vec<usize> = (0..self.transformed).map(|k| last - k).collect();
        if self.returns_reals() {
            axes.reverse();
        }
        for d in axes {
            let own = sizes[d];
            let (length, written) = match (d == last, self.reads_reals(), self.returns_reals()) {
                (true, true, _) => (length, length / 2 + 1),
                (true, _, true) => (length, length),
                _ => (own, own),
            };
            let inner: i64 = sizes[d + 1..].iter().product();
            let outer: i64 = sizes[..d].iter().product();
            let sign = if self.is_inverse() { 2.0 } else { -2.0 };
            let mut result = Vec::new();
            for (o, k, i) in
                (0..outer).flat_map(|o| (0..written).flat_map(move |k| (0..inner).map(move |i| (o, k, i))))
            {
                let mut sum = (0.0, 0.0);
                for j in 0..length {
                    let at = |j: i64| {
                        if j < own { values[((o * own + j) * inner + i) as usize] } else { (0.0, 0.0) }
                    };
                    // Half a spectrum is completed.
                    let (mut re, mut im) = if d == last && self.returns_reals() && 2 * j > length {
                        (at(length - j).0, -at(length - j).1)
                    } else {
                        at(j)
                    };
                    if d == last && self.returns_reals() && (j == 0 || 2 * j == length) {
                        im = 0.0;
                    }
                    if self.is_inverse() {
                        (re, im) = (re / length as f64, im / length as f64);
                    }
                    let angle = sign * PI * (j * k % length) as f64 / length as f64;
                    let (sine, cosine) = angle.sin_cos();
                    sum = (sum.0 + re * cosine - im * sine, sum.1 + re * sine + im * cosine);
                }
                result.push(sum);
            }
            values = result;
            sizes[d] = written;
        }
        (values, sizes)
    }

    fn check(&self, runs: &[&[i64]]) {
        let executable = self.executable(self.fetches());
        let names = self.names();
        let largest: Vec<i64> = names.iter().map(|&(_, most)| most).collect();
        let whole = self.sizes(&largest);
        let count: i64 = whole.iter().product();
        for &given in runs {
            let sizes = self.sizes(given);
            let mut x = Vec::new();
            let mut parts = [vec![f32::NAN; count as usize], vec![f32::NAN; count as usize]];
            for at in 0..count {
                let mut rest = at;
                let mut is_inside = true;
                for (&most, &size) in whole.iter().zip(&sizes).rev() {
                    is_inside &= rest % most < size;
                    rest /= most;
                }
                if is_inside {
                    let value = |seed: u64| {
                        let mixed = (at as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                        (mixed >> 40) as f32 / (1u64 << 23) as f32 - 1.0
                    };
                    let (re, im) = (value(11), if self.reads_reals() { 0.0 } else { value(1301) });
                    (parts[0][at as usize], parts[1][at as usize]) = (re, im);
                    x.push((f64::from(re), f64::from(im)));
                }
            }
            let feeds = if self.reads_reals() { &parts[..1] } else { &parts[..] };
            let mut arguments: Vec<Literal> =
                feeds.iter().map(|part| Literal::from_elements(&whole, part)).collect();
            arguments.extend(given.iter().map(|&size| Literal::scalar(size as i32)));
            let mut session = executable.session(&arguments).expect("a session");
            session.run().expect("it runs");
            let results = session.results().expect("results");
            let (want, result) = self.expected(&x, &sizes);
            let scale = want.iter().map(|(re, im)| re * re + im * im).sum::<f64>() / want.len() as f64;
            let limit = TOLERANCE * scale.sqrt();
            for (k, array) in results.iter().take(2).enumerate() {
                assert_eq!(array.array_shape().sizes(), result, "{} of {sizes:?}", self.op);
                for (at, got) in array.to_vec::<f32>().expect("floats").into_iter().enumerate() {
                    let want = if k == 0 { want[at].0 } else { want[at].1 };
                    let is_close = (f64::from(got) - want).abs() <= limit;
                    assert!(is_close, "{} of {sizes:?}: part {k} of {at} is {got}, not {want}", self.op);
                }
            }
        }
    }
}

fn complex<'a>(op: &'a str, dimensions: &'a [Dimension], transformed: usize) -> Case<'a> {
    Case { op, dimensions, transformed, length: (1, 0) }
}

/// Checks transforms of dimension 1, of numbers and of spectra. The first run has one frequency.
fn check_kinds(dimensions: &[Dimension], runs: &[&[i64]]) {
    for op in ["FFT", "IFFT", "RFFT"] {
        complex(op, dimensions, 1).check(runs);
    }
    // Spectra of signals of odd and of even length.
    Case { length: (2, -1), ..complex("IRFFT", dimensions, 1) }.check(runs);
    Case { length: (2, -2), ..complex("IRFFT", dimensions, 1) }.check(&runs[1..]);
}

#[test]
fn short_transforms_have_the_length_of_the_run() {
    let runs: Vec<[i64; 2]> = (1..=40).map(|n| [1 + n % 3, n]).collect();
    let runs: Vec<&[i64]> = runs.iter().map(|run| &run[..]).collect();
    let dimensions = [Open("batch", 3), Open("n", 40)];
    check_kinds(&dimensions, &runs);
}

#[test]
fn long_transforms_have_the_length_of_the_run() {
    let runs: [&[i64]; 12] =
        [&[1], &[2], &[3], &[7], &[64], &[97], &[128], &[200], &[251], &[256], &[299], &[300]];
    let dimensions = [Known(5), Open("n", 300)];
    check_kinds(&dimensions, &runs);
}

#[test]
fn signals_are_cut_and_padded_to_the_length() {
    let dimensions = [Open("n", 90), Known(2), Open("m", 45)];
    let runs: [&[i64]; 4] = [&[1, 2], &[90, 45], &[7, 9], &[50, 44]];
    for length in [(2, 3), (1, -1), (0, 12)] {
        Case { length, ..complex("RFFT", &dimensions, 1) }.check(&runs);
        Case { length, ..complex("IRFFT", &dimensions, 1) }.check(&runs);
    }
}

#[test]
fn several_dimensions_are_transformed() {
    // Texts of tokens, as in FNet.
    let texts = [Open("batch", 3), Open("tokens", 33), Known(12)];
    let runs: [&[i64]; 6] = [&[1, 1], &[3, 2], &[2, 17], &[1, 33], &[3, 33], &[3, 32]];
    for op in ["FFT2D", "IFFT2D", "RFFT2D"] {
        complex(op, &texts, 2).check(&runs);
    }
    Case { length: (0, 22), ..complex("IRFFT2D", &texts, 2) }.check(&runs);
    let images = [Known(2), Open("height", 20), Open("width", 70)];
    let runs: [&[i64]; 5] = [&[1, 2], &[2, 1], &[19, 70], &[20, 31], &[20, 70]];
    for op in ["FFT2D", "IFFT2D", "RFFT2D"] {
        complex(op, &images, 2).check(&runs);
    }
    let even = Case { length: (2, -2), ..complex("IRFFT2D", &images, 2) };
    even.check(&[&[1, 2], &[2, 9], &[20, 70]]);
    let volumes = [Open("n", 2), Open("a", 5), Known(6), Open("b", 9)];
    let runs: [&[i64]; 4] = [&[1, 1, 2], &[2, 5, 9], &[2, 3, 4], &[1, 4, 7]];
    for op in ["FFT3D", "IFFT3D", "RFFT3D"] {
        complex(op, &volumes, 3).check(&runs);
    }
    Case { length: (2, -2), ..complex("IRFFT3D", &volumes, 3) }.check(&runs);
}

/// A name may stand for several dimensions.
#[test]
fn dimensions_of_one_name_have_one_length() {
    let square = [Open("n", 24), Open("n", 24)];
    complex("FFT2D", &square, 2).check(&[&[1], &[2], &[13], &[24]]);
}

/// Transforms of known length do not compute beyond the sizes around them.
#[test]
fn transforms_end_at_all_sizes_around_them() {
    let case = complex("FFT", &[Open("batch", 4), Open("tokens", 60), Known(12)], 1);
    let executable = case.executable(&["y"]);
    let whole = [4, 60, 12];
    let ones = Literal::from_elements(&whole, &[1f32; 4 * 60 * 12]);
    for [batch, tokens] in [[1, 1], [3, 7], [4, 33], [2, 60], [4, 60]] {
        let sizes = [batch, tokens].map(Literal::scalar::<i32>);
        let arguments = [&[ones.clone(), ones.clone()], &sizes[..]].concat();
        let mut session = executable.session(&arguments).expect("a session");
        let before = session.whole_results().expect("results").remove(0);
        session.run().expect("it runs");
        let after = session.whole_results().expect("results").remove(0);
        let changed: Vec<bool> = before.scalars().zip(after.scalars()).map(|(old, new)| old != new).collect();
        // Texts of ones have one frequency. Neighboring lines are transformed together.
        for (line, changed) in changed.chunks(12).enumerate() {
            let (b, t) = (line as i32 / 60, line as i32 % 60);
            assert!(changed[0] || b >= batch || t >= tokens, "{batch} x {tokens}: {b}, {t} is not computed");
            let is_near = (b < batch && t < tokens + 15) || (b == batch && t < 15);
            assert!(!changed[0] || is_near, "{batch} x {tokens}: {b}, {t} is computed");
        }
    }
}
