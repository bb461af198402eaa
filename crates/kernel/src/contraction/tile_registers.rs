//! Register tiles whose sums are in tile registers (AMX): up to two by two registers of 16 rows and
//! 16 columns. The epilogue reads the sums from memory.

use super::grouping::kind;
use super::tile::{Columns, StoredSums, sums_slot};
use crate::context::KernelContext;
use nest::{
    FunctionBuilder, GroupKind, LEFT_TILES, RIGHT_TILES, RegionBuilder as _, SUM_TILES, ScalarType,
    TILE_ROWS, TileOperation, Type, ValueId,
};
use plan::{GROUP_BYTES, Grouping, PanelLayout};
use support::Result;

/// Bytes of a row of a register of sums.
const ROW_BYTES: i64 = 64;

/// The tile registers of a kernel. Tiles share their shapes if possible, because new shapes clear
/// all registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileRegisters {
    kind: GroupKind,
    /// Rows of the registers of sums and of left factors.
    rows: i64,
    /// Groups of each left row.
    groups: i64,
    /// True if all tiles have these shapes.
    are_shared: bool,
}

impl TileRegisters {
    /// Returns the registers for tiles of these numbers of rows and for runs of `groups` groups, if
    /// the sums are in tile registers.
    pub(crate) fn new(
        grouping: Option<Grouping>,
        rows: impl IntoIterator<Item = u32> + Clone,
        groups: i64,
    ) -> Option<Self> {
        let grouping = grouping.filter(|grouping| grouping.is_in_tiles())?;
        let kind = kind(grouping);
        let of_registers = plan::tile_rows(i64::from(rows.clone().into_iter().max().unwrap_or(1)));
        let are_shared = rows.into_iter().all(|rows| plan::covers_rows(of_registers, rows.into()));
        Some(Self { kind, rows: of_registers, groups: plan::tile_groups(groups), are_shared })
    }

    /// Sets the shapes, which clears the registers.
    fn configure(self, b: &mut FunctionBuilder) {
        b.tiles(TileOperation::Configure { rows: self.rows as u32, groups: self.groups as u32 });
    }

    /// Begins a tile of `rows` rows.
    pub(crate) fn tile(mut self, b: &mut FunctionBuilder, rows: u32, parts: &[Columns]) -> SumTiles {
        let rows = i64::from(rows);
        if !self.are_shared {
            self.rows = plan::tile_rows(rows);
            self.configure(b);
        }
        let first_rows = if rows > self.rows { vec![0, rows - self.rows] } else { vec![0] };
        let columns = parts.last().map_or(0, |part| part.offset + i64::from(part.lanes));
        let across = (columns + i64::from(TILE_ROWS) - 1) / i64::from(TILE_ROWS);
        SumTiles { registers: self, first_rows, across }
    }
}

/// Runs `body`, which uses the tile registers, if there are any.
pub(crate) fn with_tiles(
    cx: &mut KernelContext<'_>,
    registers: Option<TileRegisters>,
    body: impl FnOnce(&mut KernelContext<'_>) -> Result<()>,
) -> Result<()> {
    if let Some(registers) = registers {
        registers.configure(cx);
    }
    body(cx)?;
    if registers.is_some() {
        cx.tiles(TileOperation::Release);
    }
    Ok(())
}

/// A register tile.
pub(crate) struct SumTiles {
    registers: TileRegisters,
    /// The first row of each row of registers. The second one begins before the first one ends if
    /// the tile has fewer rows than both.
    first_rows: Vec<i64>,
    /// Number of registers of a row.
    across: i64,
}

/// The left factors of a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    /// The address of the first row.
    pub(crate) pointer: ValueId,
    /// Bytes from a row to the next one.
    pub(crate) stride: ValueId,
}

impl SumTiles {
    /// Returns the registers of sums, and for each the row and the column of registers that it is
    /// in.
    fn sums(&self) -> impl Iterator<Item = (u32, usize, i64)> + use<> {
        let (down, across) = (self.first_rows.len(), self.across);
        let places = (0..down).flat_map(move |row| (0..across).map(move |column| (row, column)));
        SUM_TILES.into_iter().zip(places).map(|(tile, (row, column))| (tile, row, column))
    }

    /// Clears the sums, or makes them begin with the numbers at an address, one for each column.
    pub(crate) fn begin(&self, b: &mut FunctionBuilder, numbers: Option<ValueId>) {
        let Some(numbers) = numbers else {
            return self.sums().for_each(|(tile, ..)| b.tiles(TileOperation::Zero { tile }));
        };
        // All rows are the same.
        let stride = b.index(0);
        for (tile, _, column) in self.sums() {
            let pointer = b.offset_bytes(numbers, column * ROW_BYTES);
            b.tiles(TileOperation::Load { tile, pointer, stride });
        }
    }

    /// Adds the products of `count` groups, a multiple of those of a register. `right` is the
    /// address of the first row of panels.
    pub(crate) fn add(
        &self,
        cx: &mut KernelContext<'_>,
        count: ValueId,
        left: Left,
        (right, panels): (ValueId, PanelLayout),
    ) -> Result<()> {
        let first = cx.index(0);
        cx.for_each(first, count, self.registers.groups, |cx, group| {
            let row_bytes = cx.index(panels.row_bytes());
            let lefts = cx.offset(left.pointer, group, GROUP_BYTES);
            let rights = cx.offset(right, group, panels.row_bytes());
            for (tile, column) in RIGHT_TILES.into_iter().zip(0..self.across) {
                let pointer = cx.offset_bytes(rights, panels.offset(column * i64::from(TILE_ROWS)));
                cx.tiles(TileOperation::Load { tile, pointer, stride: row_bytes });
            }
            for (number, &row) in self.first_rows.iter().enumerate() {
                let tile = LEFT_TILES[number];
                let pointer = cx.offset(lefts, left.stride, row);
                cx.tiles(TileOperation::Load { tile, pointer, stride: left.stride });
                for (sum, _, column) in self.sums().filter(|&(_, row, _)| row == number) {
                    let right = RIGHT_TILES[column as usize];
                    cx.tiles(TileOperation::Multiply { kind: self.registers.kind, sum, left: tile, right });
                }
            }
            Ok(())
        })
    }

    /// Stores the sums in memory.
    pub(crate) fn store(
        &self,
        cx: &mut KernelContext<'_>,
        scalar: ScalarType,
        parts: &[Columns],
    ) -> Result<StoredSums> {
        let (pointer, row_bytes) = (sums_slot(cx)?, self.across * ROW_BYTES);
        let stride = cx.index(row_bytes);
        for (tile, row, column) in self.sums() {
            let pointer = cx.offset_bytes(pointer, self.first_rows[row] * row_bytes + column * ROW_BYTES);
            cx.tiles(TileOperation::Store { tile, pointer, stride });
        }
        let size = scalar.byte_size() as i64;
        let vector = |part: &Columns| (part.offset * size, Type::vector(scalar, part.lanes));
        Ok(StoredSums { pointer, row_bytes, columns: parts.iter().map(vector).collect() })
    }
}
