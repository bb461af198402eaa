//! Random numbers with implicit state: Philox, with a counter that each run advances.
//!
//! Each node has its own key, derived from its seeds and its position in the graph. Two nodes thus
//! produce different numbers, and two programs from the same graph produce the same.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::random::stateless::{classes, largest_class};
use ::composite::Expression;
use ::composite::random::{self, Generator};
use hlo::{InstructionId, Op, RandomAlgorithm};
use shape::index::element_count;
use shape::{Literal, PrimitiveType, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("RandomUniform", random_uniform).types("dtype", FLOATS).effect(),
    rule("RandomUniformInt", random_uniform_int).types("Tout", INTEGERS).effect(),
    rule("RandomStandardNormal", random_normal).types("dtype", FLOATS).effect(),
    rule("TruncatedNormal", truncated_normal).types("dtype", FLOATS).effect(),
    rule("ParameterizedTruncatedNormal", parameterized_truncated_normal).types("dtype", FLOATS).effect(),
    rule("Multinomial", multinomial).types("T", REAL).effect(),
    rule("RandomShuffle", random_shuffle).types("T", ALL).effect(),
];

/// Size in bits of a block of a counter-based generator.
const BLOCK_BITS: i64 = 128;

/// Returns the node's key and its counter, which each run advances by `blocks`.
fn stream(cx: &mut NodeContext<'_, '_>, blocks: i64) -> Result<(InstructionId, InstructionId)> {
    let state = cx.op_shaped(
        &Shape::array(PrimitiveType::U64, &[2]),
        Op::RngGetAndUpdateState { delta: blocks.max(1) },
        &[],
    )?;
    let attributes = &cx.attributes();
    let (seed, seed2) = (attributes.int_or("seed", 0)? as u64, attributes.int_or("seed2", 0)? as u64);
    let stream = cx.next_random_stream();
    // Odd multipliers map different seeds to different keys.
    let key = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(seed2.wrapping_mul(0xbf58_476d_1ce4_e5b9))
        .wrapping_add(stream.wrapping_mul(0x94d0_49bb_1331_11eb));
    Ok((cx.literal(Literal::from_elements(&[1], &[key])), state))
}

/// Returns random bits of an unsigned type.
fn random_bits(cx: &mut NodeContext<'_, '_>, bits: PrimitiveType, sizes: &[i64]) -> Result<InstructionId> {
    let count = element_count(sizes).unwrap_or(i64::MAX);
    let blocks =
        count.saturating_mul(i64::from(bits.bit_width())).saturating_add(BLOCK_BITS - 1) / BLOCK_BITS;
    let (key, state) = stream(cx, blocks)?;
    let state = cx.concatenate(&[key, state], 0)?;
    let shape = Shape::Tuple(vec![Shape::array(PrimitiveType::U64, &[3]), Shape::array(bits, sizes)]);
    let pair = cx.op_shaped(&shape, Op::RngBitGenerator { algorithm: RandomAlgorithm::Philox }, &[state])?;
    cx.tuple_element(pair, 1)
}

/// Uniform in `[0, 1)`: as many random bits as the type's mantissa has, divided by a power of 2.
fn random_uniform(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let element_type = cx.type_attribute("dtype")?;
    let (bits, wide, mantissa) = match element_type {
        PrimitiveType::F64 => (PrimitiveType::U64, PrimitiveType::F64, 52),
        PrimitiveType::F32 => (PrimitiveType::U32, PrimitiveType::F32, 23),
        PrimitiveType::F16 => (PrimitiveType::U32, PrimitiveType::F32, 10),
        _ => (PrimitiveType::U32, PrimitiveType::F32, 7),
    };
    let random = random_bits(cx, bits, &sizes)?;
    let shift = cx.splat_like(random, f64::from(bits.bit_width() - mantissa))?;
    let random = cx.op(Op::ShiftRightLogical {}, &[random, shift])?;
    let random = cx.convert(random, wide)?;
    let scale = 2f64.powi(-(mantissa as i32));
    let uniform = cx.mul_scalar(random, scale)?;
    cx.convert(uniform, element_type)
}

/// Uniform in `[minval, maxval)`: the remainder of as many random bits as the type has.
fn random_uniform_int(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let (low, high) = (cx.input(1)?, cx.input(2)?);
    let element_type = cx.element_type(low);
    let bits = if element_type.byte_size() == 8 { PrimitiveType::U64 } else { PrimitiveType::U32 };
    for bound in [low, high] {
        let rank = cx.rank(bound);
        cx.check(rank == 0, || format!("minval and maxval: expected scalars, got rank {rank}"))?;
    }
    let random = random_bits(cx, bits, &sizes)?;
    // In unsigned arithmetic, the width of the range is correct even if `high - low` overflows.
    let (low_bits, high_bits) = (cx.convert(low, bits)?, cx.convert(high, bits)?);
    let width = cx.sub(high_bits, low_bits)?;
    let width = cx.broadcast(width, &sizes, &[])?;
    let low_bits = cx.broadcast(low_bits, &sizes, &[])?;
    let offset = cx.op(Op::Remainder {}, &[random, width])?;
    let value = cx.add(offset, low_bits)?;
    cx.convert(value, element_type)
}

/// Calls a function of the node's own generator and of other operands. `numbers` is the number of
/// draws of the type.
fn drawn(
    cx: &mut NodeContext<'_, '_>,
    element_type: PrimitiveType,
    numbers: i64,
    others: &[InstructionId],
    body: impl for<'f> FnOnce(&mut Generator<'f>, &[Expression<'f>]) -> Expression<'f>,
) -> Result<InstructionId> {
    let per_block = if element_type == PrimitiveType::F64 { 2 } else { 4 };
    let (key, counter) = stream(cx, numbers / per_block + 1)?;
    let operands = [&[key, counter], others].concat();
    cx.composite_one(&operands, |_, operands| {
        let key = operands[0].reshape(&[]);
        let mut generator = Generator { algorithm: RandomAlgorithm::Philox, key, counter: operands[1] };
        body(&mut generator, &operands[2..])
    })
}

/// Returns the type in which numbers of a floating-point type are drawn.
fn drawn_type(element_type: PrimitiveType) -> PrimitiveType {
    if element_type == PrimitiveType::F64 { element_type } else { PrimitiveType::F32 }
}

/// Normal with mean 0 and standard deviation 1.
fn random_normal(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let element_type = cx.type_attribute("dtype")?;
    let float = drawn_type(element_type);
    // Numbers come in pairs along one dimension, whose size may be odd.
    let count = element_count(&sizes).unwrap_or(i64::MAX).saturating_mul(2);
    drawn(cx, float, count, &[], |generator, _| generator.normal(float, &sizes).convert(element_type))
}

/// Normal, truncated to two standard deviations.
fn truncated_normal(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let element_type = cx.type_attribute("dtype")?;
    let float = drawn_type(element_type);
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    drawn(cx, float, count, &[], |generator, _| {
        let uniform = generator.uniform(float, &sizes, true);
        random::standard_truncated_normal(uniform).convert(element_type)
    })
}

/// `ParameterizedTruncatedNormal(shape, means, stdevs, minvals, maxvals)`. A vector of parameters
/// has one element for each index of the first dimension.
fn parameterized_truncated_normal(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    cx.check(!sizes.is_empty(), || "expected a shape of one or more dimensions".to_owned())?;
    let element_type = cx.type_attribute("dtype")?;
    let float = drawn_type(element_type);
    let mut parameters = Vec::new();
    for k in 1..5 {
        let parameter = cx.input(k)?;
        let actual = cx.sizes(parameter);
        parameters.push(match actual.as_slice() {
            [] => cx.broadcast(parameter, &sizes, &[])?,
            [1] => {
                let scalar = cx.reshape(parameter, &[])?;
                cx.broadcast(scalar, &sizes, &[])?
            }
            [count] if *count == sizes[0] => cx.broadcast(parameter, &sizes, &[0])?,
            _ => {
                return Err(cx.invalid(format!(
                    "input {k}: expected a scalar or a vector of {} elements, one for each index of the first dimension",
                    sizes[0]
                )));
            }
        });
    }
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    drawn(cx, float, count, &parameters, |generator, parameters| {
        let uniform = generator.uniform(float, &sizes, true);
        let parameters = [0, 1, 2, 3].map(|k| parameters[k].convert(float));
        random::truncated_normal(uniform, parameters).convert(element_type)
    })
}

/// `Multinomial(logits, num_samples)`: the class whose logit is largest after adding Gumbel noise.
fn multinomial(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (sizes, samples) = classes(cx)?;
    let logits = cx.input(0)?;
    let float = drawn_type(cx.element_type(logits));
    let logits = cx.convert(logits, float)?;
    let sizes = [sizes[0], samples, sizes[1]];
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    let noise =
        drawn(cx, float, count, &[], |generator, _| (-generator.uniform(float, &sizes, true).log()).log())?;
    largest_class(cx, logits, noise)
}

/// `RandomShuffle(x)`: sorts the rows by random keys.
fn random_shuffle(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let rows = sizes.first().copied().unwrap_or(1);
    if rows < 2 || sizes.contains(&0) {
        return Ok(x);
    }
    let keys = random_bits(cx, PrimitiveType::U64, &[rows])?;
    let index_type = if rows <= i64::from(i32::MAX) { PrimitiveType::S32 } else { PrimitiveType::S64 };
    let positions = cx.iota(index_type, &[rows], 0)?;
    let scalars = [PrimitiveType::U64, PrimitiveType::U64, index_type, index_type].map(Shape::scalar);
    let metadata = cx.metadata().clone();
    let module = cx.module_mut();
    let to_apply = ::composite::build(module, "by_key", &metadata, &scalars, |_, p| vec![p[0].lt(p[1])])?;
    let pair = cx.op(Op::Sort { dimension: 0, is_stable: true, to_apply }, &[keys, positions])?;
    let order = cx.tuple_element(pair, 1)?;
    cx.gather_along(x, order, 0, 0)
}
