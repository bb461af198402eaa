//! LSTM cells computed by one op, and their gradients. Sequences of them are in `lstm_sequences`.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_many};
use crate::ops::linalg::products::dot;
use bounded::{Reducer, list};
use hlo::{InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("LSTMBlockCell", lstm_block_cell).types("T", FLOATS_TO_32_BITS),
    rule_many("LSTMBlockCellGrad", lstm_block_cell_grad).types("T", FLOATS_TO_32_BITS),
];

/// The order of the four gates in the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GateOrder {
    /// Input gate, cell, forget gate, output gate.
    Icfo,
    /// Input gate, forget gate, cell, output gate.
    Ifco,
}

impl GateOrder {
    /// Returns the positions of the cell and of the forget gate.
    fn cell_and_forget(self) -> (i64, i64) {
        match self {
            Self::Icfo => (1, 2),
            Self::Ifco => (2, 1),
        }
    }

    /// Arranges gates `[i, f, c, o]` in this order.
    fn arrange(self, [i, f, c, o]: [InstructionId; 4]) -> [InstructionId; 4] {
        match self {
            Self::Icfo => [i, c, f, o],
            Self::Ifco => [i, f, c, o],
        }
    }
}

/// The parameters common to all steps of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) order: GateOrder,
    pub(crate) forget_bias: f64,
    /// The state is clipped to this distance from 0. It is not clipped if this is not positive.
    pub(crate) cell_clip: f64,
}

/// The results of one step of a cell, `[batch, cell]` each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) i: InstructionId,
    pub(crate) cs: InstructionId,
    pub(crate) f: InstructionId,
    pub(crate) o: InstructionId,
    pub(crate) ci: InstructionId,
    pub(crate) co: InstructionId,
}

/// Weights of a state's effect on the input gate, the forget gate, and the output gate, `[cell]`
/// each.
pub(crate) type Peepholes = [InstructionId; 3];

/// The sizes of a cell, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) batch: i64,
    pub(crate) inputs: i64,
    pub(crate) cell: i64,
}

impl Sizes {
    /// Reads the sizes from the step's input `[batch, inputs]`, and from input `first` of the node
    /// and its successors: `cs_prev`, `h_prev`, `w`, `wci`, `wcf`, `wco`, `b`.
    pub(crate) fn new(cx: &mut NodeContext<'_, '_>, x: &[i64], first: usize) -> Result<Self> {
        let names = ["cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b"];
        let mut sizes = Vec::with_capacity(names.len());
        for k in 0..names.len() {
            let id = cx.input(first + k)?;
            sizes.push(cx.sizes(id));
        }
        let (&[batch, inputs], &[_, cell]) = (x, &sizes[0][..]) else {
            return Err(cx.invalid(format!(
                "expected matrices x and cs_prev in each step, got {} and {}",
                list(x),
                list(&sizes[0])
            )));
        };
        let gates = cell.checked_mul(4).ok_or_else(|| cx.invalid("the cell is too large"))?;
        let state = vec![batch, cell];
        let expected = [
            state.clone(),
            state,
            vec![inputs + cell, gates],
            vec![cell],
            vec![cell],
            vec![cell],
            vec![gates],
        ];
        for ((name, actual), expected) in names.iter().zip(&sizes).zip(&expected) {
            cx.check(actual == expected, || {
                format!(
                    "{name}: expected shape {} for {batch} rows of {inputs} inputs and a cell of {cell}, got {}",
                    list(expected),
                    list(actual)
                )
            })?;
        }
        Ok(Self { batch, inputs, cell })
    }

    /// `[batch, cell]`.
    pub(crate) fn state(&self) -> [i64; 2] {
        [self.batch, self.cell]
    }
}

/// Returns the peepholes at inputs `first` to `first + 2`, if the attribute enables them.
pub(crate) fn peepholes(cx: &mut NodeContext<'_, '_>, first: usize) -> Result<Option<Peepholes>> {
    if !cx.attributes().bool_or("use_peephole", false)? {
        return Ok(None);
    }
    Ok(Some([cx.input(first)?, cx.input(first + 1)?, cx.input(first + 2)?]))
}

/// Multiplies a state by weights that are the same for the whole batch.
fn peep(cx: &mut NodeContext<'_, '_>, state: InstructionId, weights: InstructionId) -> Result<InstructionId> {
    let sizes = cx.sizes(state);
    let weights = cx.broadcast(weights, &sizes, &[1])?;
    cx.mul(state, weights)
}

/// `1 - a`.
pub(crate) fn one_minus(cx: &mut NodeContext<'_, '_>, a: InstructionId) -> Result<InstructionId> {
    let one = cx.splat_like(a, 1.0)?;
    cx.sub(one, a)
}

/// Returns the product of factors, multiplied from left to right.
fn product(cx: &mut NodeContext<'_, '_>, factors: &[InstructionId]) -> Result<InstructionId> {
    let mut product = factors[0];
    for &factor in &factors[1..] {
        product = cx.mul(product, factor)?;
    }
    Ok(product)
}

impl Cell {
    /// Computes one step from the previous state and from gates `[batch, 4 * cell]`, which include
    /// the bias but not their functions:
    ///
    /// ```text
    /// i = sigmoid(gates_i + cs_prev * wci)     f = sigmoid(gates_f + forget_bias + cs_prev * wcf)
    /// ci = tanh(gates_c)                       cs = clip(ci * i + cs_prev * f)
    /// o = sigmoid(gates_o + cs * wco)          co = tanh(cs)              h = co * o
    /// ```
    pub(crate) fn forward(
        &self,
        cx: &mut NodeContext<'_, '_>,
        gates: InstructionId,
        cs_prev: InstructionId,
        peepholes: Option<Peepholes>,
    ) -> Result<(Step, InstructionId)> {
        let size = cx.sizes(cs_prev)[1];
        let (cell, forget) = self.order.cell_and_forget();
        let gate = |cx: &mut NodeContext<'_, '_>, number: i64| {
            cx.slice_in(gates, 1, number * size, (number + 1) * size)
        };
        let mut i = gate(cx, 0)?;
        let ci = gate(cx, cell)?;
        let mut f = gate(cx, forget)?;
        let mut o = gate(cx, 3)?;
        f = cx.add_scalar(f, self.forget_bias)?;
        if let Some([wci, wcf, _]) = peepholes {
            let (i_peep, f_peep) = (peep(cx, cs_prev, wci)?, peep(cx, cs_prev, wcf)?);
            (i, f) = (cx.add(i, i_peep)?, cx.add(f, f_peep)?);
        }
        i = cx.op(Op::Logistic {}, &[i])?;
        f = cx.op(Op::Logistic {}, &[f])?;
        let ci = cx.op(Op::Tanh {}, &[ci])?;
        let (new, remembered) = (cx.mul(i, ci)?, cx.mul(f, cs_prev)?);
        let mut cs = cx.add(new, remembered)?;
        if self.cell_clip > 0.0 {
            let (low, high) = (cx.splat_like(cs, -self.cell_clip)?, cx.splat_like(cs, self.cell_clip)?);
            cs = cx.op(Op::Clamp {}, &[low, cs, high])?;
        }
        let co = cx.op(Op::Tanh {}, &[cs])?;
        if let Some([_, _, wco]) = peepholes {
            let o_peep = peep(cx, cs, wco)?;
            o = cx.add(o, o_peep)?;
        }
        o = cx.op(Op::Logistic {}, &[o])?;
        let h = cx.mul(o, co)?;
        Ok((Step { i, cs, f, o, ci, co }, h))
    }
}

/// Computes the gradient of one step: that of the gates' arguments, `[batch, 4 * cell]`, and that
/// of the previous state. Clipping is ignored.
pub(crate) fn backward(
    cx: &mut NodeContext<'_, '_>,
    order: GateOrder,
    step: &Step,
    cs_prev: InstructionId,
    cs_grad: InstructionId,
    h_grad: InstructionId,
    peepholes: Option<Peepholes>,
) -> Result<(InstructionId, InstructionId)> {
    let &Step { i, f, o, ci, co, .. } = step;
    let sigmoid_slope = |cx: &mut NodeContext<'_, '_>, y: InstructionId| {
        let rest = one_minus(cx, y)?;
        cx.mul(y, rest)
    };
    let tanh_slope = |cx: &mut NodeContext<'_, '_>, y: InstructionId| {
        let square = cx.mul(y, y)?;
        one_minus(cx, square)
    };
    let slope = sigmoid_slope(cx, o)?;
    let d_o = product(cx, &[slope, h_grad, co])?;
    let slope = tanh_slope(cx, co)?;
    let from_h = product(cx, &[slope, h_grad, o])?;
    let mut dcs = cx.add(from_h, cs_grad)?;
    if let Some([_, _, wco]) = peepholes {
        let from_o = peep(cx, d_o, wco)?;
        dcs = cx.add(dcs, from_o)?;
    }
    let slope = tanh_slope(cx, ci)?;
    let dci = product(cx, &[slope, dcs, i])?;
    let slope = sigmoid_slope(cx, f)?;
    let df = product(cx, &[slope, dcs, cs_prev])?;
    let slope = sigmoid_slope(cx, i)?;
    let di = product(cx, &[slope, dcs, ci])?;
    let mut cs_prev_grad = cx.mul(dcs, f)?;
    if let Some([wci, wcf, _]) = peepholes {
        let (from_i, from_f) = (peep(cx, di, wci)?, peep(cx, df, wcf)?);
        cs_prev_grad = cx.add(cs_prev_grad, from_i)?;
        cs_prev_grad = cx.add(cs_prev_grad, from_f)?;
    }
    let gates = cx.concatenate(&order.arrange([di, df, dci, d_o]), 1)?;
    Ok((gates, cs_prev_grad))
}

/// Returns the gradients of the peepholes, given that of the gates `[..., 4 * cell]` and the states
/// before and after each step. They are sums over all dimensions except the cell, or zeros if
/// peepholes are not used.
pub(crate) fn peephole_gradients(
    cx: &mut NodeContext<'_, '_>,
    order: GateOrder,
    gates: InstructionId,
    cs_prev: InstructionId,
    cs: InstructionId,
    are_used: bool,
) -> Result<Peepholes> {
    let sizes = cx.sizes(cs);
    let (last, element_type) = (sizes.len() - 1, cx.element_type(cs));
    let cell = sizes[last];
    if !are_used {
        let zeros = cx.splat(element_type, &[cell], 0.0)?;
        return Ok([zeros; 3]);
    }
    let outer: Vec<usize> = (0..last).collect();
    let mut gradient = |number: i64, state| {
        let gate = cx.slice_in(gates, last, number * cell, (number + 1) * cell)?;
        let product = cx.mul(gate, state)?;
        cx.reduce(product, Reducer::Add, &outer)
    };
    let (_, forget) = order.cell_and_forget();
    Ok([gradient(0, cs_prev)?, gradient(forget, cs_prev)?, gradient(3, cs)?])
}

/// `LSTMBlockCell(x, cs_prev, h_prev, w, wci, wcf, wco, b)`: one step with gates `[x, h_prev] . w +
/// b`. See [`Cell::forward`].
fn lstm_block_cell(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (x, cs_prev, h_prev, w, b) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?, cx.input(7)?);
    let x_sizes = cx.sizes(x);
    let sizes = Sizes::new(cx, &x_sizes, 1)?;
    let cell = Cell {
        order: GateOrder::Icfo,
        forget_bias: cx.attributes().float_or("forget_bias", 1.0)?.into(),
        cell_clip: cx.attributes().float_or("cell_clip", 3.0)?.into(),
    };
    let peepholes = peepholes(cx, 4)?;
    if sizes.state().contains(&0) {
        let empty = cx.splat_like(cs_prev, 0.0)?;
        return Ok(vec![empty; 7]);
    }
    let xh = cx.concatenate(&[x, h_prev], 1)?;
    let gates = dot(cx, xh, w, 0, 1, 0)?;
    let gate_sizes = cx.sizes(gates);
    let b = cx.broadcast(b, &gate_sizes, &[1])?;
    let gates = cx.add(gates, b)?;
    let (Step { i, cs, f, o, ci, co }, h) = cell.forward(cx, gates, cs_prev, peepholes)?;
    Ok(vec![i, cs, f, o, ci, co, h])
}

/// `LSTMBlockCellGrad(x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad,
/// h_grad)`: the gradients of the previous state, the gates, and the peepholes.
fn lstm_block_cell_grad(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (x, cs_prev) = (cx.input(0)?, cx.input(1)?);
    let x_sizes = cx.sizes(x);
    let sizes = Sizes::new(cx, &x_sizes, 1)?;
    let mut step_values = Vec::with_capacity(8);
    for k in 8..16 {
        let id = cx.input(k)?;
        let actual = cx.sizes(id);
        cx.check(actual == sizes.state(), || {
            format!("input {k}: expected shape {}, got {}", list(&sizes.state()), list(&actual))
        })?;
        step_values.push(id);
    }
    let peepholes = peepholes(cx, 4)?;
    if sizes.state().contains(&0) {
        let element_type = cx.element_type(cs_prev);
        let gates = cx.splat(element_type, &[sizes.batch, 4 * sizes.cell], 0.0)?;
        let row = cx.splat(element_type, &[sizes.cell], 0.0)?;
        return Ok(vec![cs_prev, gates, row, row, row]);
    }
    let step = Step {
        i: step_values[0],
        cs: step_values[1],
        f: step_values[2],
        o: step_values[3],
        ci: step_values[4],
        co: step_values[5],
    };
    let order = GateOrder::Icfo;
    let (gates, cs_prev_grad) =
        backward(cx, order, &step, cs_prev, step_values[6], step_values[7], peepholes)?;
    let [wci, wcf, wco] = peephole_gradients(cx, order, gates, cs_prev, step.cs, peepholes.is_some())?;
    Ok(vec![cs_prev_grad, gates, wci, wcf, wco])
}
