//! Random numbers with explicit state: a variable with a counter and a key. Each draw advances the
//! counter as in XLA.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::ops::random::stateless::{Distribution, algorithm, range};
use crate::values::value::Value;
use ::composite::Expression;
use ::composite::random::Generator;
use bounded::VariableId;
use hlo::{InstructionId, RandomAlgorithm};
use shape::PrimitiveType;
use support::Result;
use tf::DataType;

const WIDE_INTEGERS: &[DataType] = &[DataType::Int32, DataType::Int64, DataType::Uint32, DataType::Uint64];

pub(crate) const RULES: &[Rule] = &[
    rule_values("StatefulUniform", |cx| draw(cx, Distribution::Uniform)).types("dtype", FLOATS).effect(),
    rule_values("StatefulStandardNormalV2", |cx| draw(cx, Distribution::Normal))
        .types("dtype", FLOATS)
        .effect(),
    rule_values("StatefulTruncatedNormal", |cx| draw(cx, Distribution::TruncatedNormal))
        .types("dtype", FLOATS)
        .effect(),
    rule_values("StatefulUniformInt", |cx| draw(cx, Distribution::UniformInt))
        .types("dtype", WIDE_INTEGERS)
        .effect(),
    rule_values("StatefulUniformFullInt", |cx| draw(cx, Distribution::FullInt))
        .types("dtype", WIDE_INTEGERS)
        .effect(),
    rule_values("RngSkip", |cx| skip(cx, false)).effect(),
    rule_values("RngReadAndSkip", |cx| skip(cx, true)).effect(),
];

/// Returns the generator's variable, its value, its algorithm, and the number of words of the
/// counter.
fn state(cx: &mut NodeContext<'_, '_>) -> Result<(VariableId, InstructionId, RandomAlgorithm, i64)> {
    let variable = cx.variable(0)?;
    let value = cx.read_variable(variable);
    let (algorithm, words) = algorithm(cx, 1)?;
    let shape = cx.array(value);
    let fits = shape.element_type == PrimitiveType::S64 && shape.rank() == 1 && shape.size(0) > words;
    cx.check(fits, || {
        format!(
            "the generator's variable: expected a vector of int64 with at least {} elements, got {shape}",
            words + 1
        )
    })?;
    Ok((variable, value, algorithm, words))
}

/// Returns the counter and the key of a state.
fn parts(state: Expression<'_>, words: i64) -> (Expression<'_>, Expression<'_>) {
    let state = state.bitcast_convert(PrimitiveType::U64);
    (state.slice_in(0, 0, words), state.slice_in(0, words, words + 1))
}

/// Returns a state with another counter.
fn with_counter<'f>(state: Expression<'f>, counter: Expression<'f>, words: i64) -> Expression<'f> {
    let size = state.size_from_end(0);
    let rest = state.slice_in(0, words, size);
    let counter = counter.bitcast_convert(PrimitiveType::S64);
    state.function().concatenate(&[counter, rest], 0)
}

/// `Stateful*(resource, algorithm, shape, ...)`.
fn draw(cx: &mut NodeContext<'_, '_>, distribution: Distribution) -> Result<Vec<Value>> {
    let (variable, value, algorithm, words) = state(cx)?;
    let sizes = cx.constant_sizes(2)?;
    let element_type = cx.type_attribute("dtype")?;
    let mut operands = vec![value];
    if distribution == Distribution::UniformInt {
        operands.extend(range(cx, 3)?);
    }
    let results = cx.composite(&operands, |_, operands| {
        let (counter, key) = parts(operands[0], words);
        let mut generator = Generator { algorithm, key: key.reshape(&[]), counter };
        let numbers = distribution.numbers(&mut generator, element_type, &sizes, &operands[1..]);
        vec![numbers, with_counter(operands[0], generator.counter, words)]
    })?;
    let name = cx.name().to_owned();
    cx.write_variable(variable, results[1], &name);
    Ok(vec![Value::Array(results[0])])
}

/// `RngReadAndSkip(resource, alg, delta)`: advances the counter as if `delta` numbers of 256 blocks
/// each were drawn.
fn skip(cx: &mut NodeContext<'_, '_>, reads: bool) -> Result<Vec<Value>> {
    let (variable, value, _, words) = state(cx)?;
    let delta = cx.input(2)?;
    let rank = cx.rank(delta);
    cx.check(rank == 0, || format!("delta: expected a scalar, got rank {rank}"))?;
    let state = cx.composite_one(&[value, delta], |function, operands| {
        let (counter, _) = parts(operands[0], words);
        let delta = operands[1].bitcast_convert(PrimitiveType::U64) * 256.0;
        let low = counter.slice_in(0, 0, 1);
        let next = low + delta.reshape(&[1]);
        let mut counter_words = vec![next];
        if words == 2 {
            let high = counter.slice_in(0, 1, 2);
            counter_words.push(next.lt(low).select(high + 1.0, high));
        }
        with_counter(operands[0], function.concatenate(&counter_words, 0), words)
    })?;
    let name = cx.name().to_owned();
    cx.write_variable(variable, state, &name);
    if !reads {
        return Ok(Vec::new());
    }
    // The result has the size of the longest counter, regardless of the algorithm.
    let zero = cx.scalar(PrimitiveType::S64, 0.0);
    let read = cx.pad(value, zero, &[(0, 2 - words, 0)])?;
    Ok(vec![Value::Array(read)])
}
