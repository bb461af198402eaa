//! Sorting networks over vectors. Each lane is a sequence, and a row of vectors holds one item of
//! each sequence.
//!
//! The levels are those of a bitonic sort in which every comparison puts the smaller item first.
//! Each level sorts blocks of twice the size: it compares every item with its mirror image, then
//! with those at distances of a half, a quarter, ... of a block. Up to three of these stages run on
//! eight vectors in registers. Rows beyond the end are treated as the last item in sort order, so
//! comparisons with them change nothing. Accesses to them go to one spare row that holds this item.

use nest::{BinaryOp, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, UnaryOp, ValueId};
use support::Result;

/// Number of rows that are in registers together.
const GROUP: i64 = 8;

/// An odd-even merge sort of eight items.
const OF_EIGHT: [(usize, usize); 19] = [
    (0, 1),
    (2, 3),
    (4, 5),
    (6, 7),
    (0, 2),
    (1, 3),
    (4, 6),
    (5, 7),
    (1, 2),
    (5, 6),
    (0, 4),
    (1, 5),
    (2, 6),
    (3, 7),
    (2, 4),
    (3, 5),
    (1, 2),
    (3, 4),
    (5, 6),
];

/// A vector of items, by its words.
pub(crate) type Item = Vec<ValueId>;

/// Items in memory: rows of `lanes` items. The lanes of each word are contiguous.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) word: ScalarType,
    pub(super) words: u32,
    pub(super) lanes: u32,
}

impl Rows {
    pub(super) fn ty(self) -> Type {
        Type::vector(self.word, self.lanes)
    }

    pub(super) fn word_bytes(self) -> i64 {
        self.word.byte_size() as i64
    }

    /// Returns the distance in bytes between words of a row.
    pub(super) fn part_bytes(self) -> i64 {
        i64::from(self.lanes) * self.word_bytes()
    }

    pub(super) fn row_bytes(self) -> i64 {
        i64::from(self.words) * self.part_bytes()
    }

    pub(super) fn load(self, b: &mut FunctionBuilder, row: ValueId) -> Item {
        self.load_as(b, row, self.ty(), self.part_bytes())
    }

    /// Loads the item in one lane, given the address of its first word.
    pub(super) fn load_lane(self, b: &mut FunctionBuilder, lane: ValueId) -> Item {
        self.load_as(b, lane, Type::scalar(self.word), self.word_bytes())
    }

    fn load_as(self, b: &mut FunctionBuilder, at: ValueId, ty: Type, alignment: i64) -> Item {
        let mut item = Item::new();
        for part in 0..i64::from(self.words) {
            let address = b.offset_bytes(at, part * self.part_bytes());
            item.push(b.load(ty, address, alignment as u32));
        }
        item
    }

    pub(super) fn store(self, b: &mut FunctionBuilder, item: &[ValueId], at: ValueId) {
        for (part, &word) in item.iter().enumerate() {
            let address = b.offset_bytes(at, part as i64 * self.part_bytes());
            let alignment = if b.ty(word).lanes == 1 { self.word_bytes() } else { self.part_bytes() };
            b.store(word, address, alignment as u32);
        }
    }

    /// Returns the last item in sort order. No item comes after it.
    pub(super) fn last(self, b: &mut FunctionBuilder) -> Item {
        let largest = if self.word == ScalarType::I64 { i64::MAX } else { i64::from(i32::MAX) };
        let word = b.integer(self.ty(), largest);
        vec![word; self.words as usize]
    }
}

/// Returns whether items come before others: by the first word, then by the second.
pub(crate) fn precedes(b: &mut FunctionBuilder, x: &[ValueId], y: &[ValueId]) -> ValueId {
    let less = b.compare(Predicate::Less, x[0], y[0]);
    if x.len() == 1 {
        return less;
    }
    let equal = b.compare(Predicate::Equal, x[0], y[0]);
    let place_less = b.compare(Predicate::Less, x[1], y[1]);
    let by_place = b.and(equal, place_less);
    b.or(less, by_place)
}

/// Returns the smaller and the larger items.
pub(crate) fn exchange(b: &mut FunctionBuilder, x: &[ValueId], y: &[ValueId]) -> (Item, Item) {
    let in_order = precedes(b, x, y);
    let pairs = || x.iter().zip(y);
    let low = pairs().map(|(&x, &y)| b.select(in_order, x, y)).collect();
    let high = pairs().map(|(&x, &y)| b.select(in_order, y, x)).collect();
    (low, high)
}

fn exchange_all(
    b: &mut FunctionBuilder,
    items: &mut [Item],
    pairs: impl IntoIterator<Item = (usize, usize)>,
) {
    for (i, j) in pairs {
        (items[i], items[j]) = exchange(b, &items[i], &items[j]);
    }
}

/// Rows that are sorted lane by lane.
pub(super) struct Network {
    pub(super) rows: Rows,
    /// Address of the first row.
    pub(super) base: ValueId,
    /// Offset in bytes from the base to the row that holds the last item in sort order.
    pub(super) spare: ValueId,
    /// Number of rows; a multiple of eight.
    pub(super) count: ValueId,
    /// The largest number of rows.
    pub(super) most: i64,
}

/// Stages that run together.
#[derive(Clone, Copy)]
struct Pass {
    /// Number of stages.
    stages: u32,
    /// True if the first stage compares mirror images.
    mirrors: bool,
}

impl Network {
    pub(super) fn sort(&self, b: &mut FunctionBuilder) -> Result<()> {
        let zero = b.index(0);
        b.for_each(zero, self.count, GROUP, |b, first| {
            let at = b.offset(self.base, first, self.rows.row_bytes());
            let place = |b: &mut FunctionBuilder, k: i64| b.offset_bytes(at, k * self.rows.row_bytes());
            let mut items = Vec::new();
            for k in 0..GROUP {
                let row = place(b, k);
                items.push(self.rows.load(b, row));
            }
            exchange_all(b, &mut items, OF_EIGHT);
            for (k, item) in items.iter().enumerate() {
                let row = place(b, k as i64);
                self.rows.store(b, item, row);
            }
            Ok(())
        })?;
        let levels = i64::from(64 - (self.most - 1).leading_zeros());
        if levels <= 3 {
            return Ok(());
        }
        let (first, bits) = (b.index(4), b.index(65));
        let last = b.add_constant(self.count, -1);
        let is_none = b.compare(Predicate::Less, last, zero);
        let last = b.select(is_none, zero, last);
        let unused = b.unary(UnaryOp::CountLeadingZeros, last);
        let end = b.sub(bits, unused);
        b.for_each(first, end, 1, |b, level| self.level(b, level, levels))
    }

    /// Sorts blocks of `2^level` rows whose halves are sorted.
    fn level(&self, b: &mut FunctionBuilder, level: ValueId, levels: i64) -> Result<()> {
        let left = b.add_constant(level, -3);
        self.pass(b, Pass { stages: 3, mirrors: true }, left)?;
        // The remainder modulo 3 of a number below 128: 32-bit processors cannot divide an index.
        let (scaled, seven) = (b.mul_constant(left, 43), b.index(7));
        let third = b.binary(BinaryOp::ShiftRightLogical, scaled, seven);
        let whole = b.mul_constant(third, 3);
        let rest = b.sub(left, whole);
        for stages in 1..=2 {
            if levels < 3 + stages {
                continue;
            }
            let count = b.index(stages);
            let is_rest = b.compare(Predicate::Equal, rest, count);
            let log = b.add_constant(left, -stages);
            b.if_then(is_rest, |b| self.pass(b, Pass { stages: stages as u32, mirrors: false }, log))?;
        }
        if levels >= 6 {
            let left = b.sub(left, rest);
            b.while_carrying(
                &[left],
                |b, left| {
                    let zero = b.index(0);
                    Ok(b.compare(Predicate::Greater, left[0], zero))
                },
                |b, left| {
                    let log = b.add_constant(left[0], -3);
                    self.pass(b, Pass { stages: 3, mirrors: false }, log)?;
                    Ok(vec![log])
                },
            )?;
        }
        Ok(())
    }

    /// Emits stages with strides down to `2^log` rows. Groups of `2^stages` rows are compared among
    /// themselves, in batches of eight rows.
    fn pass(&self, b: &mut FunctionBuilder, pass: Pass, log: ValueId) -> Result<()> {
        let one = b.index(1);
        let stages = b.index(i64::from(pass.stages));
        let stride = b.binary(BinaryOp::ShiftLeft, one, log);
        let log_of_block = b.add(log, stages);
        let blocks = b.binary(BinaryOp::ShiftRightLogical, self.count, log_of_block);
        let whole = b.binary(BinaryOp::ShiftLeft, blocks, log);
        let in_blocks = b.binary(BinaryOp::ShiftLeft, blocks, log_of_block);
        let rest = b.sub(self.count, in_blocks);
        let is_less = b.compare(Predicate::Less, rest, stride);
        let more = b.select(is_less, rest, stride);
        let all = b.add(whole, more);
        let zero = b.index(0);
        let step = GROUP >> pass.stages;
        b.for_each(zero, whole, step, |b, group| self.groups(b, pass, group, stride, false))?;
        b.for_each(whole, all, step, |b, group| self.groups(b, pass, group, stride, true))
    }

    fn groups(
        &self,
        b: &mut FunctionBuilder,
        pass: Pass,
        first: ValueId,
        stride: ValueId,
        is_checked: bool,
    ) -> Result<()> {
        let size = 1usize << pass.stages;
        let mut groups = Vec::new();
        for k in 0..GROUP >> pass.stages {
            let group = b.add_constant(first, k);
            let addresses = self.addresses(b, pass, group, stride, is_checked);
            let items: Vec<Item> = addresses.iter().map(|&row| self.rows.load(b, row)).collect();
            groups.push((addresses, items));
        }
        for stage in 0..pass.stages {
            let distance = size >> (stage + 1);
            let mirrors = pass.mirrors && stage == 0;
            let pairs = (0..size).filter(|i| i & distance == 0);
            let pairs = pairs.map(|i| (i, if mirrors { size - 1 - i } else { i + distance }));
            for (_, items) in &mut groups {
                exchange_all(b, items, pairs.clone());
            }
        }
        for (addresses, items) in &groups {
            for (&row, item) in addresses.iter().zip(items) {
                self.rows.store(b, item, row);
            }
        }
        Ok(())
    }

    /// Returns the addresses of a group's rows.
    fn addresses(
        &self,
        b: &mut FunctionBuilder,
        pass: Pass,
        group: ValueId,
        stride: ValueId,
        is_checked: bool,
    ) -> Vec<ValueId> {
        let one = b.index(1);
        let mask = b.sub(stride, one);
        let within = b.and(group, mask);
        let block = b.sub(group, within);
        let first = b.mul_constant(block, 1 << pass.stages);
        let near = b.add(first, within);
        let mirrored = b.sub(mask, within);
        let far = b.add(first, mirrored);
        let bytes = self.rows.row_bytes();
        let size = 1i64 << pass.stages;
        let mut addresses = Vec::new();
        for k in 0..size {
            let start = if pass.mirrors && k >= size / 2 { far } else { near };
            let distance = b.mul_constant(stride, k);
            let row = b.add(start, distance);
            let mut offset = b.mul_constant(row, bytes);
            if is_checked {
                let is_there = b.compare(Predicate::Less, row, self.count);
                offset = b.select(is_there, offset, self.spare);
            }
            addresses.push(b.offset(self.base, offset, 1));
        }
        addresses
    }
}
