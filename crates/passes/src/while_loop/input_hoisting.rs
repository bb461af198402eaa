//! Products of a sequence's elements are computed for the whole sequence, before the loop over it.

use super::rows::{Kind, Row, Rows, index_constant};
use super::{Loop, split};
use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, Traits};
use shape::ArrayShape;
use std::collections::BTreeSet;
use support::Result;

/// Computes products (and convolutions) of slices, which a loop takes row by row out of buffers that it keeps, for all rows
/// at once: one large product before the loop, a slice of it in the body. What is done to a product and can be done to all
/// rows goes with it. Exact for every input.
///
/// A product with a concatenation of such slices and other values is split first: `dot(concatenate(x, h), w) =>
/// dot(x, w1) + dot(h, w2)`. That changes the rounding.
///
/// The results for all rows take memory, of which there is a limit, and the loop must be known to run at least half as
/// often as there are rows.
pub struct WhileLoopInputHoisting;

impl Pass for WhileLoopInputHoisting {
    fn name(&self) -> &'static str {
        "while-loop-input-hoisting"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        let mut changed = false;
        for site in Loop::sites(module) {
            let Some(found) = Loop::at(module, site) else { continue };
            let has_products = |computation: &Computation| {
                computation
                    .instructions()
                    .any(|(_, i)| matches!(i.op(), Op::Dot { .. } | Op::Convolution { .. }))
            };
            if !has_products(&module[found.body]) {
                continue;
            }
            let Some(bound) = found.trip_count(module).bound.filter(|&bound| bound >= 2) else { continue };
            let is_worth_it =
                |row: Row| row.count >= 2 && row.count.unsigned_abs() <= bound.saturating_mul(2);
            changed |= split::split_products(module, found, &is_worth_it);
            let Some(found) = Loop::at(module, site) else { continue };
            changed |= hoist(module, found, &is_worth_it);
        }
        Ok(changed.into())
    }
}

/// Bytes that the results for all rows of one loop may take.
const MAX_BYTES: u64 = 128 << 20;

fn hoist(module: &mut Module, found: Loop, is_worth_it: &dyn Fn(Row) -> bool) -> bool {
    let mut rows = Rows::new(module, found);
    let values = values(&module[found.body], &rows, is_worth_it);
    if values.is_empty() {
        return false;
    }
    let found = found.exclusive(module);
    // All of them first: they are read off the body as it is.
    let all: Vec<InstructionId> =
        values.iter().filter_map(|&value| Some(rows.batched(module, value, rows.row(value)?))).collect();
    for (value, all) in values.into_iter().zip(all) {
        let Some(Kind::Rows(_, index)) = rows.kind(value) else { continue };
        let element = found.add_element(module, all);
        let buffer = found.read(module, found.body, element);
        let body = module.computation_mut(found.body);
        let read = read_row(body, buffer, index, value);
        body.replace_all_uses(value, read);
    }
    crate::simplify::dce::sweep(module.computation_mut(found.body));
    true
}

/// What is to be computed for all rows: products, each with what is done to it alone.
fn values(body: &Computation, rows: &Rows, is_worth_it: &dyn Fn(Row) -> bool) -> BTreeSet<InstructionId> {
    let mut values = BTreeSet::new();
    let mut inside = BTreeSet::new();
    let mut bytes = 0u64;
    // From the end, so that a product that another is made of is inside already.
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

/// Everything of rows that a value is made of, as long as nothing else reads it.
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

/// The last value on the way of a product that is of rows, not larger, and all that is made of the one before.
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

/// `buffer[index]`, in the shape of a value.
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
