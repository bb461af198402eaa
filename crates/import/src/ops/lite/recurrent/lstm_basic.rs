//! The basic kernel of `LSTM`: one step whose previous result and state are inputs, with one matrix
//! for the gates in the order input, cell, forget, output (`lstm_cell.h`).

use super::Parts;
use super::functions::{halved, logistic, saturated, tanh, times};
use crate::node::context::NodeContext;
use crate::ops::lite::fixed_point::{Multiplier, doubling_high};
use crate::ops::lite::operands::Operands;
use composite::Expression;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

/// Operands: input, previous result, weights, bias, previous state.
const OPERANDS: [usize; 5] = [0, 1, 2, 3, 4];

/// Converts a node. Results: activation and state, then two that are temporary.
pub(super) fn convert(
    cx: &mut NodeContext<'_, '_>,
    operands: &Operands,
    parts: &Parts,
) -> Result<Vec<InstructionId>> {
    let [x, h, w, b, s] = OPERANDS;
    let [batch, inputs] = parts.sizes_of_rank(cx, x)?;
    let [_, cells] = parts.sizes_of_rank(cx, h)?;
    let is_float = parts.quantization(x).is_some_and(|input| input.element_type == PrimitiveType::F32);
    let (bytes, wide, short): (&[_], &[_], &[_]) = if is_float {
        (&[PrimitiveType::F32], &[PrimitiveType::F32], &[PrimitiveType::F32])
    } else {
        (&[PrimitiveType::U8], &[PrimitiveType::S32], &[PrimitiveType::S16])
    };
    parts.require(cx, x, &[batch, inputs], bytes)?;
    parts.require(cx, h, &[batch, cells], bytes)?;
    parts.require(cx, w, &[4 * cells, inputs + cells], bytes)?;
    parts.require(cx, b, &[4 * cells], wide)?;
    parts.require(cx, s, &[batch, cells], short)?;
    let count = cx.node().output_types.len();
    let results = if is_float { float(cx, parts)? } else { integer(cx, operands, parts)? };
    Ok(results.into_iter().take(count).collect())
}

/// The part of the sums that belongs to a gate.
fn gate(sums: Expression<'_>, number: i64) -> Expression<'_> {
    let cells = sums.size_from_end(0) / 4;
    sums.slice_in(1, number * cells, (number + 1) * cells)
}

fn float(cx: &mut NodeContext<'_, '_>, parts: &Parts) -> Result<Vec<InstructionId>> {
    cx.composite(&parts.ids, |function, values| {
        let [x, h, w, b, s] = OPERANDS.map(|k| parts.required(values, k));
        let rows = function.concatenate(&[x, h], 1);
        let sums = rows.dot(w.transpose(&[1, 0]), 0);
        let sums = sums + b.broadcast(&sums.sizes(), &[1]);
        let sigmoid = |x: Expression<'_>| function.op(Op::Logistic {}, &[function.expression(x.id())], None);
        let bent = |x: Expression<'_>| function.op(Op::Tanh {}, &[function.expression(x.id())], None);
        let state = sigmoid(gate(sums, 0)) * bent(gate(sums, 1)) + sigmoid(gate(sums, 2)) * s;
        vec![sigmoid(gate(sums, 3)) * bent(state), state, rows, sums]
    })
}

fn integer(cx: &mut NodeContext<'_, '_>, operands: &Operands, parts: &Parts) -> Result<Vec<InstructionId>> {
    // Numbers of the state have 4 integer bits, those of the sums 3.
    let state_scale = operands.output(cx, 1)?.scale();
    if state_scale != 2f64.powi(-11) {
        return Err(Error::unsupported(format!(
            "the state has scale {state_scale}, but TensorFlow Lite supports only 2^-11, too"
        )));
    }
    let scale = parts.scale(3).unwrap_or(1.0);
    let multiplier = Multiplier::of(4096.0 * f64::from(scale));
    let zero_point = parts.quantization(2).map_or(0, |weights| weights.zero_point()) as f64;
    cx.composite(&parts.ids, |function, values| {
        let [x, h, w, b, s] = OPERANDS.map(|k| parts.required(values, k));
        let rows = function.concatenate(&[x, h], 1);
        let centered = rows.convert(PrimitiveType::S32) - 128.0;
        let weights = w.convert(PrimitiveType::S32) - zero_point;
        let sums = centered.dot(weights.transpose(&[1, 0]), 0);
        let sums = saturated(scaled_up(sums + b.broadcast(&sums.sizes(), &[1]), multiplier));
        let new = times(logistic(gate(sums, 0), 3), tanh(gate(sums, 1), 3));
        let kept = times(logistic(gate(sums, 2), 3), s.convert(PrimitiveType::S32));
        let state = saturated(halved(new, 4) + kept);
        let result = times(logistic(gate(sums, 3), 3), tanh(saturated(state * 2.0), 3));
        let result = halved(result, 8).max(-128.0).min(127.0) + 128.0;
        vec![
            result.convert(PrimitiveType::U8),
            state.convert(PrimitiveType::S16),
            rows,
            sums.convert(PrimitiveType::S16),
        ]
    })
}

/// x multiplied by a real number, as the library for products of matrices does it on this
/// machine: the second rounding is to nearest, and up at halves.
fn scaled_up(x: Expression<'_>, Multiplier { factor, shift }: Multiplier) -> Expression<'_> {
    let wide = x.convert(PrimitiveType::S64) * f64::from(1 << shift.max(0));
    let high = doubling_high(wide, wide.splat(f64::from(factor)));
    let high = match -shift {
        right @ 1.. => {
            let right = f64::from(right);
            (high + (right - 1.0).exp2()).shift_right_arithmetic(right)
        }
        _ => high,
    };
    high.convert(PrimitiveType::S32)
}
