//! Factors of matrices of open sizes, checked by what defines them.

use super::result;
use crate::support::{refuse, succeed, tfcompile};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;

/// Largest error of products of factors of numbers of about 1.
const TOLERANCE: f32 = 2e-5;

fn write_graph(place: &Path, op: &str, attributes: &[(&str, bool)]) {
    let attributes: String = attributes
        .iter()
        .map(|(name, value)| format!("attr {{ key: \"{name}\" value {{ b: {value} }} }} "))
        .collect();
    let graph = format!(
        "node {{ name: \"x\" op: \"Placeholder\" attr {{ key: \"dtype\" value {{ type: DT_FLOAT }} }}\n \
           attr {{ key: \"shape\" value {{ shape {{ dim {{ size: -1 }} dim {{ size: -1 }} }} }} }} }}\n\
         node {{ name: \"f\" op: \"{op}\" input: \"x\" attr {{ key: \"T\" value {{ type: DT_FLOAT }} }} {attributes} }}\n\
         versions {{ producer: 1286 }}\n"
    );
    std::fs::write(place.join("g.pbtxt"), graph).expect("writable");
}

/// A matrix in rows.
#[derive(Clone)]
struct Matrix {
    sizes: [usize; 2],
    numbers: Vec<f32>,
}

impl Matrix {
    fn of(sizes: [usize; 2], element: impl Fn(usize, usize) -> f32) -> Self {
        let places = (0..sizes[0]).flat_map(|i| (0..sizes[1]).map(move |j| (i, j)));
        Self { sizes, numbers: places.map(|(i, j)| element(i, j)).collect() }
    }

    fn at(&self, i: usize, j: usize) -> f32 {
        self.numbers[i * self.sizes[1] + j]
    }

    fn transposed(&self) -> Self {
        Self::of([self.sizes[1], self.sizes[0]], |i, j| self.at(j, i))
    }

    fn times(&self, other: &Self) -> Self {
        assert_eq!(self.sizes[1], other.sizes[0]);
        Self::of([self.sizes[0], other.sizes[1]], |i, j| {
            (0..self.sizes[1]).map(|k| self.at(i, k) * other.at(k, j)).sum()
        })
    }

    fn first_columns(&self, count: usize) -> Self {
        Self::of([self.sizes[0], count], |i, j| self.at(i, j))
    }

    fn assert_is(&self, other: &Self, what: &str) {
        assert_eq!(self.sizes, other.sizes, "{what}");
        for (a, b) in self.numbers.iter().zip(&other.numbers) {
            assert!((a - b).abs() <= TOLERANCE, "{what}: {a}, not {b}");
        }
    }

    fn assert_orthonormal(&self, what: &str) {
        let identity = Self::of([self.sizes[1]; 2], |i, j| f32::from(u8::from(i == j)));
        self.transposed().times(self).assert_is(&identity, what);
    }
}

/// Matrices of full rank, of rank 1, and of zeros.
fn matrices(sizes: [usize; 2]) -> [Matrix; 3] {
    let number = |k: usize| ((k * 7919 + 11) % 2003) as f32 / 1001.0 - 1.0;
    [
        Matrix::of(sizes, |i, j| number(i * 31 + j * 17 + i * j)),
        Matrix::of(sizes, |i, j| number(i + 5) * number(3 * j + 1)),
        Matrix::of(sizes, |_, _| 0.0),
    ]
}

/// Runs the graph and returns results of it.
fn run(place: &Path, dims: &[&str], x: &Matrix, fetches: &[&str]) -> Vec<Matrix> {
    let sizes = x.sizes.map(|size| size as i64);
    let feed = BTreeMap::from([("x".to_owned(), Literal::from_elements(&sizes, &x.numbers))]);
    std::fs::write(place.join("in.npz"), npz::write(&feed).expect("small")).expect("writable");
    let mut tool = tfcompile(place);
    tool.args(["run", "g.pbtxt", "--feed=@in.npz", "--out=out.npz"]).args(dims);
    succeed(tool.args(fetches.iter().map(|fetch| format!("--fetch={fetch}"))));
    let read = |fetch: &&str| {
        let array = result(place, &fetch.trim_end_matches(":0").replace(':', "_"));
        let numbers = array.to_vec::<f32>().expect("floats");
        let sizes: Vec<usize> = array.array_shape().sizes().iter().map(|&size| size as usize).collect();
        let sizes = if let [rows, columns] = sizes[..] { [rows, columns] } else { [1, sizes[0]] };
        Matrix { sizes, numbers }
    };
    fetches.iter().map(read).collect()
}

const SQUARE: &[&str] = &["--dim=x.0=n", "--dim=x.1=n", "--dim=n=1..9"];
const ANY: &[&str] = &["--dim=x.0=1..9", "--dim=x.1=1..7"];
const TALL: &[&str] = &["--dim=x.0=3..9", "--dim=x.1=3"];
const WIDE: &[&str] = &["--dim=x.0=2", "--dim=x.1=2..7"];

/// Flags, and sizes of runs.
const SHAPES: [(&[&str], &[[usize; 2]]); 4] = [
    (SQUARE, &[[1, 1], [2, 2], [5, 5], [8, 8], [9, 9]]),
    (TALL, &[[3, 3], [4, 3], [9, 3]]),
    (WIDE, &[[2, 2], [2, 3], [2, 7]]),
    (ANY, &[[1, 1], [1, 7], [9, 1], [9, 7], [3, 5], [6, 2], [4, 4]]),
];

#[test]
fn factors_of_matrices_of_any_size_are_orthonormal_and_triangular() {
    let place = tempfile::tempdir().expect("a directory");
    for full in [false, true] {
        write_graph(place.path(), "Qr", &[("full_matrices", full)]);
        for (dims, runs) in SHAPES {
            for x in runs.iter().flat_map(|&sizes| matrices(sizes)) {
                let what = format!("{:?}, full: {full}", x.sizes);
                let [rows, columns] = x.sizes;
                let width = if full { rows } else { rows.min(columns) };
                let factors = run(place.path(), dims, &x, &["f:0", "f:1"]);
                let (q, r) = (&factors[0], &factors[1]);
                assert_eq!((q.sizes, r.sizes), ([rows, width], [width, columns]), "{what}");
                q.assert_orthonormal(&what);
                q.times(r).assert_is(&x, &what);
                let is_zero = (0..width).all(|i| (0..columns.min(i)).all(|j| r.at(i, j) == 0.0));
                assert!(is_zero, "{what}: not triangular");
            }
        }
    }
}

#[test]
fn singular_vectors_of_open_sizes_are_orthonormal() {
    let place = tempfile::tempdir().expect("a directory");
    for full in [false, true] {
        write_graph(place.path(), "Svd", &[("full_matrices", full), ("compute_uv", true)]);
        for (dims, runs) in &SHAPES[..3] {
            for x in runs.iter().flat_map(|&sizes| matrices(sizes)) {
                let what = format!("{:?}, full: {full}", x.sizes);
                let [rows, columns] = x.sizes;
                let least = rows.min(columns);
                let parts = run(place.path(), dims, &x, &["f:0", "f:1", "f:2"]);
                let (s, u, v) = (&parts[0], &parts[1], &parts[2]);
                let width = |size: usize| if full { size } else { least };
                let expected = ([1, least], [rows, width(rows)], [columns, width(columns)]);
                assert_eq!((s.sizes, u.sizes, v.sizes), expected, "{what}");
                u.assert_orthonormal(&what);
                v.assert_orthonormal(&what);
                assert!(s.numbers.is_sorted_by(|a, b| a >= b && *b >= 0.0), "{what}: {:?}", s.numbers);
                let scaled = Matrix::of([rows, least], |i, j| u.at(i, j) * s.at(0, j));
                scaled.times(&v.first_columns(least).transposed()).assert_is(&x, &what);
            }
        }
    }
}

#[test]
fn singular_values_of_two_open_sizes_are_those_of_the_gram_matrix() {
    let place = tempfile::tempdir().expect("a directory");
    write_graph(place.path(), "Svd", &[("compute_uv", false)]);
    for (dims, runs) in SHAPES {
        for x in runs.iter().flat_map(|&sizes| matrices(sizes)) {
            let s = run(place.path(), dims, &x, &["f:0"]).remove(0);
            let what = format!("{:?}: {:?}", x.sizes, s.numbers);
            let least = x.sizes[0].min(x.sizes[1]);
            assert_eq!(s.sizes, [1, least], "{what}");
            assert!(s.numbers.is_sorted_by(|a, b| a >= b && *b >= 0.0), "{what}");
            // Sums of powers of the values are traces.
            let gram =
                if x.sizes[0] < x.sizes[1] { x.times(&x.transposed()) } else { x.transposed().times(&x) };
            let trace = |m: &Matrix| (0..least).map(|i| m.at(i, i)).sum::<f32>();
            let mut power = gram.clone();
            for exponent in 1..=least.min(3) as i32 {
                let (sum, trace) =
                    (s.numbers.iter().map(|s| s.powi(2 * exponent)).sum::<f32>(), trace(&power));
                assert!((sum - trace).abs() <= TOLERANCE * trace.max(1.0), "{what}: {sum}, not {trace}");
                power = power.times(&gram);
            }
        }
    }
}

#[test]
fn singular_vectors_of_two_open_sizes_are_refused() {
    let place = tempfile::tempdir().expect("a directory");
    write_graph(place.path(), "Svd", &[("compute_uv", true)]);
    let mut tool = tfcompile(place.path());
    tool.args(["run", "g.pbtxt", "--fetch=f:1", "--random=1"]).args(ANY);
    let message = refuse(&mut tool, place.path());
    assert!(message.contains("'f'") && message.contains("Svd"), "{message}");
    assert!(message.contains("fix a size with --dim NAME=N"), "{message}");
}
