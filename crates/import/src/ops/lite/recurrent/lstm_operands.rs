//! The operands of an `LSTM` and their places.

use super::{Parts, Steps};
use crate::node::context::NodeContext;
use shape::PrimitiveType;
use support::Result;

/// The gates, in the order of their weights.
pub(super) const INPUT: usize = 0;
pub(super) const FORGET: usize = 1;
pub(super) const CELL: usize = 2;
pub(super) const OUTPUT: usize = 3;

/// The places of a direction's operands.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) input: usize,
    /// The first of the weights and biases.
    pub(super) first: usize,
    /// The result of the step before, and the state of the cell.
    pub(super) states: [usize; 2],
    /// An auxiliary input and the first of its weights.
    pub(super) auxiliary: Option<(usize, usize)>,
    /// The first of the coefficients of layer normalization.
    pub(super) norms: Option<usize>,
    pub(super) is_reversed: bool,
}

impl Places {
    pub(super) fn weights(&self, gate: usize) -> usize {
        self.first + gate
    }

    pub(super) fn recurrent(&self, gate: usize) -> usize {
        self.first + 4 + gate
    }

    /// The weights of the cell's state, which the cell itself has none of.
    pub(super) fn peephole(&self, gate: usize) -> Option<usize> {
        match gate {
            INPUT => Some(self.first + 8),
            FORGET => Some(self.first + 9),
            OUTPUT => Some(self.first + 10),
            _ => None,
        }
    }

    pub(super) fn bias(&self, gate: usize) -> usize {
        self.first + 11 + gate
    }

    pub(super) fn projection(&self) -> usize {
        self.first + 15
    }

    pub(super) fn projection_bias(&self) -> usize {
        self.first + 16
    }

    pub(super) fn norm(&self, gate: usize) -> Option<usize> {
        self.norms.map(|first| first + gate)
    }

    pub(super) fn auxiliary_weights(&self, gate: usize) -> Option<(usize, usize)> {
        self.auxiliary.map(|(input, first)| (input, first + gate))
    }
}

/// The types of a kernel's operands.
pub(super) struct Types {
    pub(super) input: &'static [PrimitiveType],
    pub(super) weights: &'static [PrimitiveType],
    pub(super) peepholes: &'static [PrimitiveType],
    pub(super) bias: &'static [PrimitiveType],
    pub(super) norms: &'static [PrimitiveType],
    pub(super) cell: &'static [PrimitiveType],
}

/// The sizes of a direction, and its gates.
#[derive(Clone)]
pub(super) struct Sizes {
    pub(super) cells: i64,
    pub(super) outputs: i64,
    /// The gates that are computed: all, or all but the input gate.
    pub(super) gates: Vec<usize>,
}

/// Checks the operands of a direction.
pub(super) fn check(
    cx: &NodeContext<'_, '_>,
    parts: &Parts,
    steps: &Steps,
    places: &Places,
    types: &Types,
) -> Result<Sizes> {
    let [cells, _] = parts.sizes_of_rank(cx, places.weights(OUTPUT))?;
    let [batch, outputs] = parts.sizes_of_rank(cx, places.states[0])?;
    cx.check(batch == steps.batch, || format!("{batch} rows of state for {} rows of input", steps.batch))?;
    let is_coupled = !parts.has(places.weights(INPUT));
    let gates: Vec<usize> =
        if is_coupled { vec![FORGET, CELL, OUTPUT] } else { vec![INPUT, FORGET, CELL, OUTPUT] };
    parts.require(cx, places.input, &steps.sizes(steps.inputs), types.input)?;
    for &gate in &gates {
        parts.require(cx, places.weights(gate), &[cells, steps.inputs], types.weights)?;
        let recurrent = places.recurrent(gate);
        match parts.sizes(cx, recurrent)?.len() {
            1 => parts.require(cx, recurrent, &[cells], types.weights)?,
            _ => parts.require(cx, recurrent, &[cells, outputs], types.weights)?,
        }
        parts.require(cx, places.bias(gate), &[cells], types.bias)?;
        if let Some(peephole) = places.peephole(gate) {
            parts.check(cx, peephole, &[cells], types.peepholes)?;
        }
        if let Some(norm) = places.norm(gate) {
            parts.check(cx, norm, &[cells], types.norms)?;
        }
        if let Some((input, weights)) = places.auxiliary_weights(gate) {
            let columns = parts.sizes(cx, input)?.last().copied().unwrap_or(0);
            parts.require(cx, input, &steps.sizes(columns), types.input)?;
            parts.require(cx, weights, &[cells, columns], types.weights)?;
        }
    }
    parts.require(cx, places.states[1], &[batch, cells], types.cell)?;
    parts.require(cx, places.states[0], &[batch, outputs], types.input)?;
    parts.check(cx, places.projection(), &[outputs, cells], types.weights)?;
    parts.check(cx, places.projection_bias(), &[outputs], types.bias)?;
    cx.check(parts.has(places.projection()) || outputs == cells, || {
        format!("{cells} cells without a projection cannot have {outputs} outputs")
    })?;
    Ok(Sizes { cells, outputs, gates })
}
