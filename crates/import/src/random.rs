//! Random numbers with a state of the program's own: Philox, from a counter that each run moves on.
//!
//! Each node has a key of its own, made of its seeds and its place in the graph, so that two nodes differ and two
//! programs from the same graph agree.

use crate::context::NodeContext;
use crate::data_types::*;
use crate::rule::{Rule, rule};
use hlo::{InstructionId, Op, RandomAlgorithm};
use shape::index::element_count;
use shape::{Literal, PrimitiveType, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("RandomUniform", random_uniform).types("dtype", FLOATS).effect(),
    rule("RandomUniformInt", random_uniform_int).types("Tout", INTEGERS).effect(),
];

/// Bits of a counter-based generator: blocks of 128.
const BLOCK_BITS: i64 = 128;

/// Random bits of an unsigned type.
fn random_bits(cx: &mut NodeContext<'_, '_>, bits: PrimitiveType, sizes: &[i64]) -> Result<InstructionId> {
    let count = element_count(sizes).unwrap_or(i64::MAX);
    let blocks =
        count.saturating_mul(i64::from(bits.bit_width())).saturating_add(BLOCK_BITS - 1) / BLOCK_BITS;
    let state = cx.op_shaped(
        &Shape::array(PrimitiveType::U64, &[2]),
        Op::RngGetAndUpdateState { delta: blocks.max(1) },
        &[],
    )?;
    let attributes = &cx.node.attributes;
    let (seed, seed2) = (attributes.int_or("seed", 0)? as u64, attributes.int_or("seed2", 0)? as u64);
    let stream = cx.importer.random_streams;
    cx.importer.random_streams += 1;
    // Odd multipliers keep different seeds different.
    let key = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(seed2.wrapping_mul(0xbf58_476d_1ce4_e5b9))
        .wrapping_add(stream.wrapping_mul(0x94d0_49bb_1331_11eb));
    let key = cx.literal(Literal::from_elements(&[1], &[key]));
    let state = cx.concatenate(&[key, state], 0)?;
    let wanted = Shape::Tuple(vec![Shape::array(PrimitiveType::U64, &[3]), Shape::array(bits, sizes)]);
    let pair = cx.op_shaped(&wanted, Op::RngBitGenerator { algorithm: RandomAlgorithm::Philox }, &[state])?;
    cx.tuple_element(pair, 1)
}

/// Uniform in `[0, 1)`: as many random bits as the type's mantissa has, over a power of 2.
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

/// Uniform in `[minval, maxval)`, by the remainder of as many random bits as the type has.
fn random_uniform_int(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let (low, high) = (cx.input(1)?, cx.input(2)?);
    let element_type = cx.element_type(low);
    let bits = if element_type.byte_size() == 8 { PrimitiveType::U64 } else { PrimitiveType::U32 };
    for bound in [low, high] {
        let rank = cx.rank(bound);
        cx.check(rank == 0, || format!("minval and maxval must be scalars, but one has rank {rank}"))?;
    }
    let random = random_bits(cx, bits, &sizes)?;
    // In unsigned arithmetic the width of the range is right even where `high - low` overflows.
    let (low_bits, high_bits) = (cx.convert(low, bits)?, cx.convert(high, bits)?);
    let width = cx.sub(high_bits, low_bits)?;
    let width = cx.broadcast(width, &sizes, &[])?;
    let low_bits = cx.broadcast(low_bits, &sizes, &[])?;
    let offset = cx.op(Op::Remainder {}, &[random, width])?;
    let value = cx.add(offset, low_bits)?;
    cx.convert(value, element_type)
}
