//! Compares the whole program with the module as imported.

use super::analysis::Analysis;
use super::compare::Comparison;
use super::estimate::{Estimate, Growth, Known, distance};
use super::{Subject, VerifyOptions};
use crate::Progress;
use crate::fill::{Fill, Random};
use hlo::{Module, Op, SizeParameter};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

/// A run of the program and of the evaluator.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramCheck {
    /// Kind of input.
    pub fill: Fill,
    /// Sizes of the named dimensions, by name.
    pub sizes: Vec<(String, i64)>,
    /// One comparison per result: fetches, then written variables.
    pub results: Vec<Comparison>,
    /// True if limits were estimated for each element. Otherwise results are only compared as a
    /// whole.
    pub estimated: bool,
    /// Without estimates: the largest relative distance of a result from the evaluator's, by norm.
    pub distance: f64,
}

/// Allowed relative distance of a whole result, by norm, without estimates.
const COARSE: f64 = 1e-3;

impl ProgramCheck {
    /// True if the results are correct.
    pub fn passed(&self) -> bool {
        if self.estimated { self.results.iter().all(Comparison::passed) } else { self.distance <= COARSE }
    }

    /// Describes the inputs: `random`, or `random, batch=7`.
    pub fn inputs(&self) -> String {
        let sizes = self.sizes.iter().map(|(name, size)| format!(", {name}={size}"));
        format!("{}{}", self.fill.name(), sizes.collect::<String>())
    }
}

/// A choice of the sizes of all named dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    Least,
    Between,
    Largest,
}

impl Sizes {
    /// Returns the size from a range.
    fn of(self, size: &SizeParameter) -> i64 {
        match self {
            Self::Least => size.low,
            // An odd one is rarely a multiple of a tile.
            Self::Between => (size.low.midpoint(size.high) | 1).min(size.high),
            Self::Largest => size.high,
        }
    }
}

/// Generates arguments for the whole program. Variables are nonnegative unless the kind of input
/// requires otherwise, because they may hold variances and counts.
///
/// Elements beyond the sizes of named dimensions are filled, too: nothing may depend on them.
pub(super) fn arguments(subject: &Subject<'_>, fill: Fill, sizes: Sizes, seed: u64) -> Result<Vec<Literal>> {
    let random = Random::new(seed);
    let parameters = subject.imported.entry_computation().program_shape().parameters;
    let named = subject.imported.size_parameters();
    let array = |(k, shape): (usize, &shape::Shape)| {
        if let Some(size) = named.iter().find(|size| size.parameter == k) {
            let size = i32::try_from(sizes.of(size));
            return Ok(Literal::scalar(size.map_err(|_| Error::internal("a size exceeds its range"))?));
        }
        let fill = if k >= subject.feeds && fill == Fill::Random { Fill::Positive } else { fill };
        fill.array(shape.expect_array(), &mut random.fork(k))
    };
    parameters.iter().enumerate().map(array).collect()
}

/// Compares the program on random inputs, and small programs on every kind of input.
pub(super) fn check(
    subject: &Subject<'_>,
    options: &VerifyOptions,
    flops: u64,
    progress: &mut Progress<'_>,
) -> Result<Vec<ProgramCheck>> {
    let fills: &[Fill] = if flops <= options.small_program { &Fill::ALL } else { &[Fill::Random] };
    let mut checks = Vec::new();
    let others: &[Sizes] =
        if subject.imported.size_parameters().is_empty() { &[] } else { &[Sizes::Least, Sizes::Between] };
    let runs = others.iter().map(|&sizes| (Fill::Random, sizes));
    for (fill, sizes) in runs.chain(fills.iter().map(|&fill| (fill, Sizes::Largest))) {
        progress(&format!("the whole program, {} inputs", fill.name()), 1, 1);
        let arguments = arguments(subject, fill, sizes, options.seed)?;
        // Loops may run long; then only random inputs are used.
        let budget = if fill == Fill::Random { options.estimated_program } else { options.small_program };
        let want = if flops <= options.estimated_program {
            Analysis::new(subject.imported, Growth::Independent).run_within(&arguments, budget)?
        } else {
            None
        };
        if want.is_none() && fill != Fill::Random {
            break;
        }
        let got = subject.program.run_whole(&arguments)?;
        checks.push(match want {
            Some(want) => {
                let check = compare(subject, (fill, sizes), &got, &want, true);
                if check.passed() { check } else { doubt(subject, check, &arguments, &got, &want)? }
            }
            None => {
                let want = Estimate::exact(&evaluator::evaluate_computation(
                    subject.imported,
                    subject.imported.entry(),
                    &arguments,
                )?);
                compare(subject, (fill, sizes), &got, &want, false)
            }
        });
    }
    Ok(checks)
}

/// Budget factor for the module after the passes, which expand functions.
const OPTIMIZED: u64 = 4;

/// Compares the results of one run with the evaluator's on the same arguments, with worst-case
/// error bounds. Also compares signs of zeros if nothing rounds. Returns one comparison per result,
/// or `None` if this requires computing more than `budget` elements.
///
/// `imported` defines the program's meaning; the code was generated from `optimized`. Elements that
/// may overflow in the order of the latter are undecided.
pub fn compare_run(
    imported: &Module,
    optimized: &Module,
    arguments: &[Literal],
    got: &[Literal],
    budget: u64,
) -> Result<Option<Vec<Comparison>>> {
    let Some(want) = Analysis::new(imported, Growth::Worst).run_within(arguments, budget)? else {
        return Ok(None);
    };
    let want = want.arrays();
    if got.len() != want.len() {
        return Err(Error::internal(format!("{} results, not {}", got.len(), want.len())));
    }
    let name = |k: usize| format!("result {k}");
    let chooses_zeros = chooses_zeros(imported);
    let signed = |compared: Comparison, got: &Literal, want: &Known| {
        if chooses_zeros { compared } else { compared.with_signs(got, want) }
    };
    let pairs = got.iter().zip(&want).enumerate();
    let compared = pairs.map(|(k, (got, want))| signed(Comparison::of(&name(k), got, want), got, want));
    let results: Vec<Comparison> = compared.collect();
    if results.iter().all(Comparison::passed) {
        return Ok(Some(results));
    }
    // The module after the passes has more instructions.
    let budget = budget.saturating_mul(OPTIMIZED);
    let Some(optimized) = Analysis::new(optimized, Growth::Worst).run_within(arguments, budget)? else {
        return Ok(None);
    };
    let pairs = got.iter().zip(want).zip(optimized.arrays()).enumerate();
    let results = pairs.map(|(k, ((got, want), optimized))| {
        let limits = want.errors().into_iter().zip(optimized.errors());
        let may_be: Vec<f64> =
            limits.map(|(limit, other)| if other == f64::INFINITY { other } else { limit }).collect();
        signed(Comparison::within(&name(k), got, want, &may_be), got, want)
    });
    Ok(Some(results.collect()))
}

/// True if a module contains an instruction that may return either of two zeros with different
/// signs: a choice between them, or a solver or transform, which may sum in any order.
fn chooses_zeros(module: &Module) -> bool {
    let chooses = |op: &Op| {
        matches!(
            op,
            Op::Maximum {}
                | Op::Minimum {}
                | Op::Clamp {}
                | Op::Cholesky { .. }
                | Op::Fft { .. }
                | Op::TriangularSolve { .. }
        )
    };
    module.computations().any(|(_, computation)| computation.instructions().any(|(_, i)| chooses(i.op())))
}

/// Allowed ratio between an error and the limit for independent errors, on random inputs, where few
/// errors are dependent.
const DEPENDENT: f64 = 1024.0;

/// Re-examines a program that fails if errors are independent. Elements within the worst-case bound
/// are undecided, and so are those that may overflow in the order of the optimized module.
fn doubt(
    subject: &Subject<'_>,
    check: ProgramCheck,
    arguments: &[Literal],
    got: &[Literal],
    want: &Estimate,
) -> Result<ProgramCheck> {
    let worst = Analysis::new(subject.imported, Growth::Worst).run(arguments)?;
    let optimized = Analysis::new(subject.optimized, Growth::Worst).run(arguments)?;
    let got = &true_arrays(subject, got.to_vec());
    let want = true_known(subject, want);
    let arrays = want.into_iter().zip(worst.arrays()).zip(optimized.arrays());
    let results =
        check.results.iter().zip(got).zip(arrays).map(|((result, got), ((want, worst), optimized))| {
            let limits = want.errors().into_iter().zip(worst.errors()).zip(optimized.errors());
            let may_be = limits.map(|((limit, worst), optimized)| match check.fill {
                _ if optimized == f64::INFINITY => f64::INFINITY,
                Fill::Random => worst.min(limit * DEPENDENT),
                _ => worst,
            });
            Comparison::within(&result.name, got, &want, &may_be.collect::<Vec<_>>())
        });
    let results = results.collect();
    Ok(ProgramCheck { results, ..check })
}

fn compare(
    subject: &Subject<'_>,
    (fill, sizes): (Fill, Sizes),
    got: &[Literal],
    want: &Estimate,
    estimated: bool,
) -> ProgramCheck {
    let got = &true_arrays(subject, got.to_vec());
    let arrays = true_known(subject, want);
    let entry = subject.imported.entry_computation();
    let named = subject.imported.size_parameters().iter();
    let sizes = named
        .map(|size| (entry[entry.parameters()[size.parameter]].name().to_owned(), sizes.of(size)))
        .collect();
    let name = |k: usize| subject.results.get(k).map_or("result", String::as_str);
    let pairs = got.iter().zip(&arrays).enumerate();
    let mut results: Vec<Comparison> =
        pairs.map(|(k, (got, want))| Comparison::of(name(k), got, want)).collect();
    if !estimated {
        for result in &mut results {
            (result.mismatches, result.first) = (0, None);
        }
    }
    let distances = got.iter().zip(&arrays).map(|(got, want)| norm_distance(got, want));
    ProgramCheck { fill, sizes, results, estimated, distance: distances.fold(0.0, f64::max) }
}

/// Returns results with zeros beyond the true sizes of their bounded dimensions, where anything is
/// right. The sizes are the last results.
fn true_arrays(subject: &Subject<'_>, mut arrays: Vec<Literal>) -> Vec<Literal> {
    let bounded = subject.imported.bounded_dimensions();
    let count = arrays.len().saturating_sub(bounded.len());
    for k in 0..count {
        let whole = arrays[k].array_shape().sizes();
        let mut sizes = whole.clone();
        for (position, own) in bounded.iter().enumerate().filter(|(_, own)| own.result == k) {
            let size = arrays[count + position].scalar_at(0).as_i64().unwrap_or(0);
            sizes[own.dimension] = size.clamp(0, whole[own.dimension]);
        }
        if sizes != whole
            && let Some(cut) = arrays[k].corner(&sizes).and_then(|corner| corner.in_corner_of(&whole))
        {
            arrays[k] = cut;
        }
    }
    arrays
}

/// Like [`true_arrays`], for the evaluator's results.
fn true_known(subject: &Subject<'_>, want: &Estimate) -> Vec<Known> {
    let mut known: Vec<Known> = want.arrays().into_iter().cloned().collect();
    let values = true_arrays(subject, known.iter().map(|known| known.value.clone()).collect());
    known.iter_mut().zip(values).for_each(|(known, value)| known.value = value);
    known
}

/// Returns the root of the sum of squared distances, relative to that of the squares; infinite if
/// only one number is NaN or infinite.
fn norm_distance(got: &Literal, want: &Known) -> f64 {
    let want = &want.value;
    let element_type = want.array_shape().element_type;
    if element_type.is_integer() || element_type == PrimitiveType::Pred {
        // A tie that tips changes an index: one in a thousand may.
        let wrong = got.scalars().zip(want.scalars()).filter(|(a, b)| a != b).count();
        return wrong as f64 / want.array_shape().element_count().max(1) as f64;
    }
    let (mut squares, mut norm) = (0.0, 0.0);
    for (got, want) in got.scalars().zip(want.scalars()) {
        squares += distance(got, want).powi(2);
        let magnitude = match want {
            shape::Scalar::Complex(re, im) => re.hypot(im),
            other => other.as_f64().unwrap_or(0.0),
        };
        norm += if magnitude.is_finite() { magnitude * magnitude } else { 0.0 };
    }
    if squares == 0.0 { 0.0 } else { (squares / norm).sqrt() }
}

/// Returns the first pass after which the evaluator disagrees with the module as imported, or
/// `None`.
pub(super) fn guilty_pass(
    subject: &Subject<'_>,
    failed: &ProgramCheck,
    options: &VerifyOptions,
) -> Result<Option<String>> {
    let is_of = |sizes: &Sizes| {
        let own = subject.imported.size_parameters().iter().map(|size| sizes.of(size));
        own.eq(failed.sizes.iter().map(|(_, size)| *size))
    };
    let sizes = [Sizes::Largest, Sizes::Least, Sizes::Between].into_iter().find(is_of);
    let (fill, sizes) = (failed.fill, sizes.unwrap_or(Sizes::Largest));
    let arguments = arguments(subject, fill, sizes, options.seed)?;
    let want = Analysis::new(subject.imported, Growth::Independent).run(&arguments)?;
    let mut guilty = Ok(None);
    let mut module = subject.imported.clone();
    compiler::pipeline().run(&mut module, &[], |record, module| {
        if !record.changed || !matches!(guilty, Ok(None)) {
            return;
        }
        guilty = evaluator::evaluate(module, &arguments).map(|got| {
            let Literal::Tuple(got) = got else { return Some(record.name.to_owned()) };
            let agrees = compare(subject, (fill, sizes), &got, &want, true).passed();
            (!agrees).then(|| record.name.to_owned())
        });
    })?;
    guilty.map_err(|e: Error| e.context("evaluating between passes"))
}
