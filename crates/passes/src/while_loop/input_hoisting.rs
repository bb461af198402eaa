//! Computes products of a sequence's elements for the whole sequence, before the loop over it.

use super::rows::{Kind, Row, Rows, sliced};
use super::strip_mining::{self, Strips};
use super::{Loop, split};
use crate::pass::{Changed, Pass};
use hlo::{Computation, InstructionId, Module, Op, OpMetadata, Traits};
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
/// half as many times as there are rows. Where the number of iterations depends on the sizes of a
/// run, or the results would not fit into caches, the loop runs in strips, and a product covers the
/// rows of one strip.
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
            let trip_count = while_loop.trip_count(module);
            let Some(bound) = trip_count.bound.filter(|&bound| bound >= 2) else { continue };
            let is_open = trip_count.exact.is_none() && !module.size_parameters().is_empty();
            let strips = Strips::of(module, while_loop);
            let is_rest = |strips: &Strips| strip_mining::is_rest(module, while_loop, strips.counter);
            if strips.as_ref().is_some_and(is_rest) || is_open && strips.is_none() {
                continue;
            }
            let is_worth_it =
                |row: Row| row.count >= 2 && row.count.unsigned_abs() <= bound.saturating_mul(2);
            changed |= split::split_products(module, while_loop, &is_worth_it);
            let Some(while_loop) = Loop::at(module, site) else { continue };
            let strips = strips.filter(|_| bound >= MIN_STRIP.unsigned_abs());
            let in_strips =
                strips.and_then(|strips| hoist_strips(module, while_loop, &strips, is_open, &is_worth_it));
            changed |= match in_strips {
                Some(()) => true,
                None => !is_open && hoist(module, while_loop, MAX_BYTES, &is_worth_it),
            };
        }
        Ok(changed.into())
    }
}

/// Maximum bytes of the results for all rows of one loop that does not run in strips.
const MAX_BYTES: u64 = 128 << 20;
/// Bytes of results for all rows above which a loop runs in strips: caches do not hold more.
const MAX_CACHED: u64 = 4 << 20;
/// Bytes of results for the rows of a strip, which caches hold next to the weights.
const STRIP_BYTES: u64 = 1 << 20;
/// Least number of iterations in a strip: a product of 16 rows uses registers well.
const MIN_STRIP: i64 = 16;

/// Hoists products for the rows of one strip at a time. Returns `None`, and changes nothing, if
/// caches hold the results for all rows, or if these do not follow from rows of a strip.
fn hoist_strips(
    module: &mut Module,
    while_loop: Loop,
    strips: &Strips,
    is_open: bool,
    is_worth_it: &dyn Fn(Row) -> bool,
) -> Option<()> {
    let rows = Rows::new(module, while_loop);
    let body = &module[while_loop.body];
    let values = values(body, &rows, u64::MAX, is_worth_it);
    let of_row = |id: &InstructionId| body[*id].shape().byte_size();
    let of_all =
        |id: &InstructionId| rows.row(*id).map_or(0, |row| of_row(id).saturating_mul(row.count as u64));
    let is_cached = values.iter().map(of_all).fold(0, u64::saturating_add) <= MAX_CACHED;
    if is_cached && !is_open {
        return None;
    }
    let row_bytes = values.iter().map(of_row).fold(1, u64::saturating_add);
    let length = if is_open { MIN_STRIP } else { MIN_STRIP.max((STRIP_BYTES / row_bytes) as i64) };
    let slices = strip_mining::slices_of(module, while_loop, &rows, strips.counter, &values);
    let slices = slices.filter(|slices| !slices.is_empty())?;
    let strip = strip_mining::strip_mine(module, while_loop, strips, &slices, length);
    hoist(module, strip, u64::MAX, &|row| row.count == length);
    Some(())
}

fn hoist(module: &mut Module, while_loop: Loop, most_bytes: u64, is_worth_it: &dyn Fn(Row) -> bool) -> bool {
    let mut rows = Rows::new(module, while_loop);
    let values = values(&module[while_loop.body], &rows, most_bytes, is_worth_it);
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

/// The values to compute for all rows, with at most this many bytes: products, each with its
/// exclusive consumers.
fn values(
    body: &Computation,
    rows: &Rows,
    most_bytes: u64,
    is_worth_it: &dyn Fn(Row) -> bool,
) -> BTreeSet<InstructionId> {
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
        if bytes.saturating_add(size) > most_bytes {
            continue;
        }
        if values.insert(value) {
            bytes = bytes.saturating_add(size);
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
    let metadata: OpMetadata = body[like].metadata().clone();
    let mut sizes = body[buffer].shape().expect_array().sizes();
    sizes[0] = 1;
    let slice = sliced(body, buffer, index, 0, &sizes, &metadata);
    let shape = body[like].shape().clone();
    body.add("", Op::Reshape {}, shape, &[slice], metadata)
}
