//! GRU cells computed by one op, and their gradients.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_many};
use crate::ops::linalg::products::dot;
use crate::ops::nn::lstm_cells::one_minus;
use bounded::list;
use hlo::{InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("GRUBlockCell", gru_block_cell).types("T", SINGLE),
    rule_many("GRUBlockCellGrad", gru_block_cell_grad).types("T", SINGLE),
];

const SINGLE: &[tf::DataType] = &[tf::DataType::Float];

/// The inputs `x, h_prev, w_ru, w_c, b_ru, b_c`, checked.
struct Inputs {
    x: InstructionId,
    h_prev: InstructionId,
    w_ru: InstructionId,
    w_c: InstructionId,
    b_ru: InstructionId,
    b_c: InstructionId,
    batch: i64,
    inputs: i64,
    cell: i64,
}

impl Inputs {
    fn new(cx: &mut NodeContext<'_, '_>) -> Result<Self> {
        let mut ids = Vec::with_capacity(6);
        let mut sizes = Vec::with_capacity(6);
        for k in 0..6 {
            ids.push(cx.input(k)?);
            sizes.push(cx.sizes(ids[k]));
        }
        let (&[batch, inputs], &[_, cell]) = (&sizes[0][..], &sizes[1][..]) else {
            return Err(cx.invalid(format!(
                "expected matrices x and h_prev, got {} and {}",
                list(&sizes[0]),
                list(&sizes[1])
            )));
        };
        let expected: [&[i64]; 6] = [
            &[batch, inputs],
            &[batch, cell],
            &[inputs + cell, 2 * cell],
            &[inputs + cell, cell],
            &[2 * cell],
            &[cell],
        ];
        for ((name, actual), expected) in
            ["x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"].iter().zip(&sizes).zip(expected)
        {
            cx.check(actual == expected, || {
                format!(
                    "{name}: expected shape {} for {batch} rows of {inputs} inputs and a cell of {cell}, got {}",
                    list(expected),
                    list(actual)
                )
            })?;
        }
        let [x, h_prev, w_ru, w_c, b_ru, b_c] = ids[..] else {
            unreachable!("the number of inputs differs from six")
        };
        Ok(Self { x, h_prev, w_ru, w_c, b_ru, b_c, batch, inputs, cell })
    }

    fn is_empty(&self) -> bool {
        self.batch == 0 || self.cell == 0
    }
}

/// `[x, state] . w + b`.
fn affine(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    state: InstructionId,
    w: InstructionId,
    b: InstructionId,
) -> Result<InstructionId> {
    let both = cx.concatenate(&[x, state], 1)?;
    let product = dot(cx, both, w, 0, 1, 0)?;
    let sizes = cx.sizes(product);
    let b = cx.broadcast(b, &sizes, &[1])?;
    cx.add(product, b)
}

/// `GRUBlockCell(x, h_prev, w_ru, w_c, b_ru, b_c)`: `r, u, c` and the new state `h`,
///
/// ```text
/// [r, u] = sigmoid([x, h_prev] . w_ru + b_ru)      c = tanh([x, h_prev * r] . w_c + b_c)
/// h = u * (h_prev - c) + c
/// ```
fn gru_block_cell(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let inputs = Inputs::new(cx)?;
    if inputs.is_empty() {
        return Ok(vec![inputs.h_prev; 4]);
    }
    let gates = affine(cx, inputs.x, inputs.h_prev, inputs.w_ru, inputs.b_ru)?;
    let gates = cx.op(Op::Logistic {}, &[gates])?;
    let r = cx.slice_in(gates, 1, 0, inputs.cell)?;
    let u = cx.slice_in(gates, 1, inputs.cell, 2 * inputs.cell)?;
    let reset_state = cx.mul(inputs.h_prev, r)?;
    let c = affine(cx, inputs.x, reset_state, inputs.w_c, inputs.b_c)?;
    let c = cx.op(Op::Tanh {}, &[c])?;
    let difference = cx.sub(inputs.h_prev, c)?;
    let moved = cx.mul(u, difference)?;
    let h = cx.add(moved, c)?;
    Ok(vec![r, u, c, h])
}

/// `GRUBlockCellGrad(x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h)`: the gradients of `x` and
/// `h_prev`, and the gradients of `c`, and of `r` and `u`, with respect to the arguments of their
/// functions.
fn gru_block_cell_grad(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let inputs = Inputs::new(cx)?;
    let state = [inputs.batch, inputs.cell];
    let mut others = Vec::with_capacity(4);
    for k in 6..10 {
        let id = cx.input(k)?;
        let actual = cx.sizes(id);
        cx.check(actual == state, || {
            format!("input {k}: expected shape {}, got {}", list(&state), list(&actual))
        })?;
        others.push(id);
    }
    let [r, u, c, d_h] = others[..] else { unreachable!("the number of inputs differs from four") };
    if inputs.is_empty() {
        let element_type = cx.element_type(inputs.x);
        let d_x = cx.splat_like(inputs.x, 0.0)?;
        let d_gates = cx.splat(element_type, &[inputs.batch, 2 * inputs.cell], 0.0)?;
        return Ok(vec![d_x, inputs.h_prev, inputs.h_prev, d_gates]);
    }
    let slope = |cx: &mut NodeContext<'_, '_>, y| {
        let rest = one_minus(cx, y)?;
        cx.mul(y, rest)
    };
    let rest = one_minus(cx, u)?;
    let from_h = cx.mul(d_h, rest)?;
    let square = cx.mul(c, c)?;
    let c_slope = one_minus(cx, square)?;
    let d_c = cx.mul(from_h, c_slope)?;
    let difference = cx.sub(inputs.h_prev, c)?;
    let d_u = cx.mul(d_h, difference)?;
    let u_slope = slope(cx, u)?;
    let d_u = cx.mul(d_u, u_slope)?;
    let through_c = dot(cx, d_c, inputs.w_c, 0, 1, 1)?;
    let end = inputs.inputs + inputs.cell;
    let d_reset_state = cx.slice_in(through_c, 1, inputs.inputs, end)?;
    let d_r = cx.mul(d_reset_state, inputs.h_prev)?;
    let r_slope = slope(cx, r)?;
    let d_r = cx.mul(d_r, r_slope)?;
    let d_gates = cx.concatenate(&[d_r, d_u], 1)?;
    let through_gates = dot(cx, d_gates, inputs.w_ru, 0, 1, 1)?;
    let d_x = cx.add(through_gates, through_c)?;
    let d_x = cx.slice_in(d_x, 1, 0, inputs.inputs)?;
    let direct = cx.slice_in(through_gates, 1, inputs.inputs, end)?;
    let (through_r, through_u) = (cx.mul(d_reset_state, r)?, cx.mul(d_h, u)?);
    let d_h_prev = cx.add(direct, through_r)?;
    let d_h_prev = cx.add(d_h_prev, through_u)?;
    Ok(vec![d_x, d_h_prev, d_c, d_gates])
}
