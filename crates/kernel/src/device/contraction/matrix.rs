//! Tiles that the matrix units compute.
//!
//! Workgroup memory holds 64 bytes of summands of each row of the left operand and of each column
//! of the right one. A thread of a warp reads 16 of them at once, the words of two products. The
//! order of the summands does not matter as long as it is the same for both operands, so the words
//! of a thread are neighbors, unlike those of [`MatrixKind`]. In the same way, neighboring columns
//! of the result are given to the same thread: column `2 * t + c` of product `j` of a pair is
//! column `4 * t + 2 * j + c` of the pair's 16 columns.

use super::operand::{along, along_block};
use super::pipeline::{self, Stage};
use super::tiles::{Block, Tiling, vector};
use super::{Coordinates, Operand, Place, columns_together, finish, operands, tested_below, when_below};
use crate::context::KernelContext;
use crate::contraction::tile::{scalar_type, zero};
use crate::element::{Element, memory_type};
use crate::index::Index;
use nest::{BinaryOp, MatrixKind, Predicate, ScalarType, Type, ValueId};
use plan::{ContractionPlan, MatrixTile, Role};
use shape::PrimitiveType;
use support::{Error, Result};

/// Bytes of a row in workgroup memory.
const ROW: i64 = MatrixTile::ROW_BYTES;

/// Words of a row.
const WORDS: i64 = ROW / 4;

/// Emits the kernel.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ContractionPlan, tile: &MatrixTile) -> Result<()> {
    let extents = [tile.rows, tile.columns];
    let tiling = Tiling::new(cx, plan, extents, MatrixTile::THREADS)?;
    let [lhs, rhs] = operands(cx, plan)?;
    let shared = extents.map(|extent| cx.workgroup_memory(2 * (extent * ROW) as u64, 16));
    let loads = [
        Loads::new(cx, plan, tile, &tiling, (lhs, Role::Row), shared[0])?,
        Loads::new(cx, plan, tile, &tiling, (rhs, Role::Column), shared[1])?,
    ];
    let threads = Threads::new(cx, tile, &tiling.local)?;
    let depth = tile.depth();
    let steps = (plan.part + depth - 1) / depth;
    let first = tiling.split.times(plan.part);
    let initial = threads.initial(cx, plan)?;
    let sums =
        pipeline::sums(cx, loads.each_ref(), &first, [steps, depth], &initial, |cx, _, buffers, sums| {
            threads.products(cx, buffers, sums)
        })?;
    // The place of the tile is computed again, so that it needs no registers during the loop.
    let tiling = Tiling::new(cx, plan, extents, MatrixTile::THREADS)?;
    Threads::new(cx, tile, &tiling.local)?.finish(cx, plan, &tiling, &sums)
}

/// The elements of an operand's tile that a thread loads.
pub(super) struct Loads<'p> {
    operand: Operand<'p>,
    plan: &'p ContractionPlan,
    role: Role,
    /// Rows or columns of the tile.
    extent: i64,
    depth: i64,
    /// The type of an element in memory.
    scalar: ScalarType,
    /// Neighboring elements that are loaded together.
    lanes: i64,
    /// True if these are summands. Otherwise the summands of a word are loaded one after another,
    /// for several rows or columns, and exchanged in registers.
    along_summands: bool,
    /// First row or column in the tile, and first summand, of each load.
    slots: Vec<(Index, Index)>,
    batch: Vec<Index>,
    outer: Vec<(Index, Vec<Index>)>,
    /// The first buffer in workgroup memory.
    shared: ValueId,
}

impl<'p> Loads<'p> {
    pub(super) fn new(
        cx: &mut KernelContext<'_>,
        plan: &'p ContractionPlan,
        tile: &MatrixTile,
        tiling: &Tiling,
        (operand, role): (Operand<'p>, Role),
        shared: ValueId,
    ) -> Result<Self> {
        let (extent, begin) = match role {
            Role::Row => (tile.rows, &tiling.row),
            _ => (tile.columns, &tiling.column),
        };
        let (threads, depth, size) = (i64::from(MatrixTile::THREADS), tile.depth(), operand.size());
        let of_summands = operand.run(Role::Summand, (16 / size).min(extent * depth / threads));
        let of_outer = operand.run(role, (16 / size).min(extent * WORDS / threads));
        let along_summands = of_summands >= of_outer && (of_summands > 1 || !operand.is_along(role));
        let lanes = if along_summands { of_summands } else { of_outer };
        let count = if along_summands { extent * depth / lanes } else { extent / lanes * WORDS } / threads;
        let mut slots = Vec::new();
        for k in 0..count {
            let number = tiling.local.plus_constant(k * threads);
            slots.push(if along_summands {
                let (outer, summand) = cx.div_rem(&number, depth / lanes)?;
                (outer, summand.times(lanes))
            } else {
                let (outer, word) = cx.div_rem(&number, WORDS)?;
                (outer.times(lanes), word.times(4 / size))
            });
        }
        let axes = &plan.view.axes;
        let batch = along(cx, &axes[Role::Batch as usize], &tiling.batch)?;
        let mut outer = Vec::new();
        for (within, _) in &slots {
            let number = begin.plus(within);
            let indices = along(cx, &axes[role as usize], &number)?;
            outer.push((number, indices));
        }
        let scalar = memory_type(tile.element_type);
        Ok(Self {
            operand,
            plan,
            role,
            extent,
            depth,
            scalar,
            lanes,
            along_summands,
            slots,
            batch,
            outer,
            shared,
        })
    }
}

impl Stage for Loads<'_> {
    type Values = Vec<Vec<ValueId>>;

    fn shared(&self) -> ValueId {
        self.shared
    }

    fn bytes(&self) -> i64 {
        self.extent * ROW
    }

    /// Loads the thread's elements of the tile that begins at a summand: one vector of each slot,
    /// or one for each summand of a word.
    fn load(&self, cx: &mut KernelContext<'_>, summand: &Index) -> Result<Vec<Vec<ValueId>>> {
        let view = &self.plan.view;
        let axes = &view.axes[Role::Summand as usize];
        let per_word = if self.along_summands { 1 } else { 4 / self.operand.size() };
        let mut all = Vec::with_capacity(self.slots.len());
        for ((_, within), (outer, indices)) in self.slots.iter().zip(&self.outer) {
            let mut values = Vec::new();
            for k in 0..per_word {
                let within = within.plus_constant(k);
                let mut at: Coordinates = Default::default();
                at[Role::Batch as usize] = self.batch.clone();
                at[self.role as usize] = indices.clone();
                at[Role::Summand as usize] = along_block(cx, axes, summand, &within, self.depth)?;
                let mut spot = self.operand.spot(cx, &at)?;
                let is_outer = cx.contains(outer, 0, view.extent(self.role))?;
                let is_summand = cx.contains(&summand.plus(&within), 0, view.extent(Role::Summand))?;
                spot.inside = spot.inside.and(cx, is_outer);
                spot.inside = spot.inside.and(cx, is_summand);
                let value = self.operand.load_raw(cx, &spot, self.lanes as u32)?.real();
                values.push(if self.scalar == ScalarType::F32 { rounded(cx, value) } else { value });
            }
            all.push(values);
        }
        Ok(all)
    }

    fn store(&self, cx: &mut KernelContext<'_>, buffer: ValueId, all: &Vec<Vec<ValueId>>) -> Result<()> {
        let size = self.operand.size();
        for ((outer, summand), values) in self.slots.iter().zip(all) {
            let at = cx.scalar_value(&outer.times(ROW).plus(&summand.times(size)))?;
            let pointer = cx.offset(buffer, at, 1);
            if self.along_summands {
                cx.store(values[0], pointer, (size * self.lanes) as u32);
                continue;
            }
            let lanes = self.lanes as u32;
            let mixed = if values.len() == 1 { values[0] } else { interleaved(cx, values, lanes) };
            let words = cx.bitcast(mixed, Type::vector(ScalarType::I32, lanes));
            for lane in 0..lanes {
                let pointer = cx.offset_bytes(pointer, i64::from(lane) * ROW);
                let word = cx.extract(words, lane);
                cx.store(word, pointer, 4);
            }
        }
        debug_assert_eq!(size, self.scalar.byte_size() as i64, "the operand has the type of the tile");
        Ok(())
    }
}

/// Rounds `F32`s to the 10 bits of fraction of TF32, with ties away from zero. NaNs stay as they
/// are.
pub(super) fn rounded(cx: &mut KernelContext<'_>, value: ValueId) -> ValueId {
    const DROPPED: i64 = (1 << 13) - 1;
    let ty = cx.ty(value).with_scalar(ScalarType::I32);
    let bits = cx.bitcast(value, ty);
    let (half, kept) = (cx.integer(ty, (DROPPED + 1) / 2), cx.integer(ty, !DROPPED));
    let sum = cx.add(bits, half);
    let near = cx.and(sum, kept);
    let is_nan = cx.compare(Predicate::NotEqual, value, value);
    cx.select(is_nan, bits, near)
}

/// Returns lane 0 of all values, then lane 1 of all values, and so on.
fn interleaved(cx: &mut KernelContext<'_>, values: &[ValueId], lanes: u32) -> ValueId {
    if lanes == 1 {
        return vector(cx, values);
    }
    let mut vectors = values.to_vec();
    let mut width = lanes;
    // First the first half with the second half, so that the last step mixes neighbors.
    while vectors.len() > 1 {
        let half = vectors.len() / 2;
        let picked: Vec<u32> = (0..2 * width).map(|k| k / 2 + if k % 2 == 0 { 0 } else { width }).collect();
        vectors = (0..half).map(|k| cx.shuffle(vectors[k], vectors[k + half], picked.clone())).collect();
        width *= 2;
    }
    vectors[0]
}

/// The sums of a pair of products in the thread's row of the first or the second half of the rows.
fn of_half(cx: &mut KernelContext<'_>, pair: &[ValueId], half: u32) -> Vec<ValueId> {
    pair.iter().flat_map(|&sum| [2 * half, 2 * half + 1].map(|lane| cx.extract(sum, lane))).collect()
}

/// The part of a thread.
pub(super) struct Threads {
    tile: MatrixTile,
    kind: MatrixKind,
    /// First row and first column of the warp in the tile.
    row: Index,
    column: Index,
    /// Number of the thread in its group of four, and number of the group in the warp.
    thread: Index,
    group: Index,
}

impl Threads {
    pub(super) fn new(cx: &mut KernelContext<'_>, tile: &MatrixTile, local: &Index) -> Result<Self> {
        let kind = match tile.element_type {
            PrimitiveType::F16 => MatrixKind::F16,
            PrimitiveType::Bf16 => MatrixKind::Bf16,
            PrimitiveType::S8 => MatrixKind::S8,
            PrimitiveType::F32 => MatrixKind::Tf32,
            other => return Err(Error::internal(format!("matrix units for {other}"))),
        };
        let (warp, lane) = cx.div_rem(local, 32)?;
        let (row, column) = cx.div_rem(&warp, 2)?;
        let (group, thread) = cx.div_rem(&lane, 4)?;
        let (row, column) = (row.times(tile.rows / 2), column.times(tile.columns / 2));
        Ok(Self { tile: *tile, kind, row, column, thread, group })
    }

    /// Products of a warp along its rows.
    fn row_tiles(&self) -> usize {
        (self.tile.rows / 32) as usize
    }

    /// Products of a warp along its columns.
    fn column_tiles(&self) -> usize {
        (self.tile.columns / 16) as usize
    }

    /// Sums of no products.
    pub(super) fn initial(&self, cx: &mut KernelContext<'_>, plan: &ContractionPlan) -> Result<Vec<ValueId>> {
        let nothing = zero(cx, Type::vector(scalar_type(plan.accumulator)?, 4));
        Ok(vec![nothing; self.row_tiles() * self.column_tiles()])
    }

    /// Returns the blocks of sums, each of four neighboring columns of a row.
    pub(super) fn blocks(&self, cx: &mut KernelContext<'_>, sums: &[ValueId]) -> Vec<Block> {
        let mut blocks = Vec::new();
        for (number, sums) in sums.chunks(self.column_tiles()).enumerate() {
            for half in 0..2 {
                let within = number as i64 * 16 + i64::from(half) * 8;
                let row = self.row.plus(&self.group).plus_constant(within);
                for (pair, sums) in sums.chunks(2).enumerate() {
                    let column = self.column.plus(&self.thread.times(4)).plus_constant(pair as i64 * 16);
                    blocks.push(Block { row: row.clone(), column, sums: vec![of_half(cx, sums, half)] });
                }
            }
        }
        blocks
    }

    /// Combines each sum with the factor of its row. The factors are in workgroup memory.
    pub(super) fn with_factors(
        &self,
        cx: &mut KernelContext<'_>,
        sums: &[ValueId],
        factors: ValueId,
        op: BinaryOp,
    ) -> Result<Vec<ValueId>> {
        let first = cx.scalar_value(&self.row.plus(&self.group))?;
        let first = cx.offset(factors, first, 4);
        let mut scaled = Vec::with_capacity(sums.len());
        for (number, sums) in sums.chunks(self.column_tiles()).enumerate() {
            let [upper, lower] = [0, 8].map(|half| {
                let pointer = cx.offset_bytes(first, (number as i64 * 16 + half) * 4);
                cx.load(Type::scalar(ScalarType::F32), pointer, 4)
            });
            let factor = vector(cx, &[upper, upper, lower, lower]);
            scaled.extend(sums.iter().map(|&sum| cx.binary(op, sum, factor)));
        }
        Ok(scaled)
    }

    /// Adds the products of a pair of tiles.
    pub(super) fn products(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: [ValueId; 2],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let words = Type::vector(ScalarType::I32, 4);
        let first_row = self.row.plus(&self.group).times(ROW).plus(&self.thread.times(16));
        let first_row = cx.scalar_value(&first_row)?;
        let rows = cx.offset(buffers[0], first_row, 1);
        // Column `g` of product `j` of a pair is column `g / 2 * 4 + j * 2 + g % 2`.
        let (half, odd) = cx.div_rem(&self.group, 2)?;
        let first_column =
            self.column.plus(&half.times(4)).plus(&odd).times(ROW).plus(&self.thread.times(16));
        let first_column = cx.scalar_value(&first_column)?;
        let columns = cx.offset(buffers[1], first_column, 1);
        let mut left = Vec::new();
        for number in 0..2 * self.row_tiles() as i64 {
            let pointer = cx.offset_bytes(rows, number * 8 * ROW);
            left.push(cx.load(words, pointer, 16));
        }
        let mut sums = sums.to_vec();
        for column in 0..self.column_tiles() {
            let (pair, of_pair) = (column as i64 / 2, column as i64 % 2);
            let pointer = cx.offset_bytes(columns, (pair * 16 + of_pair * 2) * ROW);
            let right = cx.load(words, pointer, 16);
            for step in [0, 2] {
                let b = cx.shuffle(right, right, vec![step, step + 1]);
                for (row, left) in left.chunks(2).enumerate() {
                    let a = cx.shuffle(left[0], left[1], vec![step, step + 4, step + 1, step + 5]);
                    let sum = &mut sums[row * self.column_tiles() + column];
                    *sum = cx.matrix_multiply_add(self.kind, a, b, *sum);
                }
            }
        }
        Ok(sums)
    }

    /// Passes the sums to the epilogue.
    pub(super) fn finish(
        &self,
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        tiling: &Tiling,
        sums: &[ValueId],
    ) -> Result<()> {
        let (rows, columns) = (plan.view.extent(Role::Row), plan.view.extent(Role::Column));
        let together = columns_together(plan, 4);
        for (number, sums) in sums.chunks(self.column_tiles()).enumerate() {
            for half in 0..2 {
                let within = number as i64 * 16 + i64::from(half) * 8;
                let row = tiling.row.plus(&self.row).plus(&self.group).plus_constant(within);
                tested_below(cx, &row, rows, |cx, row| {
                    for (pair, sums) in sums.chunks(2).enumerate() {
                        let values = of_half(cx, sums, half);
                        for (part, values) in values.chunks(together as usize).enumerate() {
                            let within = pair as i64 * 16 + part as i64 * together;
                            let column = tiling.column.plus(&self.column).plus(&self.thread.times(4));
                            let column = column.plus_constant(within);
                            when_below(cx, &column, columns, together, |cx, column| {
                                let value = vector(cx, values);
                                let (split, batch) = (tiling.split.clone(), tiling.batch.clone());
                                let place = Place { split, batch, row: row.clone(), column };
                                finish(cx, plan, &place, together as u32, Element::Real(value))
                            })?;
                        }
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}
