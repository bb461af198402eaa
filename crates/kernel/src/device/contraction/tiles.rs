//! Tiles: the threads of a workgroup load tiles of both operands into workgroup memory, and each
//! thread computes some rows and columns from there. While they compute with one pair of tiles, the
//! elements of the next pair are on their way.

use super::operand::{along, along_block};
use super::pipeline::{self, Stage};
use super::{Coordinates, Operand, Place, columns_together, finish, operands, thread, when_below, zero};
use crate::context::KernelContext;
use crate::contraction::tile::{multiply_add, scalar_type};
use crate::element::Element;
use crate::index::Index;
use nest::{BinaryOp, Expression, Type, ValueId};
use plan::{ContractionPlan, GroupTile, Role};
use support::Result;

/// Rows of tiles that neighboring workgroups compute, so that they share columns in the
/// second-level cache.
const BANDS: [i64; 3] = [8, 4, 2];

/// The tile of the running workgroup.
#[derive(Clone)]
pub(super) struct Tiling {
    /// The part of the summands.
    pub(super) split: Index,
    pub(super) batch: Index,
    /// The first row.
    pub(super) row: Index,
    /// The first column.
    pub(super) column: Index,
    /// The thread's number.
    pub(super) local: Index,
}

impl Tiling {
    /// Returns the tile of some rows and columns.
    pub(super) fn new(
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        extents: [i64; 2],
        threads: u32,
    ) -> Result<Self> {
        let [rows, columns] = plan.tiles(extents[0], extents[1]);
        let batches = plan.view.extent(Role::Batch);
        let groups = rows * columns * batches * plan.splits;
        let (local, group) = thread(cx, threads.into(), groups);
        let (rest, number) = cx.div_rem(&group, rows * columns)?;
        let (split, batch) = cx.div_rem(&rest, batches)?;
        let band = BANDS.into_iter().find(|band| rows % band == 0).unwrap_or(1);
        let (first, within) = cx.div_rem(&number, band * columns)?;
        let (column, row) = cx.div_rem(&within, band)?;
        let row = first.times(band).plus(&row).times(extents[0]);
        Ok(Self { split, batch, row, column: column.times(extents[1]), local })
    }
}

/// Emits the kernel.
pub(super) fn emit(cx: &mut KernelContext<'_>, plan: &ContractionPlan, tile: &GroupTile) -> Result<()> {
    let tiling = Tiling::new(cx, plan, [tile.rows, tile.columns], tile.threads())?;
    let [lhs, rhs] = operands(cx, plan)?;
    let scalar = Type::scalar(scalar_type(plan.accumulator)?);
    let size = scalar.scalar.byte_size() as i64;
    let shared = [tile.rows, tile.columns]
        .map(|extent| cx.workgroup_memory(2 * tile.buffer_bytes(extent, size) as u64, 16));
    let loads = [
        Loads::new(cx, plan, tile, &tiling, (lhs, Role::Row), shared[0])?,
        Loads::new(cx, plan, tile, &tiling, (rhs, Role::Column), shared[1])?,
    ];
    let threads = Threads::new(cx, tile, &tiling.local, scalar)?;
    let steps = plan.part / tile.depth + i64::from(plan.part % tile.depth != 0);
    let first = tiling.split.times(plan.part);
    let nothing = zero(cx, plan, 1)?;
    let initial = vec![nothing; threads.sums()];
    let sums = pipeline::sums(
        cx,
        loads.each_ref(),
        &first,
        [steps, tile.depth],
        &initial,
        |cx, _, buffers, sums| threads.products(cx, buffers, sums),
    )?;
    // The place of the tile is computed again, so that it needs no registers during the loop.
    let tiling = Tiling::new(cx, plan, [tile.rows, tile.columns], tile.threads())?;
    let threads = Threads::new(cx, tile, &tiling.local, scalar)?;
    threads.finish(cx, plan, &tiling, &sums)
}

/// The elements of an operand's tile that a thread loads.
pub(super) struct Loads<'p> {
    operand: Operand<'p>,
    plan: &'p ContractionPlan,
    tile: GroupTile,
    role: Role,
    /// Rows or columns of the tile.
    extent: i64,
    /// Neighboring elements that are loaded together.
    lanes: i64,
    /// True if these are summands.
    along_summands: bool,
    /// First row or column in the tile, and first summand, of each load.
    slots: Vec<(Index, Index)>,
    /// Coordinates of the batch, and of the row or column of each load.
    batch: Vec<Index>,
    outer: Vec<(Index, Vec<Index>)>,
    /// The first buffer in workgroup memory.
    shared: ValueId,
    scalar: Type,
}

impl<'p> Loads<'p> {
    pub(super) fn new(
        cx: &mut KernelContext<'_>,
        plan: &'p ContractionPlan,
        tile: &GroupTile,
        tiling: &Tiling,
        (operand, role): (Operand<'p>, Role),
        shared: ValueId,
    ) -> Result<Self> {
        let (extent, begin) = match role {
            Role::Row => (tile.rows, &tiling.row),
            _ => (tile.columns, &tiling.column),
        };
        let threads = i64::from(tile.threads());
        let most = (16 / operand.size()).clamp(1, 8).min((extent * tile.depth / threads).max(1));
        let (of_summands, of_outer) =
            (operand.run(Role::Summand, most.min(tile.depth)), operand.run(role, most));
        let along_summands = match of_summands.cmp(&of_outer) {
            std::cmp::Ordering::Equal => operand.is_along(Role::Summand) && !operand.is_along(role),
            order => order.is_gt(),
        };
        let lanes = if along_summands { of_summands } else { of_outer };
        let mut slots = Vec::new();
        for k in 0..(extent * tile.depth / lanes / threads).max(1) {
            let number = tiling.local.plus_constant(k * threads);
            slots.push(if along_summands {
                let (outer, summand) = cx.div_rem(&number, tile.depth / lanes)?;
                (outer, summand.times(lanes))
            } else {
                let (summand, outer) = cx.div_rem(&number, extent / lanes)?;
                (outer.times(lanes), summand)
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
        let scalar = Type::scalar(scalar_type(plan.accumulator)?);
        Ok(Self {
            operand,
            plan,
            tile: *tile,
            role,
            extent,
            lanes,
            along_summands,
            slots,
            batch,
            outer,
            shared,
            scalar,
        })
    }

    /// Bytes of a row of summands in workgroup memory.
    fn row_bytes(&self) -> i64 {
        (self.extent + GroupTile::PADDING) * self.scalar.scalar.byte_size() as i64
    }
}

impl Stage for Loads<'_> {
    type Values = Vec<ValueId>;

    fn shared(&self) -> ValueId {
        self.shared
    }

    fn bytes(&self) -> i64 {
        self.tile.buffer_bytes(self.extent, self.scalar.scalar.byte_size() as i64)
    }

    /// Loads the thread's elements of the tile that begins at a summand.
    fn load(&self, cx: &mut KernelContext<'_>, summand: &Index) -> Result<Vec<ValueId>> {
        let view = &self.plan.view;
        let axes = &view.axes[Role::Summand as usize];
        let mut values = Vec::with_capacity(self.slots.len());
        for ((_, within), (outer, indices)) in self.slots.iter().zip(&self.outer) {
            let mut at: Coordinates = Default::default();
            at[Role::Batch as usize] = self.batch.clone();
            at[self.role as usize] = indices.clone();
            at[Role::Summand as usize] = along_block(cx, axes, summand, within, self.tile.depth)?;
            let mut spot = self.operand.spot(cx, &at)?;
            let is_outer = cx.contains(outer, 0, view.extent(self.role))?;
            let is_summand = cx.contains(&summand.plus(within), 0, view.extent(Role::Summand))?;
            spot.inside = spot.inside.and(cx, is_outer);
            spot.inside = spot.inside.and(cx, is_summand);
            values.push(self.operand.load(cx, &spot, self.lanes as u32)?.real());
        }
        Ok(values)
    }

    fn store(&self, cx: &mut KernelContext<'_>, buffer: ValueId, values: &Vec<ValueId>) -> Result<()> {
        let size = self.scalar.scalar.byte_size() as i64;
        for ((outer, summand), &value) in self.slots.iter().zip(values) {
            let at = summand.times(self.row_bytes()).plus(&outer.times(size));
            let at = cx.scalar_value(&at)?;
            let pointer = cx.offset(buffer, at, 1);
            if !self.along_summands {
                let together = self.lanes.min(GroupTile::PADDING);
                cx.store(value, pointer, (size * together).min(16) as u32);
                continue;
            }
            for lane in 0..self.lanes {
                let pointer = cx.offset_bytes(pointer, lane * self.row_bytes());
                let value = cx.extract(value, lane as u32);
                cx.store(value, pointer, size as u32);
            }
        }
        Ok(())
    }
}

/// Some of a thread's sums.
pub(super) struct Block {
    /// The first row and the first column in the tile.
    pub(super) row: Index,
    pub(super) column: Index,
    /// The sums of neighboring columns, for each of some neighboring rows.
    pub(super) sums: Vec<Vec<ValueId>>,
}

/// The rows and columns of a thread.
pub(super) struct Threads {
    tile: GroupTile,
    /// Neighboring rows or columns that are loaded together.
    lanes: i64,
    /// The first row and the first column of the thread in a tile.
    row: Index,
    column: Index,
    scalar: Type,
}

impl Threads {
    pub(super) fn new(
        cx: &mut KernelContext<'_>,
        tile: &GroupTile,
        local: &Index,
        scalar: Type,
    ) -> Result<Self> {
        let lanes = (16 / scalar.scalar.byte_size() as i64).min(4);
        let (y, x) = cx.div_rem(local, tile.columns / tile.thread_columns)?;
        Ok(Self { tile: *tile, lanes, row: y.times(lanes), column: x.times(lanes), scalar })
    }

    /// Distance of the pieces of a thread's rows or columns. Neighboring threads have neighboring
    /// pieces.
    fn distance(&self, role: Role) -> i64 {
        match role {
            Role::Row => self.tile.rows * self.lanes / self.tile.thread_rows,
            _ => self.tile.columns * self.lanes / self.tile.thread_columns,
        }
    }

    /// Adds the products of a pair of tiles.
    pub(super) fn products(
        &self,
        cx: &mut KernelContext<'_>,
        buffers: [ValueId; 2],
        sums: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let tile = self.tile;
        let size = self.scalar.scalar.byte_size() as i64;
        let mut sums = sums.to_vec();
        let starts = [(&self.row, buffers[0]), (&self.column, buffers[1])];
        let mut firsts = Vec::new();
        for (index, buffer) in starts {
            let at = cx.scalar_value(&index.times(size))?;
            firsts.push(cx.offset(buffer, at, 1));
        }
        let ty = Type::vector(self.scalar.scalar, self.lanes as u32);
        for summand in 0..tile.depth {
            let load = |cx: &mut KernelContext<'_>, first: ValueId, role: Role| -> Vec<ValueId> {
                let (extent, count) = match role {
                    Role::Row => (tile.rows, tile.thread_rows),
                    _ => (tile.columns, tile.thread_columns),
                };
                let row = summand * (extent + GroupTile::PADDING) * size;
                let mut values = Vec::new();
                for piece in 0..count / self.lanes {
                    let pointer = cx.offset_bytes(first, row + piece * self.distance(role) * size);
                    let vector = cx.load(ty, pointer, (size * self.lanes) as u32);
                    values.extend((0..self.lanes).map(|lane| cx.extract(vector, lane as u32)));
                }
                values
            };
            let rows = load(cx, firsts[0], Role::Row);
            let columns = load(cx, firsts[1], Role::Column);
            for (row, sums) in rows.iter().zip(sums.chunks_mut(columns.len())) {
                for (&column, sum) in columns.iter().zip(sums) {
                    *sum = multiply_add(cx, *row, column, *sum);
                }
            }
        }
        Ok(sums)
    }

    /// Number of a thread's sums.
    pub(super) fn sums(&self) -> usize {
        (self.tile.thread_rows * self.tile.thread_columns) as usize
    }

    /// Returns the blocks of sums, each of neighboring rows and columns.
    pub(super) fn blocks(&self, sums: &[ValueId]) -> Vec<Block> {
        let (lanes, across) = (self.lanes as usize, self.tile.thread_columns as usize);
        let mut blocks = Vec::new();
        for (k, sums) in sums.chunks(lanes * across).enumerate() {
            let row = self.row.plus_constant(k as i64 * self.distance(Role::Row));
            for j in 0..across / lanes {
                let column = self.column.plus_constant(j as i64 * self.distance(Role::Column));
                let of_row = |row: &[ValueId]| row[j * lanes..(j + 1) * lanes].to_vec();
                blocks.push(Block {
                    row: row.clone(),
                    column,
                    sums: sums.chunks(across).map(of_row).collect(),
                });
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
        let (size, across) = (self.scalar.scalar.byte_size() as i64, self.tile.thread_columns as usize);
        let ty = Type::vector(self.scalar.scalar, self.lanes as u32);
        let mut scaled = Vec::with_capacity(sums.len());
        for (k, sums) in sums.chunks(self.lanes as usize * across).enumerate() {
            let row = self.row.plus_constant(k as i64 * self.distance(Role::Row));
            let at = cx.scalar_value(&row)?;
            let pointer = cx.offset(factors, at, size);
            let vector = cx.load(ty, pointer, (size * self.lanes) as u32);
            for (lane, sums) in sums.chunks(across).enumerate() {
                let factor = cx.extract(vector, lane as u32);
                scaled.extend(sums.iter().map(|&sum| cx.binary(op, sum, factor)));
            }
        }
        Ok(scaled)
    }

    /// Passes the sums to the epilogue.
    pub(super) fn finish(
        &self,
        cx: &mut KernelContext<'_>,
        plan: &ContractionPlan,
        tiling: &Tiling,
        sums: &[ValueId],
    ) -> Result<()> {
        let tile = self.tile;
        let (rows, columns) = (plan.view.extent(Role::Row), plan.view.extent(Role::Column));
        let together = columns_together(plan, self.lanes);
        for (number, sums) in sums.chunks(tile.thread_columns as usize).enumerate() {
            let (piece, within) = (number as i64 / self.lanes, number as i64 % self.lanes);
            let row = tiling.row.plus(&self.row).plus_constant(piece * self.distance(Role::Row) + within);
            when_below(cx, &row, rows, 1, |cx, row| {
                for (number, sums) in sums.chunks(together as usize).enumerate() {
                    let first = number as i64 * together;
                    let (piece, within) = (first / self.lanes, first % self.lanes);
                    let column = tiling
                        .column
                        .plus(&self.column)
                        .plus_constant(piece * self.distance(Role::Column) + within);
                    when_below(cx, &column, columns, together, |cx, column| {
                        let value = vector(cx, sums);
                        let place = Place {
                            split: tiling.split.clone(),
                            batch: tiling.batch.clone(),
                            row: row.clone(),
                            column,
                        };
                        finish(cx, plan, &place, together as u32, Element::Real(value))
                    })?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Returns a vector of scalars.
pub(super) fn vector(cx: &mut KernelContext<'_>, values: &[ValueId]) -> ValueId {
    let [first, rest @ ..] = values else { unreachable!("expected at least one value") };
    let ty = cx.ty(*first);
    if rest.is_empty() {
        return *first;
    }
    let mut vector = cx.value(Type::vector(ty.scalar, values.len() as u32), Expression::Splat(*first));
    for (lane, &value) in rest.iter().enumerate() {
        vector = cx.insert(vector, lane as u32 + 1, value);
    }
    vector
}
