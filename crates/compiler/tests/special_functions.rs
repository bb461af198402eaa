//! Accuracy of the special functions of `f64`, compiled and evaluated, against values computed with
//! at least 50 digits and rounded.
//!
//! Each line of `data/special_functions.txt` has a name, arguments, and a value, with all numbers
//! as their bits. The points are random, or close to roots. Those of incomplete functions have
//! parameters log-uniform in [1e-3, 1e6], and arguments that are anywhere, within 1.5 and 35
//! deviations of the mean, close to 0, or where the value is subnormal.
//!
//! Values are those of mpmath 1.4.1 and gmpy2 2.3.2, except for the following, which are computed
//! with 260 bits plus the bits lost in a difference from 1:
//!
//! ```text
//! igamma(a, x)     exp(a log(x) - x - lgamma(a + 1)) sum x^n / ((a + 1) ... (a + n));
//!                  igammac is 1 minus that
//! igamma_grad_a    exp(a log(x) - x - lgamma(a + 1))
//!                  (s (log(x) - digamma(a + 1)) - sum t_n (1 / (a + 1) + ... + 1 / (a + n))),
//!                  with t_n and s the terms and the sum of igamma; random_gamma_grad is that
//!                  divided by -x^(a - 1) exp(-x) / gamma(a), where x^a exp(-x) / gamma(a) is a
//!                  normal number
//! betainc(a, b, x) exp(a log(x) + b log1p(-x) + lgamma(a + b) - lgamma(a + 1) - lgamma(b))
//!                  sum (a + b)_n / (a + 1)_n x^n
//! zeta(s, q)       the first terms and the Euler-Maclaurin formula;
//!                  polygamma(n, q) is n! zeta(n + 1, q)
//! ```

use compiler::{Executable, NoObserver, compile_module, host, in_process_options};
use composite::{Expression, build, special};
use hlo::{Module, OpMetadata};
use shape::PrimitiveType::{F32, F64};
use shape::{Literal, Shape};
use std::collections::BTreeMap;

/// Builds the expression of a function from its arguments.
type Build = for<'f> fn(&[Expression<'f>]) -> Expression<'f>;

/// Units in the last place that a value may be off.
const LIMIT: f64 = 4.0;

const BESSEL: &[(&str, Build, f64)] = &[
    ("bessel_i0", |x| special::bessel_i0(x[0]), LIMIT),
    ("bessel_i0e", |x| special::bessel_i0e(x[0]), LIMIT),
    ("bessel_i1", |x| special::bessel_i1(x[0]), LIMIT),
    ("bessel_i1e", |x| special::bessel_i1e(x[0]), LIMIT),
    ("bessel_j0", |x| special::bessel_j0(x[0]), LIMIT),
    ("bessel_j1", |x| special::bessel_j1(x[0]), LIMIT),
    ("bessel_k0", |x| special::bessel_k0(x[0]), LIMIT),
    ("bessel_k0e", |x| special::bessel_k0e(x[0]), LIMIT),
    ("bessel_k1", |x| special::bessel_k1(x[0]), LIMIT),
    ("bessel_k1e", |x| special::bessel_k1e(x[0]), LIMIT),
    ("bessel_y0", |x| special::bessel_y0(x[0]), LIMIT),
    ("bessel_y1", |x| special::bessel_y1(x[0]), LIMIT),
];

const GAMMA: &[(&str, Build, f64)] = &[
    ("digamma", |x| special::digamma_near_roots(x[0]), LIMIT),
    ("erf_inv", |x| special::erf_inv(x[0]), LIMIT),
    ("erfc", |x| special::erfc_in_pairs(x[0]), LIMIT),
    ("erfc_of_single", |x| special::erfc_of_single(x[0].convert(F32)).convert(F64), 6.0),
    ("lgamma", |x| special::lgamma_near_roots(x[0]), LIMIT),
    ("ndtri", |x| special::ndtri(x[0]), LIMIT),
    ("polygamma", |x| special::polygamma(x[0], x[1]), LIMIT),
    ("zeta", |x| special::zeta(x[0], x[1]), LIMIT),
];

const INCOMPLETE: &[(&str, Build, f64)] = &[
    ("betainc", |x| special::betainc(x[0], x[1], x[2]), 1.0),
    ("igamma", |x| special::igamma_in_pairs(x[0], x[1]), 1.0),
    ("igammac", |x| special::igammac_in_pairs(x[0], x[1]), 1.0),
    ("igamma_grad_a", |x| special::igamma_grad_a_in_pairs(x[0], x[1]), 1.0),
    ("random_gamma_grad", |x| special::random_gamma_grad_in_pairs(x[0], x[1]), 3.0),
    // Separate, because a loop takes as many steps for all points as for the largest parameter.
    ("betainc_large", |x| special::betainc(x[0], x[1], x[2]), 1.0),
    ("igamma_large", |x| special::igamma_in_pairs(x[0], x[1]), 1.0),
    ("igammac_large", |x| special::igammac_in_pairs(x[0], x[1]), 1.0),
    ("igamma_grad_a_large", |x| special::igamma_grad_a_in_pairs(x[0], x[1]), 1.0),
    ("igamma_of_single", |x| special::igamma(x[0], x[1]), 1.0),
    ("igammac_of_single", |x| special::igammac(x[0], x[1]), 1.0),
];

/// Distance in units of the last place of the expected value, in `f32` for functions whose values
/// are rounded to it.
fn ulps(name: &str, actual: f64, expected: f64) -> f64 {
    if name.ends_with("_of_single") {
        let (actual, expected) = (actual as f32, expected as f32);
        let last_place = f32::from_bits(expected.abs().to_bits() + 1) - expected.abs();
        return f64::from((actual - expected).abs() / last_place);
    }
    if actual == expected {
        return 0.0;
    }
    let last_place = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
    (actual - expected).abs() / last_place
}

/// Values of a function, compiled and evaluated.
fn values(function: Build, columns: &[Vec<f64>]) -> [Vec<f64>; 2] {
    let arguments: Vec<Literal> =
        columns.iter().map(|column| Literal::from_elements(&[column.len() as i64], column)).collect();
    let mut module = Module::new("test");
    let parameters: Vec<Shape> = arguments.iter().map(Literal::shape).collect();
    // A program's result is a tuple: the value and its first argument.
    let id = build(&mut module, "f", &OpMetadata::default(), &parameters, |_, x| vec![function(x), x[0]]);
    module.set_entry(id.expect("a valid function"));
    hlo::verify(&module).expect("a valid module");
    let Literal::Tuple(evaluated) = evaluator::evaluate(&module, &arguments).expect("values") else {
        panic!("two results");
    };
    let options = in_process_options(host("").expect("a target"));
    let compiled = compile_module(module, &options, &mut NoObserver).expect("code");
    let run = Executable::load(&compiled).expect("code that loads").run(&arguments).expect("values");
    [&run[0], &evaluated[0]].map(|values| values.to_vec::<f64>().expect("f64"))
}

#[track_caller]
fn check(functions: &[(&str, Build, f64)]) {
    let mut points: BTreeMap<&str, Vec<Vec<f64>>> = BTreeMap::new();
    for line in include_str!("data/special_functions.txt").lines() {
        let (name, numbers) = line.split_once(' ').expect("a name and numbers");
        let number = |bits: &str| f64::from_bits(u64::from_str_radix(bits, 16).expect("16 digits"));
        points.entry(name).or_default().push(numbers.split(' ').map(number).collect());
    }
    let mut wrong = Vec::new();
    for (name, function, limit) in functions {
        let rows = &points[name];
        let arguments = rows[0].len() - 1;
        let columns: Vec<Vec<f64>> =
            (0..arguments).map(|k| rows.iter().map(|row| row[k]).collect()).collect();
        for (how, got) in ["compiled", "evaluated"].iter().zip(values(*function, &columns)) {
            let errors = got.iter().zip(rows).map(|(&got, row)| ulps(name, got, row[arguments]));
            let (at, worst) = errors.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).expect("a point");
            println!("{name:<17} {how:<9} {worst:8.2} at {:?}: {:e}", &rows[at][..arguments], got[at]);
            if worst.is_nan() || worst > *limit {
                wrong.push(*name);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn bessel_functions_are_within_units_of_the_last_place() {
    check(BESSEL);
}

#[test]
fn gamma_functions_are_within_units_of_the_last_place() {
    check(GAMMA);
}

#[test]
fn incomplete_functions_are_within_units_of_the_last_place() {
    check(INCOMPLETE);
}
