//! Permutations in scratch, ordered by a comparison: stable merge sort, and insertion of the first
//! few.

use super::length::Length;
use crate::context::KernelContext;
use crate::index::{Facts, Index};
use nest::{FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, UnaryOp, ValueId};
use support::{Error, Result};

/// Returns whether the first of two element numbers of a row belongs before the second.
pub(super) type Before<'f> = dyn FnMut(&mut KernelContext<'_>, &Index, &Index) -> Result<ValueId> + 'f;

/// Loads an entry of a permutation as an index.
pub(super) fn read_order(
    cx: &mut KernelContext<'_>,
    order: ValueId,
    index: &Index,
    length: i64,
) -> Result<Index> {
    let index = cx.scalar_value(index)?;
    let address = cx.offset(order, index, 8);
    let entry = cx.load(Type::I64, address, 8);
    cx.learn(entry, Facts::range(0, length - 1));
    Ok(Index::scalar(entry))
}

/// Finds the first `k` of the numbers below a length, in sort order. A number that belongs before
/// the last one found so far is inserted, and shifts all numbers after it.
pub(super) fn insertion(
    cx: &mut KernelContext<'_>,
    order: ValueId,
    k: i64,
    numbers: Length,
    before: &mut Before<'_>,
) -> Result<()> {
    let length = numbers.most;
    let zero = cx.index(0);
    // Entries are read before a number is stored in them.
    cx.for_range(0, k, 1, |cx, index| {
        let number = cx.scalar_value(&index)?;
        let address = cx.offset(order, number, 8);
        cx.store(zero, address, 8);
        Ok(())
    })?;
    cx.for_needed_indices((0, length, numbers.extent), |cx, index| {
        let (number, last, few) = (cx.scalar_value(&index)?, cx.index(k - 1), cx.index(k));
        let worst = read_order(cx, order, &Index::scalar(last), length)?;
        let overtakes = before(cx, &index, &worst)?;
        let is_early = cx.compare(Predicate::Less, number, few);
        let enters = cx.or(is_early, overtakes);
        cx.if_then(enters, |cx| {
            cx.scoped(|cx| {
                let end = least(cx, number, last);
                let place = place_of(cx, order, length, &index, end, before)?;
                let address = cx.offset(order, place, 8);
                cx.store(number, address, 8);
                Ok(())
            })
        })
    })
}

/// Returns the place of a number among those sorted so far, up to `end`. Moves the numbers after it
/// back by one.
fn place_of(
    cx: &mut KernelContext<'_>,
    order: ValueId,
    length: i64,
    index: &Index,
    end: ValueId,
    before: &mut Before<'_>,
) -> Result<ValueId> {
    let zero = cx.index(0);
    let places = cx.while_carrying(
        &[end],
        |cx, carried| {
            cx.scoped(|cx| {
                let has_more = cx.compare(Predicate::Less, zero, carried[0]);
                let next = cx.add_constant(carried[0], -1);
                let next = cx.select(has_more, next, zero);
                let entry = read_order(cx, order, &Index::scalar(next), length)?;
                let overtakes = before(cx, index, &entry)?;
                Ok(cx.and(has_more, overtakes))
            })
        },
        |b, carried| {
            let next = b.add_constant(carried[0], -1);
            let from = b.offset(order, next, 8);
            let entry = b.load(Type::I64, from, 8);
            let to = b.offset(order, carried[0], 8);
            b.store(entry, to, 8);
            Ok(vec![next])
        },
    )?;
    Ok(places[0])
}

/// Sorts the numbers below a length in scratch, bottom up: runs of 1, 2, 4, ... are merged from one
/// half of the scratch into the other. Returns the address of the permutation.
pub(super) fn merge_sort(
    cx: &mut KernelContext<'_>,
    scratch: ValueId,
    numbers: Length,
    before: &mut Before<'_>,
) -> Result<ValueId> {
    let length = numbers.most;
    let other = cx.offset_bytes(scratch, 8 * length);
    cx.for_needed_indices((0, length, numbers.extent), |cx, index| {
        let number = cx.scalar_value(&index)?;
        let address = cx.offset(scratch, number, 8);
        cx.store(number, address, 8);
        Ok(())
    })?;
    let (one, end) = (cx.index(1), numbers.value(cx)?);
    let carried = cx.while_carrying(
        &[one, scratch, other],
        |b, carried| Ok(b.compare(Predicate::Less, carried[0], end)),
        |cx, carried| {
            let [width, from, to] = carried[..] else {
                return Err(Error::internal("expected three carried values"));
            };
            let zero = cx.index(0);
            cx.while_carrying(
                &[zero],
                |b, carried| Ok(b.compare(Predicate::Less, carried[0], end)),
                |cx, carried| {
                    cx.scoped(|cx| {
                        let run = Run { from, to, first: carried[0], width, length, end };
                        run.merge(cx, before).map(|next| vec![next])
                    })
                },
            )?;
            let doubled = cx.add(width, width);
            Ok(vec![doubled, to, from])
        },
    )?;
    Ok(carried[1])
}

/// Two neighboring sorted runs.
struct Run {
    from: ValueId,
    to: ValueId,
    /// Start of the first run.
    first: ValueId,
    /// Length of each run. The last ones may be shorter.
    width: ValueId,
    /// Number of all entries, at most and in this run.
    length: i64,
    end: ValueId,
}

impl Run {
    /// Merges the two runs. Returns the start of the next two.
    fn merge(&self, cx: &mut KernelContext<'_>, before: &mut Before<'_>) -> Result<ValueId> {
        let middle = cx.add(self.first, self.width);
        let middle = least(cx, middle, self.end);
        let next = cx.add(self.first, self.width);
        let next = cx.add(next, self.width);
        let end = least(cx, next, self.end);
        let (last_left, last_right) = (cx.add_constant(middle, -1), cx.add_constant(end, -1));
        let (limit, start) = (self.length, [self.first, middle]);
        cx.for_dynamic(self.first, end, limit, &start, |cx, index, carried| {
            let (left, right) = (carried[0], carried[1]);
            let has_left = cx.compare(Predicate::Less, left, middle);
            let has_right = cx.compare(Predicate::Less, right, end);
            let left_entry = least(cx, left, last_left);
            let right_entry = least(cx, right, last_right);
            let left_number = read_order(cx, self.from, &Index::scalar(left_entry), limit)?;
            let right_number = read_order(cx, self.from, &Index::scalar(right_entry), limit)?;
            let overtakes = before(cx, &right_number, &left_number)?;
            let is_alone = cx.unary(UnaryOp::Not, has_left);
            let is_right = cx.or(is_alone, overtakes);
            let is_right = cx.and(has_right, is_right);
            let (x, y) = (cx.scalar_value(&left_number)?, cx.scalar_value(&right_number)?);
            let number = cx.select(is_right, y, x);
            let address = cx.offset(self.to, index, 8);
            cx.store(number, address, 8);
            let step_right = cx.convert(nest::ConvertOp::ZeroExtend, is_right, ScalarType::I64);
            let one = cx.index(1);
            let step_left = cx.sub(one, step_right);
            Ok(vec![cx.add(left, step_left), cx.add(right, step_right)])
        })?;
        Ok(next)
    }
}

fn least(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let is_less = b.compare(Predicate::Less, x, y);
    b.select(is_less, x, y)
}
