//! Merges sorted runs of rows. The smallest items are taken from the front and the largest ones
//! from the back, a vector of each in turn. The two instruction chains are independent.

use super::network::{Item, Rows, exchange, precedes};
use crate::transpose::transpose;
use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder as _, ValueId};
use support::{Error, Result};

/// Converts blocks of rows to runs: the items of each lane become contiguous.
pub(super) fn lanes_to_runs(
    b: &mut FunctionBuilder,
    rows: Rows,
    from: ValueId,
    to: ValueId,
    count: ValueId,
) -> Result<()> {
    let lanes = i64::from(rows.lanes);
    let (zero, log) = (b.index(0), b.index(i64::from(rows.lanes.ilog2())));
    let end = b.binary(BinaryOp::ShiftRightLogical, count, log);
    let run = b.mul_constant(end, rows.row_bytes());
    b.for_each(zero, end, 1, |b, block| {
        let from = b.offset(from, block, lanes * rows.row_bytes());
        let to = b.offset(to, block, rows.row_bytes());
        for part in 0..i64::from(rows.words) {
            let mut vectors = Vec::new();
            for row in 0..lanes {
                let address = b.offset_bytes(from, row * rows.row_bytes() + part * rows.part_bytes());
                vectors.push(b.load(rows.ty(), address, rows.part_bytes() as u32));
            }
            for (lane, &vector) in transpose(b, &vectors).iter().enumerate() {
                let start = b.mul_constant(run, lane as i64);
                let address = b.offset(to, start, 1);
                let address = b.offset_bytes(address, part * rows.part_bytes());
                b.store(vector, address, rows.part_bytes() as u32);
            }
        }
        Ok(())
    })
}

/// Merges neighboring runs of `length` rows, then of twice as many, until one run is left. Each
/// pass writes to the other of two buffers. Returns the address of the run.
pub(super) fn merge_runs(
    b: &mut FunctionBuilder,
    rows: Rows,
    from: ValueId,
    to: ValueId,
    length: ValueId,
    count: ValueId,
) -> Result<ValueId> {
    let last = b.while_carrying(
        &[length, from, to],
        |b, carried| Ok(b.compare(Predicate::Less, carried[0], count)),
        |b, carried| {
            let &[length, from, to] = carried else {
                return Err(Error::internal("expected three carried values"));
            };
            let zero = b.index(0);
            let both = b.add(length, length);
            b.while_carrying(
                &[zero],
                |b, first| Ok(b.compare(Predicate::Less, first[0], count)),
                |b, first| {
                    let middle = b.add(first[0], length);
                    let middle = least(b, middle, count);
                    let next = b.add(first[0], both);
                    let end = least(b, next, count);
                    let is_alone = b.compare(Predicate::Equal, middle, end);
                    let bounds = [first[0], middle, end].map(|row| b.mul_constant(row, rows.row_bytes()));
                    b.if_else(
                        is_alone,
                        |b| {
                            let (to, from) = (b.offset(to, bounds[0], 1), b.offset(from, bounds[0], 1));
                            let bytes = b.sub(bounds[2], bounds[0]);
                            b.copy_bytes(to, from, bytes);
                            Ok(Vec::new())
                        },
                        |b| merge(b, rows, from, to, bounds).map(|()| Vec::new()),
                    )?;
                    Ok(vec![next])
                },
            )?;
            Ok(vec![both, to, from])
        },
    )?;
    Ok(last[1])
}

fn least(b: &mut FunctionBuilder, x: ValueId, y: ValueId) -> ValueId {
    let is_less = b.compare(Predicate::Less, x, y);
    b.select(is_less, x, y)
}

/// The remainder of two runs at one end, in bytes: the rows that are taken next, and the limits at
/// which the runs are exhausted.
#[derive(Clone, Copy)]
struct End {
    rows: Rows,
    from: ValueId,
    limits: [ValueId; 2],
    is_back: bool,
}

impl End {
    /// Takes the next row of the two runs: the one that begins with the smaller item, or at the
    /// back the one that ends with the larger item. Returns it with the places after it.
    fn take(&self, b: &mut FunctionBuilder, places: [ValueId; 2]) -> (Item, [ValueId; 2]) {
        let rows = self.rows;
        let edge = if self.is_back { rows.part_bytes() - rows.word_bytes() } else { 0 };
        let mut heads = Vec::new();
        let mut is_there = Vec::new();
        for (&place, &limit) in places.iter().zip(&self.limits) {
            let row = b.offset(self.from, place, 1);
            let item = b.offset_bytes(row, edge);
            heads.push(rows.load_lane(b, item));
            let predicate = if self.is_back { Predicate::Greater } else { Predicate::Less };
            is_there.push(b.compare(predicate, place, limit));
        }
        let is_second =
            if self.is_back { precedes(b, &heads[0], &heads[1]) } else { precedes(b, &heads[1], &heads[0]) };
        let no_first = b.unary(nest::UnaryOp::Not, is_there[0]);
        let is_second = b.or(no_first, is_second);
        let is_second = b.and(is_there[1], is_second);
        let place = b.select(is_second, places[1], places[0]);
        let row = b.offset(self.from, place, 1);
        let item = rows.load(b, row);
        let step = if self.is_back { -rows.row_bytes() } else { rows.row_bytes() };
        let next = places.map(|place| b.add_constant(place, step));
        let first = b.select(is_second, places[0], next[0]);
        let second = b.select(is_second, next[1], places[1]);
        (item, [first, second])
    }
}

/// Merges the runs of rows between three places, in bytes. Together they have an even number of
/// rows.
fn merge(
    b: &mut FunctionBuilder,
    rows: Rows,
    from: ValueId,
    to: ValueId,
    [first, middle, end]: [ValueId; 3],
) -> Result<()> {
    let bytes = rows.row_bytes();
    let [before, last_first, last] = [first, middle, end].map(|place| b.add_constant(place, -bytes));
    let front = End { rows, from, limits: [middle, end], is_back: false };
    let back = End { rows, from, limits: [before, last_first], is_back: true };
    let (low, fronts) = front.take(b, [first, middle]);
    let (high, backs) = back.take(b, [last_first, last]);
    let half = b.sub(end, first);
    let one = b.index(1);
    let half = b.binary(BinaryOp::ShiftRightLogical, half, one);
    let zero = b.index(0);
    let initial = [&fronts[..], &backs, &low, &high].concat();
    let words = rows.words as usize;
    b.for_carrying(zero, half, bytes, &initial, |b, done, carried| {
        let (places, items) = carried.split_at(4);
        let (low, high) = items.split_at(words);
        let (next, fronts) = front.take(b, [places[0], places[1]]);
        let (smaller, low) = merge_items(b, low, &next);
        let place = b.add(first, done);
        let at = b.offset(to, place, 1);
        rows.store(b, &smaller, at);
        let (next, backs) = back.take(b, [places[2], places[3]]);
        let (high, larger) = merge_items(b, high, &next);
        let place = b.sub(last, done);
        let at = b.offset(to, place, 1);
        rows.store(b, &larger, at);
        Ok([&fronts[..], &backs, &low, &high].concat())
    })
    .map(|_| ())
}

/// Merges two sorted vectors. Returns the smaller and the larger half of the items, both sorted.
///
/// A vector followed by the mirror image of another one is bitonic. Each round compares and
/// exchanges the items half a length apart, then interleaves the halves. Items that were half as
/// far apart are then half a length apart.
fn merge_items(b: &mut FunctionBuilder, x: &[ValueId], y: &[ValueId]) -> (Item, Item) {
    let lanes = b.ty(x[0]).lanes;
    let mirrored: Item = y.iter().map(|&y| mirror(b, y, lanes)).collect();
    let (mut low, mut high) = exchange(b, x, &mirrored);
    let mut distance = lanes;
    while distance > 1 {
        let (first, second) = interleave(b, &low, &high, lanes);
        (low, high) = exchange(b, &first, &second);
        distance /= 2;
    }
    if lanes > 1 { interleave(b, &low, &high, lanes) } else { (low, high) }
}

fn mirror(b: &mut FunctionBuilder, vector: ValueId, lanes: u32) -> ValueId {
    if lanes == 1 { vector } else { b.shuffle(vector, vector, (0..lanes).rev().collect()) }
}

fn interleave(b: &mut FunctionBuilder, x: &[ValueId], y: &[ValueId], lanes: u32) -> (Item, Item) {
    let mut half = |first: u32| -> Item {
        let picked: Vec<u32> = (0..lanes).map(|lane| first + lane / 2 + lane % 2 * lanes).collect();
        x.iter().zip(y).map(|(&x, &y)| b.shuffle(x, y, picked.clone())).collect()
    };
    (half(0), half(lanes / 2))
}
