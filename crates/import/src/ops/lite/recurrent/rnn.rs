//! Fully connected recurrent networks: `activation(W x + R h + bias)`, which is also the next h.

use super::hybrid::product;
use super::{Carried, FLOAT, Order, Parts, Steps, WEIGHTS, activated, activation, scan};
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::lite::operands::Operands;
use composite::{Expression, Function};
use hlo::InstructionId;
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("TFLiteBidirectionalSequenceRnn", bidirectional),
    rule_many("TFLiteRnn", unidirectional),
    rule_many("TFLiteUnidirectionalSequenceRnn", unidirectional),
];

/// The operands of a direction: its input, weights, recurrent weights, bias, state, and auxiliary
/// input with its weights.
#[derive(Clone, Copy)]
struct Direction {
    input: usize,
    first: usize,
    auxiliary: Option<(usize, usize)>,
    is_reversed: bool,
}

/// The operands and options that all steps share.
struct Cell<'a> {
    parts: &'a Parts,
    steps: Steps,
    activation: i64,
    is_asymmetric: bool,
    /// Number of times that a sequence is run, each with the state after the one before.
    rounds: i64,
}

impl Cell<'_> {
    /// Checks the operands of a direction and returns its number of units.
    fn check(&self, cx: &NodeContext<'_, '_>, direction: &Direction) -> Result<i64> {
        let Direction { input, first, auxiliary, .. } = *direction;
        let [units, _] = self.parts.sizes_of_rank(cx, first)?;
        let Steps { batch, inputs, .. } = self.steps;
        self.parts.require(cx, input, &self.steps.sizes(inputs), FLOAT)?;
        self.parts.require(cx, first, &[units, inputs], WEIGHTS)?;
        self.parts.require(cx, first + 1, &[units, units], WEIGHTS)?;
        self.parts.require(cx, first + 2, &[units], FLOAT)?;
        self.parts.require(cx, first + 3, &[batch, units], FLOAT)?;
        if let Some((input, weights)) = auxiliary {
            let columns = self.parts.sizes(cx, input)?.last().copied().unwrap_or(0);
            self.parts.require(cx, input, &self.steps.sizes(columns), FLOAT)?;
            self.parts.require(cx, weights, &[units, columns], WEIGHTS)?;
        }
        Ok(units)
    }

    /// Results of all steps of a direction, and its next state.
    fn run<'f>(
        &self,
        function: &'f Function,
        values: &[Expression<'f>],
        direction: &Direction,
        units: i64,
    ) -> (Expression<'f>, Expression<'f>) {
        let Direction { input, first, auxiliary, is_reversed } = *direction;
        let of_input = |input: usize, weights: usize| {
            let rows = self.steps.rows(self.parts.required(values, input));
            let matrix = self.parts.required(values, weights);
            product(rows, matrix, self.parts.scale(weights), self.is_asymmetric)
        };
        let sums = of_input(input, first);
        let mut sums = self.parts.required(values, first + 2).broadcast(&sums.sizes(), &[1]) + sums;
        if let Some((input, weights)) = auxiliary {
            sums = sums + of_input(input, weights);
        }
        let layer = Layer {
            steps: self.steps,
            units,
            is_reversed,
            scale: self.parts.scale(first + 1),
            activation: self.activation,
            is_asymmetric: self.is_asymmetric,
        };
        let (sums, recurrent) = (self.steps.by_step(sums), self.parts.required(values, first + 1));
        let state = self.parts.required(values, first + 3);
        let (results, state) = match self.rounds {
            1 => layer.run(function, sums, recurrent, state),
            rounds => {
                let results = sums.splat(0.0);
                let initial = [results, state, sums, recurrent];
                let after = function.for_loop(rounds, &initial, |function, _, carried| {
                    let (results, state) = layer.run(function, carried[2], carried[3], carried[1]);
                    vec![results, state, carried[2], carried[3]]
                });
                (after[0], after[1])
            }
        };
        (self.steps.arranged(results), state)
    }
}

/// The loop over the steps of a direction.
struct Layer {
    steps: Steps,
    units: i64,
    is_reversed: bool,
    scale: Option<f32>,
    activation: i64,
    is_asymmetric: bool,
}

impl Layer {
    /// Results of all steps, and the next state.
    fn run<'f>(
        &self,
        function: &'f Function,
        sums: Expression<'f>,
        recurrent: Expression<'f>,
        state: Expression<'f>,
    ) -> (Expression<'f>, Expression<'f>) {
        let carried = Carried { sequences: &[sums], states: &[state], constants: &[recurrent] };
        let row = [self.steps.batch, self.units];
        let (results, after) = scan(
            function,
            self.steps.time,
            self.is_reversed,
            &carried,
            (PrimitiveType::F32, &row),
            |rows, states, constants| {
                let sum = rows[0] + product(states[0], constants[0], self.scale, self.is_asymmetric);
                let result = activated(sum, self.activation);
                (result, vec![result])
            },
        );
        (results, after[0])
    }
}

fn cell<'a>(cx: &NodeContext<'_, '_>, parts: &'a Parts) -> Result<Cell<'a>> {
    Ok(Cell {
        parts,
        steps: Steps::new(cx, parts)?,
        activation: activation(cx)?,
        is_asymmetric: cx.attributes().bool_or("asymmetric_quantize_inputs", false)?,
        rounds: 1,
    })
}

fn unidirectional(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = Operands::of_node(cx)?;
    let parts = Parts::new(cx, &operands, 5)?;
    let cell = cell(cx, &parts)?;
    let direction = Direction { input: 0, first: 1, auxiliary: None, is_reversed: false };
    let units = cell.check(cx, &direction)?;
    cx.composite(&parts.ids, |function, values| {
        let (results, state) = cell.run(function, values, &direction, units);
        vec![results, state]
    })
}

fn bidirectional(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = Operands::of_node(cx)?;
    let parts = Parts::new(cx, &operands, 12)?;
    let mut cell = cell(cx, &parts)?;
    // With weights of integers, the kernel repeats sequences that are time-major as often as they
    // have steps.
    if cell.steps.order == Order::TimeMajor && parts.scale(1).is_some() {
        cell.rounds = cell.steps.time.max(1);
    }
    // An auxiliary input without weights is the input of the second direction.
    let has_weights = parts.has(10);
    let auxiliary = |weights: usize| (parts.has(9) && has_weights).then_some((9, weights));
    let second_input = if parts.has(9) && !has_weights { 9 } else { 0 };
    let directions = [
        Direction { input: 0, first: 1, auxiliary: auxiliary(10), is_reversed: false },
        Direction { input: second_input, first: 5, auxiliary: auxiliary(11), is_reversed: true },
    ];
    let units = [cell.check(cx, &directions[0])?, cell.check(cx, &directions[1])?];
    let is_merged = cx.attributes().bool_or("merge_outputs", false)?;
    let last = cell.steps.sizes(0).len() - 1;
    cx.composite(&parts.ids, |function, values| {
        let (forward, first) = cell.run(function, values, &directions[0], units[0]);
        let (backward, second) = cell.run(function, values, &directions[1], units[1]);
        if is_merged {
            vec![function.concatenate(&[forward, backward], last), first, second]
        } else {
            vec![forward, backward, first, second]
        }
    })
}
