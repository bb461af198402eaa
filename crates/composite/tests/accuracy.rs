//! Special functions of `f64` against values of 50 digits (mpmath 1.4.1), rounded: `data/special_functions.txt` has a name,
//! arguments and a value a line, all numbers as their bits. The points are random, and next to roots.

use composite::{Expression, build, special};
use hlo::{Module, OpMetadata};
use shape::{Literal, Shape};
use std::collections::BTreeMap;

/// How a function is made of its arguments.
type Build = for<'f> fn(&[Expression<'f>]) -> Expression<'f>;

/// The functions, and how many units in the last place they may be off: more than 4 where an ulp of an argument changes the
/// value by as many: powers and exponentials (`P` and `Q`), tails of `I_x`.
const FUNCTIONS: &[(&str, Build, f64)] = &[
    ("bessel_i0", |x| special::bessel_i0(x[0]), 4.0),
    ("bessel_i0e", |x| special::bessel_i0e(x[0]), 4.0),
    ("bessel_i1", |x| special::bessel_i1(x[0]), 4.0),
    ("bessel_i1e", |x| special::bessel_i1e(x[0]), 4.0),
    ("bessel_j0", |x| special::bessel_j0(x[0]), 4.0),
    ("bessel_j1", |x| special::bessel_j1(x[0]), 4.0),
    ("bessel_k0", |x| special::bessel_k0(x[0]), 4.0),
    ("bessel_k0e", |x| special::bessel_k0e(x[0]), 4.0),
    ("bessel_k1", |x| special::bessel_k1(x[0]), 4.0),
    ("bessel_k1e", |x| special::bessel_k1e(x[0]), 4.0),
    ("bessel_y0", |x| special::bessel_y0(x[0]), 4.0),
    ("bessel_y1", |x| special::bessel_y1(x[0]), 4.0),
    ("betainc", |x| special::betainc(x[0], x[1], x[2]), 64.0),
    ("digamma", |x| special::digamma_near_roots(x[0]), 4.0),
    ("erf_inv", |x| special::erf_inv(x[0]), 4.0),
    ("igamma", |x| special::igamma(x[0], x[1]), 8.0),
    ("igammac", |x| special::igammac(x[0], x[1]), 12.0),
    ("lgamma", |x| special::lgamma_near_roots(x[0]), 4.0),
    ("ndtri", |x| special::ndtri(x[0]), 4.0),
    ("polygamma", |x| special::polygamma(x[0], x[1]), 4.0),
    ("zeta", |x| special::zeta(x[0], x[1]), 4.0),
];

/// The distance in units of the last place of the value.
fn ulps(got: f64, want: f64) -> f64 {
    if got == want {
        return 0.0;
    }
    let last_place = f64::from_bits(want.abs().to_bits() + 1) - want.abs();
    (got - want).abs() / last_place
}

fn evaluate(function: Build, columns: &[Vec<f64>]) -> Vec<f64> {
    let arguments: Vec<Literal> =
        columns.iter().map(|column| Literal::from_elements(&[column.len() as i64], column)).collect();
    let mut module = Module::new("test");
    let parameters: Vec<Shape> = arguments.iter().map(Literal::shape).collect();
    let id = build(&mut module, "f", &OpMetadata::default(), &parameters, |_, x| vec![function(x)])
        .expect("a valid function");
    module.set_entry(id);
    hlo::verify(&module).expect("a valid module");
    evaluator::evaluate(&module, &arguments).expect("a value").to_vec::<f64>().expect("f64")
}

#[test]
fn values_are_within_units_of_the_last_place() {
    let mut points: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for line in include_str!("data/special_functions.txt").lines() {
        let (name, numbers) = line.split_once(' ').expect("a name and numbers");
        let number = |bits: &str| f64::from_bits(u64::from_str_radix(bits, 16).expect("16 digits"));
        points.entry(name).or_default().push(numbers.split(' ').map(number).collect());
    }
    let mut wrong = Vec::new();
    for (name, function, limit) in FUNCTIONS {
        let rows = &points[name];
        let arguments = rows[0].len() - 1;
        let columns: Vec<Vec<f64>> =
            (0..arguments).map(|k| rows.iter().map(|row| row[k]).collect()).collect();
        let got = evaluate(*function, &columns);
        let errors = got.iter().zip(rows).map(|(&got, row)| ulps(got, row[arguments]));
        let (at, worst) = errors.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).expect("a point");
        println!("{name:<12} {worst:8.2} at {:?}: {:e}", &rows[at][..arguments], got[at]);
        if worst.is_nan() || worst > *limit {
            wrong.push(*name);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
