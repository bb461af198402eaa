//! `SVDF`: a fully connected layer over time whose matrix has a low rank (Nakkiran et al., 2015).
//!
//! Each filter keeps its last activations in the state. A unit sums the products of the filters of
//! its rank with the weights over time.

use super::functions::scaled;
use super::hybrid::{product, real};
use super::{FLOAT, Parts, WEIGHTS, activated, activation};
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::lite::fixed_point::Multiplier;
use crate::ops::lite::operands::Operands;
use composite::Expression;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[rule_many("TFLiteSvdf", svdf)];

/// The sizes of an operator, checked.
#[derive(Clone, Copy)]
struct Sizes {
    batch: i64,
    filters: i64,
    memory: i64,
    units: i64,
}

fn svdf(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = Operands::of_node(cx)?;
    let parts = Parts::new(cx, &operands, 5)?;
    let [batch, inputs] = parts.sizes_of_rank(cx, 0)?;
    let [filters, _] = parts.sizes_of_rank(cx, 1)?;
    let [_, memory] = parts.sizes_of_rank(cx, 2)?;
    let rank = cx.attributes().int_or("rank", 1)?;
    cx.check(rank > 0 && filters % rank == 0 && memory > 0, || {
        format!("{filters} filters with a memory of {memory} steps cannot have rank {rank}")
    })?;
    let sizes = Sizes { batch, filters, memory, units: filters / rank };
    let is_integer = parts.quantization(0).is_some_and(|input| input.element_type == PrimitiveType::S8);
    let states = [PrimitiveType::S8, PrimitiveType::S16];
    let (weights, times, biases, states): (&[_], &[_], &[_], &[_]) = if is_integer {
        (&[PrimitiveType::S8], &states, &[PrimitiveType::S32], &states)
    } else {
        (WEIGHTS, WEIGHTS, FLOAT, FLOAT)
    };
    parts.require(cx, 1, &[filters, inputs], weights)?;
    parts.require(cx, 2, &[filters, memory], times)?;
    parts.check(cx, 3, &[sizes.units], biases)?;
    parts.require(cx, 4, &[batch, memory * filters], states)?;
    if is_integer {
        return integer(cx, &operands, &parts, sizes);
    }
    parts.require(cx, 0, &[batch, inputs], FLOAT)?;
    let activation = activation(cx)?;
    let is_asymmetric = cx.attributes().bool_or("asymmetric_quantize_inputs", false)?;
    cx.composite(&parts.ids, |_, values| {
        let newest =
            product(parts.required(values, 0), parts.required(values, 1), parts.scale(1), is_asymmetric);
        let state = shifted(parts.required(values, 4), newest, sizes);
        let weights = real(parts.required(values, 2), parts.scale(2));
        let sums = over_time(state, weights, parts.value(values, 3), sizes);
        vec![activated(sums, activation), state.reshape(&[sizes.batch, sizes.memory * sizes.filters])]
    })
}

/// The state without its oldest activations and with new ones: `[batch, filters, memory]`.
fn shifted<'f>(state: Expression<'f>, newest: Expression<'f>, sizes: Sizes) -> Expression<'f> {
    let Sizes { batch, filters, memory, .. } = sizes;
    let newest = newest.reshape(&[batch, filters, 1]);
    if memory == 1 {
        return newest;
    }
    let kept = state.reshape(&[batch, filters, memory]).slice_in(2, 1, memory);
    state.function().concatenate(&[kept, newest], 2)
}

/// The sums of the units, `[batch, units]`.
fn over_time<'f>(
    state: Expression<'f>,
    weights: Expression<'f>,
    bias: Option<Expression<'f>>,
    sizes: Sizes,
) -> Expression<'f> {
    let Sizes { batch, filters, memory, units } = sizes;
    let products = state * weights.broadcast(&[batch, filters, memory], &[1, 2]);
    let sums = products.sum(&[2]).reshape(&[batch, units, filters / units.max(1)]).sum(&[2]);
    match bias {
        Some(bias) => sums + bias.broadcast(&[batch, units], &[1]),
        None => sums,
    }
}

/// `EvalIntegerSVDF`.
fn integer(
    cx: &mut NodeContext<'_, '_>,
    operands: &Operands,
    parts: &Parts,
    sizes: Sizes,
) -> Result<Vec<InstructionId>> {
    let activation = activation(cx)?;
    if activation != 1 {
        return Err(Error::unsupported(
            "SVDF of integers has no activation but ReLU in TensorFlow Lite, either",
        ));
    }
    let output = operands.output(cx, 0)?;
    let scale = |k: usize| f64::from(parts.scale(k).unwrap_or(1.0));
    let state_type = parts.quantization(4).map_or(PrimitiveType::S16, |state| state.element_type);
    let [low, high] = parts.quantization(4).map_or([0, 0], |state| state.limits());
    let zero = parts.quantization(0).map_or(0, |input| input.zero_point());
    let to_state = Multiplier::of(scale(0) * scale(1) / scale(4));
    let to_output = Multiplier::of(scale(4) * scale(2) / output.scale());
    cx.composite(&parts.ids, |_, values| {
        let wide = |k: usize| parts.required(values, k).convert(PrimitiveType::S32);
        let centered = wide(0) - zero as f64;
        let sums = centered.dot(wide(1).transpose(&[1, 0]), 0);
        let newest = scaled(sums, to_state).max(low as f64).min(high as f64);
        let state = shifted(wide(4), newest, sizes);
        let bias = parts.value(values, 3);
        let sums = over_time(state, wide(2), bias, sizes);
        let [least, largest] = output.limits();
        let result = scaled(sums, to_output) + output.zero_point() as f64;
        let result = result.max(least as f64).min(largest as f64).convert(output.element_type);
        let state = state.convert(state_type).reshape(&[sizes.batch, sizes.memory * sizes.filters]);
        vec![result, state]
    })
}
