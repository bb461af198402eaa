//! Sorts by numbers: items are made of the keys, sorted in the worker's scratch, and what the results want is made of them.

use super::items::{is_nan, items, keys_of, places_of, read_keys, write_keys, write_places};
use super::merge::{lanes_to_runs, merge_runs};
use super::network::{Item, Network, Rows};
use super::permutation::{merge_sort, read_order};
use crate::context::{KernelContext, Memory};
use crate::index::{Facts, Index, Position};
use crate::tasks::Span;
use crate::transpose::transpose;
use nest::{FunctionBuilder, Predicate, UnaryOp, ValueId};
use plan::{SortLayout, SortPlan};
use support::Result;

/// Whether what stands at the first of two positions belongs in front of what stands at the second.
pub(super) type Before<'f> =
    dyn FnMut(&mut FunctionBuilder, &mut KernelContext<'_>, &Position, &Position) -> Result<ValueId> + 'f;

/// An operand that follows the places, in the form in which it is only moved.
pub(super) struct Gathered {
    pub(super) operand: Memory,
    pub(super) result: Memory,
}

/// What is to be sorted, and where to.
pub(super) struct Job<'a> {
    pub(super) plan: &'a SortPlan,
    pub(super) key: &'a Memory,
    /// How many of each sequence are wanted.
    pub(super) count: i64,
    /// Gets the elements of the keys.
    pub(super) keys: Option<&'a Memory>,
    /// Gets the places.
    pub(super) places: Option<&'a Memory>,
    pub(super) gathered: Vec<Gathered>,
}

/// Elements of sequences in an array: the first one, and the distances between those of a sequence and between sequences.
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

/// What is known where items lie in the worker's scratch.
struct Buffers {
    rows: Rows,
    /// The row in front of them holds what comes last.
    items: ValueId,
    other: ValueId,
    places: ValueId,
}

impl Job<'_> {
    pub(super) fn emit(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        before: &mut Before<'_>,
    ) -> Result<()> {
        let lanes = std::mem::replace(&mut cx.lanes, self.plan.lanes);
        let (steps, tasks) = (self.plan.steps(), cx.plan.tasks);
        cx.for_tasks(b, |cx, b, task| {
            let span = cx.spans(b, &task, &[steps], &[tasks])?[0];
            let rows = Rows::of(self.plan);
            let scratch = match cx.scratch {
                Some(scratch) => scratch,
                None => cx.worker_scratch(b),
            };
            let last = rows.last(b);
            rows.store(b, &last, scratch);
            let items = b.offset_bytes(scratch, rows.row_bytes());
            let other = b.offset_bytes(items, self.plan.buffer_bytes());
            let places = b.offset_bytes(scratch, self.plan.places_offset());
            let buffers = Buffers { rows, items, other, places };
            match self.plan.layout {
                SortLayout::Along { vectors, chunks } => {
                    let [_, length, inner] = self.plan.sizes;
                    cx.for_span(b, span, 1, |cx, b, row| {
                        let (block, within) = cx.div_rem(b, &row, inner)?;
                        let [from, to] = [length, self.count].map(|length| Elements {
                            first: block.times(length * inner).plus(&within),
                            step: inner,
                            across: 0,
                        });
                        self.along(b, cx, &buffers, (vectors, chunks), (&from, &to), before)
                    })
                }
                SortLayout::Across => self.groups(b, cx, span, &mut |b, cx, from, to| {
                    self.across(b, cx, &buffers, (from, to), before)
                }),
            }
        })?;
        cx.lanes = lanes;
        Ok(())
    }

    /// Runs the body for groups of as many sequences as lanes; the last group of neighbors may begin within the one before it.
    fn groups(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        span: Span,
        body: &mut dyn FnMut(
            &mut FunctionBuilder,
            &mut KernelContext<'_>,
            &Elements,
            &Elements,
        ) -> Result<()>,
    ) -> Result<()> {
        let [outer, length, inner] = self.plan.sizes;
        let lanes = i64::from(self.plan.lanes);
        let sequences = if inner > 1 { inner } else { outer };
        let whole = sequences / lanes;
        let all = (sequences + lanes - 1) / lanes;
        let mut of_block = |b: &mut FunctionBuilder,
                            cx: &mut KernelContext<'_>,
                            block: &Index,
                            span: Span| {
            let (begin, end) = match span {
                Span::All(_) => (b.index(0), b.index(all)),
                Span::Part { begin, end, .. } => {
                    // What is left belongs to the task of the group that it overlaps.
                    let steps = b.index(whole);
                    let is_last = b.compare(Predicate::Equal, end, steps);
                    let all = b.index(all);
                    (begin, b.select(is_last, all, end))
                }
            };
            cx.for_dynamic(b, begin, end, all, &[], |cx, b, group, _| {
                let first = b.mul_constant(group, lanes);
                let limit = b.index(sequences - lanes);
                let is_less = b.compare(Predicate::Less, first, limit);
                let first = b.select(is_less, first, limit);
                cx.facts.insert(first, Facts::range(0, sequences - lanes));
                let first = Index::scalar(first);
                let [from, to] = [length, self.count].map(|length| match inner {
                    1 => Elements { first: first.times(length), step: 1, across: length },
                    _ => Elements { first: block.times(length * inner).plus(&first), step: inner, across: 1 },
                });
                body(b, cx, &from, &to).map(|()| Vec::new())
            })
            .map(|_| ())
        };
        if inner == 1 || outer == 1 {
            return of_block(b, cx, &Index::constant(0), span);
        }
        cx.for_span(b, span, 1, |cx, b, block| of_block(b, cx, &block, Span::All(whole)))
    }

    /// A sequence in each lane.
    fn across(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        buffers: &Buffers,
        (from, to): (&Elements, &Elements),
        before: &mut Before<'_>,
    ) -> Result<()> {
        let (rows, items_at, length) = (buffers.rows, buffers.items, self.plan.sizes[1]);
        let bytes = rows.row_bytes();
        let lanes = i64::from(self.plan.lanes);
        let row_at =
            |b: &mut FunctionBuilder, cx: &mut KernelContext<'_>, index: &Index| -> Result<ValueId> {
                let number = cx.scalar_value(b, index)?;
                Ok(b.offset(items_at, number, bytes))
            };
        if from.across == 1 {
            cx.for_range(b, 0, length, 1, |cx, b, index| {
                let keys = read_keys(b, cx, &self.plan.key, self.key, &from.at(&index, &Index::lanes(1)))?;
                let place = cx.vector_value(b, &index, 1)?;
                let places = b.splat(place, self.plan.lanes);
                let item = items(b, self.plan, keys, places);
                let row = row_at(b, cx, &index)?;
                rows.store(b, &item, row);
                Ok(())
            })?;
        } else {
            let whole = length / lanes * lanes;
            cx.for_range(b, 0, whole, lanes, |cx, b, first| {
                let mut keys = Vec::new();
                for sequence in 0..lanes {
                    let position = from.at(&first.plus(&Index::lanes(1)), &Index::constant(sequence));
                    keys.push(read_keys(b, cx, &self.plan.key, self.key, &position)?);
                }
                for (k, &keys) in transpose(b, &keys).iter().enumerate() {
                    let index = first.plus_constant(k as i64);
                    let place = cx.vector_value(b, &index, 1)?;
                    let places = b.splat(place, self.plan.lanes);
                    let item = items(b, self.plan, keys, places);
                    let row = row_at(b, cx, &index)?;
                    rows.store(b, &item, row);
                }
                Ok(())
            })?;
            cx.for_range(b, whole, length, 1, |cx, b, index| {
                cx.for_range(b, 0, lanes, 1, |cx, b, lane| {
                    let item = self.read_one(b, cx, from.at(&index, &lane), &index)?;
                    let row = row_at(b, cx, &index)?;
                    let lane = cx.scalar_value(b, &lane)?;
                    let at = b.offset(row, lane, rows.word_bytes());
                    rows.store(b, &item, at);
                    Ok(())
                })
            })?;
        }
        let count = self.plan.rows();
        self.fill(b, buffers, length, count)?;
        let spare = b.index(-bytes);
        Network { rows, base: items_at, spare, count }.sort(b)?;
        self.write_across(b, cx, buffers, to)?;
        if self.gathered.is_empty() {
            return Ok(());
        }
        cx.for_range(b, 0, lanes, 1, |cx, b, lane| {
            let (from, to) = (from.clone().sequence(&lane), to.clone().sequence(&lane));
            let number = cx.scalar_value(b, &lane)?;
            let at = b.offset(items_at, number, rows.word_bytes());
            let item_at = |b: &mut FunctionBuilder, index: ValueId| b.offset(at, index, bytes);
            self.gather(b, cx, buffers, (&from, &to), &item_at, before)
        })
    }

    /// Writes keys and places of sequences in lanes.
    fn write_across(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        buffers: &Buffers,
        to: &Elements,
    ) -> Result<()> {
        if self.keys.is_none() && self.places.is_none() {
            return Ok(());
        }
        let (rows, lanes) = (buffers.rows, i64::from(self.plan.lanes));
        let bytes = rows.row_bytes();
        if to.across == 1 {
            return cx.for_range(b, 0, self.count, 1, |cx, b, index| {
                let number = cx.scalar_value(b, &index)?;
                let row = b.offset(buffers.items, number, bytes);
                let item = rows.load(b, row);
                self.write(b, cx, &to.at(&index, &Index::lanes(1)), &item)
            });
        }
        let whole = self.count / lanes * lanes;
        cx.for_range(b, 0, whole, lanes, |cx, b, first| {
            let number = cx.scalar_value(b, &first)?;
            let row = b.offset(buffers.items, number, bytes);
            let (mut keys, mut places) = (Vec::new(), Vec::new());
            for k in 0..lanes {
                let row = b.offset_bytes(row, k * bytes);
                let item = rows.load(b, row);
                if self.keys.is_some() {
                    keys.push(keys_of(b, self.plan, &item));
                }
                if self.places.is_some() {
                    places.push(places_of(b, self.plan, &item));
                }
            }
            let index = first.plus(&Index::lanes(1));
            for (sequence, &keys) in transpose(b, &keys).iter().enumerate() {
                let position = to.at(&index, &Index::constant(sequence as i64));
                self.write_keys(b, cx, &position, keys)?;
            }
            for (sequence, &places) in transpose(b, &places).iter().enumerate() {
                let position = to.at(&index, &Index::constant(sequence as i64));
                self.write_places(b, cx, &position, places)?;
            }
            Ok(())
        })?;
        cx.for_range(b, whole, self.count, 1, |cx, b, index| {
            cx.for_range(b, 0, lanes, 1, |cx, b, lane| {
                let number = cx.scalar_value(b, &index)?;
                let row = b.offset(buffers.items, number, bytes);
                let within = cx.scalar_value(b, &lane)?;
                let at = b.offset(row, within, rows.word_bytes());
                let item = rows.load_lane(b, at);
                self.write(b, cx, &to.at(&index, &lane), &item)
            })
        })
    }

    /// One sequence.
    fn along(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        buffers: &Buffers,
        (vectors, chunks): (i64, i64),
        (from, to): (&Elements, &Elements),
        before: &mut Before<'_>,
    ) -> Result<()> {
        let (rows, length, lanes) = (buffers.rows, self.plan.sizes[1], i64::from(self.plan.lanes));
        let bytes = rows.row_bytes();
        let whole = length / lanes * lanes;
        // A row has as many bytes for each of its items as it has lanes for.
        let each = bytes / lanes;
        cx.for_range(b, 0, whole, lanes, |cx, b, first| {
            let index = first.plus(&Index::lanes(1));
            let keys = read_keys(b, cx, &self.plan.key, self.key, &from.one(&index))?;
            let places = cx.vector_value(b, &index, self.plan.lanes)?;
            let item = items(b, self.plan, keys, places);
            let number = cx.scalar_value(b, &first)?;
            let row = b.offset(buffers.items, number, each);
            rows.store(b, &item, row);
            Ok(())
        })?;
        self.fill(b, buffers, length / lanes, vectors * chunks)?;
        let row = b.offset_bytes(buffers.items, length / lanes * bytes);
        cx.for_range(b, whole, length, 1, |cx, b, index| {
            let item = self.read_one(b, cx, from.one(&index), &index)?;
            let number = cx.scalar_value(b, &index.plus_constant(-whole))?;
            let at = b.offset(row, number, rows.word_bytes());
            rows.store(b, &item, at);
            Ok(())
        })?;
        let (zero, end) = (b.index(0), b.index(chunks));
        b.for_each(zero, end, 1, |b, chunk| {
            let offset = b.mul_constant(chunk, vectors * bytes);
            let base = b.offset(buffers.items, offset, 1);
            let front = b.index(-bytes);
            let spare = b.sub(front, offset);
            Network { rows, base, spare, count: vectors }.sort(b)?;
            if lanes == 1 {
                return Ok(());
            }
            let runs = b.offset(buffers.other, offset, 1);
            lanes_to_runs(b, rows, (base, runs), vectors)
        })?;
        let (sorted, other) =
            if lanes == 1 { (buffers.items, buffers.other) } else { (buffers.other, buffers.items) };
        let sorted = merge_runs(b, rows, (sorted, other), (vectors / lanes, vectors * chunks))?;
        if self.keys.is_some() || self.places.is_some() {
            let whole = self.count / lanes * lanes;
            cx.for_range(b, 0, whole, lanes, |cx, b, first| {
                let number = cx.scalar_value(b, &first)?;
                let row = b.offset(sorted, number, each);
                let item = rows.load(b, row);
                self.write(b, cx, &to.one(&first.plus(&Index::lanes(1))), &item)
            })?;
            let row = b.offset_bytes(sorted, whole * each);
            cx.for_range(b, whole, self.count, 1, |cx, b, index| {
                let number = cx.scalar_value(b, &index.plus_constant(-whole))?;
                let at = b.offset(row, number, rows.word_bytes());
                let item = rows.load_lane(b, at);
                self.write(b, cx, &to.one(&index), &item)
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
        self.gather(b, cx, buffers, (from, to), &item_at, before)
    }

    /// The item of one element.
    fn read_one(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        position: Position,
        index: &Index,
    ) -> Result<Item> {
        let key = read_keys(b, cx, &self.plan.key, self.key, &position)?;
        let place = cx.scalar_value(b, index)?;
        Ok(items(b, self.plan, key, place))
    }

    /// Rows of what comes last.
    fn fill(&self, b: &mut FunctionBuilder, buffers: &Buffers, from: i64, to: i64) -> Result<()> {
        let (begin, end) = (b.index(from), b.index(to));
        if from >= to {
            return Ok(());
        }
        let rows = buffers.rows;
        let last = rows.last(b);
        b.for_each(begin, end, 1, |b, row| {
            let at = b.offset(buffers.items, row, rows.row_bytes());
            rows.store(b, &last, at);
            Ok(())
        })
    }

    fn write(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        position: &Position,
        item: &[ValueId],
    ) -> Result<()> {
        if self.keys.is_some() {
            let keys = keys_of(b, self.plan, item);
            self.write_keys(b, cx, position, keys)?;
        }
        if self.places.is_some() {
            let places = places_of(b, self.plan, item);
            self.write_places(b, cx, position, places)?;
        }
        Ok(())
    }

    fn write_keys(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        position: &Position,
        keys: ValueId,
    ) -> Result<()> {
        self.keys.map_or(Ok(()), |result| write_keys(b, cx, &self.plan.key, result, position, keys))
    }

    fn write_places(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        position: &Position,
        places: ValueId,
    ) -> Result<()> {
        self.places.map_or(Ok(()), |result| write_places(b, cx, result, position, places))
    }

    /// Moves the elements of a sequence to where their places are, one after the other. If NaN leaves the sequence without an order,
    /// the comparison is called.
    fn gather(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        buffers: &Buffers,
        (from, to): (&Elements, &Elements),
        item_at: &dyn Fn(&mut FunctionBuilder, ValueId) -> ValueId,
        before: &mut Before<'_>,
    ) -> Result<()> {
        let by_items = |b: &mut FunctionBuilder, cx: &mut KernelContext<'_>, index: &Index| {
            let number = cx.scalar_value(b, index)?;
            let at = item_at(b, number);
            let item = buffers.rows.load_lane(b, at);
            let place = places_of(b, self.plan, &item);
            cx.facts.insert(place, Facts::range(0, self.plan.sizes[1] - 1));
            Ok(Index::scalar(place))
        };
        if self.plan.key.is_total {
            return self.gather_by(b, cx, (from, to), &by_items);
        }
        let last = b.index(self.plan.sizes[1] - 1);
        let at = item_at(b, last);
        let item = buffers.rows.load_lane(b, at);
        let has_nan = is_nan(b, self.plan, &item);
        cx.if_then(b, has_nan, |cx, b| {
            let length = self.plan.sizes[1];
            let lanes = std::mem::replace(&mut cx.lanes, 1);
            let order = merge_sort(b, cx, buffers.places, length, &mut |b, cx, x, y| {
                before(b, cx, &from.one(x), &from.one(y))
            })?;
            cx.lanes = lanes;
            self.gather_by(b, cx, (from, to), &|b, cx, index| read_order(b, cx, order, index, length))
        })?;
        let has_order = b.unary(UnaryOp::Not, has_nan);
        cx.if_then(b, has_order, |cx, b| self.gather_by(b, cx, (from, to), &by_items))
    }

    fn gather_by(
        &self,
        b: &mut FunctionBuilder,
        cx: &mut KernelContext<'_>,
        (from, to): (&Elements, &Elements),
        place: &dyn Fn(&mut FunctionBuilder, &mut KernelContext<'_>, &Index) -> Result<Index>,
    ) -> Result<()> {
        cx.for_range(b, 0, self.count, 1, |cx, b, index| {
            let place = place(b, cx, &index)?;
            for Gathered { operand, result } in &self.gathered {
                let element = cx.load(b, operand, &from.one(&place))?;
                cx.store(b, result, &to.one(&index), element)?;
            }
            Ok(())
        })
    }
}

impl Elements {
    /// Those of one of the sequences.
    fn sequence(mut self, number: &Index) -> Self {
        self.first = self.first.plus(&number.times(self.across));
        self
    }
}
