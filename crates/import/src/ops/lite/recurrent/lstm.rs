//! Long short-term memory (Hochreiter and Schmidhuber, 1997) of floats, with weights that may be
//! integers, optional peepholes, projection, and layer normalization, and with an input gate that
//! may be coupled to the forget gate (`lstm_eval.cc`).

use super::hybrid::{product, real};
use super::lstm_basic;
use super::lstm_integer;
use super::lstm_operands::{CELL, FORGET, INPUT, OUTPUT, Places, Sizes, Types, check};
use super::{Carried, FLOAT, Order, Parts, Steps, WEIGHTS, activated, activation, clipped, scan};
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::lite::operands::Operands;
use composite::{Expression, Function};
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("TFLiteBidirectionalSequenceLstm", bidirectional),
    rule_many("TFLiteLstm", unidirectional),
    rule_many("TFLiteUnidirectionalSequenceLstm", unidirectional),
];

const REAL: Types =
    Types { input: FLOAT, weights: WEIGHTS, peepholes: WEIGHTS, bias: FLOAT, norms: FLOAT, cell: FLOAT };

/// The options of a kernel.
struct Kernel<'a> {
    parts: &'a Parts,
    steps: Steps,
    activation: i64,
    cell_clip: f32,
    projection_clip: f32,
    is_asymmetric: bool,
}

impl<'a> Kernel<'a> {
    fn new(cx: &NodeContext<'_, '_>, parts: &'a Parts) -> Result<Self> {
        let attributes = cx.attributes();
        Ok(Self {
            parts,
            steps: Steps::new(cx, parts)?,
            activation: activation(cx)?,
            cell_clip: attributes.float_or("cell_clip", 0.0)?,
            projection_clip: attributes.float_or("proj_clip", 0.0)?,
            is_asymmetric: attributes.bool_or("asymmetric_quantize_inputs", false)?,
        })
    }

    /// The sums of a gate that do not depend on the state, `[time, batch, cells]`.
    fn of_inputs<'f>(&self, values: &[Expression<'f>], places: &Places, gate: usize) -> Expression<'f> {
        let Self { parts, steps, is_asymmetric, .. } = self;
        let of = |input: usize, weights: usize| {
            let rows = steps.rows(parts.required(values, input));
            product(rows, parts.required(values, weights), parts.scale(weights), *is_asymmetric)
        };
        let mut sums = of(places.input, places.weights(gate));
        // The bias follows the normalization.
        if !places.norm(gate).is_some_and(|norm| parts.has(norm)) {
            sums = parts.required(values, places.bias(gate)).broadcast(&sums.sizes(), &[1]) + sums;
        }
        if let Some((input, weights)) = places.auxiliary_weights(gate) {
            sums = sums + of(input, weights);
        }
        steps.by_step(sums)
    }

    /// Results of all steps of a direction, and its next states.
    fn run<'f>(
        &self,
        function: &'f Function,
        values: &[Expression<'f>],
        places: &Places,
        sizes: &Sizes,
    ) -> (Expression<'f>, Vec<Expression<'f>>) {
        let Self { parts, steps, .. } = self;
        let sequences: Vec<Expression<'f>> =
            sizes.gates.iter().map(|&gate| self.of_inputs(values, places, gate)).collect();
        // Values that a step reads.
        let mut read = vec![places.projection(), places.projection_bias()];
        for &gate in &sizes.gates {
            read.extend([places.recurrent(gate), places.bias(gate)]);
            read.extend(places.peephole(gate));
            read.extend(places.norm(gate));
        }
        read.retain(|&k| parts.has(k));
        let constants: Vec<Expression<'f>> = read.iter().map(|&k| parts.required(values, k)).collect();
        let states = places.states.map(|k| parts.required(values, k));
        let carried = Carried { sequences: &sequences, states: &states, constants: &constants };
        let row = [steps.batch, sizes.outputs];
        let (results, after) = scan(
            function,
            steps.time,
            places.is_reversed,
            &carried,
            (PrimitiveType::F32, &row),
            |rows, states, constants| {
                let constant =
                    |k: usize| read.iter().position(|&known| known == k).map(|position| constants[position]);
                self.step(places, sizes, rows, states, &constant)
            },
        );
        (steps.arranged(results), after)
    }

    /// One step from the sums of the inputs, the previous result, and the previous state.
    fn step<'g>(
        &self,
        places: &Places,
        sizes: &Sizes,
        rows: &[Expression<'g>],
        states: &[Expression<'g>],
        constant: &dyn Fn(usize) -> Option<Expression<'g>>,
    ) -> (Expression<'g>, Vec<Expression<'g>>) {
        let (h, before) = (states[0], states[1]);
        let gate = |gate: usize, state: Expression<'g>| {
            let row = sizes.gates.iter().position(|&known| known == gate).map(|position| rows[position])?;
            let recurrent = places.recurrent(gate);
            let scale = self.parts.scale(recurrent);
            let mut sum = row + product(h, constant(recurrent)?, scale, self.is_asymmetric);
            if let Some((k, weights)) = places.peephole(gate).and_then(|k| Some((k, constant(k)?))) {
                sum = sum + real(weights, self.parts.scale(k)).broadcast(&sum.sizes(), &[1]) * state;
            }
            if let Some(coefficients) = places.norm(gate).and_then(constant) {
                let normal = normalized(sum) * coefficients.broadcast(&sum.sizes(), &[1]);
                sum = normal + constant(places.bias(gate))?.broadcast(&sum.sizes(), &[1]);
            }
            Some(match gate {
                CELL => activated(sum, self.activation),
                _ => sum.function().op(Op::Logistic {}, &[sum], None),
            })
        };
        let computed = |k: usize, state| gate(k, state).expect("the operands were checked");
        let forget = computed(FORGET, before);
        let input = gate(INPUT, before).unwrap_or_else(|| 1.0 - forget);
        let new = computed(CELL, before);
        let cell = clipped(forget * before + new * input, self.cell_clip);
        // Without an activation, the kernels do not copy the cell's state to the buffer of the
        // result, which still has the new part of the cell.
        let shown = if self.activation == 0 { new } else { activated(cell, self.activation) };
        let mut result = computed(OUTPUT, cell) * shown;
        if let Some(weights) = constant(places.projection()) {
            result = product(result, weights, self.parts.scale(places.projection()), self.is_asymmetric);
            if let Some(bias) = constant(places.projection_bias()) {
                result = bias.broadcast(&result.sizes(), &[1]) + result;
            }
            result = clipped(result, self.projection_clip);
        }
        (result, vec![result, cell])
    }
}

/// Rows with mean 0 and variance 1 (`MeanStddevNormalization`).
fn normalized(rows: Expression<'_>) -> Expression<'_> {
    let sizes = rows.sizes();
    let count = rows.size_from_end(0).max(1) as f64;
    let mean = rows.sum(&[1]) / count;
    let centered = rows - mean.broadcast(&sizes, &[0]);
    let variance = (centered * centered).sum(&[1]) / count;
    let inverse = 1.0 / (variance + 1e-8).sqrt();
    centered * inverse.broadcast(&sizes, &[0])
}

/// `LSTM`, one step, and `UNIDIRECTIONAL_SEQUENCE_LSTM`.
fn unidirectional(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = Operands::of_node(cx)?;
    let parts = Parts::new(cx, &operands, 24)?;
    if cx.node().op == "TFLiteLstm" && !parts.has(18) {
        return lstm_basic::convert(cx, &operands, &parts);
    }
    let places =
        Places { input: 0, first: 1, states: [18, 19], auxiliary: None, norms: Some(20), is_reversed: false };
    if parts.quantization(0).is_some_and(|input| input.element_type != PrimitiveType::F32) {
        return lstm_integer::convert(cx, &operands, &parts, &places);
    }
    let kernel = Kernel::new(cx, &parts)?;
    let sizes = check(cx, &parts, &kernel.steps, &places, &REAL)?;
    cx.composite(&parts.ids, |function, values| {
        let (results, states) = kernel.run(function, values, &places, &sizes);
        [&[results], states.as_slice()].concat()
    })
}

fn bidirectional(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = Operands::of_node(cx)?;
    let parts = Parts::new(cx, &operands, 48)?;
    let kernel = Kernel::new(cx, &parts)?;
    cx.check(kernel.steps.order != Order::OneStep, || "input 0: expected 3 dimensions, got 2".to_owned())?;
    // An auxiliary input without weights is the input of the second direction.
    let has_weights = parts.has(41);
    let auxiliary = |first: usize| (parts.has(39) && has_weights).then_some((39, first));
    let second_input = if parts.has(39) && !has_weights { 39 } else { 0 };
    let forward = Places {
        input: 0,
        first: 1,
        states: [35, 36],
        auxiliary: auxiliary(40),
        norms: None,
        is_reversed: false,
    };
    let backward = Places {
        input: second_input,
        first: 18,
        states: [37, 38],
        auxiliary: auxiliary(44),
        norms: None,
        is_reversed: true,
    };
    let sizes = [&forward, &backward].map(|places| check(cx, &parts, &kernel.steps, places, &REAL));
    let [of_forward, of_backward] = sizes;
    let (of_forward, of_backward) = (of_forward?, of_backward?);
    let is_merged = cx.attributes().bool_or("merge_outputs", false)?;
    cx.composite(&parts.ids, |function, values| {
        let (first, mut states) = kernel.run(function, values, &forward, &of_forward);
        let (second, more) = kernel.run(function, values, &backward, &of_backward);
        states.extend(more);
        if is_merged {
            [&[function.concatenate(&[first, second], 2)], states.as_slice()].concat()
        } else {
            [&[first, second], states.as_slice()].concat()
        }
    })
}
