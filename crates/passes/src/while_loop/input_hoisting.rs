//! Computes products of a sequence's elements for the whole sequence, before the loop over it.

use super::rows::{Kind, Row, Rows, index_constant};
use super::{Loop, split};
use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, Traits};
use shape::ArrayShape;
use std::collections::BTreeSet;
use support::Result;

/// Hoists products and convolutions of slices that a loop takes row by row from invariant buffers:
/// one large product before the loop covers all rows, and the body takes a slice of it. Subsequent
/// operations on the product that can be applied to all rows are hoisted with it. Exact for every
/// input.
///
/// A product with a concatenation of such slices and other values is split first:
/// `dot(concatenate(x, h), w) => dot(x, w1) + dot(h, w2)`. That changes the rounding.
///
/// The results for all rows take memory, which is limited. The loop must be known to run at least
/// half as many times as there are rows.
pub struct WhileLoopInputHoisting;

impl Pass for WhileLoopInputHoisting {
    fn name(&self) -> &'static str {
        "while-loop-input-hoisting"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(while_loop) = Loop::at(module, site) else { continue };
            let has_products = |computation: &Computation| {
                computation
                    .instructions()
                    .any(|(_, i)| matches!(i.op(), Op::Dot { .. } | Op::Convolution { .. }))
            };
            if !has_products(&module[while_loop.body]) {
                continue;
            }
            let Some(bound) = while_loop.trip_count(module).bound.filter(|&bound| bound >= 2) else {
                continue;
            };
            let is_worth_it =
                |row: Row| row.count >= 2 && row.count.unsigned_abs() <= bound.saturating_mul(2);
            changed |= split::split_products(module, while_loop, &is_worth_it);
            let Some(while_loop) = Loop::at(module, site) else { continue };
            changed |= hoist(module, while_loop, &is_worth_it);
        }
        Ok(changed.into())
    }
}

/// Maximum bytes of the results for all rows of one loop.
const MAX_BYTES: u64 = 128 << 20;

fn hoist(module: &mut Module, while_loop: Loop, is_worth_it: &dyn Fn(Row) -> bool) -> bool {
    let mut rows = Rows::new(module, while_loop);
    let values = values(&module[while_loop.body], &rows, is_worth_it);
    if values.is_empty() {
        return false;
    }
    let while_loop = while_loop.exclusive(module);
    // All values are computed first, because they are derived from the unmodified body.
    let all: Vec<InstructionId> =
        values.iter().filter_map(|&value| Some(rows.batched(module, value, rows.row(value)?))).collect();
    for (value, all) in values.into_iter().zip(all) {
        let Some(Kind::Rows(_, index)) = rows.kind(value) else { continue };
        let element = while_loop.add_element(module, all);
        let buffer = while_loop.read(module, while_loop.body, element);
        let body = module.computation_mut(while_loop.body);
        let read = read_row(body, buffer, index, value);
        body.replace_all_uses(value, read);
    }
    crate::simplify::dce::sweep(module.computation_mut(while_loop.body));
    true
}

/// The values to compute for all rows: products, each with its exclusive consumers.
fn values(body: &Computation, rows: &Rows, is_worth_it: &dyn Fn(Row) -> bool) -> BTreeSet<InstructionId> {
    let mut values = BTreeSet::new();
    let mut inside = BTreeSet::new();
    let mut bytes = 0u64;
    // In reverse order, so that a product that is an operand of another one is already marked as
    // inside.
    for id in body.post_order().into_iter().rev() {
        let is_product = matches!(body[id].op(), Op::Dot { .. } | Op::Convolution { .. });
        let Some(row) = rows.row(id).filter(|&row| is_product && is_worth_it(row)) else { continue };
        if inside.contains(&id) {
            continue;
        }
        let value = with_users(body, rows, id);
        let size = body[value].shape().byte_size().saturating_mul(row.count.unsigned_abs());
        if bytes.saturating_add(size) > MAX_BYTES {
            continue;
        }
        if values.insert(value) {
            bytes += size;
        }
        mark_operands(body, rows, value, &mut inside);
    }
    values
}

/// Marks all row values from which a value derives and which have no other users.
fn mark_operands(
    body: &Computation,
    rows: &Rows,
    value: InstructionId,
    inside: &mut BTreeSet<InstructionId>,
) {
    let mut pending: Vec<InstructionId> = body[value].operands().to_vec();
    while let Some(id) = pending.pop() {
        let is_only_inside = body[id].users().iter().all(|user| *user == value || inside.contains(user));
        if rows.row(id).is_some() && is_only_inside && inside.insert(id) {
            pending.extend(body[id].operands());
        }
    }
}

fn has_one_use(body: &Computation, id: InstructionId) -> bool {
    let &[user] = body[id].users() else { return false };
    body.root() != id && body[user].operands().iter().filter(|&&operand| operand == id).count() == 1
}

/// The last value in the chain of exclusive consumers of a product that is a row value and not
/// larger.
fn with_users(body: &Computation, rows: &Rows, product: InstructionId) -> InstructionId {
    let mut value = product;
    while has_one_use(body, value) {
        let user = body[value].users()[0];
        let moves = matches!(body[user].op(), Op::Reshape {} | Op::Transpose { .. });
        let computes = body[user].opcode().traits().contains(Traits::ELEMENTWISE);
        let is_larger = body[user].shape().byte_size() > body[value].shape().byte_size();
        if rows.row(user) != rows.row(value) || !(moves || computes) || is_larger {
            break;
        }
        value = user;
    }
    value
}

/// Reads `buffer[index]` in the shape of a value.
fn read_row(
    body: &mut Computation,
    buffer: InstructionId,
    index: InstructionId,
    like: InstructionId,
) -> InstructionId {
    let shape = body[buffer].shape().expect_array().clone();
    let metadata: OpMetadata = body[like].metadata().clone();
    let zero = index_constant(body, body[index].shape().expect_array().element_type, 0);
    let mut operands = vec![buffer, index];
    operands.resize(shape.rank() + 1, zero);
    let mut sizes = shape.sizes();
    sizes[0] = 1;
    let slice = ArrayShape::new(shape.element_type, &sizes);
    let op = Op::DynamicSlice { dynamic_slice_sizes: sizes };
    let slice = body.add("", op, slice.into(), &operands, metadata.clone());
    let shape = body[like].shape().clone();
    body.add("", Op::Reshape {}, shape, &[slice], metadata)
}
