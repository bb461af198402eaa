//! LSTM cells over a sequence, and their gradients: a loop over the steps. Products that do not
//! depend on the state are outside the loop.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_many};
use crate::ops::linalg::products::dot;
use crate::ops::nn::lstm_cells::{
    Cell, GateOrder, Peepholes, Sizes, Step, backward, peephole_gradients, peepholes,
};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, DotDimensionNumbers, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("BlockLSTM", |cx| {
        let forget_bias = cx.attributes().float_or("forget_bias", 1.0)?.into();
        let cell_clip = cx.attributes().float_or("cell_clip", 3.0)?.into();
        block_lstm(cx, &Cell { order: GateOrder::Icfo, forget_bias, cell_clip })
    })
    .types("T", FLOATS_TO_32_BITS),
    rule_many("BlockLSTMV2", |cx| {
        let cell_clip = cx.attributes().float_or("cell_clip", 0.0)?.into();
        block_lstm(cx, &Cell { order: GateOrder::Ifco, forget_bias: 0.0, cell_clip })
    })
    .types("T", FLOATS_TO_32_BITS),
    rule_many("BlockLSTMGrad", |cx| block_lstm_grad(cx, GateOrder::Icfo)).types("T", FLOATS_TO_32_BITS),
    rule_many("BlockLSTMGradV2", |cx| block_lstm_grad(cx, GateOrder::Ifco)).types("T", FLOATS_TO_32_BITS),
];

/// Number of steps of a sequence to compute.
#[derive(Clone, Copy)]
enum Steps {
    Known(i32),
    /// An `s32` scalar from 0 to the sequence's length.
    Dynamic(InstructionId),
}

/// Returns the input `x`, `[time, batch, inputs]`, the number of steps, and the sizes. `x` is input
/// 1; the cell's inputs follow.
fn sequence(cx: &mut NodeContext<'_, '_>) -> Result<(InstructionId, i64, Sizes)> {
    let x = cx.input(1)?;
    let x_sizes = cx.sizes(x);
    let &[time, batch, inputs] = &x_sizes[..] else {
        return Err(cx.invalid(format!("x: expected shape [time, batch, inputs], got {}", list(&x_sizes))));
    };
    let sizes = Sizes::new(cx, &[batch, inputs], 2)?;
    cx.check(i32::try_from(time).is_ok(), || format!("a sequence of {time} steps is too long"))?;
    Ok((x, time, sizes))
}

/// Returns `seq_len_max`, input 0, clamped to the length of the sequence.
fn steps(cx: &mut NodeContext<'_, '_>, time: i64) -> Result<Steps> {
    let length = cx.input(0)?;
    let actual = cx.sizes(length);
    cx.check(actual.is_empty(), || format!("seq_len_max: expected a scalar, got shape {}", list(&actual)))?;
    if let Some(known) = cx.fold(length).and_then(|literal| literal.scalar_at(0).as_i64()) {
        return Ok(Steps::Known(known.clamp(0, time) as i32));
    }
    let (zero, end) = (cx.splat_like(length, 0.0)?, cx.splat_like(length, time as f64)?);
    let clamped = cx.op(Op::Clamp {}, &[zero, length, end])?;
    Ok(Steps::Dynamic(cx.convert(clamped, PrimitiveType::S32)?))
}

/// Runs `body` for each step. It receives the number of iterations so far, the total number, and
/// the carried values.
fn for_steps<'p>(
    cx: &mut NodeContext<'_, 'p>,
    steps: Steps,
    time: i64,
    initial: &[InstructionId],
    body: impl FnOnce(
        &mut NodeContext<'_, 'p>,
        InstructionId,
        InstructionId,
        &[InstructionId],
    ) -> Result<Vec<InstructionId>>,
) -> Result<Vec<InstructionId>> {
    match steps {
        Steps::Known(count) => cx.counted_loop(count, initial, |cx, index, state| {
            let count = cx.literal(Literal::scalar(count));
            body(cx, index, count, state)
        }),
        Steps::Dynamic(count) => {
            let initial = [&[count], initial].concat();
            let below = |cx: &mut NodeContext<'_, 'p>, index, state: &[InstructionId]| {
                cx.compare(ComparisonDirection::Lt, index, state[0])
            };
            let results = cx.bounded_loop(time.max(0) as u64, &initial, below, |cx, index, state| {
                let next = body(cx, index, state[0], &state[1..])?;
                Ok([&state[..1], &next].concat())
            })?;
            Ok(results[1..].to_vec())
        }
    }
}

/// Returns the rows of the weights for the inputs, and those for the state.
fn split_weights(
    cx: &mut NodeContext<'_, '_>,
    w: InstructionId,
    sizes: Sizes,
) -> Result<(InstructionId, InstructionId)> {
    let input = cx.slice_in(w, 0, 0, sizes.inputs)?;
    Ok((input, cx.slice_in(w, 0, sizes.inputs, sizes.inputs + sizes.cell)?))
}

/// `BlockLSTM(seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b)`: the values `i, cs, f, o, ci,
/// co, h` of all steps, each `[time, batch, cell]`. See [`Cell::forward`]. After `seq_len_max`
/// steps, everything is 0.
fn block_lstm(cx: &mut NodeContext<'_, '_>, cell: &Cell) -> Result<Vec<InstructionId>> {
    let (x, time, sizes) = sequence(cx)?;
    let (cs_prev, h_prev, w, b) = (cx.input(2)?, cx.input(3)?, cx.input(4)?, cx.input(8)?);
    let element_type = cx.element_type(x);
    let result = [time, sizes.batch, sizes.cell];
    let zeros = cx.splat(element_type, &result, 0.0)?;
    if result.contains(&0) {
        return Ok(vec![zeros; 7]);
    }
    let peepholes = peepholes(cx, 5)?;
    let steps = steps(cx, time)?;
    let (input_weights, state_weights) = split_weights(cx, w, sizes)?;
    let gate_sizes = [time, sizes.batch, 4 * sizes.cell];
    let b = cx.broadcast(b, &gate_sizes, &[2])?;
    let from_inputs = match sizes.inputs {
        0 => b,
        inputs => {
            let x = cx.reshape(x, &[time * sizes.batch, inputs])?;
            let product = dot(cx, x, input_weights, 0, 1, 0)?;
            let product = cx.reshape(product, &gate_sizes)?;
            cx.add(product, b)?
        }
    };
    let mut carried = vec![from_inputs, state_weights, cs_prev, h_prev];
    carried.extend([zeros; 7]);
    carried.extend(peepholes.into_iter().flatten());
    let results = for_steps(cx, steps, time, &carried, |cx, index, _, state| {
        let peepholes: Option<Peepholes> = state[11..].try_into().ok();
        let from_inputs = cx.dynamic_row(state[0], index)?;
        let from_state = dot(cx, state[3], state[1], 0, 1, 0)?;
        let gates = cx.add(from_inputs, from_state)?;
        let (step, h) = cell.forward(cx, gates, state[2], peepholes)?;
        let Step { i, cs, f, o, ci, co } = step;
        let mut next = vec![state[0], state[1], cs, h];
        for (row, &buffer) in [i, cs, f, o, ci, co, h].into_iter().zip(&state[4..11]) {
            next.push(cx.with_dynamic_row(buffer, row, index)?);
        }
        next.extend_from_slice(&state[11..]);
        Ok(next)
    })?;
    Ok(results[4..11].to_vec())
}

/// Returns the states before each step, given the one before the first step and those after each.
fn states_before(
    cx: &mut NodeContext<'_, '_>,
    first: InstructionId,
    after: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(after);
    let first = cx.reshape(first, &[1, sizes[1], sizes[2]])?;
    let others = cx.slice_in(after, 0, 0, sizes[0] - 1)?;
    if sizes[0] == 1 { Ok(first) } else { cx.concatenate(&[first, others], 0) }
}

/// Replaces the elements after the last step, which are unspecified, with zeros.
fn without_padding(
    cx: &mut NodeContext<'_, '_>,
    sequence: InstructionId,
    steps: Steps,
) -> Result<InstructionId> {
    let sizes = cx.sizes(sequence);
    let limit = match steps {
        Steps::Known(count) if i64::from(count) == sizes[0] => return Ok(sequence),
        Steps::Known(count) => cx.literal(Literal::scalar(count)),
        Steps::Dynamic(count) => count,
    };
    let number = cx.iota(PrimitiveType::S32, &sizes, 0)?;
    let limit = cx.broadcast(limit, &sizes, &[])?;
    let is_step = cx.compare(ComparisonDirection::Lt, number, limit)?;
    let zeros = cx.splat_like(sequence, 0.0)?;
    cx.select(is_step, sequence, zeros)
}

/// Returns the product over time and batch, `[a, b]`, of `[time, batch, a]` and `[time, batch, b]`.
fn sum_of_products(
    cx: &mut NodeContext<'_, '_>,
    a: InstructionId,
    b: InstructionId,
) -> Result<InstructionId> {
    let numbers = DotDimensionNumbers {
        lhs_contracting_dims: vec![0],
        rhs_contracting_dims: vec![0],
        ..Default::default()
    };
    let (a_sizes, b_sizes) = (cx.sizes(a), cx.sizes(b));
    let rows = a_sizes[0] * a_sizes[1];
    let (a, b) = (cx.reshape(a, &[rows, a_sizes[2]])?, cx.reshape(b, &[rows, b_sizes[2]])?);
    cx.op(Op::Dot { dot_dimension_numbers: numbers }, &[a, b])
}

/// `BlockLSTMGrad(seq_len_max, x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h,
/// cs_grad, h_grad)`: the gradients of `x, cs_prev, h_prev, w, wci, wcf, wco, b`. The loop visits
/// the steps in reverse order and computes the gradients of the gates. The gradients of the weights
/// are products of whole sequences.
fn block_lstm_grad(cx: &mut NodeContext<'_, '_>, order: GateOrder) -> Result<Vec<InstructionId>> {
    let (x, time, sizes) = sequence(cx)?;
    let (cs_prev, h_prev, w) = (cx.input(2)?, cx.input(3)?, cx.input(4)?);
    let element_type = cx.element_type(x);
    let result = [time, sizes.batch, sizes.cell];
    let mut step_values = Vec::with_capacity(9);
    for k in 9..18 {
        let id = cx.input(k)?;
        let actual = cx.sizes(id);
        cx.check(actual == result, || {
            format!("input {k}: expected shape {}, got {}", list(&result), list(&actual))
        })?;
        step_values.push(id);
    }
    let peepholes = peepholes(cx, 5)?;
    if result.contains(&0) {
        return (1..9)
            .map(|k| {
                let id = cx.input(k)?;
                cx.splat_like(id, 0.0)
            })
            .collect();
    }
    let steps = steps(cx, time)?;
    let (input_weights, state_weights) = split_weights(cx, w, sizes)?;
    let cs_before = states_before(cx, cs_prev, step_values[1])?;
    let no_gradient = cx.splat(element_type, &sizes.state(), 0.0)?;
    let gates = cx.splat(element_type, &[time, sizes.batch, 4 * sizes.cell], 0.0)?;
    let mut carried = vec![gates, no_gradient, no_gradient, state_weights, cs_before];
    // All values except `h`, which the loop does not need.
    carried.extend(step_values.iter().enumerate().filter(|(k, _)| *k != 6).map(|(_, &id)| id));
    carried.extend(peepholes.into_iter().flatten());
    let results = for_steps(cx, steps, time, &carried, |cx, index, count, state| {
        let peepholes: Option<Peepholes> = state[13..].try_into().ok();
        let last = cx.add_scalar(count, -1.0)?;
        let position = cx.sub(last, index)?;
        let mut rows = Vec::with_capacity(9);
        for &sequence in &state[4..13] {
            rows.push(cx.dynamic_row(sequence, position)?);
        }
        let step = Step { i: rows[1], cs: rows[2], f: rows[3], o: rows[4], ci: rows[5], co: rows[6] };
        let (cs_grad, h_grad) = (cx.add(state[1], rows[7])?, cx.add(state[2], rows[8])?);
        let (gates, cs_prev_grad) = backward(cx, order, &step, rows[0], cs_grad, h_grad, peepholes)?;
        let h_prev_grad = dot(cx, gates, state[3], 0, 1, 1)?;
        let gates = cx.with_dynamic_row(state[0], gates, position)?;
        Ok([&[gates, cs_prev_grad, h_prev_grad], &state[3..]].concat())
    })?;
    let (gates, cs_prev_grad, h_prev_grad) = (results[0], results[1], results[2]);
    let rows = time * sizes.batch;
    let flat = cx.reshape(gates, &[rows, 4 * sizes.cell])?;
    let x_grad = match sizes.inputs {
        0 => x,
        inputs => {
            let product = dot(cx, flat, input_weights, 0, 1, 1)?;
            cx.reshape(product, &[time, sizes.batch, inputs])?
        }
    };
    let h_before = states_before(cx, h_prev, step_values[6])?;
    let h_before = without_padding(cx, h_before, steps)?;
    let mut w_grad = sum_of_products(cx, h_before, gates)?;
    if sizes.inputs > 0 {
        let x = without_padding(cx, x, steps)?;
        let of_inputs = sum_of_products(cx, x, gates)?;
        w_grad = cx.concatenate(&[of_inputs, w_grad], 0)?;
    }
    let b_grad = cx.reduce(gates, Reducer::Add, &[0, 1])?;
    let (cs_before, cs) =
        (without_padding(cx, cs_before, steps)?, without_padding(cx, step_values[1], steps)?);
    let [wci, wcf, wco] = peephole_gradients(cx, order, gates, cs_before, cs, peepholes.is_some())?;
    Ok(vec![x_grad, cs_prev_grad, h_prev_grad, w_grad, wci, wcf, wco, b_grad])
}
