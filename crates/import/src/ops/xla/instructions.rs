//! XLA's own instructions as ops: products, slices, pads, and gathers. Reductions, sorts, and
//! scatters are in `reductions`, and convolutions in `convolution`.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many, rule_values};
use crate::values::value::Value;
use bounded::list;
use hlo::{InstructionId, Op, RandomAlgorithm};
use shape::{PrimitiveType, Shape};
use support::{Error, Result};
use tf::DataType;

pub(crate) const RULES: &[Rule] = &[
    rule("XlaDot", xla_dot).types("T", NUMBERS_AND_QUANTIZED),
    rule("XlaDotV2", xla_dot)
        .types("LhsT", NUMBERS_AND_QUANTIZED)
        .types("RhsT", NUMBERS_AND_QUANTIZED)
        .types("preferred_element_type", NUMBERS_AND_QUANTIZED),
    rule("XlaPad", xla_pad).types("T", ALL).types("Tindices", INDICES),
    rule("XlaDynamicSlice", xla_dynamic_slice).types("T", ALL).types("Tindices", INDICES),
    rule("XlaDynamicUpdateSlice", xla_dynamic_update_slice).types("T", ALL).types("Tindices", INDICES),
    rule("XlaGather", xla_gather).types("T", BOOL_NUMBERS_AND_QUANTIZED).types("Tindices", INDICES),
    rule_many("XlaBroadcastHelper", xla_broadcast_helper)
        .types("T", NUMBERS_AND_QUANTIZED)
        .types("Tindices", INDICES),
    rule_many("XlaOptimizationBarrier", xla_optimization_barrier).types("T", ALL),
    rule("XlaReducePrecision", xla_reduce_precision).types("T", FLOATS),
    rule_many("XlaRngBitGenerator", xla_rng_bit_generator).types("dtype", RANDOM_BITS),
    rule("XlaSetDynamicDimensionSize", set_dynamic_dimension_size).types("T", ALL),
    rule("XlaSetBound", set_bound),
    rule("XlaRemoveDynamicDimensionSize", remove_dynamic_dimension_size).types("T", ALL),
    // One program runs on one device: nothing is split, and it is replica 0.
    rule("XlaSharding", |cx| cx.input(0)).types("T", ALL),
    rule("XlaSpmdFullToShardShape", |cx| one_shard(cx, "manual_sharding")).types("T", ALL),
    rule("XlaSpmdShardToFullShape", |cx| one_shard(cx, "manual_sharding")).types("T", ALL),
    rule("XlaReplicaId", |cx| Ok(cx.scalar(PrimitiveType::S32, 0.0))),
    rule_values("XlaCustomCall", reject_custom_call).effect(),
    rule_values("XlaCustomCallV2", reject_custom_call).effect(),
];

/// Types of random bits.
const RANDOM_BITS: &[DataType] = &[DataType::Uint8, DataType::Uint32, DataType::Uint64];

/// `XlaDot(lhs, rhs)`. Computed in the type of the result, unless it is narrower than the
/// operands'.
fn xla_dot(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (mut lhs, mut rhs) = (cx.input(0)?, cx.input(1)?);
    let bytes = cx.attributes().string("dimension_numbers")?;
    let dot_dimension_numbers = hlo::proto::dot_dimension_numbers_from_bytes(&bytes)
        .map_err(|error| not_serialized(cx, "DotDimensionNumbers", &error))?;
    let element_type = cx.output_type(0)?;
    let widest = cx.element_type(lhs).bit_width().max(cx.element_type(rhs).bit_width());
    if element_type.bit_width() >= widest {
        (lhs, rhs) = (cx.convert(lhs, element_type)?, cx.convert(rhs, element_type)?);
    }
    let product = cx.op(Op::Dot { dot_dimension_numbers }, &[lhs, rhs])?;
    cx.convert(product, element_type)
}

/// Returns the error for an invalid attribute `dimension_numbers`.
pub(crate) fn not_serialized(cx: &NodeContext<'_, '_>, message: &str, error: &Error) -> Error {
    cx.invalid(format!("dimension_numbers is not a serialized {message}: {}", error.message()))
}

/// `XlaPad(x, value, low, high, interior)`. Negative edges crop.
fn xla_pad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, value) = (cx.input(0)?, cx.input(1)?);
    let rank = cx.rank(x);
    let (low, high, interior) = (cx.constant_i64s(2)?, cx.constant_i64s(3)?, cx.constant_i64s(4)?);
    for (name, values) in [("padding_low", &low), ("padding_high", &high), ("padding_interior", &interior)] {
        cx.check(values.len() == rank, || {
            format!("{name}: expected one integer for each of the {rank} dimensions, got {}", list(values))
        })?;
    }
    cx.check(interior.iter().all(|&i| i >= 0), || {
        format!("padding_interior: expected numbers >= 0, got {}", list(&interior))
    })?;
    let padding: Vec<(i64, i64, i64)> = (0..rank).map(|d| (low[d], high[d], interior[d])).collect();
    cx.pad(x, value, &padding)
}

/// Returns the elements of a vector of indices, one for each dimension.
fn start_indices(cx: &mut NodeContext<'_, '_>, k: usize, rank: usize) -> Result<Vec<InstructionId>> {
    let indices = cx.input(k)?;
    let sizes = cx.sizes(indices);
    cx.check(sizes == [rank as i64], || {
        format!("the start indices: expected a vector of {rank} elements, got shape {}", list(&sizes))
    })?;
    let index = |cx: &mut NodeContext<'_, '_>, d: i64| {
        let index = cx.slice_in(indices, 0, d, d + 1)?;
        cx.reshape(index, &[])
    };
    (0..rank as i64).map(|d| index(cx, d)).collect()
}

/// `XlaDynamicSlice(x, start_indices, size_indices)`. The start is clamped such that the slice
/// fits.
fn xla_dynamic_slice(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let sizes = cx.constant_sizes(2)?;
    let actual = cx.sizes(x);
    cx.check(sizes.len() == rank && sizes.iter().zip(&actual).all(|(s, h)| s <= h), || {
        format!("size_indices {} exceed the operand's sizes {}", list(&sizes), list(&actual))
    })?;
    let starts = start_indices(cx, 1, rank)?;
    if rank == 0 {
        return Ok(x);
    }
    cx.op(Op::DynamicSlice { dynamic_slice_sizes: sizes }, &[&[x][..], &starts].concat())
}

/// `XlaDynamicUpdateSlice(x, update, indices)`. The start is clamped such that the update fits.
fn xla_dynamic_update_slice(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, update) = (cx.input(0)?, cx.input(1)?);
    let (actual, sizes) = (cx.sizes(x), cx.sizes(update));
    cx.check(sizes.len() == actual.len() && sizes.iter().zip(&actual).all(|(s, h)| s <= h), || {
        format!("an update of shape {} does not fit in {}", list(&sizes), list(&actual))
    })?;
    let starts = start_indices(cx, 2, actual.len())?;
    if actual.is_empty() {
        return Ok(update);
    }
    cx.op(Op::DynamicUpdateSlice {}, &[&[x, update][..], &starts].concat())
}

/// `XlaGather(x, start_indices, slice_sizes)`. Starts are clamped such that the slices fit.
fn xla_gather(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, indices) = (cx.input(0)?, cx.input(1)?);
    let slice_sizes = cx.constant_sizes(2)?;
    let bytes = cx.attributes().string("dimension_numbers")?;
    let gather_dimension_numbers = hlo::proto::gather_dimension_numbers_from_bytes(&bytes)
        .map_err(|error| not_serialized(cx, "GatherDimensionNumbers", &error))?;
    let indices_are_sorted = cx.attributes().bool_or("indices_are_sorted", false)?;
    cx.op(Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted }, &[x, indices])
}

/// `XlaBroadcastHelper(lhs, rhs, broadcast_dims)`: reshapes the operand of lower rank. Its
/// dimension `i` becomes dimension `broadcast_dims[i]`, and the other dimensions have size 1.
fn xla_broadcast_helper(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (lhs, rhs) = (cx.input(0)?, cx.input(1)?);
    let (lhs_sizes, rhs_sizes) = (cx.sizes(lhs), cx.sizes(rhs));
    let dims = cx.constant_i64s(2)?;
    let shapes = || format!("{} and {}", list(&lhs_sizes), list(&rhs_sizes));
    if dims.is_empty() {
        let fits = lhs_sizes.len() == rhs_sizes.len() || lhs_sizes.is_empty() || rhs_sizes.is_empty();
        cx.check(fits, || {
            format!(
                "expected equal ranks or a scalar if there are no broadcast_dims, got shapes {}",
                shapes()
            )
        })?;
        return Ok(vec![lhs, rhs]);
    }
    let is_lhs = lhs_sizes.len() < rhs_sizes.len();
    let (low, low_sizes, rank) =
        if is_lhs { (lhs, &lhs_sizes, rhs_sizes.len()) } else { (rhs, &rhs_sizes, lhs_sizes.len()) };
    let ascends = dims.windows(2).all(|pair| pair[0] < pair[1]);
    let within = dims.iter().all(|d| (0..rank as i64).contains(d));
    cx.check(dims.len() == low_sizes.len() && ascends && within, || {
        format!(
            "broadcast_dims: expected ascending dimensions of the larger rank, one for each of the smaller, got {} for \
             shapes {}",
            list(&dims),
            shapes()
        )
    })?;
    let mut sizes = vec![1; rank];
    for (&dim, &size) in dims.iter().zip(low_sizes) {
        sizes[dim as usize] = size;
    }
    let broadcast = cx.reshape(low, &sizes)?;
    Ok(if is_lhs { vec![broadcast, rhs] } else { vec![lhs, broadcast] })
}

/// `XlaOptimizationBarrier(x...) = x...`, computed before any consumer of one of them.
fn xla_optimization_barrier(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let inputs = cx.inputs_from(0)?;
    if inputs.is_empty() {
        return Ok(inputs);
    }
    let tuple = cx.op(Op::Tuple {}, &inputs)?;
    let barrier = cx.op(Op::OptimizationBarrier {}, &[tuple])?;
    (0..inputs.len()).map(|k| cx.tuple_element(barrier, k)).collect()
}

/// `XlaReducePrecision(x)`: rounds to a format with fewer bits, in the same type. More bits than
/// the type has make no difference.
fn xla_reduce_precision(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let attributes = &cx.attributes();
    let (exponent, mantissa) = (attributes.int("exponent_bits")?, attributes.int("mantissa_bits")?);
    cx.check(exponent >= 1 && mantissa >= 0, || {
        format!("expected at least 1 exponent bit and 0 mantissa bits, got {exponent} and {mantissa}")
    })?;
    let (own_exponent, own_mantissa) = match cx.type_attribute("T")? {
        PrimitiveType::F16 => (5, 10),
        PrimitiveType::Bf16 => (8, 7),
        PrimitiveType::F32 => (8, 23),
        _ => (11, 52),
    };
    let (exponent_bits, mantissa_bits) = (exponent.min(own_exponent), mantissa.min(own_mantissa));
    if (exponent_bits, mantissa_bits) == (own_exponent, own_mantissa) {
        return cx.input(0);
    }
    cx.unary(Op::ReducePrecision { exponent_bits: exponent_bits as u32, mantissa_bits: mantissa_bits as u32 })
}

/// `XlaRngBitGenerator(algorithm, state, shape)`: the advanced state, and random bits.
fn xla_rng_bit_generator(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let number = cx.constant_i64(0)?;
    let state = cx.input(1)?;
    let sizes = cx.constant_sizes(2)?;
    let bits = cx.output_type(1)?;
    let (algorithm, lengths): (_, &[i64]) = match number {
        1 => (RandomAlgorithm::Philox, &[2, 3]),
        2 => (RandomAlgorithm::ThreeFry, &[2]),
        3 => (RandomAlgorithm::Default, &[2, 3]),
        _ => {
            return Err(cx.invalid(format!(
                "unknown algorithm {number}: expected 1 (Philox), 2 (ThreeFry), or 3 (auto-select)"
            )));
        }
    };
    let actual = cx.sizes(state);
    cx.check(matches!(actual[..], [length] if lengths.contains(&length)), || {
        format!(
            "the state of algorithm {number}: expected one of the lengths {}, got shape {}",
            list(lengths),
            list(&actual)
        )
    })?;
    let shape = Shape::Tuple(vec![cx.array(state).into(), Shape::array(bits, &sizes)]);
    let pair = cx.op_shaped(&shape, Op::RngBitGenerator { algorithm }, &[state])?;
    Ok(vec![cx.tuple_element(pair, 0)?, cx.tuple_element(pair, 1)?])
}

/// Returns the dimension that input 1 names.
fn dynamic_dimension(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<usize> {
    let dimension = cx.constant_i64(1)?;
    cx.check((0..rank as i64).contains(&dimension), || {
        format!("dim_index: expected one of the {rank} dimensions, got {dimension}")
    })?;
    Ok(dimension as usize)
}

/// `XlaSetDynamicDimensionSize(x, dim_index, size)`: the first `size` elements of a dimension. A
/// run-time size is clamped to the dimension.
fn set_dynamic_dimension_size(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, size) = (cx.input(0)?, cx.input(2)?);
    let sizes = cx.sizes(x);
    let dimension = dynamic_dimension(cx, sizes.len())?;
    if let Some(known) = cx.fold(size).and_then(|literal| literal.scalar_at(0).as_i64()) {
        cx.check((0..=sizes[dimension]).contains(&known), || {
            format!("size {known} exceeds dimension {dimension} of {}", list(&sizes))
        })?;
        return cx.slice_in(x, dimension, 0, known);
    }
    let size = cx.reshape(size, &[])?;
    let size = cx.convert(size, PrimitiveType::S32)?;
    let (none, whole) = (cx.s32(0)?, cx.s32(sizes[dimension])?);
    let mut bounded = cx.split(x)?;
    bounded.sizes[dimension] = Some(cx.clamped(size, none, whole)?);
    cx.bounded(bounded.data, &bounded.sizes)
}

/// `XlaSetBound(x, bound)`: the value, clamped to the bound that the caller promises.
fn set_bound(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let bound = cx.constant_i64(1)?;
    cx.check(cx.rank(x) == 0, || "expected a scalar".to_owned())?;
    if cx.fold(x).is_some() {
        return Ok(x);
    }
    let most = cx.splat_like(x, bound as f64)?;
    cx.op(Op::Minimum {}, &[x, most])
}

/// `XlaRemoveDynamicDimensionSize(x, dim_index)`: all elements of the dimension, including those
/// beyond its true size.
fn remove_dynamic_dimension_size(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let rank = cx.rank(x);
    let dimension = dynamic_dimension(cx, rank)?;
    if cx.is_bounded(x) {
        let mut bounded = cx.split(x)?;
        bounded.sizes[dimension] = None;
        return cx.bounded(bounded.data, &bounded.sizes);
    }
    let instruction = &cx.scope_ref().computation()[x];
    let is_set = instruction.metadata().op_type == "XlaSetDynamicDimensionSize";
    let whole = match instruction.op() {
        Op::Slice { slice }
            if is_set && slice[dimension].limit != cx.sizes(instruction.operands()[0])[dimension] =>
        {
            instruction.operands()[0]
        }
        _ => return cx.input(0),
    };
    Ok(whole)
}

/// Converts between the whole array and its only shard, which are the same.
fn one_shard(cx: &mut NodeContext<'_, '_>, sharding: &str) -> Result<InstructionId> {
    let text = cx.attributes().string(sharding)?;
    // An empty string means the sharding `REPLICATED`. A message may name other devices.
    if !text.is_empty() {
        return Err(Error::unsupported(
            "a manual sharding over several devices, but compiled code runs on one: build the graph without it",
        ));
    }
    cx.input(0)
}

/// Rejects custom calls, whose code is not in the graph.
fn reject_custom_call(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let target = cx.text_or("target_name", "a function")?;
    Err(Error::unsupported(format!(
        "a custom call of {target}, whose code is not part of the graph; feed its results instead"
    )))
}
