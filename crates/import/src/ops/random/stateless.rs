//! Random numbers derived from a seed, or from a key and a counter, of the graph. They are the same
//! in every run. Those of Philox are TensorFlow's. Those of ThreeFry, which TensorFlow's CPU
//! kernels do not support, are XLA's.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use ::composite::Expression;
use ::composite::philox::{self, Philox};
use ::composite::random::{self, Generator};
use bounded::{Reducer, list};
use hlo::{InstructionId, RandomAlgorithm};
use shape::PrimitiveType;
use support::Result;
use tf::DataType;

const SEEDS: &[DataType] = &[DataType::Int32, DataType::Int64];
const WIDE_INTEGERS: &[DataType] = &[DataType::Int32, DataType::Int64, DataType::Uint32, DataType::Uint64];

pub(crate) const RULES: &[Rule] = &[
    rule("StatelessRandomUniform", |cx| of_seeds(cx, Distribution::Uniform)).types("dtype", FLOATS),
    rule("StatelessRandomNormal", |cx| of_seeds(cx, Distribution::Normal)).types("dtype", FLOATS),
    rule("StatelessTruncatedNormal", |cx| of_seeds(cx, Distribution::TruncatedNormal)).types("dtype", FLOATS),
    rule("StatelessRandomUniformInt", |cx| of_seeds(cx, Distribution::UniformInt))
        .types("dtype", SEEDS)
        .types("Tseed", SEEDS),
    rule("StatelessRandomUniformFullInt", |cx| of_seeds(cx, Distribution::FullInt))
        .types("dtype", WIDE_INTEGERS)
        .types("Tseed", SEEDS),
    rule("StatelessParameterizedTruncatedNormal", parameterized_truncated_normal).types("dtype", FLOATS),
    rule("StatelessMultinomial", multinomial).types("T", REAL),
    rule("StatelessRandomUniformV2", |cx| of_key(cx, Distribution::Uniform)).types("dtype", FLOATS),
    rule("StatelessRandomNormalV2", |cx| of_key(cx, Distribution::Normal)).types("dtype", FLOATS),
    rule("StatelessTruncatedNormalV2", |cx| of_key(cx, Distribution::TruncatedNormal)).types("dtype", FLOATS),
    rule("StatelessRandomUniformIntV2", |cx| of_key(cx, Distribution::UniformInt))
        .types("dtype", WIDE_INTEGERS),
    rule("StatelessRandomUniformFullIntV2", |cx| of_key(cx, Distribution::FullInt))
        .types("dtype", WIDE_INTEGERS),
    rule("StochasticCastToInt", stochastic_cast).types("Tin", FLOATS),
    rule_many("StatelessRandomGetKeyCounter", key_counter),
    rule("StatelessRandomGetAlg", |cx| {
        cx.integers(PrimitiveType::S32, &[PHILOX]).and_then(|id| cx.reshape(id, &[]))
    }),
    rule_many("StatelessRandomGetKeyCounterAlg", key_counter),
];

/// TensorFlow's numbers of the algorithms.
pub(crate) const PHILOX: i64 = 1;
pub(crate) const THREE_FRY: i64 = 2;
const AUTO_SELECT: i64 = 3;

/// The distribution of the numbers derived from random bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Distribution {
    Uniform,
    Normal,
    TruncatedNormal,
    UniformInt,
    FullInt,
}

impl Distribution {
    /// Returns numbers of a type. `range` contains the bounds of `UniformInt`.
    pub(crate) fn numbers<'f>(
        self,
        generator: &mut Generator<'f>,
        element_type: PrimitiveType,
        sizes: &[i64],
        range: &[Expression<'f>],
    ) -> Expression<'f> {
        // `bf16` takes the high bits of `f32`.
        let is_bf16 = element_type == PrimitiveType::Bf16;
        let float = if is_bf16 { PrimitiveType::F32 } else { element_type };
        let numbers = match (self, range) {
            (Self::Uniform, _) => generator.uniform(float, sizes, false),
            (Self::Normal, _) => generator.normal(float, sizes),
            (Self::UniformInt, &[low, high]) => generator.uniform_int(low, high, sizes),
            (Self::TruncatedNormal, _) => {
                random::standard_truncated_normal(generator.uniform(float, sizes, true))
            }
            (Self::UniformInt | Self::FullInt, _) => {
                let wide = element_type.byte_size() == 8;
                let bits = if wide { PrimitiveType::U64 } else { PrimitiveType::U32 };
                generator.bits(bits, sizes).bitcast_convert(element_type)
            }
        };
        if is_bf16 { random::truncate_to_bf16(numbers) } else { numbers }
    }
}

/// Returns numbers as TensorFlow's kernels derive them from Philox. `range` contains the bounds of
/// `UniformInt`.
fn philox_numbers<'f>(
    distribution: Distribution,
    philox: Philox<'f>,
    element_type: PrimitiveType,
    sizes: &[i64],
    range: &[Expression<'f>],
) -> Expression<'f> {
    match (distribution, range) {
        (Distribution::Uniform, _) => philox.uniform(element_type, sizes),
        (Distribution::Normal, _) => philox.normal(element_type, sizes),
        (Distribution::TruncatedNormal, _) => philox.truncated_normal(element_type, sizes),
        (Distribution::UniformInt, &[low, high]) => philox.uniform_integers(low, high, sizes),
        (Distribution::UniformInt | Distribution::FullInt, _) => {
            let wide = element_type.byte_size() == 8;
            let bits = if wide { PrimitiveType::U64 } else { PrimitiveType::U32 };
            philox.full_integers(bits, sizes).bitcast_convert(element_type)
        }
    }
}

/// Returns the seeds at an input: two integers.
fn seeds(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<InstructionId> {
    let seeds = cx.input(k)?;
    let sizes = cx.sizes(seeds);
    cx.check(sizes == [2], || format!("the seed: expected shape [2], got {}", list(&sizes)))?;
    Ok(seeds)
}

/// Returns the bounds of a range at two inputs, which are scalars.
pub(crate) fn range(cx: &mut NodeContext<'_, '_>, first: usize) -> Result<[InstructionId; 2]> {
    let bounds = [cx.input(first)?, cx.input(first + 1)?];
    for bound in bounds {
        let rank = cx.rank(bound);
        cx.check(rank == 0, || format!("minval and maxval: expected scalars, got rank {rank}"))?;
    }
    Ok(bounds)
}

/// `StatelessRandom*(shape, seed, ...)`.
fn of_seeds(cx: &mut NodeContext<'_, '_>, distribution: Distribution) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let mut operands = vec![seeds(cx, 1)?];
    if distribution == Distribution::UniformInt {
        operands.extend(range(cx, 2)?);
    }
    let element_type = cx.type_attribute("dtype")?;
    if sizes.contains(&0) {
        return cx.splat(element_type, &sizes, 0.0);
    }
    cx.composite_one(&operands, |_, operands| {
        let philox = Philox::of_seeds(operands[0]);
        philox_numbers(distribution, philox, element_type, &sizes, &operands[1..])
    })
}

/// Returns the algorithm that an input names, and the number of words of its counter.
pub(crate) fn algorithm(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<(RandomAlgorithm, i64)> {
    match cx.constant_i64(k)? {
        PHILOX | AUTO_SELECT => Ok((RandomAlgorithm::Philox, 2)),
        THREE_FRY => Ok((RandomAlgorithm::ThreeFry, 1)),
        other => Err(cx.invalid(format!(
            "unknown algorithm {other}: expected 1 (Philox), 2 (ThreeFry), or 3 (auto-select)"
        ))),
    }
}

/// Returns the key, the counter, and the algorithm at inputs 1 to 3.
fn key_and_counter(cx: &mut NodeContext<'_, '_>) -> Result<(InstructionId, InstructionId, RandomAlgorithm)> {
    let (key, counter) = (cx.input(1)?, cx.input(2)?);
    let (algorithm, words) = algorithm(cx, 3)?;
    let (key_sizes, counter_sizes) = (cx.sizes(key), cx.sizes(counter));
    let fits = key_sizes == [1] && counter_sizes.len() == 1 && counter_sizes[0] >= words;
    cx.check(fits, || {
        format!(
            "expected a key of shape [1] and a counter of at least {words} elements, got shapes {} and {}",
            list(&key_sizes),
            list(&counter_sizes)
        )
    })?;
    Ok((key, cx.slice_in(counter, 0, 0, words)?, algorithm))
}

/// Creates a Philox generator from two seeds as XLA does. Only the low 32 bits of each matter.
fn of_seeds_as_xla(seeds: Expression<'_>) -> Generator<'_> {
    let Philox { key, counter } = Philox::of_seeds(seeds.convert(PrimitiveType::U32));
    Generator { algorithm: RandomAlgorithm::Philox, key, counter }
}

fn generator<'f>(algorithm: RandomAlgorithm, key: Expression<'f>, counter: Expression<'f>) -> Generator<'f> {
    let [key, counter] = [key, counter].map(|words| words.bitcast_convert(PrimitiveType::U64));
    Generator { algorithm, key: key.reshape(&[]), counter }
}

/// `StatelessRandom*V2(shape, key, counter, alg, ...)`.
fn of_key(cx: &mut NodeContext<'_, '_>, distribution: Distribution) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let (key, counter, algorithm) = key_and_counter(cx)?;
    let mut operands = vec![key, counter];
    if distribution == Distribution::UniformInt {
        operands.extend(range(cx, 4)?);
    }
    let element_type = cx.type_attribute("dtype")?;
    if sizes.contains(&0) {
        return cx.splat(element_type, &sizes, 0.0);
    }
    cx.composite_one(&operands, |_, operands| {
        if algorithm == RandomAlgorithm::Philox {
            let philox = philox::of_key_and_counter(operands[0], operands[1]);
            return philox_numbers(distribution, philox, element_type, &sizes, &operands[2..]);
        }
        let mut generator = generator(algorithm, operands[0], operands[1]);
        distribution.numbers(&mut generator, element_type, &sizes, &operands[2..])
    })
}

/// `StatelessRandomGetKeyCounter(seed)`, optionally with the algorithm as a third result.
fn key_counter(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let seeds = seeds(cx, 0)?;
    let mut results = cx.composite(&[seeds], |_, operands| {
        let philox = Philox::of_seeds(operands[0]);
        vec![philox.key.reshape(&[1]), philox.counter]
    })?;
    if cx.node().output_types.len() == 3 {
        results.push(cx.scalar(PrimitiveType::S32, PHILOX as f64));
    }
    Ok(results)
}

/// `StatelessParameterizedTruncatedNormal(shape, seed, means, stddevs, minvals, maxvals)`.
fn parameterized_truncated_normal(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let mut operands = vec![seeds(cx, 1)?];
    for k in 2..6 {
        let parameter = cx.input(k)?;
        operands.push(cx.broadcast_to(parameter, &sizes)?);
    }
    let element_type = cx.type_attribute("dtype")?;
    cx.composite_one(&operands, |_, operands| {
        let is_bf16 = element_type == PrimitiveType::Bf16;
        let float = if is_bf16 { PrimitiveType::F32 } else { element_type };
        let uniform = of_seeds_as_xla(operands[0]).uniform(float, &sizes, true);
        let parameters = [1, 2, 3, 4].map(|k| operands[k].convert(float));
        random::truncated_normal(uniform, parameters).convert(element_type)
    })
}

/// `StatelessMultinomial(logits, num_samples, seed)`: the position of a uniform number times the
/// sum of all `e^logit` among the partial sums, as in TensorFlow. Logits that are not finite are
/// ignored.
fn multinomial(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let ([batch, classes], samples) = classes(cx)?;
    let seeds = seeds(cx, 2)?;
    let logits = cx.input(0)?;
    let output = cx.output_type(0)?;
    if batch == 0 || samples == 0 {
        return cx.splat(output, &[batch, samples], 0.0);
    }
    let wide = cx.convert(logits, PrimitiveType::F64)?;
    let weights = cx.composite_one(&[wide], |_, operands| {
        let logits = operands[0];
        let counts = logits.is_finite();
        let largest = counts.select(logits, f64::MIN).maximum(&[1]).broadcast(&[batch, classes], &[0]);
        counts.select((logits - largest).exp(), 0.0)
    })?;
    let sums = crate::ops::math::scans::running_sum(cx, weights, 1)?;
    cx.composite_one(&[sums, seeds], |_, operands| {
        let sizes = [batch, samples, classes];
        let total = operands[0].slice_in(1, classes - 1, classes).reshape(&[batch]);
        let uniform = Philox::of_seeds(operands[1]).uniform(PrimitiveType::F64, &[batch, samples]);
        let threshold = uniform * total.broadcast(&[batch, samples], &[0]);
        let sums = operands[0].broadcast(&sizes, &[0, 2]);
        sums.le(threshold.broadcast(&sizes, &[0, 1])).convert(output).sum(&[2])
    })
}

/// Returns the sizes of the logits at input 0, and the number of samples at input 1.
pub(crate) fn classes(cx: &mut NodeContext<'_, '_>) -> Result<([i64; 2], i64)> {
    let logits = cx.input(0)?;
    let sizes = cx.sizes(logits);
    let samples = cx.constant_i64(1)?;
    let &[batch, classes] = sizes.as_slice() else {
        return Err(cx.invalid(format!("the logits: expected a matrix, got shape {}", list(&sizes))));
    };
    let counted = samples >= 0 && shape::index::element_count(&[batch, samples, classes]).is_some();
    cx.check(counted, || {
        format!(
            "num_samples: expected a number >= 0 whose result is not too large, got {samples} samples of {}",
            list(&sizes)
        )
    })?;
    cx.check(classes > 0 || batch == 0 || samples == 0, || "expected at least one class".to_owned())?;
    Ok(([batch, classes], samples))
}

/// Returns the position of the maximum of `logits - noise`. The samples are the second dimension of
/// the noise.
pub(crate) fn largest_class(
    cx: &mut NodeContext<'_, '_>,
    logits: InstructionId,
    noise: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(noise);
    let output = cx.output_type(0)?;
    if sizes.contains(&0) {
        return cx.splat(output, &sizes[..2], 0.0);
    }
    let logits = cx.broadcast(logits, &sizes, &[0, 2])?;
    let scores = cx.sub(logits, noise)?;
    let best = cx.reduce(scores, Reducer::Maximum, &[2])?;
    let best = cx.broadcast(best, &sizes, &[0, 1])?;
    let is_best = cx.compare(hlo::ComparisonDirection::Eq, scores, best)?;
    let positions = cx.iota(output, &sizes, 2)?;
    let last = cx.splat(output, &sizes, (sizes[2] - 1) as f64)?;
    let candidates = cx.select(is_best, positions, last)?;
    cx.reduce(candidates, Reducer::Minimum, &[2])
}

/// `StochasticCastToInt(x, key, counter, alg)`: rounds up or down, with probabilities given by the
/// fraction.
fn stochastic_cast(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (key, counter, algorithm) = key_and_counter(cx)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let float = if element_type == PrimitiveType::Bf16 { PrimitiveType::F32 } else { element_type };
    let rounded = cx.composite_one(&[x, key, counter], |_, operands| {
        let uniform = generator(algorithm, operands[1], operands[2]).uniform(float, &sizes, false);
        let x = operands[0].convert(float);
        let negative = (x + uniform).floor();
        let positive = (x + 1.0 - uniform).floor();
        let random = x.lt(0.0).select(negative, positive);
        x.equal(x.floor()).select(x, random)
    })?;
    let output = cx.type_attribute("Tout")?;
    cx.convert(rounded, output)
}
