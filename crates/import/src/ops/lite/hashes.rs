//! `LSH_PROJECTION`: signs of sums of hashes. A hash function has a seed for each bit; the sum is
//! over the elements of the input, each hashed with the seed by FarmHash's `Fingerprint64`.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::lite::operands::Operands;
use composite::{Expression, Function};
use hlo::InstructionId;
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[rule("TFLiteLshProjection", lsh_projection)];

/// `k2` of FarmHash.
const PRIME: u64 = 0x9ae1_6a3b_2f90_404f;

/// Bytes of a key: a seed and an element.
const KEY_BYTES: u64 = 8;

fn number(function: &Function, value: u64) -> Expression<'_> {
    function.literal(Literal::scalar(value))
}

/// Operands: seeds, `[functions, bits]`, the input, and weights of its elements.
fn lsh_projection(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    const SPARSE: i64 = 1;
    const DENSE: i64 = 2;
    let operands = Operands::of_node(cx)?;
    let (seeds, _) = operands.input(cx, 0)?;
    let (input, _) = operands.input(cx, 1)?;
    let weights = if operands.has(2) { Some(operands.input(cx, 2)?.0) } else { None };
    let (seed_sizes, input_sizes) = (cx.sizes(seeds), cx.sizes(input));
    let (&[functions, bits], &[count]) = (seed_sizes.as_slice(), input_sizes.as_slice()) else {
        return Err(Error::unsupported("only a matrix of seeds and a vector of elements are supported"));
    };
    cx.check((1..=32).contains(&bits), || format!("{bits} bits are not 1 to 32"))?;
    cx.check(weights.is_none_or(|weights| cx.sizes(weights) == [count]), || {
        "the weights and the elements differ in number".to_owned()
    })?;
    if cx.element_type(input).byte_size() != 4 || cx.element_type(seeds) != PrimitiveType::F32 {
        return Err(Error::unsupported("only elements of 4 bytes and seeds of 32-bit floats are supported"));
    }
    let kind = cx.attributes().int_or("type", 0)?;
    cx.check(kind == SPARSE || kind == DENSE, || format!("type {kind} of a projection is unknown"))?;
    let ids: Vec<InstructionId> = [seeds, input].into_iter().chain(weights).collect();
    cx.composite_one(&ids, |function, values| {
        let all = [functions, bits, count];
        let word = |value: Expression<'_>| {
            let value = function.expression(value.id());
            value.bitcast_convert(PrimitiveType::U32).convert(PrimitiveType::U64)
        };
        let low = word(values[0]).broadcast(&all, &[0, 1]);
        let high = word(values[1]).broadcast(&all, &[2]);
        let key = low | (high << 32.0);
        let hashes = fingerprint(function, key);
        let signed = hashes.bitcast_convert(PrimitiveType::S64).convert(PrimitiveType::F64);
        let scores = match values.get(2) {
            Some(weights) => signed * weights.convert(PrimitiveType::F64).broadcast(&all, &[2]),
            None => signed,
        };
        let is_set = scores.sum(&[2]).gt(0.0).convert(PrimitiveType::S32);
        if kind == DENSE {
            return is_set.reshape(&[functions * bits]);
        }
        // The first bit is the highest one. Each function has a range of numbers of its own.
        let position = (bits - 1) as f64 - function.iota(PrimitiveType::S32, &[functions, bits], 1);
        let signatures = (is_set << position).sum(&[1]);
        let range = function.iota(PrimitiveType::S32, &[functions], 0) << bits as f64;
        signatures + range
    })
}

/// `HashLen0to16` of FarmHash for keys of 8 bytes, read as little-endian numbers.
fn fingerprint<'f>(function: &'f Function, key: Expression<'f>) -> Expression<'f> {
    let constant = |value: u64| number(function, value).spread_like(key);
    let rotated = |x: Expression<'f>, bits: u32| (x >> f64::from(bits)) | (x << f64::from(64 - bits));
    let factor = constant(PRIME.wrapping_add(2 * KEY_BYTES));
    let a = key + constant(PRIME);
    let c = rotated(key, 37) * factor + a;
    let d = (rotated(a, 25) + key) * factor;
    let mixed = (c ^ d) * factor;
    let mixed = mixed ^ (mixed >> 47.0);
    let mixed = (d ^ mixed) * factor;
    (mixed ^ (mixed >> 47.0)) * factor
}
