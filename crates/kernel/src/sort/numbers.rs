//! Sorts of numbers. The keys become items, which are sorted in the worker's scratch and then
//! converted to the results.

use super::items::{is_nan, items, keys_of, places_of, read_keys, write_keys, write_places};
use super::length::Length;
use super::merge::{lanes_to_runs, merge_runs};
use super::network::{Item, Network, Rows};
use super::permutation::{merge_sort, read_order};
use crate::context::KernelContext;
use crate::context::limits::{greater, lesser};
use crate::context::parameters::Memory;
use crate::context::tasks::Span;
use crate::index::{Facts, Index, Position};
use crate::transpose::transpose;
use hlo::analysis::{Extent, linear_extent};
use nest::{FunctionBuilder, Predicate, RegionBuilder as _, UnaryOp, ValueId};
use plan::{NETWORK_ROWS, SortLayout, SortPlan};
use support::Result;

/// Returns whether the element at the first of two positions belongs before the one at the second.
pub(super) type Before<'f> = dyn FnMut(&mut KernelContext<'_>, &Position, &Position) -> Result<ValueId> + 'f;

/// An operand that is permuted by the places, in a form that only moves bits.
pub(crate) struct Gathered {
    pub(crate) operand: Memory,
    pub(crate) result: Memory,
}

/// A sort with its operands and results.
pub(super) struct Job<'a> {
    pub(super) plan: &'a SortPlan,
    pub(super) key: &'a Memory,
    /// Number of elements of each sequence that are sorted.
    pub(super) length: Length,
    /// Number of sorted elements of each sequence that are needed.
    pub(super) count: Length,
    /// Sizes of the dimensions before the sorted one and after it, and the sequences that are
    /// needed.
    pub(super) outer: (Vec<i64>, Vec<Option<Extent>>),
    pub(super) inner: (Vec<i64>, Vec<Option<Extent>>),
    /// Receives the elements of the keys.
    pub(super) keys: Option<&'a Memory>,
    /// Receives the places.
    pub(super) places: Option<&'a Memory>,
    /// All other operands.
    pub(super) gathered: &'a [Gathered],
}

/// Elements of sequences in an array: the first one, the distance between elements of a sequence,
/// and the distance between sequences.
#[derive(Clone)]
struct Elements {
    first: Index,
    step: i64,
    across: i64,
}

impl Elements {
    fn at(&self, index: &Index, sequence: &Index) -> Position {
        let along = self.first.plus(&index.times(self.step));
        Position::Linear(along.plus(&sequence.times(self.across)))
    }

    fn one(&self, index: &Index) -> Position {
        self.at(index, &Index::constant(0))
    }
}

/// Buffers in the worker's scratch.
struct Buffers {
    rows: Rows,
    /// Sorted items. The row before them holds the last item in sort order.
    items: ValueId,
    other: ValueId,
    places: ValueId,
}

impl Job<'_> {
    pub(super) fn emit(&self, cx: &mut KernelContext<'_>, before: &mut Before<'_>) -> Result<()> {
        cx.with_lanes(self.plan.lanes, |cx| self.emit_tasks(cx, before))
    }

    fn emit_tasks(&self, cx: &mut KernelContext<'_>, before: &mut Before<'_>) -> Result<()> {
        let (steps, tasks) = (self.plan.steps(), cx.plan().tasks);
        cx.for_tasks(|cx, task| {
            let span = cx.spans(&task, &[steps], &[tasks])?[0];
            let rows = Rows::of(self.plan);
            let scratch = match cx.scratch() {
                Some(scratch) => scratch,
                None => cx.worker_scratch(),
            };
            let last = rows.last(cx);
            rows.store(cx, &last, scratch);
            let items = cx.offset_bytes(scratch, rows.row_bytes());
            let other = cx.offset_bytes(items, self.plan.buffer_bytes());
            let places = cx.offset_bytes(scratch, self.plan.places_offset());
            let buffers = Buffers { rows, items, other, places };
            match self.plan.layout {
                SortLayout::Along { vectors, .. } => {
                    let [_, length, inner] = self.plan.sizes;
                    let sizes = [&self.outer.0[..], &self.inner.0].concat();
                    let needed = [&self.outer.1[..], &self.inner.1].concat();
                    cx.for_needed_parts(span, &sizes, &needed, &mut |cx, span| {
                        cx.for_span(span, 1, |cx, row| {
                            let (block, within) = cx.div_rem(&row, inner)?;
                            let [from, to] = [length, self.count.most].map(|length| Elements {
                                first: block.times(length * inner).plus(&within),
                                step: inner,
                                across: 0,
                            });
                            self.along(cx, &buffers, vectors, &from, &to, before)
                        })
                    })
                }
                SortLayout::Across => {
                    self.groups(cx, span, &mut |cx, from, to| self.across(cx, &buffers, from, to, before))
                }
            }
        })
    }

    /// Runs the body for groups of as many sequences as lanes. The last group of neighbors may
    /// overlap the one before.
    fn groups(
        &self,
        cx: &mut KernelContext<'_>,
        span: Span,
        body: &mut dyn FnMut(&mut KernelContext<'_>, &Elements, &Elements) -> Result<()>,
    ) -> Result<()> {
        let [outer, length, inner] = self.plan.sizes;
        let lanes = i64::from(self.plan.lanes);
        let sequences = if inner > 1 { inner } else { outer };
        let whole = sequences / lanes;
        let all = (sequences + lanes - 1) / lanes;
        let (sizes, needed) = if inner > 1 { &self.inner } else { &self.outer };
        let needed = linear_extent(sizes, needed);
        let mut of_block = |cx: &mut KernelContext<'_>, block: &Index, span: Span| {
            let (begin, end) = match span {
                Span::All(_) => (cx.index(0), Length::of(cx, sequences, needed).steps(cx, lanes)?),
                Span::Part { begin, end, .. } => {
                    // The remainder belongs to the task of the group that it overlaps.
                    let steps = cx.index(whole);
                    let is_last = cx.compare(Predicate::Equal, end, steps);
                    let all = cx.index(all);
                    let end = cx.select(is_last, all, end);
                    let needed = Length::of(cx, sequences, needed);
                    match needed.extent {
                        Some(_) => {
                            let steps = needed.steps(cx, lanes)?;
                            (begin, lesser(cx, end, steps))
                        }
                        None => (begin, end),
                    }
                }
            };
            cx.for_dynamic(begin, end, all, &[], |cx, group, _| {
                let first = cx.mul_constant(group, lanes);
                let limit = cx.index(sequences - lanes);
                let is_less = cx.compare(Predicate::Less, first, limit);
                let first = cx.select(is_less, first, limit);
                cx.learn(first, Facts::range(0, sequences - lanes));
                let first = Index::scalar(first);
                let [from, to] = [length, self.count.most].map(|length| match inner {
                    1 => Elements { first: first.times(length), step: 1, across: length },
                    _ => Elements { first: block.times(length * inner).plus(&first), step: inner, across: 1 },
                });
                body(cx, &from, &to).map(|()| Vec::new())
            })
            .map(|_| ())
        };
        if inner == 1 || outer == 1 {
            return of_block(cx, &Index::constant(0), span);
        }
        let (sizes, needed) = &self.outer;
        cx.for_needed_parts(span, sizes, needed, &mut |cx, span| {
            cx.for_span(span, 1, |cx, block| of_block(cx, &block, Span::All(whole)))
        })
    }

    /// Sorts sequences in lanes, one per lane.
    fn across(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: &Buffers,
        from: &Elements,
        to: &Elements,
        before: &mut Before<'_>,
    ) -> Result<()> {
        let (rows, items_at) = (buffers.rows, buffers.items);
        let bytes = rows.row_bytes();
        let lanes = i64::from(self.plan.lanes);
        let row_at = |cx: &mut KernelContext<'_>, index: &Index| -> Result<ValueId> {
            let number = cx.scalar_value(index)?;
            Ok(cx.offset(items_at, number, bytes))
        };
        if from.across == 1 {
            self.length.for_each(cx, |cx, index| {
                let keys = read_keys(cx, &self.plan.key, self.key, &from.at(&index, &Index::lanes(1)))?;
                let place = cx.vector_value(&index, 1)?;
                let places = cx.splat(place, self.plan.lanes);
                let item = items(cx, self.plan, keys, places);
                let row = row_at(cx, &index)?;
                rows.store(cx, &item, row);
                Ok(())
            })?;
        } else {
            self.length.for_whole(cx, lanes, |cx, first| {
                let mut keys = Vec::new();
                for sequence in 0..lanes {
                    let position = from.at(&first.plus(&Index::lanes(1)), &Index::constant(sequence));
                    keys.push(read_keys(cx, &self.plan.key, self.key, &position)?);
                }
                for (k, &keys) in transpose(cx, &keys).iter().enumerate() {
                    let index = first.plus_constant(k as i64);
                    let place = cx.vector_value(&index, 1)?;
                    let places = cx.splat(place, self.plan.lanes);
                    let item = items(cx, self.plan, keys, places);
                    let row = row_at(cx, &index)?;
                    rows.store(cx, &item, row);
                }
                Ok(())
            })?;
            self.length.for_rest(cx, lanes, |cx, index| {
                cx.for_range(0, lanes, 1, |cx, lane| {
                    let item = self.read_one(cx, from.at(&index, &lane), &index)?;
                    let row = row_at(cx, &index)?;
                    let lane = cx.scalar_value(&lane)?;
                    let at = cx.offset(row, lane, rows.word_bytes());
                    rows.store(cx, &item, at);
                    Ok(())
                })
            })?;
        }
        let groups = self.length.steps(cx, NETWORK_ROWS)?;
        let (begin, count) = (self.length.value(cx)?, cx.mul_constant(groups, NETWORK_ROWS));
        self.fill(cx, buffers, begin, count)?;
        let spare = cx.index(-bytes);
        Network { rows, base: items_at, spare, count, most: self.plan.rows() }.sort(cx)?;
        self.write_across(cx, buffers, to)?;
        if self.gathered.is_empty() {
            return Ok(());
        }
        cx.for_range(0, lanes, 1, |cx, lane| {
            let (from, to) = (from.clone().sequence(&lane), to.clone().sequence(&lane));
            let number = cx.scalar_value(&lane)?;
            let at = cx.offset(items_at, number, rows.word_bytes());
            let item_at = |b: &mut FunctionBuilder, index: ValueId| b.offset(at, index, bytes);
            self.gather(cx, buffers, &from, &to, &item_at, before)
        })
    }

    /// Writes the keys and places of sequences in lanes.
    fn write_across(&self, cx: &mut KernelContext<'_>, buffers: &Buffers, to: &Elements) -> Result<()> {
        if self.keys.is_none() && self.places.is_none() {
            return Ok(());
        }
        let (rows, lanes) = (buffers.rows, i64::from(self.plan.lanes));
        let bytes = rows.row_bytes();
        if to.across == 1 {
            return self.count.for_each(cx, |cx, index| {
                let number = cx.scalar_value(&index)?;
                let row = cx.offset(buffers.items, number, bytes);
                let item = rows.load(cx, row);
                self.write(cx, &to.at(&index, &Index::lanes(1)), &item)
            });
        }
        self.count.for_whole(cx, lanes, |cx, first| {
            let number = cx.scalar_value(&first)?;
            let row = cx.offset(buffers.items, number, bytes);
            let (mut keys, mut places) = (Vec::new(), Vec::new());
            for k in 0..lanes {
                let row = cx.offset_bytes(row, k * bytes);
                let item = rows.load(cx, row);
                if self.keys.is_some() {
                    keys.push(keys_of(cx, self.plan, &item));
                }
                if self.places.is_some() {
                    places.push(places_of(cx, self.plan, &item));
                }
            }
            let index = first.plus(&Index::lanes(1));
            for (sequence, &keys) in transpose(cx, &keys).iter().enumerate() {
                let position = to.at(&index, &Index::constant(sequence as i64));
                self.write_keys(cx, &position, keys)?;
            }
            for (sequence, &places) in transpose(cx, &places).iter().enumerate() {
                let position = to.at(&index, &Index::constant(sequence as i64));
                self.write_places(cx, &position, places)?;
            }
            Ok(())
        })?;
        self.count.for_rest(cx, lanes, |cx, index| {
            cx.for_range(0, lanes, 1, |cx, lane| {
                let number = cx.scalar_value(&index)?;
                let row = cx.offset(buffers.items, number, bytes);
                let within = cx.scalar_value(&lane)?;
                let at = cx.offset(row, within, rows.word_bytes());
                let item = rows.load_lane(cx, at);
                self.write(cx, &to.at(&index, &lane), &item)
            })
        })
    }

    /// Sorts one sequence, in blocks of several vectors.
    fn along(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: &Buffers,
        vectors: i64,
        from: &Elements,
        to: &Elements,
        before: &mut Before<'_>,
    ) -> Result<()> {
        let (rows, lanes) = (buffers.rows, i64::from(self.plan.lanes));
        let bytes = rows.row_bytes();
        // Bytes per item: those of a row divided by its lanes.
        let each = bytes / lanes;
        self.length.for_whole(cx, lanes, |cx, first| {
            let index = first.plus(&Index::lanes(1));
            let keys = read_keys(cx, &self.plan.key, self.key, &from.one(&index))?;
            let places = cx.vector_value(&index, self.plan.lanes)?;
            let item = items(cx, self.plan, keys, places);
            let number = cx.scalar_value(&first)?;
            let row = cx.offset(buffers.items, number, each);
            rows.store(cx, &item, row);
            Ok(())
        })?;
        // A single block ends after the last vector, in whole networks and blocks of lanes.
        let (end, unit) = (self.length.steps(cx, vectors * lanes)?, NETWORK_ROWS.max(lanes));
        let most = cx.index(vectors);
        let in_block = match self.length.extent {
            Some(_) => {
                let units = self.length.steps(cx, unit * lanes)?;
                let last = cx.mul_constant(units, unit);
                lesser(cx, last, most)
            }
            None => most,
        };
        cx.learn(in_block, Facts::range(0, vectors));
        let count = cx.mul(end, in_block);
        let whole = self.length.whole(cx, lanes)?;
        let (first, _) = cx.div_rem(&Index::scalar(whole), lanes)?;
        let first = cx.scalar_value(&first)?;
        self.fill(cx, buffers, first, count)?;
        let row = cx.offset(buffers.items, whole, each);
        self.length.for_rest(cx, lanes, |cx, index| {
            let item = self.read_one(cx, from.one(&index), &index)?;
            let number = cx.scalar_value(&index)?;
            let number = cx.sub(number, whole);
            let at = cx.offset(row, number, rows.word_bytes());
            rows.store(cx, &item, at);
            Ok(())
        })?;
        let zero = cx.index(0);
        cx.for_each(zero, end, 1, |b, chunk| {
            let offset = b.mul_constant(chunk, vectors * bytes);
            let base = b.offset(buffers.items, offset, 1);
            let front = b.index(-bytes);
            let spare = b.sub(front, offset);
            Network { rows, base, spare, count: in_block, most: vectors }.sort(b)?;
            if lanes == 1 {
                return Ok(());
            }
            let runs = b.offset(buffers.other, offset, 1);
            lanes_to_runs(b, rows, base, runs, in_block)
        })?;
        let (sorted, other) =
            if lanes == 1 { (buffers.items, buffers.other) } else { (buffers.other, buffers.items) };
        let (run, _) = cx.div_rem(&Index::scalar(in_block), lanes)?;
        let run = cx.scalar_value(&run)?;
        let sorted = merge_runs(cx, rows, sorted, other, run, count)?;
        if self.keys.is_some() || self.places.is_some() {
            self.count.for_whole(cx, lanes, |cx, first| {
                let number = cx.scalar_value(&first)?;
                let row = cx.offset(sorted, number, each);
                let item = rows.load(cx, row);
                self.write(cx, &to.one(&first.plus(&Index::lanes(1))), &item)
            })?;
            let whole = self.count.whole(cx, lanes)?;
            let row = cx.offset(sorted, whole, each);
            self.count.for_rest(cx, lanes, |cx, index| {
                let number = cx.scalar_value(&index)?;
                let number = cx.sub(number, whole);
                let at = cx.offset(row, number, rows.word_bytes());
                let item = rows.load_lane(cx, at);
                self.write(cx, &to.one(&index), &item)
            })?;
        }
        if self.gathered.is_empty() {
            return Ok(());
        }
        let item_at = |b: &mut FunctionBuilder, index: ValueId| {
            if rows.words == 1 {
                return b.offset(sorted, index, rows.word_bytes());
            }
            let mask = b.index(lanes - 1);
            let within = b.and(index, mask);
            let first = b.sub(index, within);
            let row = b.offset(sorted, first, each);
            b.offset(row, within, rows.word_bytes())
        };
        self.gather(cx, buffers, from, to, &item_at, before)
    }

    /// Returns the item of one element.
    fn read_one(&self, cx: &mut KernelContext<'_>, position: Position, index: &Index) -> Result<Item> {
        let key = read_keys(cx, &self.plan.key, self.key, &position)?;
        let place = cx.scalar_value(index)?;
        Ok(items(cx, self.plan, key, place))
    }

    /// Fills rows with the last item in sort order.
    fn fill(&self, b: &mut FunctionBuilder, buffers: &Buffers, begin: ValueId, end: ValueId) -> Result<()> {
        let rows = buffers.rows;
        let last = rows.last(b);
        b.for_each(begin, end, 1, |b, row| {
            let at = b.offset(buffers.items, row, rows.row_bytes());
            rows.store(b, &last, at);
            Ok(())
        })
    }

    fn write(&self, cx: &mut KernelContext<'_>, position: &Position, item: &[ValueId]) -> Result<()> {
        if self.keys.is_some() {
            let keys = keys_of(cx, self.plan, item);
            self.write_keys(cx, position, keys)?;
        }
        if self.places.is_some() {
            let places = places_of(cx, self.plan, item);
            self.write_places(cx, position, places)?;
        }
        Ok(())
    }

    fn write_keys(&self, cx: &mut KernelContext<'_>, position: &Position, keys: ValueId) -> Result<()> {
        self.keys.map_or(Ok(()), |result| write_keys(cx, &self.plan.key, result, position, keys))
    }

    fn write_places(&self, cx: &mut KernelContext<'_>, position: &Position, places: ValueId) -> Result<()> {
        self.places.map_or(Ok(()), |result| write_places(cx, result, position, places))
    }

    /// Moves the elements of a sequence to their places, one after another. If the sequence
    /// contains unordered NaNs, the comparison determines the order instead.
    fn gather(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: &Buffers,
        from: &Elements,
        to: &Elements,
        item_at: &dyn Fn(&mut FunctionBuilder, ValueId) -> ValueId,
        before: &mut Before<'_>,
    ) -> Result<()> {
        let by_items = |cx: &mut KernelContext<'_>, index: &Index| {
            let number = cx.scalar_value(index)?;
            let at = item_at(cx, number);
            let item = buffers.rows.load_lane(cx, at);
            let place = places_of(cx, self.plan, &item);
            cx.learn(place, Facts::range(0, self.plan.sizes[1] - 1));
            Ok(Index::scalar(place))
        };
        if self.plan.key.is_total {
            return self.gather_by(cx, from, to, &by_items);
        }
        let (length, one, zero) = (self.length.value(cx)?, cx.index(1), cx.index(0));
        let last = cx.sub(length, one);
        let last = greater(cx, last, zero);
        let at = item_at(cx, last);
        let item = buffers.rows.load_lane(cx, at);
        let has_nan = is_nan(cx, self.plan, &item);
        cx.when(has_nan, |cx| {
            let length = self.plan.sizes[1];
            let order = cx.with_lanes(1, |cx| {
                merge_sort(cx, buffers.places, self.length, &mut |cx, x, y| {
                    before(cx, &from.one(x), &from.one(y))
                })
            })?;
            self.gather_by(cx, from, to, &|cx, index| read_order(cx, order, index, length))
        })?;
        let has_order = cx.unary(UnaryOp::Not, has_nan);
        cx.when(has_order, |cx| self.gather_by(cx, from, to, &by_items))
    }

    fn gather_by(
        &self,
        cx: &mut KernelContext<'_>,
        from: &Elements,
        to: &Elements,
        place: &dyn Fn(&mut KernelContext<'_>, &Index) -> Result<Index>,
    ) -> Result<()> {
        self.count.for_each(cx, |cx, index| {
            let place = place(cx, &index)?;
            for Gathered { operand, result } in self.gathered {
                let element = cx.load_at(operand, &from.one(&place))?;
                cx.store_at(result, &to.one(&index), element)?;
            }
            Ok(())
        })
    }
}

impl Elements {
    /// Returns the elements of a single sequence.
    fn sequence(mut self, number: &Index) -> Self {
        self.first = self.first.plus(&number.times(self.across));
        self
    }
}
