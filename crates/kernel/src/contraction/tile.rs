//! Shared code for the register tiles of dots and convolutions: their arithmetic, vectors of
//! columns at the end of a row, and the transition to the epilogue.

use crate::context::{IndexKey, KernelContext};
use crate::contraction::destination;
use crate::element::{Element, decode, memory_type, normalize};
use crate::elemental::conversion;
use crate::index::{Index, Position};
use hlo::InstructionId;
use nest::{
    Expression, FunctionBuilder, Predicate, RegionBuilder as _, ScalarType, Type, ValueId, in_turn,
    with_joined_lookups,
};
use plan::PanelLayout;
use shape::PrimitiveType;
use support::{Error, Result};

/// A vector of columns within a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    /// The first column, relative to the tile's first.
    pub(crate) offset: i64,
    pub(crate) lanes: u32,
    /// Number of columns that exist. The others are padding or are not loaded.
    pub(crate) valid: u32,
}

/// Access to the last columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// From panels, which are padded. Reads beyond the last column.
    Padded,
    /// From panels, in whole vectors only.
    Whole,
    /// From the operand, with a mask.
    Masked,
    /// From the operand, in smaller and smaller vectors.
    Narrowing,
}

/// Loads neighboring elements (one if the type is complex) and converts them to the accumulator's
/// type.
pub(crate) fn load(
    b: &mut FunctionBuilder,
    from: PrimitiveType,
    accumulator: PrimitiveType,
    pointer: ValueId,
    lanes: u32,
) -> Result<Element> {
    let ty = Type::vector(memory_type(from), lanes);
    let part = ty.scalar.byte_size() as u32;
    let raw = b.load(ty, pointer, part);
    let element = if from.is_complex() {
        let imaginary = b.offset_bytes(pointer, i64::from(part));
        Element::Complex(raw, b.load(ty, imaginary, part))
    } else {
        Element::Real(decode(b, from, raw))
    };
    conversion::convert(b, from, accumulator, element)
}

/// Returns the vectors of a whole tile.
pub(crate) fn whole_columns(vectors: u32, lanes: u32) -> Vec<Columns> {
    (0..vectors).map(|v| Columns { offset: i64::from(v * lanes), lanes, valid: lanes }).collect()
}

/// Returns the vectors, with at most `lanes` lanes, of `rest` columns that do not fill a tile.
pub(crate) fn last_columns(rest: i64, lanes: u32, reading: Reading) -> Vec<Columns> {
    let (mut vectors, mut offset) = (Vec::new(), 0);
    while offset < rest {
        let valid = i64::from(lanes).min(rest - offset) as u32;
        let vector = match reading {
            Reading::Padded => Columns { offset, lanes: valid.next_power_of_two(), valid },
            Reading::Masked | Reading::Whole => Columns { offset, lanes, valid },
            Reading::Narrowing => {
                let lanes = 1 << valid.ilog2();
                Columns { offset, lanes, valid: lanes }
            }
        };
        vectors.push(vector);
        offset += i64::from(vector.valid);
    }
    vectors
}

impl Columns {
    /// Loads only the columns that exist.
    pub(crate) fn load_masked(
        self,
        b: &mut FunctionBuilder,
        scalar: ScalarType,
        pointer: ValueId,
        alignment: u32,
    ) -> ValueId {
        let lanes = b.iota(ScalarType::I32, self.lanes);
        let valid = b.integer(Type::vector(ScalarType::I32, self.lanes), i64::from(self.valid));
        let mask = b.compare(Predicate::Less, lanes, valid);
        b.load_masked(Type::vector(scalar, self.lanes), pointer, alignment, mask)
    }

    /// Splits the columns that exist into pieces whose lanes are powers of two. `body` receives the
    /// first column of each piece, relative to the tile's first, the number of lanes, and the
    /// values.
    pub(crate) fn pieces(
        self,
        cx: &mut KernelContext<'_>,
        vector: ValueId,
        mut body: impl FnMut(&mut KernelContext<'_>, i64, u32, ValueId) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        while done < self.valid {
            let lanes = 1 << (self.valid - done).ilog2();
            let value = if lanes == self.lanes {
                vector
            } else if lanes == 1 {
                cx.extract(vector, done)
            } else {
                cx.shuffle(vector, vector, (done..done + lanes).collect())
            };
            body(cx, self.offset + i64::from(done), lanes, value)?;
            done += lanes;
        }
        Ok(())
    }
}

/// Returns the address of a column in packed panels whose first element is at `first`.
pub(crate) fn column_of_panels(
    cx: &mut KernelContext<'_>,
    panels: PanelLayout,
    first: ValueId,
    column: &Index,
) -> Result<ValueId> {
    let (number, within) = cx.div_rem(column, panels.width)?;
    let start = number.times(panels.panel_bytes()).plus(&within.times(panels.element_bytes));
    let start = cx.scalar_value(&start)?;
    Ok(cx.offset(first, start, 1))
}

/// Returns the address of a panel's first summand, given that of the panel.
pub(crate) fn after_header(b: &mut FunctionBuilder, panels: PanelLayout, panel: ValueId) -> ValueId {
    if panels.header > 0 { b.offset_bytes(panel, panels.header_bytes()) } else { panel }
}

/// Emits the epilogue of a contraction for `lanes` neighboring elements, and stores the result.
pub(crate) fn finish(
    cx: &mut KernelContext<'_>,
    contraction: InstructionId,
    accumulator: PrimitiveType,
    position: &Position,
    lanes: u32,
    value: Element,
) -> Result<()> {
    let element_type = cx.shape(contraction)?.element_type;
    cx.with_lanes(lanes, |cx| {
        let value =
            if accumulator == element_type { value } else { value.map(|v| normalize(cx, element_type, v)) };
        let position = cx.epilogue_of(contraction)?.position(cx, position)?;
        let value = cx.epilogue(contraction, value, &position)?;
        let position = destination::in_result(cx, position)?;
        let result = cx.results()[0].clone();
        cx.store_at(&result, &position, value)
    })
}

/// Passes the sums of a tile to `finish`, with the row and the number of the sum in its row. There
/// are `per_row` sums per row, of `summands` products or groups of them. If the epilogue is long,
/// the rows are a loop: the registers that hold the sums are then free for its values, and its code
/// exists once for all rows.
pub(crate) fn finish_rows(
    cx: &mut KernelContext<'_>,
    contraction: InstructionId,
    sums: Vec<ValueId>,
    per_row: usize,
    summands: i64,
    mut finish: impl FnMut(&mut KernelContext<'_>, &Index, usize, ValueId) -> Result<()>,
) -> Result<()> {
    let rows = sums.len() / per_row;
    let lookup_lanes = cx.target().byte_lookup_lanes();
    let are_floats = sums.first().is_some_and(|&sum| cx.ty(sum).scalar.is_float());
    let summands = if are_floats { 0 } else { summands };
    let size = sums.iter().map(|&sum| bytes_of(cx.ty(sum))).max().unwrap_or(0) as i64;
    let fits = sums.len() as i64 * size <= slot_bytes(cx) as i64;
    if rows < 2 || !fits || !cx.epilogue_of(contraction)?.is_apart(summands) {
        // One vector of columns after the other, so that few of their constants are in registers.
        let mut places = (0..per_row).flat_map(|column| (0..rows).map(move |row| (row, column)));
        return with_joined_lookups(cx, lookup_lanes, |cx| {
            places.try_for_each(|(row, column)| {
                finish(cx, &Index::constant(row as i64), column, sums[row * per_row + column])
            })
        });
    }
    let pointer = sums_slot(cx)?;
    let columns = (0..).zip(&sums[..per_row]).map(|(k, &sum)| (k * size, cx.ty(sum))).collect();
    let stored = StoredSums { pointer, row_bytes: per_row as i64 * size, columns };
    for (number, &sum) in sums.iter().enumerate() {
        let pointer = cx.offset_bytes(pointer, number as i64 * size);
        let alignment = stored.alignment(cx.ty(sum));
        cx.store(sum, pointer, alignment);
    }
    stored.finish(cx, contraction, rows, finish)
}

/// Sums of a tile in memory.
#[derive(Clone, Debug)]
pub(crate) struct StoredSums {
    /// The address, aligned to 64 bytes.
    pub(crate) pointer: ValueId,
    /// Bytes from a row to the next one.
    pub(crate) row_bytes: i64,
    /// Position in bytes and type of each vector of a row.
    pub(crate) columns: Vec<(i64, Type)>,
}

impl StoredSums {
    /// Passes the sums of `rows` rows to `finish`, with the row and the number of the sum in its
    /// row, in a loop over the rows.
    pub(crate) fn finish(
        &self,
        cx: &mut KernelContext<'_>,
        contraction: InstructionId,
        rows: usize,
        mut finish: impl FnMut(&mut KernelContext<'_>, &Index, usize, ValueId) -> Result<()>,
    ) -> Result<()> {
        let (per_row, lookup_lanes) = (self.columns.len(), cx.target().byte_lookup_lanes());
        // Interleaving some vectors keeps the arithmetic units busy while their values still fit
        // into the registers. Bytes that are looked up are few, and joined they fill one.
        let looks_up = cx.epilogue_of(contraction)?.looks_up_bytes();
        let at_once = if cx.target().vector_registers >= 32 || looks_up && lookup_lanes > 1 { 4 } else { 2 };
        let fills = |&step: &usize| {
            step <= rows && step * per_row <= at_once && (looks_up || rows.is_multiple_of(step))
        };
        let step = [4, 2].into_iter().find(fills).unwrap_or(1);
        let mut emit = |cx: &mut KernelContext<'_>, row: &Index, step: usize| {
            let first = cx.scalar_value(row)?;
            let at = cx.offset(self.pointer, first, self.row_bytes);
            with_joined_lookups(cx, lookup_lanes, |cx| {
                in_turn(cx, 0..step * per_row, at_once, |cx, number| {
                    let (within, column) = (number / per_row, number % per_row);
                    let (offset, ty) = self.columns[column];
                    let pointer = cx.offset_bytes(at, within as i64 * self.row_bytes + offset);
                    let sum = cx.load(ty, pointer, self.alignment(ty));
                    finish(cx, &row.plus_constant(within as i64), column, sum)
                })
            })
        };
        let rest = rows % step;
        cx.for_range(0, (rows - rest) as i64, step as i64, |cx, row| emit(cx, &row, step))?;
        if rest > 0 { emit(cx, &Index::constant((rows - rest) as i64), rest) } else { Ok(()) }
    }

    /// Returns the alignment of a sum.
    fn alignment(&self, ty: Type) -> u32 {
        let places = self.columns.iter().fold(self.row_bytes, |all, (offset, _)| all | offset);
        (bytes_of(ty) as u32).min(1 << places.trailing_zeros().min(6))
    }
}

/// Returns the size of all lanes in bytes.
fn bytes_of(ty: Type) -> usize {
    ty.scalar.byte_size() * ty.lanes as usize
}

/// Returns the size in bytes of all vector registers, or of the tile registers of sums.
fn slot_bytes(cx: &KernelContext<'_>) -> u64 {
    let vectors = u64::from(cx.target().vector_registers) * u64::from(cx.target().vector_bytes);
    if cx.target().has_tile_products { vectors.max(SUM_TILES_BYTES) } else { vectors }
}

/// Size in bytes of the tile registers of sums.
const SUM_TILES_BYTES: u64 = 4 << 10;

/// Returns stack memory for the sums of a tile. All tiles of a kernel share it.
pub(crate) fn sums_slot(cx: &mut KernelContext<'_>) -> Result<ValueId> {
    if let Some(slot) = cx.known_index(&IndexKey::Sums) {
        return Ok(slot);
    }
    let bytes = slot_bytes(cx);
    let slot = cx.outside(1, |b| b.value(Type::PTR, Expression::StackSlot { bytes, alignment: 64 }));
    cx.remember_index(IndexKey::Sums, slot)
}

/// Returns the lane type of an accumulator.
pub(crate) fn scalar_type(element_type: PrimitiveType) -> Result<ScalarType> {
    use PrimitiveType::*;
    Ok(match element_type {
        S8 | U8 => ScalarType::I8,
        S16 | U16 => ScalarType::I16,
        S32 | U32 => ScalarType::I32,
        S64 | U64 => ScalarType::I64,
        F32 | C64 => ScalarType::F32,
        F64 | C128 => ScalarType::F64,
        other => return Err(Error::internal(format!("expected an accumulator type, got {other}"))),
    })
}

/// `x * y + sum` in the accumulator's arithmetic.
pub(crate) fn multiply_add(b: &mut FunctionBuilder, x: ValueId, y: ValueId, sum: ValueId) -> ValueId {
    if b.ty(x).scalar.is_float() {
        return b.multiply_add(x, y, sum);
    }
    let product = b.mul(x, y);
    b.add(product, sum)
}

/// Returns the additive identity of a type.
pub(crate) fn zero(b: &mut FunctionBuilder, ty: Type) -> ValueId {
    if ty.scalar.is_float() { b.float(ty, 0.0) } else { b.integer(ty, 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_columns_are_in_vectors_that_fit() {
        let lanes = |rest, reading| -> Vec<(u32, u32)> {
            last_columns(rest, 16, reading).iter().map(|c| (c.lanes, c.valid)).collect()
        };
        assert_eq!(lanes(24, Reading::Padded), [(16, 16), (8, 8)]);
        assert_eq!(lanes(21, Reading::Padded), [(16, 16), (8, 5)]);
        assert_eq!(lanes(21, Reading::Masked), [(16, 16), (16, 5)]);
        assert_eq!(lanes(21, Reading::Whole), [(16, 16), (16, 5)]);
        assert_eq!(lanes(21, Reading::Narrowing), [(16, 16), (4, 4), (1, 1)]);
    }
}
