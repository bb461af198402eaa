//! GRU cells that one op computes, and their gradients.

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
struct Given {
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

impl Given {
    fn of(cx: &mut NodeContext<'_, '_>) -> Result<Self> {
        let mut ids = Vec::with_capacity(6);
        let mut sizes = Vec::with_capacity(6);
        for k in 0..6 {
            ids.push(cx.input(k)?);
            sizes.push(cx.sizes(ids[k]));
        }
        let (&[batch, inputs], &[_, cell]) = (&sizes[0][..], &sizes[1][..]) else {
            return Err(cx.invalid(format!(
                "x and h_prev must be matrices, but are {} and {}",
                list(&sizes[0]),
                list(&sizes[1])
            )));
        };
        let wanted: [&[i64]; 6] = [
            &[batch, inputs],
            &[batch, cell],
            &[inputs + cell, 2 * cell],
            &[inputs + cell, cell],
            &[2 * cell],
            &[cell],
        ];
        for ((name, have), wanted) in
            ["x", "h_prev", "w_ru", "w_c", "b_ru", "b_c"].iter().zip(&sizes).zip(wanted)
        {
            cx.check(have == wanted, || {
                format!(
                    "{name} must have the shape {} for {batch} rows of {inputs} inputs and a cell of {cell}, but has {}",
                    list(wanted),
                    list(have)
                )
            })?;
        }
        let [x, h_prev, w_ru, w_c, b_ru, b_c] = ids[..] else { unreachable!("six inputs were read") };
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
    let given = Given::of(cx)?;
    if given.is_empty() {
        return Ok(vec![given.h_prev; 4]);
    }
    let gates = affine(cx, given.x, given.h_prev, given.w_ru, given.b_ru)?;
    let gates = cx.op(Op::Logistic {}, &[gates])?;
    let r = cx.slice_in(gates, 1, 0, given.cell)?;
    let u = cx.slice_in(gates, 1, given.cell, 2 * given.cell)?;
    let kept = cx.mul(given.h_prev, r)?;
    let c = affine(cx, given.x, kept, given.w_c, given.b_c)?;
    let c = cx.op(Op::Tanh {}, &[c])?;
    let difference = cx.sub(given.h_prev, c)?;
    let moved = cx.mul(u, difference)?;
    let h = cx.add(moved, c)?;
    Ok(vec![r, u, c, h])
}

/// `GRUBlockCellGrad(x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h)`: the gradients of `x` and `h_prev`, and those of `c` and
/// of `r` and `u` before their functions.
fn gru_block_cell_grad(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let given = Given::of(cx)?;
    let state = [given.batch, given.cell];
    let mut others = Vec::with_capacity(4);
    for k in 6..10 {
        let id = cx.input(k)?;
        let have = cx.sizes(id);
        cx.check(have == state, || {
            format!("input {k} must have the shape {}, but has {}", list(&state), list(&have))
        })?;
        others.push(id);
    }
    let [r, u, c, d_h] = others[..] else { unreachable!("four inputs were read") };
    if given.is_empty() {
        let element_type = cx.element_type(given.x);
        let d_x = cx.splat_like(given.x, 0.0)?;
        let d_gates = cx.splat(element_type, &[given.batch, 2 * given.cell], 0.0)?;
        return Ok(vec![d_x, given.h_prev, given.h_prev, d_gates]);
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
    let difference = cx.sub(given.h_prev, c)?;
    let d_u = cx.mul(d_h, difference)?;
    let u_slope = slope(cx, u)?;
    let d_u = cx.mul(d_u, u_slope)?;
    let through_c = dot(cx, d_c, given.w_c, 0, 1, 1)?;
    let end = given.inputs + given.cell;
    let d_kept = cx.slice_in(through_c, 1, given.inputs, end)?;
    let d_r = cx.mul(d_kept, given.h_prev)?;
    let r_slope = slope(cx, r)?;
    let d_r = cx.mul(d_r, r_slope)?;
    let d_gates = cx.concatenate(&[d_r, d_u], 1)?;
    let through_gates = dot(cx, d_gates, given.w_ru, 0, 1, 1)?;
    let d_x = cx.add(through_gates, through_c)?;
    let d_x = cx.slice_in(d_x, 1, 0, given.inputs)?;
    let direct = cx.slice_in(through_gates, 1, given.inputs, end)?;
    let (through_r, through_u) = (cx.mul(d_kept, r)?, cx.mul(d_h, u)?);
    let d_h_prev = cx.add(direct, through_r)?;
    let d_h_prev = cx.add(d_h_prev, through_u)?;
    Ok(vec![d_x, d_h_prev, d_c, d_gates])
}
