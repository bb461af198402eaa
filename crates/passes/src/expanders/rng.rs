//! Random numbers that an implementation chooses: counted through by Philox.

use super::expand::expand;
use crate::pass::{Changed, Pass};
use composite::Expression;
use hlo::{Module, Op, RandomAlgorithm, RandomDistribution};
use shape::{ArrayShape, Literal, PrimitiveType, Shape};
use std::cell::Cell;
use support::Result;

/// The key of the first instruction's bits; the others' follow at an odd distance. Each has a counter of its own, so that none
/// draws another's numbers.
const KEY: u64 = 0x7012_3955;
const NEXT_KEY: u64 = 0x94d0_49bb_1331_11eb;

/// `rng(a, b) =>` the distribution over the bits of `rng-bit-generator`, whose counter `rng-get-and-update-state` keeps from
/// run to run. Uniform integers are remainders, normal numbers come in pairs by the Box-Muller transform.
/// An `rng-bit-generator` that makes bits alone becomes one that makes the next state too.
pub struct RngExpander;

impl Pass for RngExpander {
    fn name(&self) -> &'static str {
        "rng-expander"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let drawn = Cell::new(0u64);
        expand(
            module,
            "rng",
            |op, operands| {
                // What makes bits alone is an array; a tuple has the state too, and is a kernel's.
                matches!(op, Op::RngBitGenerator { .. })
                    || matches!(op, Op::Rng { .. })
                        && operands.iter().all(|x| x.element_type != PrimitiveType::Pred)
            },
            |op, shape, operands| {
                if let Op::RngBitGenerator { .. } = op {
                    return bits_alone(op, shape, operands[0]);
                }
                let key = KEY.wrapping_add(drawn.replace(drawn.get() + 1).wrapping_mul(NEXT_KEY));
                let parameters = [operands[0], operands[1]];
                match op {
                    Op::Rng { distribution: RandomDistribution::Normal } => normal(key, shape, parameters),
                    _ if shape.element_type.is_integer() => integers(key, shape, parameters),
                    _ => uniform(key, shape, parameters),
                }
            },
        )
    }
}

/// The bits of an instruction that leaves the next state out.
fn bits_alone<'f>(op: &Op, shape: &ArrayShape, state: Expression<'f>) -> Expression<'f> {
    let wanted = Shape::Tuple(vec![state.array().into(), shape.clone().into()]);
    state.function().op(op.clone(), &[state], Some(wanted)).element(1)
}

/// So many numbers of 32 bits, or of 64 for wide types, in a row.
fn bits<'f>(key: u64, like: Expression<'f>, count: i64) -> Expression<'f> {
    let function = like.function();
    let (unsigned, words) = match like.element_type().byte_size() {
        8 => (PrimitiveType::U64, 2),
        _ => (PrimitiveType::U32, 1),
    };
    let state = Shape::array(PrimitiveType::U64, &[2]);
    let delta = count.saturating_mul(words).max(1);
    let counter = function.op(Op::RngGetAndUpdateState { delta }, &[], Some(state));
    let key = function.literal(Literal::from_elements(&[1], &[key]));
    let state = function.concatenate(&[key, counter], 0);
    let wanted = Shape::Tuple(vec![state.array().into(), Shape::array(unsigned, &[count])]);
    let algorithm = RandomAlgorithm::Philox;
    function.op(Op::RngBitGenerator { algorithm }, &[state], Some(wanted)).element(1)
}

/// Within [0, 1): as many of the bits as a mantissa has, of the type of `like`.
fn unit<'f>(key: u64, like: Expression<'f>, count: i64) -> Expression<'f> {
    let mantissa = if like.element_type() == PrimitiveType::F64 { 52 } else { 23 };
    let bits = bits(key, like, count);
    let dropped = f64::from(bits.element_type().bit_width() as i32 - mantissa);
    (bits >> dropped).convert(like.element_type()) * 2f64.powi(-mantissa)
}

/// Within [low, high): what rounding lifts to the upper bound falls back to the lower.
fn uniform<'f>(key: u64, shape: &ArrayShape, [low, high]: [Expression<'f>; 2]) -> Expression<'f> {
    let unit = unit(key, low, shape.element_count()).reshape(&shape.sizes());
    let range = (high - low).spread_like(unit);
    let (low, high) = (low.spread_like(unit), high.spread_like(unit));
    let value = (unit * range + low).convert(shape.element_type).convert(low.element_type());
    (value.ge(high) & low.lt(high)).select(low, value)
}

/// Within [low, high), by remainder; the lower bound if nothing lies between.
fn integers<'f>(key: u64, shape: &ArrayShape, [low, high]: [Expression<'f>; 2]) -> Expression<'f> {
    let bits = bits(key, low, shape.element_count()).reshape(&shape.sizes());
    let wide = bits.element_type();
    let range = low.lt(high).select(high.convert(wide) - low.convert(wide), 1.0);
    bits % range.spread_like(bits) + low.convert(wide).spread_like(bits)
}

/// Pairs of uniform numbers: a radius and an angle.
fn normal<'f>(key: u64, shape: &ArrayShape, [mean, deviation]: [Expression<'f>; 2]) -> Expression<'f> {
    let count = shape.element_count();
    let pairs = count / 2 + count % 2;
    let units = unit(key, mean, 2 * pairs).reshape(&[pairs, 2]);
    // The logarithm of 0 is none.
    let radius = (units.slice_in(1, 0, 1).max(1e-7).log() * -2.0).sqrt();
    let angle = units.slice_in(1, 1, 2) * (2.0 * std::f64::consts::PI);
    let function = mean.function();
    let numbers = function.concatenate(&[angle.sin() * radius, angle.cos() * radius], 1);
    let numbers = numbers.reshape(&[2 * pairs]).slice_in(0, 0, count).reshape(&shape.sizes());
    numbers * deviation.spread_like(numbers) + mean.spread_like(numbers)
}
