//! Random ops that use rejection sampling or shuffle rows. They reproduce the numbers of
//! TensorFlow's CPU kernels.
//!
//! TensorFlow splits the work of `Multinomial` into shards, which advances its counter. Here there
//! is one shard.

use super::random::Generator;
use super::{Context, Row, arrays};
use crate::buffer::Buffer;
use crate::value::{Strings, Tensor, Value};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::sync::Arc;
use support::{Error, Result};

pub(super) const OPS: &[Row] = &[
    ("RandomShuffle", shuffle),
    ("Multinomial", multinomial),
    ("RandomGamma", |cx| {
        each(cx, |alpha, generator| {
            let draw = Gamma::new(alpha);
            Box::new(move |k| draw.draw(Doubles::new(generator.skipped(k))))
        })
    }),
    ("RandomPoisson", poisson),
    ("RandomPoissonV2", poisson),
];

/// Maximum number of draws of one node.
const MAX_DRAWS: i64 = 1 << 28;

/// Maximum number of trials per number. Some parameters, such as NaN, would never be accepted.
const MAX_TRIALS: usize = 1 << 16;

/// Uniform doubles in `[0, 1)` and normal ones, two from each block, the second one first.
struct Doubles {
    generator: Generator,
    uniform: Vec<f64>,
    normal: Vec<f64>,
}

impl Doubles {
    fn new(generator: Generator) -> Self {
        Self { generator, uniform: Vec::new(), normal: Vec::new() }
    }

    fn uniform(&mut self) -> f64 {
        if self.uniform.is_empty() {
            let [a, b, c, d] = self.generator.block();
            self.uniform.extend([double(a, b), double(c, d)]);
        }
        self.uniform.pop().unwrap_or_default()
    }

    /// Box–Muller transform.
    fn normal(&mut self) -> f64 {
        if self.normal.is_empty() {
            let [a, b, c, d] = self.generator.block();
            let radius = (-2.0 * double(a, b).max(1e-7).ln()).sqrt();
            let (sin, cos) = (2.0 * std::f64::consts::PI * double(c, d)).sin_cos();
            self.normal.extend([sin * radius, cos * radius]);
        }
        self.normal.pop().unwrap_or_default()
    }
}

/// 52 random bits as a number in `[0, 1)`.
fn double(high: u32, low: u32) -> f64 {
    let mantissa = u64::from(high & 0xf_ffff) << 32 | u64::from(low);
    f64::from_bits(1023 << 52 | mantissa) - 1.0
}

/// Fisher-Yates shuffle along the first dimension: swaps each row with itself or a later one.
fn shuffle(cx: &mut Context<'_>) -> Result<()> {
    let value = cx.input(0)?.clone();
    let sizes = arrays::sizes(&value)?;
    let count = sizes.first().copied().unwrap_or(1);
    if count <= 1 || sizes.contains(&0) {
        cx.push(value);
        return Ok(());
    }
    let length = u32::try_from(count).map_err(|_| {
        Error::unsupported(format!("cannot shuffle {count} rows: the number does not fit in 32 bits"))
    })?;
    let blocks = (u128::from(length) - 1).div_ceil(4);
    let mut words = Generator::reserve(cx, blocks)?.words();
    let mut order: Vec<usize> = (0..length as usize).collect();
    for (at, left) in (0..length - 1).zip((2..=length).rev()) {
        let other = words.next().unwrap_or_default() % left;
        order.swap(at as usize, (at + other) as usize);
    }
    match value {
        Value::Strings(strings) => {
            let row = strings.strings.len() / order.len();
            let rows = order.iter().flat_map(|&k| strings.strings[k * row..(k + 1) * row].iter().cloned());
            cx.push(Strings { sizes, strings: rows.collect() });
        }
        value => {
            let tensor = value.tensor()?;
            let mut shuffled = Buffer::uninitialized(tensor.bytes().len())?;
            let row = tensor.bytes().len() / order.len();
            for (to, &from) in shuffled.chunks_exact_mut(row).zip(&order) {
                to.copy_from_slice(&tensor.bytes()[from * row..(from + 1) * row]);
            }
            cx.push(Tensor::new(tensor.shared_shape().clone(), shuffled));
        }
    }
    Ok(())
}

/// `Multinomial(logits, num_samples)`: draws classes with the probabilities given by each row of
/// logits.
fn multinomial(cx: &mut Context<'_>) -> Result<()> {
    let (logits, samples) = (cx.tensor(0)?, cx.integer(1)?);
    let &[rows, classes] = &logits.shape().sizes()[..] else {
        return Err(Error::invalid(format!("logits should be a matrix, got {}", logits.shape())));
    };
    if samples < 0 || classes < 1 {
        return Err(Error::invalid(format!(
            "expected at least 0 samples and 1 class, got {samples} samples and {classes} classes"
        )));
    }
    let sizes = [rows, samples];
    let count = checked(&sizes)?;
    let is_wide = cx.node.attributes.ty_or("output_dtype", tf::DataType::Int64)? == tf::DataType::Int64;
    let mut samples_drawn = Vec::with_capacity(count as usize);
    if count > 0 {
        let values = logits.to_literal().floats();
        let values = values.ok_or_else(|| Error::invalid("logits must be floating-point numbers"))?;
        let reserved = (rows as u128) * (samples as u128).div_ceil(4) * 8 * 256;
        let mut words = Generator::reserve(cx, reserved)?.words();
        for row in values.chunks_exact(classes as usize) {
            let largest = row.iter().copied().filter(|v| v.is_finite()).fold(f64::MIN, f64::max);
            let sums = row.iter().scan(0.0, |total, &value| {
                if value.is_finite() {
                    *total += (value - largest).exp();
                }
                Some(*total)
            });
            let sums: Vec<f64> = sums.collect();
            let total = sums.last().copied().unwrap_or_default();
            for _ in 0..samples {
                let (high, low) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                let threshold = double(high, low) * total;
                samples_drawn.push(sums.partition_point(|&sum| sum <= threshold) as i64);
            }
        }
    }
    cx.push(Tensor::integers(is_wide, &sizes, &samples_drawn)?);
    Ok(())
}

fn poisson(cx: &mut Context<'_>) -> Result<()> {
    let largest = match cx.node.output_types.first().and_then(|t| t.primitive_type()) {
        Some(PrimitiveType::S32) => f64::from(i32::MAX),
        Some(PrimitiveType::S64) => i64::MAX as f64,
        Some(PrimitiveType::F16) => 65504.0,
        Some(PrimitiveType::F32) => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    each(cx, |rate, generator| {
        let draw = Poisson { rate, largest };
        Box::new(move |k| draw.draw(&mut Doubles::new(generator.skipped(k))))
    })
}

/// Draws one element for a parameter. The argument is the number of blocks that the generator
/// skips, which depends on the draw's position among all draws.
type Draw = Box<dyn Fn(u128) -> Result<f64>>;

/// `op(shape, parameters)`: one draw for each element of the shape and each parameter.
fn each(cx: &mut Context<'_>, draw: impl Fn(f64, Generator) -> Draw) -> Result<()> {
    let (shape, parameters) = (cx.integers(0)?, cx.tensor(1)?);
    let mut sizes = shape.clone();
    sizes.extend(parameters.shape().sizes());
    let samples = checked(&shape)?;
    let count = checked(&sizes)?;
    let element_type = cx.node.output_types.first().and_then(|t| t.primitive_type());
    let element_type = element_type.ok_or_else(|| Error::invalid("expected an output of numbers"))?;
    let result_shape = Arc::new(ArrayShape::new(element_type, &sizes));
    let values = parameters.to_literal();
    let width = parameters.shape().element_count() as usize;
    let mut elements = vec![0.0; count as usize];
    if count > 0 {
        let generator = Generator::reserve(cx, super::random::RESERVED * count as u128)?;
        for (at, scalar) in values.scalars().enumerate() {
            let value = scalar.as_f64().ok_or_else(|| Error::invalid("a parameter is not a real number"))?;
            let draw = draw(value, generator.clone());
            for sample in 0..samples as usize {
                // Draws are numbered parameter by parameter, although the shape comes first in the
                // result.
                let number = at as u128 * samples as u128 + sample as u128;
                elements[sample * width + at] = draw(number * super::random::RESERVED)?;
            }
        }
    }
    let literal = if element_type.is_floating_point() {
        Literal::from_floats((*result_shape).clone(), elements)
    } else {
        let whole = elements.into_iter().map(|value| shape::Scalar::Signed(value as i64));
        Literal::from_scalars((*result_shape).clone(), whole)
    };
    cx.push(Tensor::from_literal(&literal)?);
    Ok(())
}

/// Checks the number of elements of a shape and returns it.
fn checked(sizes: &[i64]) -> Result<i64> {
    let count = shape::index::element_count(sizes).filter(|_| sizes.iter().all(|&size| size >= 0));
    match count {
        Some(count) if count <= MAX_DRAWS => {
            // Eight bytes as drawn, and up to eight as output.
            let bytes = count.unsigned_abs() * 16;
            support::check_memory(bytes, format_args!("{count} random numbers"))?;
            Ok(count)
        }
        Some(count) => Err(Error::unsupported(format!(
            "cannot draw {count} random numbers at once on the host; the limit is {MAX_DRAWS}"
        ))),
        None => Err(Error::invalid(format!("invalid shape {sizes:?}"))),
    }
}

fn no_draw(what: &str, value: f64) -> Error {
    Error::invalid(format!("no number was accepted for the {what} {value}"))
}

/// Marsaglia and Tsang's method: cubes a normal number and accepts or rejects it.
#[derive(Clone, Copy)]
struct Gamma {
    alpha: f64,
    d: f64,
    c: f64,
}

impl Gamma {
    fn new(alpha: f64) -> Self {
        let d = alpha + if alpha < 1.0 { 2.0 / 3.0 } else { -1.0 / 3.0 };
        Self { alpha, d, c: 1.0 / 3.0 / d.sqrt() }
    }

    fn draw(self, mut doubles: Doubles) -> Result<f64> {
        let Self { alpha, d, c } = self;
        if alpha == 1.0 {
            return Ok(-(-doubles.uniform()).ln_1p());
        }
        for _ in 0..MAX_TRIALS {
            let x = doubles.normal();
            let v = 1.0 + c * x;
            if v <= 0.0 {
                continue;
            }
            let v = v * v * v;
            let u = doubles.uniform();
            let squeezed = u < 1.0 - 0.0331 * (x * x) * (x * x);
            if squeezed || u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
                let drawn = d * v;
                return Ok(if alpha < 1.0 { drawn * doubles.uniform().powf(1.0 / alpha) } else { drawn });
            }
        }
        Err(no_draw("alpha", alpha))
    }
}

/// Knuth's products for small rates, Hörmann's transformed rejection for others.
#[derive(Clone, Copy)]
struct Poisson {
    rate: f64,
    /// Largest number of the result's type.
    largest: f64,
}

impl Poisson {
    fn draw(self, doubles: &mut Doubles) -> Result<f64> {
        let Self { rate, largest } = self;
        if rate < 10.0 {
            let least = (-rate).exp();
            let (mut product, mut events) = (1.0, 0.0);
            for _ in 0..MAX_TRIALS {
                product *= doubles.uniform();
                if product <= least && events <= largest {
                    return Ok(events);
                }
                events += 1.0;
            }
            return Err(no_draw("rate", rate));
        }
        if rate == f64::INFINITY {
            return Ok(f64::INFINITY);
        }
        let log_rate = rate.ln();
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        for _ in 0..MAX_TRIALS {
            let u = doubles.uniform() - 0.5;
            let v = doubles.uniform();
            let shifted = 0.5 - u.abs();
            let k = ((2.0 * a / shifted + b) * u + rate + 0.43).floor();
            if k > largest {
                continue;
            }
            if shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0) {
                return Ok(k);
            }
            if k < 0.0 || (shifted < 0.013 && v > shifted) {
                continue;
            }
            let s = (v * inverse_alpha / (a / (shifted * shifted) + b)).ln();
            if s <= -rate + k * log_rate - libm::lgamma(k + 1.0) {
                return Ok(k);
            }
        }
        Err(no_draw("rate", rate))
    }
}
