//! Sorts by workgroups: chunks of rows in workgroup memory, and comparisons of items further apart
//! in scratch.
//!
//! Items are words with the keys, or places that are compared by a computation. Of two places, the
//! later one comes first if the computation says so. Every comparison exchanges two items or leaves
//! them, so the result is a permutation even if the computation has no order.

use super::movement;
use super::team;
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::index::{Facts, Index, Position};
use crate::sort::items;
use crate::sort::network::{exchange, precedes};
use crate::sort::operands::Sorting;
use nest::{BinaryOp, ConvertOp, Predicate, ScalarType, ThreadIndex, Type, ValueId};
use plan::{GroupGrid, SortStep, TeamSortPlan};
use support::{Error, Result};

/// An item, by its words.
type Item = Vec<ValueId>;

/// Items in memory: an array for each word.
struct Items {
    words: Vec<ValueId>,
    ty: Type,
}

impl Items {
    /// Returns the items of `count` places at an address.
    fn new(cx: &mut KernelContext<'_>, plan: &TeamSortPlan, first: ValueId, count: i64) -> Self {
        let (words, bytes) = plan.words();
        let scalar = if bytes == 8 { ScalarType::I64 } else { ScalarType::I32 };
        let words = (0..words).map(|word| cx.offset_bytes(first, word * count * bytes)).collect();
        Self { words, ty: Type::scalar(scalar) }
    }

    fn load(&self, cx: &mut KernelContext<'_>, at: ValueId) -> Item {
        let bytes = self.ty.scalar.byte_size();
        let mut item = Vec::with_capacity(self.words.len());
        for &word in &self.words {
            let address = cx.offset(word, at, bytes as i64);
            item.push(cx.load(self.ty, address, bytes as u32));
        }
        item
    }

    /// Returns each word of the last item in sort order.
    fn last(&self, cx: &mut KernelContext<'_>) -> ValueId {
        cx.integer(self.ty, i64::MAX >> (64 - 8 * self.ty.scalar.byte_size()))
    }

    fn store(&self, cx: &mut KernelContext<'_>, at: ValueId, item: &[ValueId]) {
        let bytes = self.ty.scalar.byte_size();
        for (&word, &value) in self.words.iter().zip(item) {
            let address = cx.offset(word, at, bytes as i64);
            cx.store(value, address, bytes as u32);
        }
    }
}

/// Emits a step.
pub(super) fn emit(
    cx: &mut KernelContext<'_>,
    plan: &TeamSortPlan,
    step: usize,
    grid: GroupGrid,
) -> Result<()> {
    let sorting = Sorting::of(cx, plan.keys.as_ref())?;
    let sorter = Sorter { plan, sorting };
    match plan.steps[step] {
        SortStep::Exchange { level, distance, stages } => {
            sorter.exchanges(cx, (level, distance, stages), grid)
        }
        SortStep::Sort { round, length, is_last } => {
            let source = if round == 0 {
                None
            } else {
                let SortStep::Sort { length: before, .. } = plan.steps[step - 1] else {
                    return Err(Error::internal("expected a round before a round"));
                };
                let count = plan.kept(before) * plan.all_rows();
                Some(sorter.scratch(cx, (round - 1) % 2, count)?)
            };
            let target = if is_last {
                None
            } else {
                let region = if plan.selects() { round % 2 } else { 0 };
                Some(sorter.scratch(cx, region, plan.kept(length) * plan.all_rows())?)
            };
            Chunk { sorter: &sorter, length, source, target, is_sorted: false }.emit(cx, grid)
        }
        SortStep::Merge { is_last } => {
            let length = plan.sizes[1];
            let mut items = || sorter.scratch(cx, 0, length * plan.all_rows());
            let (source, target) = (Some(items()?), if is_last { None } else { Some(items()?) });
            Chunk { sorter: &sorter, length, source, target, is_sorted: true }.emit(cx, grid)
        }
    }
}

struct Sorter<'p, 'a> {
    plan: &'p TeamSortPlan,
    sorting: Sorting<'a>,
}

impl Sorter<'_, '_> {
    /// Returns one of two regions of scratch with `count` items.
    fn scratch(&self, cx: &mut KernelContext<'_>, region: usize, count: i64) -> Result<Items> {
        let scratch = cx.scratch().ok_or_else(|| Error::internal("missing scratch for a sort"))?;
        let first = self.plan.kept_bytes(self.plan.sizes[1]) * region as i64;
        let first = cx.offset_bytes(scratch, first);
        Ok(Items::new(cx, self.plan, first, count))
    }

    /// Returns the position of an element of a row, in arrays with `length` elements per row.
    fn position(&self, cx: &mut KernelContext<'_>, row: &Index, at: &Index, length: i64) -> Result<Position> {
        let inner = self.plan.sizes[2];
        let (outer, within) = cx.div_rem(row, inner)?;
        Ok(Position::Linear(outer.times(length).plus(at).times(inner).plus(&within)))
    }

    /// Returns the item of an element.
    fn read(&self, cx: &mut KernelContext<'_>, row: &Index, at: &Index) -> Result<Item> {
        let place = cx.scalar_value(at)?;
        let Some(keys) = &self.plan.keys else {
            return Ok(vec![cx.convert(ConvertOp::Truncate, place, ScalarType::I32)]);
        };
        let position = self.position(cx, row, at, self.plan.sizes[1])?;
        let key = items::read_keys(cx, &keys.key, &self.sorting.key, &position)?;
        Ok(items::items(cx, keys, key, place))
    }

    /// Returns the place of an item as an index.
    fn place(&self, cx: &mut KernelContext<'_>, item: &[ValueId]) -> Index {
        let place = match &self.plan.keys {
            Some(keys) => items::places_of(cx, keys, item),
            None => cx.convert(ConvertOp::ZeroExtend, item[0], ScalarType::I64),
        };
        cx.learn(place, Facts::range(0, self.plan.sizes[1] - 1));
        Index::scalar(place)
    }

    /// Writes the results for an item.
    fn write(&self, cx: &mut KernelContext<'_>, row: &Index, at: &Index, item: &[ValueId]) -> Result<()> {
        let to = self.position(cx, row, at, self.plan.count)?;
        if let Some(keys) = &self.plan.keys {
            if let Some(result) = &self.sorting.keys {
                let key = items::keys_of(cx, keys, item);
                items::write_keys(cx, &keys.key, result, &to, key)?;
            }
            if let Some(result) = &self.sorting.places {
                let places = items::places_of(cx, keys, item);
                items::write_places(cx, result, &to, places)?;
            }
        }
        if self.sorting.gathered.is_empty() {
            return Ok(());
        }
        let place = self.place(cx, item);
        let from = self.position(cx, row, &place, self.plan.sizes[1])?;
        for gathered in &self.sorting.gathered {
            let element = cx.load_at(&gathered.operand, &from)?;
            cx.store_at(&gathered.result, &to, element)?;
        }
        Ok(())
    }

    /// Compares the items at two places and exchanges them if the second one comes first.
    fn exchange(
        &self,
        cx: &mut KernelContext<'_>,
        items: &Items,
        row: &Index,
        low: ValueId,
        high: ValueId,
    ) -> Result<()> {
        let (x, y) = (items.load(cx, low), items.load(cx, high));
        let swaps = if self.plan.keys.is_some() {
            precedes(cx, &y, &x)
        } else {
            let is_early = cx.compare(Predicate::Less, x[0], y[0]);
            let (early, late) = (cx.select(is_early, x[0], y[0]), cx.select(is_early, y[0], x[0]));
            let (early, late) = (self.place(cx, &[early]), self.place(cx, &[late]));
            let early = self.position(cx, row, &early, self.plan.sizes[1])?;
            let late = self.position(cx, row, &late, self.plan.sizes[1])?;
            let late_first = self.sorting.before(cx, &late, &early)?;
            // The first item of the two is the early one, and the late one overtakes it, or it is
            // the late one and does not overtake.
            let stays = cx.binary(BinaryOp::Xor, is_early, late_first);
            cx.unary(nest::UnaryOp::Not, stays)
        };
        cx.when(swaps, |cx| {
            items.store(cx, low, &y);
            items.store(cx, high, &x);
            Ok(())
        })
    }

    /// Compares the items of rows in scratch at some distances, the first of which may be that of
    /// mirror images.
    fn exchanges(
        &self,
        cx: &mut KernelContext<'_>,
        (level, distance, stages): (u32, u32, u32),
        grid: GroupGrid,
    ) -> Result<()> {
        let (length, rows) = (self.plan.sizes[1], self.plan.all_rows());
        let items = self.scratch(cx, 0, length * rows)?;
        let each = (length as u64).next_power_of_two() as i64 >> stages;
        let (count, step) = (1i64 << stages, 1i64 << (distance + 1 - stages));
        let is_mirrored = distance + 1 == level;
        movement::for_unit(cx, grid, each * rows, |cx, number| {
            let (row, number) = cx.div_rem(number, each)?;
            let (block, within) = cx.div_rem(&number, step)?;
            let block = block.times(2 << distance);
            // The thread's items, in order.
            let numbers: Vec<Index> = (0..count)
                .map(|k| match k {
                    k if is_mirrored && k >= count / 2 => {
                        let mirrored = within.plus_constant((count - 1 - k) * step).times(-1);
                        block.plus(&mirrored).plus_constant((2 << distance) - 1)
                    }
                    k => block.plus(&within).plus_constant(k * step),
                })
                .collect();
            let all = |cx: &mut KernelContext<'_>| {
                if self.plan.keys.is_some() {
                    return self.exchange_keys(cx, &items, &row, &numbers, is_mirrored);
                }
                let [low, high] = &numbers[..] else {
                    return Err(Error::internal("expected a single stage of a sort by comparison"));
                };
                let is_in = inside(cx, high, length)?;
                team::when(cx, is_in, |cx| {
                    let first = row.times(length);
                    let (low, high) =
                        (cx.scalar_value(&first.plus(low))?, cx.scalar_value(&first.plus(high))?);
                    self.exchange(cx, &items, &row, low, high)
                })
            };
            let is_in = inside(cx, &numbers[0], length)?;
            team::when(cx, is_in, all)
        })
    }

    /// Compares items of a row in registers. The first item exists; those that do not are the last
    /// ones in sort order.
    fn exchange_keys(
        &self,
        cx: &mut KernelContext<'_>,
        items: &Items,
        row: &Index,
        numbers: &[Index],
        is_mirrored: bool,
    ) -> Result<()> {
        let length = self.plan.sizes[1];
        let (mut loaded, mut places) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        for number in numbers {
            let is_in = inside(cx, number, length)?;
            let own = cx.scalar_value(&row.times(length).plus(number))?;
            let first = places.first().map_or(own, |&(first, _)| first);
            let at = is_in.map_or(own, |is_in| cx.select(is_in, own, first));
            let mut item = items.load(cx, at);
            if let Some(is_in) = is_in {
                let last = items.last(cx);
                item = item.into_iter().map(|word| cx.select(is_in, word, last)).collect();
            }
            loaded.push(item);
            places.push((at, is_in));
        }
        let count = numbers.len();
        let mut distance = count / 2;
        while distance > 0 {
            for low in (0..count).filter(|k| k & distance == 0) {
                let is_mirror = is_mirrored && distance == count / 2;
                let high = if is_mirror { count - 1 - low } else { low + distance };
                (loaded[low], loaded[high]) = exchange(cx, &loaded[low], &loaded[high]);
            }
            distance /= 2;
        }
        for (item, (at, is_in)) in loaded.iter().zip(places) {
            team::when(cx, is_in, |cx| {
                items.store(cx, at, item);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Returns a condition that holds if a nonnegative number is below the end, unless all such numbers
/// are.
fn inside(cx: &mut KernelContext<'_>, number: &Index, end: i64) -> Result<Option<ValueId>> {
    Ok(match cx.contains(number, 0, end)? {
        Containment::When(is_in) => Some(is_in),
        Containment::Always => None,
        Containment::Never => Some(cx.integer(Type::scalar(ScalarType::Bool), 0)),
    })
}

/// A step that sorts chunks of rows in workgroup memory.
struct Chunk<'s, 'p, 'a> {
    sorter: &'s Sorter<'p, 'a>,
    /// Items of a row.
    length: i64,
    /// The items; those of the operands if there are none.
    source: Option<Items>,
    /// Receives the items. If there is none, the results are written.
    target: Option<Items>,
    /// True if items at the distance of a chunk have been compared.
    is_sorted: bool,
}

/// The items of a workgroup and its rows.
struct Tile {
    items: Items,
    /// Places in the tile.
    size: i64,
    threads: i64,
    local: ValueId,
    /// Number of the first row, and of the first item within the rows.
    row: Index,
    first: Index,
}

/// An item's place in a tile and in the rows.
struct Spot {
    at: ValueId,
    row: Index,
    /// Number within the row's items, and within those of the chunk.
    number: Index,
    within: Index,
    is_in: Option<ValueId>,
}

impl Chunk<'_, '_, '_> {
    fn emit(&self, cx: &mut KernelContext<'_>, grid: GroupGrid) -> Result<()> {
        let plan = self.sorter.plan;
        let (chunk, chunks) = plan.chunks(self.length);
        let (size, threads) = (chunk * plan.rows, plan.threads(self.length));
        let (words, bytes) = plan.words();
        let memory = cx.workgroup_memory((size * words * bytes) as u64, 16);
        let items = Items::new(cx, plan, memory, size);
        let local = cx.thread(ThreadIndex::Local);
        cx.learn(local, Facts::range(0, threads - 1));
        let group = team::group(cx, grid.groups as i64);
        let (rows, number) = cx.div_rem(&group, chunks)?;
        let (row, first) = (rows.times(plan.rows), number.times(chunk));
        let tile = Tile { items, size, threads, local, row, first };
        self.for_items(cx, &tile, |cx, spot| self.load(cx, &tile, spot))?;
        cx.barrier();
        let levels = i64::from(chunk.ilog2());
        if self.is_sorted {
            self.stages(cx, &tile, &Index::constant(levels), false)?;
        } else {
            cx.for_range(1, levels + 1, 1, |cx, level| self.stages(cx, &tile, &level, true))?;
        }
        self.for_items(cx, &tile, |cx, spot| self.store(cx, &tile, spot))
    }

    /// Compares items at all distances in blocks of a size, given by its logarithm. The first
    /// comparison may be with the mirror image.
    fn stages(
        &self,
        cx: &mut KernelContext<'_>,
        tile: &Tile,
        level: &Index,
        is_mirrored: bool,
    ) -> Result<()> {
        let (zero, one, two) = (cx.index(0), cx.index(1), cx.index(2));
        let level = cx.scalar_value(level)?;
        cx.for_dynamic(zero, level, 64, &[], |cx, stage, _| {
            let distance = cx.sub(level, stage);
            let distance = cx.add_constant(distance, -1);
            let step = cx.binary(BinaryOp::ShiftLeft, one, distance);
            let mut to_second = step;
            if is_mirrored {
                let block = cx.binary(BinaryOp::ShiftLeft, two, distance);
                let mirror = cx.add_constant(block, -1);
                let is_first = cx.compare(Predicate::Equal, stage, zero);
                to_second = cx.select(is_first, mirror, step);
            }
            cx.for_range(0, tile.size / 2, tile.threads, |cx, begin| {
                let pair = cx.scalar_value(&begin.plus(&Index::scalar(tile.local)))?;
                let mask = cx.add_constant(step, -1);
                let within = cx.and(pair, mask);
                let before = cx.sub(pair, within);
                let before = cx.add(before, before);
                let low = cx.or(before, within);
                let high = cx.binary(BinaryOp::Xor, low, to_second);
                self.exchange(cx, tile, low, high)
            })?;
            cx.barrier();
            Ok(Vec::new())
        })?;
        Ok(())
    }

    /// Compares the items at two places of the tile.
    fn exchange(&self, cx: &mut KernelContext<'_>, tile: &Tile, low: ValueId, high: ValueId) -> Result<()> {
        let plan = self.sorter.plan;
        if plan.keys.is_some() {
            return self.sorter.exchange(cx, &tile.items, &tile.row, low, high);
        }
        // Places that the rows do not have are not compared.
        cx.learn(high, Facts::range(0, tile.size - 1));
        let (row, within) = cx.div_rem(&Index::scalar(high), plan.chunks(self.length).0)?;
        let (row, number) = (tile.row.plus(&row), tile.first.plus(&within));
        let mut is_in = Vec::new();
        for (index, end) in [(&row, plan.all_rows()), (&number, self.length)] {
            is_in.push(inside(cx, index, end)?);
        }
        let is_in = team::all(cx, &is_in);
        team::when(cx, is_in, |cx| self.sorter.exchange(cx, &tile.items, &row, low, high))
    }

    /// Runs the body for each of the thread's items.
    fn for_items(
        &self,
        cx: &mut KernelContext<'_>,
        tile: &Tile,
        mut body: impl FnMut(&mut KernelContext<'_>, &Spot) -> Result<()>,
    ) -> Result<()> {
        let plan = self.sorter.plan;
        let chunk = plan.chunks(self.length).0;
        cx.for_range(0, tile.size, tile.threads, |cx, begin| {
            let at = begin.plus(&Index::scalar(tile.local));
            let (row, within) = cx.div_rem(&at, chunk)?;
            let (row, number) = (tile.row.plus(&row), tile.first.plus(&within));
            let mut is_in = Vec::new();
            for (index, end) in [(&row, plan.all_rows()), (&number, self.length)] {
                is_in.push(inside(cx, index, end)?);
            }
            let is_in = team::all(cx, &is_in);
            let row = cx.clamp(&row, 0, plan.all_rows() - 1)?;
            let number = cx.clamp(&number, 0, self.length - 1)?;
            let at = cx.scalar_value(&at)?;
            body(cx, &Spot { at, row, number, within, is_in })
        })
    }

    /// Returns the place of an item among those of all rows.
    fn place(&self, cx: &mut KernelContext<'_>, row: &Index, number: &Index, length: i64) -> Result<ValueId> {
        cx.scalar_value(&row.times(length).plus(number))
    }

    /// Loads an item into the tile. Items that the rows do not have are the last ones.
    fn load(&self, cx: &mut KernelContext<'_>, tile: &Tile, spot: &Spot) -> Result<()> {
        let mut item = match &self.source {
            None => self.sorter.read(cx, &spot.row, &spot.number)?,
            Some(source) => {
                let at = self.place(cx, &spot.row, &spot.number, self.length)?;
                source.load(cx, at)
            }
        };
        if let (Some(is_in), Some(_)) = (spot.is_in, &self.sorter.plan.keys) {
            let last = tile.items.last(cx);
            item = item.into_iter().map(|word| cx.select(is_in, word, last)).collect();
        }
        tile.items.store(cx, spot.at, &item);
        Ok(())
    }

    /// Stores an item of the sorted tile in scratch or in the results.
    fn store(&self, cx: &mut KernelContext<'_>, tile: &Tile, spot: &Spot) -> Result<()> {
        let plan = self.sorter.plan;
        let Some(target) = &self.target else {
            let number = &spot.number;
            return self.if_needed(cx, spot.is_in, number, |cx, number| {
                let item = tile.items.load(cx, spot.at);
                self.sorter.write(cx, &spot.row, number, &item)
            });
        };
        if !plan.selects() {
            return team::when(cx, spot.is_in, |cx| {
                let item = tile.items.load(cx, spot.at);
                let at = self.place(cx, &spot.row, &spot.number, self.length)?;
                target.store(cx, at, &item);
                Ok(())
            });
        }
        // A chunk shorter than the elements needed ends with the last items.
        let chunk = plan.chunks(self.length).0;
        self.if_needed(cx, None, &spot.within, |cx, within| {
            let item = tile.items.load(cx, spot.at);
            let (number, _) = cx.div_rem(&tile.first, chunk)?;
            let number = number.times(plan.count).plus(within);
            let at = self.place(cx, &spot.row, &number, plan.kept(self.length))?;
            target.store(cx, at, &item);
            Ok(())
        })
    }

    /// Runs the body for a number of an item if the item exists and is among those needed.
    fn if_needed(
        &self,
        cx: &mut KernelContext<'_>,
        is_in: Option<ValueId>,
        number: &Index,
        body: impl FnOnce(&mut KernelContext<'_>, &Index) -> Result<()>,
    ) -> Result<()> {
        let count = self.sorter.plan.count;
        let is_needed = match cx.contains(number, 0, count)? {
            Containment::Never => return Ok(()),
            Containment::Always => None,
            Containment::When(is_in) => Some(is_in),
        };
        let condition = team::all(cx, &[is_in, is_needed]);
        team::when(cx, condition, |cx| {
            let number = cx.clamp(number, 0, count - 1)?;
            body(cx, &number)
        })
    }
}
