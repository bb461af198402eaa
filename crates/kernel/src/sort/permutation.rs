//! Permutations in scratch that a comparison orders: stable merge sort, and insertion of the first few.

use crate::context::KernelContext;
use crate::index::{Facts, Index};
use nest::{FunctionBuilder, Predicate, ScalarType, Type, UnaryOp, ValueId};
use support::{Error, Result};

/// Whether the first of two numbers of a row belongs in front of the second.
pub(super) type Before<'f> =
    dyn FnMut(&mut FunctionBuilder, &mut KernelContext<'_>, &Index, &Index) -> Result<ValueId> + 'f;

/// An entry of a permutation, as an index.
pub(super) fn read_order(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    order: ValueId,
    index: &Index,
    length: i64,
) -> Result<Index> {
    let index = cx.scalar_value(b, index)?;
    let address = b.offset(order, index, 8);
    let entry = b.load(Type::I64, address, 8);
    cx.facts.insert(entry, Facts::range(0, length - 1));
    Ok(Index::scalar(entry))
}

/// The first `k` of the numbers below `length`, in their order: a number that belongs in front of the last one of
/// those before it pushes back what it belongs in front of.
pub(super) fn insertion(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    order: ValueId,
    (k, length): (i64, i64),
    before: &mut Before<'_>,
) -> Result<()> {
    let zero = b.index(0);
    // What no number has taken yet is read, too.
    cx.for_range(b, 0, k, 1, |cx, b, index| {
        let number = cx.scalar_value(b, &index)?;
        let address = b.offset(order, number, 8);
        b.store(zero, address, 8);
        Ok(())
    })?;
    cx.for_range(b, 0, length, 1, |cx, b, index| {
        let (number, last, few) = (cx.scalar_value(b, &index)?, b.index(k - 1), b.index(k));
        let worst = read_order(b, cx, order, &Index::scalar(last), length)?;
        let overtakes = before(b, cx, &index, &worst)?;
        let is_early = b.compare(Predicate::Less, number, few);
        let enters = b.or(is_early, overtakes);
        b.if_then(enters, |b| {
            cx.scoped(b, |cx, b| {
                let end = least(b, number, last);
                let place = place_of(b, cx, (order, length), (&index, end), before)?;
                let address = b.offset(order, place, 8);
                b.store(number, address, 8);
                Ok(())
            })
        })
    })
}

/// Where a number belongs among those in order up to `end`; those behind it have moved back.
fn place_of(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    (order, length): (ValueId, i64),
    (index, end): (&Index, ValueId),
    before: &mut Before<'_>,
) -> Result<ValueId> {
    let zero = b.index(0);
    let context = std::cell::RefCell::new((cx, before));
    let places = b.while_carrying(
        &[end],
        |b, carried| {
            let (cx, before) = &mut *context.borrow_mut();
            cx.scoped(b, |cx, b| {
                let has_more = b.compare(Predicate::Less, zero, carried[0]);
                let next = b.add_constant(carried[0], -1);
                let next = b.select(has_more, next, zero);
                let entry = read_order(b, cx, order, &Index::scalar(next), length)?;
                let overtakes = before(b, cx, index, &entry)?;
                Ok(b.and(has_more, overtakes))
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

/// Sorts the numbers below `length` in scratch, from the bottom up: runs of 1, 2, 4, ... are merged from one half of
/// the scratch into the other. Returns the address of the permutation.
pub(super) fn merge_sort(
    b: &mut FunctionBuilder,
    cx: &mut KernelContext<'_>,
    scratch: ValueId,
    length: i64,
    before: &mut Before<'_>,
) -> Result<ValueId> {
    let other = b.offset_bytes(scratch, 8 * length);
    cx.for_range(b, 0, length, 1, |cx, b, index| {
        let number = cx.scalar_value(b, &index)?;
        let address = b.offset(scratch, number, 8);
        b.store(number, address, 8);
        Ok(())
    })?;
    let passes = i64::from(64 - (length as u64 - 1).leading_zeros());
    let one = b.index(1);
    let carried = cx.for_range_carrying(b, (0, passes, 1), &[one, scratch, other], |cx, b, _, carried| {
        let [width, from, to] = carried[..] else { return Err(Error::internal("three values are carried")) };
        let zero = b.index(0);
        let end = b.index(length);
        let context = std::cell::RefCell::new((&mut *cx, &mut *before));
        b.while_carrying(
            &[zero],
            |b, carried| Ok(b.compare(Predicate::Less, carried[0], end)),
            |b, carried| {
                let (cx, before) = &mut *context.borrow_mut();
                cx.scoped(b, |cx, b| {
                    let run = Run { from, to, first: carried[0], width, length };
                    run.merge(b, cx, *before).map(|next| vec![next])
                })
            },
        )?;
        let doubled = b.add(width, width);
        Ok(vec![doubled, to, from])
    })?;
    Ok(carried[1])
}

/// Two neighbouring sorted runs.
struct Run {
    from: ValueId,
    to: ValueId,
    /// Where the first begins.
    first: ValueId,
    /// How long each is, but for the end.
    width: ValueId,
    length: i64,
}

impl Run {
    /// Merges them; returns where the next two begin.
    fn merge(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        before: &mut Before<'_>,
    ) -> Result<ValueId> {
        let length = b.index(self.length);
        let middle = b.add(self.first, self.width);
        let middle = least(b, middle, length);
        let next = b.add(self.first, self.width);
        let next = b.add(next, self.width);
        let end = least(b, next, length);
        let (last_left, last_right) = (b.add_constant(middle, -1), b.add_constant(end, -1));
        let (limit, start) = (self.length, [self.first, middle]);
        cx.for_dynamic(b, self.first, end, limit, &start, |cx, b, index, carried| {
            let (left, right) = (carried[0], carried[1]);
            let has_left = b.compare(Predicate::Less, left, middle);
            let has_right = b.compare(Predicate::Less, right, end);
            let left_entry = least(b, left, last_left);
            let right_entry = least(b, right, last_right);
            let left_number = read_order(b, cx, self.from, &Index::scalar(left_entry), limit)?;
            let right_number = read_order(b, cx, self.from, &Index::scalar(right_entry), limit)?;
            let overtakes = before(b, cx, &right_number, &left_number)?;
            let is_alone = b.unary(UnaryOp::Not, has_left);
            let is_right = b.or(is_alone, overtakes);
            let is_right = b.and(has_right, is_right);
            let (x, y) = (cx.scalar_value(b, &left_number)?, cx.scalar_value(b, &right_number)?);
            let number = b.select(is_right, y, x);
            let address = b.offset(self.to, index, 8);
            b.store(number, address, 8);
            let step_right = b.convert(nest::ConvertOp::ZeroExtend, is_right, ScalarType::I64);
            let one = b.index(1);
            let step_left = b.sub(one, step_right);
            Ok(vec![b.add(left, step_left), b.add(right, step_right)])
        })?;
        Ok(next)
    }
}

fn least(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let is_less = b.compare(Predicate::Less, x, y);
    b.select(is_less, x, y)
}
