//! Recurrent operators: their operands, and the loop over the steps of a sequence.
//!
//! An op takes the values of the operator's variables before the first step, and returns those
//! after the last one following its other results.

mod functions;
mod hybrid;
pub(crate) mod lstm;
mod lstm_basic;
mod lstm_integer;
mod lstm_operands;
pub(crate) mod rnn;
pub(crate) mod svdf;

use crate::node::context::NodeContext;
use crate::ops::lite::operands::{Operands, Quantization};
use ::composite::{Expression, Function};
use bounded::list;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

/// The operands that are present, as the parameters of a function.
struct Parts {
    ids: Vec<InstructionId>,
    /// For each operand of the operator, its parameter.
    places: Vec<Option<usize>>,
    quantizations: Vec<Quantization>,
}

impl Parts {
    /// The first operands of a node, as many as the operator has at most.
    fn new(cx: &mut NodeContext<'_, '_>, operands: &Operands, most: usize) -> Result<Self> {
        let mut parts = Self { ids: Vec::new(), places: Vec::new(), quantizations: Vec::new() };
        for k in 0..most {
            if !operands.has(k) {
                parts.places.push(None);
                continue;
            }
            let (id, quantization) = operands.input(cx, k)?;
            parts.places.push(Some(parts.ids.len()));
            parts.ids.push(id);
            parts.quantizations.push(quantization);
        }
        Ok(parts)
    }

    /// True if an operand is present.
    fn has(&self, k: usize) -> bool {
        self.places[k].is_some()
    }

    /// The value of an operand among those of all parameters.
    fn value<'f>(&self, parameters: &[Expression<'f>], k: usize) -> Option<Expression<'f>> {
        self.places[k].map(|place| parameters[place])
    }

    /// The value of an operand that was checked to be present.
    fn required<'f>(&self, parameters: &[Expression<'f>], k: usize) -> Expression<'f> {
        self.value(parameters, k).expect("the operands were checked")
    }

    /// The quantization of an operand, if it is present.
    fn quantization(&self, k: usize) -> Option<&Quantization> {
        self.places[k].map(|place| &self.quantizations[place])
    }

    /// The scale of an operand of integers that stand for real numbers.
    fn scale(&self, k: usize) -> Option<f32> {
        self.quantization(k).filter(|quantization| quantization.is_quantized()).map(|q| q.scale() as f32)
    }

    /// The sizes of an operand, which must be present.
    fn sizes(&self, cx: &NodeContext<'_, '_>, k: usize) -> Result<Vec<i64>> {
        let place = self.places[k].ok_or_else(|| cx.invalid(format!("input {k} is missing")))?;
        Ok(cx.sizes(self.ids[place]))
    }

    /// The sizes of an operand, which must have this rank.
    fn sizes_of_rank<const RANK: usize>(&self, cx: &NodeContext<'_, '_>, k: usize) -> Result<[i64; RANK]> {
        let sizes = self.sizes(cx, k)?;
        let rank = sizes.len();
        sizes.try_into().map_err(|sizes: Vec<i64>| {
            cx.invalid(format!("input {k}: expected {RANK} dimensions, got {rank} in shape {}", list(&sizes)))
        })
    }

    /// Checks that an operand, unless it is left out, has these sizes and one of these types.
    fn check(
        &self,
        cx: &NodeContext<'_, '_>,
        k: usize,
        sizes: &[i64],
        types: &[PrimitiveType],
    ) -> Result<()> {
        let Some(place) = self.places[k] else { return Ok(()) };
        let actual = cx.sizes(self.ids[place]);
        cx.check(actual == sizes, || {
            format!("input {k}: expected shape {}, got {}", list(sizes), list(&actual))
        })?;
        let element_type = cx.element_type(self.ids[place]);
        cx.check(types.contains(&element_type), || format!("input {k} has the wrong type, {element_type}"))
    }

    /// Like [`Self::check`], for an operand that must be present.
    fn require(
        &self,
        cx: &NodeContext<'_, '_>,
        k: usize,
        sizes: &[i64],
        types: &[PrimitiveType],
    ) -> Result<()> {
        self.sizes(cx, k)?;
        self.check(cx, k, sizes, types)
    }
}

/// The types of weights: floats, or integers that stand for them.
const WEIGHTS: &[PrimitiveType] = &[PrimitiveType::F32, PrimitiveType::S8, PrimitiveType::U8];

const FLOAT: &[PrimitiveType] = &[PrimitiveType::F32];

/// The steps of a sequence, or the only step of an operator without one.
#[derive(Clone, Copy, Debug)]
struct Steps {
    time: i64,
    batch: i64,
    /// Size of the input of a step.
    inputs: i64,
    /// Order of the dimensions: `[time, batch, inputs]`, `[batch, time, inputs]`, or
    /// `[batch, inputs]`.
    order: Order,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    TimeMajor,
    BatchMajor,
    OneStep,
}

impl Steps {
    /// The steps of the input, operand 0.
    fn new(cx: &NodeContext<'_, '_>, parts: &Parts) -> Result<Self> {
        let sizes = parts.sizes(cx, 0)?;
        let (order, [time, batch, inputs]) = match *sizes.as_slice() {
            [batch, inputs] => (Order::OneStep, [1, batch, inputs]),
            [time, batch, inputs] if cx.attributes().bool_or("time_major", false)? => {
                (Order::TimeMajor, [time, batch, inputs])
            }
            [batch, time, inputs] => (Order::BatchMajor, [time, batch, inputs]),
            _ => return Err(cx.invalid(format!("input 0: expected 2 or 3 dimensions, got {}", list(&sizes)))),
        };
        cx.check(i32::try_from(time).is_ok(), || format!("a sequence of {time} steps is too long"))?;
        Ok(Self { time, batch, inputs, order })
    }

    /// The sizes of an operand or result, given its number of columns in each step.
    fn sizes(&self, columns: i64) -> Vec<i64> {
        match self.order {
            Order::TimeMajor => vec![self.time, self.batch, columns],
            Order::BatchMajor => vec![self.batch, self.time, columns],
            Order::OneStep => vec![self.batch, columns],
        }
    }

    /// A sequence as rows, those of the first step first.
    fn rows<'f>(&self, x: Expression<'f>) -> Expression<'f> {
        let x = if self.order == Order::BatchMajor { x.transpose(&[1, 0, 2]) } else { x };
        let columns = x.size_from_end(0);
        x.reshape(&[self.time * self.batch, columns])
    }

    /// Rows as a value for each step.
    fn by_step<'f>(&self, rows: Expression<'f>) -> Expression<'f> {
        let columns = rows.size_from_end(0);
        rows.reshape(&[self.time, self.batch, columns])
    }

    /// Results of steps, `[time, batch, columns]`, in the order of the operator's dimensions.
    fn arranged<'f>(&self, results: Expression<'f>) -> Expression<'f> {
        let columns = results.size_from_end(0);
        let results = if self.order == Order::BatchMajor { results.transpose(&[1, 0, 2]) } else { results };
        results.reshape(&self.sizes(columns))
    }
}

/// The results of all steps, `[time, ...]`, and the state after the last one.
type Scanned<'f> = (Expression<'f>, Vec<Expression<'f>>);

/// The values that a loop over steps reads: those by step, the state before the first one, and
/// constants.
struct Carried<'a, 'f> {
    sequences: &'a [Expression<'f>],
    states: &'a [Expression<'f>],
    constants: &'a [Expression<'f>],
}

/// Runs a step for each index of the leading dimension of the sequences, beginning with the last
/// one if the sequence is reversed. A step returns its result and the next state.
fn scan<'f>(
    function: &'f Function,
    time: i64,
    is_reversed: bool,
    carried: &Carried<'_, 'f>,
    (element_type, sizes): (PrimitiveType, &[i64]),
    step: impl for<'g> FnOnce(
        &[Expression<'g>],
        &[Expression<'g>],
        &[Expression<'g>],
    ) -> (Expression<'g>, Vec<Expression<'g>>),
) -> Scanned<'f> {
    let Carried { sequences, states, constants } = *carried;
    let row_of_one: Vec<i64> = std::iter::once(1).chain(sizes.iter().copied()).collect();
    let all: Vec<i64> = std::iter::once(time).chain(sizes.iter().copied()).collect();
    if all.contains(&0) {
        return (function.splat(element_type, &all, 0.0), states.to_vec());
    }
    if time == 1 {
        let rows: Vec<Expression<'f>> =
            sequences.iter().map(|sequence| sequence.reshape(&sequence.sizes()[1..])).collect();
        let (result, next) = step(&rows, states, constants);
        return (result.reshape(&row_of_one), next);
    }
    let results = function.splat(element_type, &all, 0.0);
    let initial = [&[results], states, sequences, constants].concat();
    let (from, to) = (1 + states.len(), 1 + states.len() + sequences.len());
    let mut after = function.for_loop(time, &initial, |_, index, carried| {
        let index = if is_reversed { index.splat((time - 1) as f64) - index } else { index };
        let row = |sequence: &Expression<'_>| sequence.sizes()[1..].to_vec();
        let rows: Vec<_> = carried[from..to]
            .iter()
            .map(|sequence| sequence.dynamic_slice_in(0, index).reshape(&row(sequence)))
            .collect();
        let (result, next) = step(&rows, &carried[1..from], &carried[to..]);
        let results = carried[0].dynamic_update_in(result.reshape(&row_of_one), 0, index);
        [&[results], next.as_slice(), &carried[from..]].concat()
    });
    after.truncate(from);
    let results = after.remove(0);
    (results, after)
}

/// Applies a fused activation, by its number in the schema.
fn activated(x: Expression<'_>, activation: i64) -> Expression<'_> {
    match activation {
        1 => x.max(0.0),
        2 => x.max(-1.0).min(1.0),
        3 => x.max(0.0).min(6.0),
        4 => x.function().op(Op::Tanh {}, &[x], None),
        _ => x,
    }
}

/// The fused activation of a node.
fn activation(cx: &NodeContext<'_, '_>) -> Result<i64> {
    let activation = cx.attributes().int_or("activation", 0)?;
    if (0..=4).contains(&activation) {
        return Ok(activation);
    }
    Err(support::Error::unsupported(format!("fused activation {activation} is not supported")))
}

/// Clips values to this distance from 0, unless it is not positive.
fn clipped(x: Expression<'_>, distance: f32) -> Expression<'_> {
    if distance > 0.0 { x.max(f64::from(-distance)).min(f64::from(distance)) } else { x }
}
