//! `LSTM` of integers: activations and weights of 8 bits, gates and cells of 16 bits
//! (`EvalInteger8x8_16`).

use super::functions::{halved, layer_norm, logistic, saturated, scaled, tanh};
use super::lstm_operands::{CELL, FORGET, INPUT, OUTPUT, Places, Sizes, Types, check};
use super::{Carried, Order, Parts, Steps, scan};
use crate::node::context::NodeContext;
use crate::ops::lite::fixed_point::Multiplier;
use crate::ops::lite::operands::Operands;
use composite::{Expression, Function};
use hlo::InstructionId;
use shape::PrimitiveType;
use support::{Error, Result};

const BYTES: &[PrimitiveType] = &[PrimitiveType::S8];
const SHORTS: &[PrimitiveType] = &[PrimitiveType::S16];

const INTEGER: Types = Types {
    input: BYTES,
    weights: BYTES,
    peepholes: SHORTS,
    bias: &[PrimitiveType::S32],
    norms: SHORTS,
    cell: SHORTS,
};

/// The scale of sums without normalization: 3 integer bits.
const SUM_SCALE: f32 = 1.0 / 4096.0;

/// The operands and options that all steps share.
struct Kernel<'a> {
    parts: &'a Parts,
    places: &'a Places,
    sizes: Sizes,
    steps: Steps,
    /// Multipliers by gate.
    of_input: [Multiplier; 4],
    of_state: [Multiplier; 4],
    of_cell: [Multiplier; 4],
    of_hidden: Multiplier,
    of_projection: Multiplier,
    input_zero: f64,
    state_zero: f64,
    hidden_zero: f64,
    /// Integer bits of the cell's state.
    cell_bits: i32,
    cell_clip: f64,
    projection_clip: f64,
}

/// Converts a node.
pub(super) fn convert(
    cx: &mut NodeContext<'_, '_>,
    operands: &Operands,
    parts: &Parts,
    places: &Places,
) -> Result<Vec<InstructionId>> {
    let kernel = Kernel::new(cx, operands, parts, places)?;
    cx.composite(&parts.ids, |function, values| {
        let (results, after) = kernel.run(function, values);
        let (state, cell) = (after[0].convert(PrimitiveType::S8), after[1].convert(PrimitiveType::S16));
        vec![kernel.steps.arranged(results), state, cell]
    })
}

impl<'a> Kernel<'a> {
    fn new(
        cx: &NodeContext<'_, '_>,
        operands: &Operands,
        parts: &'a Parts,
        places: &'a Places,
    ) -> Result<Self> {
        let steps = Steps::new(cx, parts)?;
        let sizes = check(cx, parts, &steps, places, &INTEGER)?;
        let intermediates = &operands.intermediates;
        if intermediates.len() != 5 {
            return Err(Error::unsupported(
                "an LSTM of integers must have 5 intermediate tensors: gates of 8 bits are not supported",
            ));
        }
        cx.check(sizes.outputs <= sizes.cells, || "the cells are fewer than the outputs".to_owned())?;
        let scale = |k: usize| parts.scale(k).unwrap_or(1.0);
        let is_normalized = places.norm(FORGET).is_some_and(|norm| parts.has(norm));
        // Scales multiply in single precision.
        let sum_scale =
            |gate: usize| if is_normalized { intermediates[gate].scale() as f32 } else { SUM_SCALE };
        let (input_scale, state_scale) = (scale(places.input), scale(places.states[0]));
        let cell_scale = f64::from(scale(places.states[1]));
        let cell_log = cell_scale.log2().round();
        cx.check(cell_scale == cell_log.exp2() && (-15.0..=-9.0).contains(&cell_log), || {
            format!("the cell's scale {cell_scale} is not a power of 2 from 2^-15 to 2^-9")
        })?;
        let gates = [INPUT, FORGET, CELL, OUTPUT];
        let multiplier = |real: f32| Multiplier::of(f64::from(real));
        let of_cell = gates.map(|gate| {
            let weights = places.peephole(gate).map_or(1.0, scale);
            Multiplier::of(f64::from((cell_scale * f64::from(weights) / f64::from(sum_scale(gate))) as f32))
        });
        let hidden_scale = intermediates[4].scale() as f32;
        let of_hidden = (2f64.powi(-15) / f64::from(hidden_scale) * 2f64.powi(-15)) as f32;
        let clip = |name: &str, scale: f32, most: f32| -> Result<f64> {
            let clip = cx.attributes().float_or(name, 0.0)?;
            Ok(if clip > 0.0 { f64::from((clip / scale).min(most).trunc()) } else { 0.0 })
        };
        let output_scale = operands.output(cx, 0)?.scale() as f32;
        let zero =
            |k: usize| parts.quantization(k).map_or(0, |quantization| quantization.zero_point()) as f64;
        Ok(Self {
            parts,
            places,
            of_input: gates
                .map(|gate| multiplier(scale(places.weights(gate)) * input_scale / sum_scale(gate))),
            of_state: gates
                .map(|gate| multiplier(scale(places.recurrent(gate)) * state_scale / sum_scale(gate))),
            of_cell,
            of_hidden: multiplier(of_hidden),
            of_projection: multiplier(scale(places.projection()) * hidden_scale / state_scale),
            input_zero: zero(places.input),
            state_zero: zero(places.states[0]),
            hidden_zero: intermediates[4].zero_point() as f64,
            cell_bits: 15 + cell_log as i32,
            cell_clip: clip("cell_clip", cell_scale as f32, 32767.0)?,
            projection_clip: clip("proj_clip", output_scale, 127.0)?,
            sizes,
            steps,
        })
    }

    /// An operand as 32-bit numbers.
    fn wide<'f>(&self, values: &[Expression<'f>], k: usize) -> Option<Expression<'f>> {
        self.parts.value(values, k).map(|value| value.convert(PrimitiveType::S32))
    }

    fn is_normalized(&self, gate: usize) -> bool {
        self.places.norm(gate).is_some_and(|norm| self.parts.has(norm))
    }

    /// The sums of a gate that do not depend on the state, `[time, batch, cells]`.
    fn of_inputs<'f>(&self, values: &[Expression<'f>], gate: usize) -> Option<Expression<'f>> {
        let rows = self.steps.rows(self.wide(values, self.places.input)?);
        let weights = self.wide(values, self.places.weights(gate))?;
        let bias = self.wide(values, self.places.bias(gate)).filter(|_| !self.is_normalized(gate));
        let sums = accumulated(rows, weights, bias, -self.input_zero);
        Some(self.steps.by_step(saturated(scaled(sums, self.of_input[gate]))))
    }

    /// The weights of the cell's state for a batch. The reference takes as many of them as there
    /// are outputs, and continues with the next ones of the state for the next row.
    fn peephole<'f>(&self, values: &[Expression<'f>], gate: usize) -> Option<Expression<'f>> {
        let weights = self.wide(values, self.places.peephole(gate)?)?;
        let Sizes { cells, outputs, .. } = self.sizes;
        let batch = self.steps.batch;
        let used = weights.slice_in(0, 0, outputs);
        Some(match self.steps.order {
            Order::BatchMajor => used.pad_in(0, 0, cells - outputs, 0.0).broadcast(&[batch, cells], &[1]),
            _ => {
                let flat = used.broadcast(&[batch, outputs], &[1]).reshape(&[batch * outputs]);
                flat.pad_in(0, 0, batch * (cells - outputs), 0.0).reshape(&[batch, cells])
            }
        })
    }

    fn run<'f>(
        &self,
        function: &'f Function,
        values: &[Expression<'f>],
    ) -> (Expression<'f>, Vec<Expression<'f>>) {
        let Self { parts, places, sizes, steps, .. } = self;
        let gates = &sizes.gates;
        let sequences: Vec<Expression<'f>> =
            gates.iter().filter_map(|&gate| self.of_inputs(values, gate)).collect();
        let mut constants = Vec::new();
        // The place of each constant: its operand.
        let mut read = Vec::new();
        for &gate in gates {
            let operands = [places.recurrent(gate), places.bias(gate)].into_iter().chain(places.norm(gate));
            for k in operands {
                let is_matrix = k == places.recurrent(gate);
                constants.extend(if is_matrix { parts.value(values, k) } else { self.wide(values, k) });
                read.extend(parts.has(k).then_some(k));
            }
            if let Some(weights) = self.peephole(values, gate) {
                constants.push(weights);
                read.extend(places.peephole(gate));
            }
        }
        for k in [places.projection(), places.projection_bias()] {
            constants.extend(self.wide(values, k));
            read.extend(parts.has(k).then_some(k));
        }
        let states = places.states.map(|k| self.wide(values, k).expect("the operands were checked"));
        let carried = Carried { sequences: &sequences, states: &states, constants: &constants };
        let row = [steps.batch, sizes.outputs];
        scan(
            function,
            steps.time,
            places.is_reversed,
            &carried,
            (PrimitiveType::S8, &row),
            |rows, states, constants| {
                let constant =
                    |k: usize| read.iter().position(|&known| known == k).map(|position| constants[position]);
                self.step(rows, states, &constant)
            },
        )
    }

    fn step<'g>(
        &self,
        rows: &[Expression<'g>],
        states: &[Expression<'g>],
        constant: &dyn Fn(usize) -> Option<Expression<'g>>,
    ) -> (Expression<'g>, Vec<Expression<'g>>) {
        let places = self.places;
        let (h, before) = (states[0], states[1]);
        let gate = |gate: usize, state: Expression<'g>| {
            let position = self.sizes.gates.iter().position(|&known| known == gate)?;
            let sums = accumulated(h, constant(places.recurrent(gate))?, None, -self.state_zero);
            let mut sum = saturated(rows[position] + scaled(sums, self.of_state[gate]));
            if let Some(weights) = places.peephole(gate).and_then(constant) {
                sum = saturated(sum + scaled(weights * state, self.of_cell[gate]));
            }
            if let Some((k, weights)) = places.norm(gate).and_then(|k| Some((k, constant(k)?))) {
                let scale = self.parts.scale(k).unwrap_or(1.0);
                sum = layer_norm(sum, weights, constant(places.bias(gate))?, scale);
            }
            Some(if gate == CELL { tanh(sum, 3) } else { logistic(sum, 3) })
        };
        let computed = |k: usize, state| gate(k, state).expect("the operands were checked");
        let forget = computed(FORGET, before);
        let input = gate(INPUT, before).unwrap_or_else(|| 32767.0 - forget);
        let kept = halved(forget * before, 15);
        let new = halved(input * computed(CELL, before), i64::from(15 + self.cell_bits));
        let mut cell = saturated(kept + new);
        if self.cell_clip > 0.0 {
            cell = cell.max(-self.cell_clip).min(self.cell_clip);
        }
        let hidden = scaled(computed(OUTPUT, cell) * tanh(cell, self.cell_bits), self.of_hidden);
        let byte = |x: Expression<'g>| x.max(-128.0).min(127.0);
        let result = match constant(places.projection()) {
            None => byte(hidden + self.hidden_zero),
            Some(weights) => {
                let hidden = byte(hidden - self.hidden_zero);
                let bias = constant(places.projection_bias());
                let sums = accumulated(hidden, weights, bias, self.hidden_zero);
                let result = byte(scaled(sums, self.of_projection) + self.state_zero);
                if self.projection_clip > 0.0 {
                    result.max(-self.projection_clip).min(self.projection_clip)
                } else {
                    result
                }
            }
        };
        (result.convert(PrimitiveType::S8), vec![result, cell])
    }
}

/// (rows + offset) · weightsᵀ + bias, in 32 bits. The rows and the weights are numbers of 8 bits.
fn accumulated<'f>(
    rows: Expression<'f>,
    weights: Expression<'f>,
    bias: Option<Expression<'f>>,
    offset: f64,
) -> Expression<'f> {
    let rows = rows.convert(PrimitiveType::S8).convert(PrimitiveType::S32);
    let weights = weights.convert(PrimitiveType::S32);
    let sums = (rows + offset).dot(weights.transpose(&[1, 0]), 0);
    match bias {
        Some(bias) => sums + bias.broadcast(&sums.sizes(), &[1]),
        None => sums,
    }
}
