//! Attention: a workgroup walks over the keys, a tile at a time, for some rows of a product.
//!
//! For each tile, the threads compute scores in registers, pass them through scale, mask, and bias,
//! and store them in workgroup memory. There, a few threads share each row: they find its largest
//! score so far, and replace the scores by exponentials, the weights. The sums of weights and
//! values stay in registers, and are scaled down where the largest score has grown.

mod products;

use super::operand::Operand;
use super::pipeline::{self, Stage};
use super::tiles::{Block, Tiling, vector};
use super::{matrix, thread, tiles};
use crate::context::KernelContext;
use crate::context::addressing::Containment;
use crate::contraction::tile::scalar_type;
use crate::device::team;
use crate::element::{Element, normalize};
use crate::index::{Index, Position};
use nest::{BinaryOp, Predicate, ScalarType, Type, ValueId};
use plan::{DeviceAttentionPlan, GroupTile, Method, Role};
use products::Products;
use support::{Error, Result};

/// Emits the kernel.
pub(in crate::device) fn emit(cx: &mut KernelContext<'_>, plan: &DeviceAttentionPlan) -> Result<()> {
    match (&plan.scores.method, &plan.values.method) {
        (Method::Tiles(scores), Method::Tiles(values)) => {
            Attention::<tiles::Threads>::emit(cx, plan, [*scores, *values])
        }
        (Method::Matrix(scores), Method::Matrix(values)) => {
            Attention::<matrix::Threads>::emit(cx, plan, [*scores, *values])
        }
        _ => Err(Error::internal("expected tiles for both products of attention")),
    }
}

/// The kernel of a workgroup.
struct Attention<'p, P: Products> {
    plan: &'p DeviceAttentionPlan,
    tiles: [P::Tile; 2],
    /// Rows of the workgroup, and keys of a tile.
    rows: i64,
    keys: i64,
    scalar: ScalarType,
    /// Buffers of operands.
    stages: ValueId,
    /// The queries of all steps, if they are kept.
    queries: Option<ValueId>,
    /// The tile of scores, later weights.
    scores: ValueId,
    /// A factor for each row.
    factors: ValueId,
    /// A value of each thread.
    exchange: ValueId,
}

/// Values of a row that its threads carry from tile to tile.
#[derive(Clone, Copy)]
struct Row {
    /// The largest logit.
    maximum: ValueId,
    /// The sum of the thread's weights.
    sum: ValueId,
}

impl<'p, P: Products> Attention<'p, P> {
    fn emit(cx: &mut KernelContext<'_>, plan: &'p DeviceAttentionPlan, tiles: [P::Tile; 2]) -> Result<()> {
        let [rows, keys] = plan.tile();
        let scalar = scalar_type(plan.scores.accumulator)?;
        let size = scalar.byte_size() as i64;
        let bytes = |tile, extent| 2 * P::buffer(tile, extent, size).1;
        let width = plan.width();
        let staged_rows = if plan.kept_steps > 0 { 0 } else { bytes(tiles[0], rows) };
        let stages = (staged_rows + bytes(tiles[0], keys)).max(bytes(tiles[1], width));
        let kept = plan.kept_steps * P::buffer(tiles[0], rows, size).1;
        let this = Self {
            plan,
            tiles,
            rows,
            keys,
            scalar,
            stages: cx.workgroup_memory(stages as u64, 16),
            queries: (kept > 0).then(|| cx.workgroup_memory(kept as u64, 16)),
            scores: cx.workgroup_memory((keys * (rows + GroupTile::PADDING) * size) as u64, 16),
            factors: cx.workgroup_memory((rows * size) as u64, 16),
            exchange: cx.workgroup_memory((i64::from(plan.threads()) * size) as u64, 16),
        };
        let sums = this.walk(cx)?;
        // The place of the tile is computed again, so that it needs no registers during the loop.
        let tiling = this.tiling(cx)?;
        let threads = P::new(cx, &plan.values, tiles[1], &tiling.local)?;
        threads.finish(cx, &plan.values, &tiling, &sums)
    }

    /// The workgroup's rows, and all columns of the result.
    fn tiling(&self, cx: &mut KernelContext<'_>) -> Result<Tiling> {
        let view = &self.plan.scores.view;
        let tiles = (view.extent(Role::Row) + self.rows - 1) / self.rows;
        let groups = view.extent(Role::Batch) * tiles;
        let (local, group) = thread(cx, self.plan.threads().into(), groups);
        let (batch, tile) = cx.div_rem(&group, tiles)?;
        let row = tile.times(self.rows);
        Ok(Tiling { split: Index::default(), batch, row, column: Index::default(), local })
    }

    /// Returns the thread's elements of the result. Each step of a tile reads the thread's number
    /// again and computes its places from there, so that these need no registers in between.
    fn walk(&self, cx: &mut KernelContext<'_>) -> Result<Vec<ValueId>> {
        let plan = self.plan;
        let count = plan.scores.view.extent(Role::Column);
        let tiles = (count + self.keys - 1) / self.keys;
        if let Some(memory) = self.queries {
            self.keep_queries(cx, memory)?;
        }
        let mut carried = self.first_row(cx)?.to_vec();
        let (threads, _) = self.threads(cx, 1)?;
        carried.extend(threads.initial(cx, &plan.values)?);
        let carried = cx.for_range_carrying(0, tiles, 1, &carried, |cx, tile, carried| {
            let (&[maximum, sum], sums) = carried.split_first_chunk().expect("values of a row");
            let first_key = tile.times(self.keys);
            let scores = self.products_with_keys(cx, &first_key)?;
            let (threads, tiling) = self.threads(cx, 0)?;
            let tiling = Tiling { column: first_key.clone(), ..tiling };
            for block in threads.blocks(cx, &scores) {
                self.store_logits(cx, &tiling, &block)?;
            }
            cx.barrier();
            let row = self.softmax(cx, &tiling, Row { maximum, sum })?;
            cx.barrier();
            let mut next = row.to_vec();
            next.extend(self.products_with_values(cx, &first_key, sums)?);
            Ok(next)
        })?;
        let (&[_, sum], sums) = carried.split_first_chunk().expect("values of a row");
        self.store_scale(cx, sum)?;
        cx.barrier();
        let op = if plan.softmax.divides { BinaryOp::Divide } else { BinaryOp::Multiply };
        let (threads, _) = self.threads(cx, 1)?;
        threads.with_factors(cx, sums, self.factors, op)
    }

    /// The part of a thread in the first or the second product.
    fn threads(&self, cx: &mut KernelContext<'_>, product: usize) -> Result<(P, Tiling)> {
        let tiling = self.tiling(cx)?;
        let plan = [&self.plan.scores, &self.plan.values][product];
        Ok((P::new(cx, plan, self.tiles[product], &tiling.local)?, tiling))
    }

    /// The loads of an operand.
    fn loads(
        &self,
        cx: &mut KernelContext<'_>,
        product: usize,
        role: Role,
        tiling: &Tiling,
        shared: ValueId,
    ) -> Result<P::Loads<'p>> {
        let plan = [&self.plan.scores, &self.plan.values][product];
        let (view, number) = match role {
            Role::Row => (&plan.view.lhs, plan.lhs_operand),
            _ => (&plan.view.rhs, plan.rhs_operand),
        };
        let operand = Operand::new(cx, view, &plan.view, number, plan.accumulator)?;
        P::loads(cx, plan, self.tiles[product], tiling, (operand, role), shared)
    }

    /// Stores the queries of all steps. The barrier that follows the first keys makes them visible.
    fn keep_queries(&self, cx: &mut KernelContext<'_>, memory: ValueId) -> Result<()> {
        let tiling = self.tiling(cx)?;
        let queries = self.loads(cx, 0, Role::Row, &tiling, memory)?;
        let (depth, bytes) = self.step(0);
        cx.for_range(0, self.plan.kept_steps, 1, |cx, step| {
            let values = queries.load(cx, &step.times(depth))?;
            let step = cx.scalar_value(&step)?;
            let buffer = cx.offset(memory, step, bytes);
            queries.store(cx, buffer, &values)
        })
    }

    /// Summands of a step of a product, and bytes of a buffer with them for all rows.
    fn step(&self, product: usize) -> (i64, i64) {
        P::buffer(self.tiles[product], self.rows, self.scalar.byte_size() as i64)
    }

    /// Returns the thread's scores for a tile of keys.
    fn products_with_keys(&self, cx: &mut KernelContext<'_>, first_key: &Index) -> Result<Vec<ValueId>> {
        let (threads, tiling) = self.threads(cx, 0)?;
        let tiling = Tiling { column: first_key.clone(), ..tiling };
        let initial = threads.initial(cx, &self.plan.scores)?;
        let (depth, bytes) = self.step(0);
        let steps = (self.plan.scores.view.extent(Role::Summand) + depth - 1) / depth;
        let (first, steps) = (Index::default(), [steps, depth]);
        if let Some(queries) = self.queries {
            let keys = self.loads(cx, 0, Role::Column, &tiling, self.stages)?;
            return pipeline::sums(cx, [&keys], &first, steps, &initial, |cx, step, [buffer], sums| {
                let step = cx.scalar_value(step)?;
                let rows = cx.offset(queries, step, bytes);
                threads.products(cx, [rows, buffer], sums)
            });
        }
        let queries = self.loads(cx, 0, Role::Row, &tiling, self.stages)?;
        let after_rows = cx.offset_bytes(self.stages, bytes * 2);
        let keys = self.loads(cx, 0, Role::Column, &tiling, after_rows)?;
        pipeline::sums(cx, [&queries, &keys], &first, steps, &initial, |cx, _, buffers, sums| {
            threads.products(cx, buffers, sums)
        })
    }

    /// Scales sums, and adds the products of a tile of weights with values.
    fn products_with_values(
        &self,
        cx: &mut KernelContext<'_>,
        first_key: &Index,
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let (threads, tiling) = self.threads(cx, 1)?;
        let sums = threads.with_factors(cx, sums, self.factors, BinaryOp::Multiply)?;
        let values = self.loads(cx, 1, Role::Column, &tiling, self.stages)?;
        let (depth, bytes) = self.step(1);
        let steps = self.keys / depth;
        let sums =
            pipeline::sums(cx, [&values], first_key, [steps, depth], &sums, |cx, step, [buffer], sums| {
                let step = cx.scalar_value(step)?;
                let weights = cx.offset(self.scores, step, bytes);
                threads.products(cx, [weights, buffer], sums)
            })?;
        if steps == 1 {
            cx.barrier();
        }
        Ok(sums)
    }

    /// The values of a row before its first key.
    fn first_row(&self, cx: &mut KernelContext<'_>) -> Result<Row> {
        let initial = cx.fusion().body[self.plan.softmax.maximum].operands()[1];
        let maximum = cx.element(initial, &Position::scalar())?.real();
        let sum = cx.float(Type::scalar(self.scalar), 0.0);
        Ok(Row { maximum, sum })
    }

    /// The number of the first logit of a row of the workgroup.
    fn number(&self, cx: &mut KernelContext<'_>, tiling: &Tiling, row: &Index) -> Result<Index> {
        let view = &self.plan.scores.view;
        let (rows, keys) = (view.extent(Role::Row), view.extent(Role::Column));
        // Rows beyond the last one are computed as that one, and not stored.
        let row = cx.clamp(&tiling.row.plus(row), 0, rows - 1)?;
        Ok(tiling.batch.times(rows).plus(&row).times(keys))
    }

    /// Passes a block of scores through the work on single scores, and stores it.
    fn store_logits(&self, cx: &mut KernelContext<'_>, tiling: &Tiling, block: &Block) -> Result<()> {
        let (hero, logits) = (self.plan.scores.hero, self.plan.softmax.logits);
        let (element_type, accumulator) = (cx.shape(hero)?.element_type, self.plan.scores.accumulator);
        let keys = self.plan.scores.view.extent(Role::Column);
        let columns = block.sums[0].len();
        let together = [4, 2].into_iter().find(|&k| k <= columns && keys % k as i64 == 0).unwrap_or(1);
        let lowest = cx.float(Type::scalar(self.scalar), f64::NEG_INFINITY);
        let mut all = vec![Vec::with_capacity(block.sums.len()); columns];
        for (number, row) in block.sums.iter().enumerate() {
            let row_number = self.number(cx, tiling, &block.row.plus_constant(number as i64))?;
            for (k, scores) in row.chunks(together).enumerate() {
                let key = tiling.column.plus(&block.column).plus_constant((k * together) as i64);
                let is_key = cx.contains(&key, 0, keys)?;
                let lanes = together as u32;
                let key = team::within(cx, &key, keys, lanes)?;
                let scores = vector(cx, scores);
                let values = cx.with_lanes(lanes, |cx| -> Result<ValueId> {
                    let score = if element_type == accumulator {
                        scores
                    } else {
                        normalize(cx, element_type, scores)
                    };
                    let at = row_number.plus(&key).plus(&Index::lanes(i64::from(lanes > 1)));
                    let provided = [(hero, Element::Real(score))];
                    let logit = cx.with_provided(provided, |cx| cx.element(logits, &Position::Linear(at)))?;
                    Ok(cx.widen(logit, lanes)?.real())
                })?;
                for lane in 0..together {
                    let value = if lanes == 1 { values } else { cx.extract(values, lane as u32) };
                    all[k * together + lane].push(match is_key {
                        Containment::Always => value,
                        Containment::Never => lowest,
                        Containment::When(is_key) => cx.select(is_key, value, lowest),
                    });
                }
            }
        }
        let size = self.scalar.byte_size() as i64;
        let at = cx.scalar_value(&self.place(&block.column, &block.row))?;
        let first = cx.offset(self.scores, at, size);
        for (k, values) in all.iter().enumerate() {
            let pointer = cx.offset_bytes(first, k as i64 * self.column_bytes());
            let rows = vector(cx, values);
            cx.store(rows, pointer, (size * values.len() as i64) as u32);
        }
        Ok(())
    }

    /// The number of a score in the tile.
    fn place(&self, key: &Index, row: &Index) -> Index {
        key.times(self.rows + GroupTile::PADDING).plus(row)
    }

    /// Bytes of a key's scores.
    fn column_bytes(&self) -> i64 {
        (self.rows + GroupTile::PADDING) * self.scalar.byte_size() as i64
    }

    /// The number of the thread's row, and the thread's number among those that share the row.
    fn share(&self, cx: &mut KernelContext<'_>, local: &Index) -> Result<[Index; 2]> {
        let (part, row) = cx.div_rem(local, self.rows)?;
        Ok([row, part])
    }

    /// Number of threads that share a row.
    fn shares(&self) -> i64 {
        i64::from(self.plan.threads()) / self.rows
    }

    /// Replaces scores by weights. All threads call this together.
    fn softmax(&self, cx: &mut KernelContext<'_>, tiling: &Tiling, before: Row) -> Result<Row> {
        let softmax = &self.plan.softmax;
        let (ty, size) = (Type::scalar(self.scalar), self.scalar.byte_size() as i64);
        let [row, part] = self.share(cx, &tiling.local)?;
        let each = self.keys / self.shares();
        let first_key = part.times(each);
        let at = cx.scalar_value(&self.place(&first_key, &row))?;
        let first = cx.offset(self.scores, at, size);
        let logits: Vec<ValueId> = (0..each)
            .map(|k| {
                let pointer = cx.offset_bytes(first, k * self.column_bytes());
                cx.load(ty, pointer, size as u32)
            })
            .collect();
        let own = tree(cx, &logits, larger)?;
        let mut maximum = before.maximum;
        for other in self.exchanged(cx, &tiling.local, &row, own)? {
            maximum = larger(cx, maximum, other);
        }
        let position = Position::Linear(self.number(cx, tiling, &row)?);
        // The values that follow from one maximum are discarded before the other.
        let mut shift = |maximum| {
            let provided = [(softmax.maximum, Element::Real(maximum))];
            let shift = cx.scoped(|cx| cx.with_provided(provided, |cx| cx.element(softmax.shift, &position)));
            shift.map(Element::real)
        };
        let (shift_before, shift) = (shift(before.maximum)?, shift(maximum)?);
        // Without a logit above negative infinity, all weights so far are 0.
        let (lowest, nothing) = (cx.float(ty, f64::NEG_INFINITY), cx.float(ty, 0.0));
        let is_lowest = cx.compare(Predicate::Equal, shift, lowest);
        let subtrahend = cx.select(is_lowest, nothing, shift);
        let factor = self.exponential(cx, shift_before, subtrahend)?;
        let mut weights = Vec::with_capacity(logits.len());
        for logit in logits {
            weights.push(self.exponential(cx, logit, subtrahend)?);
        }
        let more = tree(cx, &weights, |cx, x, y| cx.add(x, y))?;
        let sum = cx.multiply_add(before.sum, factor, more);
        P::store_weights(cx, self.tiles[0], self.scores, [&row, &first_key], &weights)?;
        self.store_factor(cx, [&row, &part], factor)?;
        Ok(Row { maximum, sum })
    }

    /// `exp(x - y)`.
    fn exponential(&self, cx: &mut KernelContext<'_>, x: ValueId, y: ValueId) -> Result<ValueId> {
        let op = cx.fusion().body[self.plan.softmax.exponential].op();
        let ty = self.plan.scores.accumulator;
        let difference = cx.sub(x, y);
        cx.compute(op, &[ty], ty, &[Element::Real(difference)]).map(Element::real)
    }

    /// Returns the values of all threads that share a row, in order.
    fn exchanged(
        &self,
        cx: &mut KernelContext<'_>,
        local: &Index,
        row: &Index,
        value: ValueId,
    ) -> Result<Vec<ValueId>> {
        let (ty, size) = (cx.ty(value), self.scalar.byte_size() as i64);
        if self.shares() == 1 {
            // The others may still read scores that weights overwrite.
            cx.barrier();
            return Ok(vec![value]);
        }
        let own = cx.scalar_value(local)?;
        let pointer = cx.offset(self.exchange, own, size);
        cx.store(value, pointer, size as u32);
        cx.barrier();
        let first = cx.scalar_value(row)?;
        let first = cx.offset(self.exchange, first, size);
        let load = |k| {
            let pointer = cx.offset_bytes(first, k * self.rows * size);
            cx.load(ty, pointer, size as u32)
        };
        Ok((0..self.shares()).map(load).collect())
    }

    /// Stores the factor of a row, which all its threads have.
    fn store_factor(
        &self,
        cx: &mut KernelContext<'_>,
        [row, part]: [&Index; 2],
        factor: ValueId,
    ) -> Result<()> {
        let (part, row) = (cx.scalar_value(part)?, cx.scalar_value(row)?);
        let first = cx.index(0);
        let is_first = cx.compare(Predicate::Equal, part, first);
        let size = self.scalar.byte_size() as i64;
        let pointer = cx.offset(self.factors, row, size);
        cx.when(is_first, |cx| {
            cx.store(factor, pointer, size as u32);
            Ok(())
        })
    }

    /// Stores what the sums of each row are divided or multiplied by.
    fn store_scale(&self, cx: &mut KernelContext<'_>, sum: ValueId) -> Result<()> {
        let softmax = &self.plan.softmax;
        let tiling = self.tiling(cx)?;
        let [number, part] = self.share(cx, &tiling.local)?;
        let sums = self.exchanged(cx, &tiling.local, &number, sum)?;
        let sum = tree(cx, &sums, |cx, x, y| cx.add(x, y))?;
        let initial = cx.fusion().body[softmax.sum].operands()[1];
        let initial = cx.element(initial, &Position::scalar())?.real();
        let sum = cx.add(initial, sum);
        let element_type = cx.shape(softmax.sum)?.element_type;
        let sum = normalize(cx, element_type, sum);
        let position = Position::Linear(self.number(cx, &tiling, &number)?);
        let provided = [(softmax.sum, Element::Real(sum))];
        let scale = cx.with_provided(provided, |cx| cx.element(softmax.scale, &position))?.real();
        self.store_factor(cx, [&number, &part], scale)
    }
}

impl Row {
    fn to_vec(self) -> Vec<ValueId> {
        vec![self.maximum, self.sum]
    }
}

/// The larger one of two numbers, or any of them if one is NaN: weights of NaNs are NaNs.
fn larger(cx: &mut KernelContext<'_>, x: ValueId, y: ValueId) -> ValueId {
    let is_larger = cx.compare(Predicate::Greater, x, y);
    cx.select(is_larger, x, y)
}

/// Combines values pairwise, in order.
fn tree(
    cx: &mut KernelContext<'_>,
    values: &[ValueId],
    combine: impl Fn(&mut KernelContext<'_>, ValueId, ValueId) -> ValueId,
) -> Result<ValueId> {
    let mut values = values.to_vec();
    while values.len() > 1 {
        let mut halved = Vec::with_capacity(values.len().div_ceil(2));
        for pair in values.chunks(2) {
            halved.push(match *pair {
                [x, y] => combine(cx, x, y),
                _ => pair[0],
            });
        }
        values = halved;
    }
    values.pop().ok_or_else(|| Error::internal("expected at least one value of a row"))
}
