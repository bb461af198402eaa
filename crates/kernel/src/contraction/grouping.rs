//! Arithmetic of groups of narrow numbers, which take the place of single summands in tiles.

use crate::context::KernelContext;
use crate::contraction::tile::{Columns, whole_columns, zero};
use crate::index::Index;
use nest::{BinaryOp, ConvertOp, FunctionBuilder, GroupKind, ScalarType, Type, ValueId};
use plan::{Factors, Grouping, Sums};
use std::borrow::Cow;
use support::{Error, Result};

/// The upper bit of each byte of a group.
const UPPER_BITS: i64 = 0x8080_8080_u32 as i32 as i64;

/// Bytes of a lane.
const WORD: u32 = 4;

/// Number of scalar sums that an epilogue takes as one vector.
const JOINED: usize = 4;

/// Adds the products of groups to each lane's sum.
pub(crate) fn multiply_add(
    b: &mut FunctionBuilder,
    grouping: Grouping,
    x: ValueId,
    y: ValueId,
    sum: ValueId,
) -> ValueId {
    let x = if grouping.is_flipped() {
        let bits = b.integer(b.ty(x), UPPER_BITS);
        b.binary(BinaryOp::Xor, x, bits)
    } else {
        x
    };
    b.group_multiply_add(kind(grouping), x, y, sum)
}

/// Returns the factors of a group, by which instructions differ.
pub(crate) fn kind(grouping: Grouping) -> GroupKind {
    match (grouping.factors, grouping.sums) {
        (Factors::Bytes { .. }, Sums::Halves) => GroupKind::SignedByteHalves,
        (Factors::Bytes { .. }, Sums::Across) => GroupKind::SignedByteVectors,
        (Factors::Bytes { is_signed: true, .. }, Sums::Lanes) if grouping.moves_signs => {
            GroupKind::SignedBytesByNarrow
        }
        (Factors::Bytes { is_signed: true, .. }, Sums::Lanes | Sums::Tiles) => GroupKind::SignedBytes,
        (Factors::Bytes { is_signed: true, .. }, Sums::Pairs) => GroupKind::SignedBytePairs,
        (Factors::Bytes { is_signed: false, .. }, Sums::Lanes | Sums::Tiles) => GroupKind::UnsignedBytes,
        (Factors::Bytes { is_signed: false, .. }, Sums::Pairs) => GroupKind::UnsignedBytePairs,
        (Factors::Bf16, Sums::Pairs) => GroupKind::Bf16Pairs,
        (Factors::Bf16, _) => GroupKind::Bf16,
    }
}

/// Sixteen bytes.
fn vector_of_bytes() -> Type {
    Type::vector(ScalarType::I32, 4)
}

/// Loads a group of the left operand, as a scalar or, if rows are multiplied in pairs, as half of
/// a vector. `bytes` is less than a group's size if the group is not whole; the others are then 0.
pub(crate) fn load_group(
    b: &mut FunctionBuilder,
    grouping: Grouping,
    pointer: ValueId,
    bytes: u32,
) -> ValueId {
    if grouping.sums == Sums::Across {
        return b.load(vector_of_bytes(), pointer, 1);
    }
    if grouping.sums != Sums::Pairs {
        return load_bytes(b, pointer, bytes);
    }
    if i64::from(bytes) == grouping.bytes() {
        return b.load(Type::vector(ScalarType::I32, 2), pointer, 1);
    }
    let lower = load_bytes(b, pointer, bytes.min(WORD));
    let upper = b.offset_bytes(pointer, i64::from(WORD));
    let upper = load_bytes(b, upper, bytes.saturating_sub(WORD));
    let both = b.splat(lower, 2);
    b.insert(both, 1, upper)
}

/// Loads the last of `groups` groups of a run, which is not whole, given the address of its own
/// summands. It is loaded with the summands before, whose factors are 0. Floats among them become
/// 0, because they may be infinite.
pub(crate) fn load_last_group(
    b: &mut FunctionBuilder,
    grouping: Grouping,
    pointer: ValueId,
    groups: i64,
) -> ValueId {
    if groups < 2 {
        return load_group(b, grouping, pointer, grouping.tail_bytes());
    }
    let before = grouping.bytes() as u32 - grouping.tail_bytes();
    let pointer = b.offset_bytes(pointer, -i64::from(before));
    let group = load_group(b, grouping, pointer, grouping.bytes() as u32);
    if matches!(grouping.factors, Factors::Bytes { .. }) {
        return group;
    }
    let kept = |bytes: u32| i64::from((u64::from(u32::MAX) << (8 * bytes.min(WORD))) as u32 as i32);
    let ty = b.ty(group);
    let mut mask = b.integer(ty, kept(before));
    if ty.lanes > 1 {
        let upper = b.integer(Type::scalar(ScalarType::I32), kept(before.saturating_sub(WORD)));
        mask = b.insert(mask, 1, upper);
    }
    b.binary(BinaryOp::And, group, mask)
}

/// Loads the groups of a vector of columns: one vector or, if columns are multiplied in pairs, one
/// for each pair.
pub(crate) fn load_columns(
    b: &mut FunctionBuilder,
    grouping: Grouping,
    pointer: ValueId,
    lanes: u32,
    alignment: u32,
) -> Vec<ValueId> {
    if grouping.sums == Sums::Across {
        return vec![b.load(vector_of_bytes(), pointer, alignment.min(16))];
    }
    let ty = Type::vector(ScalarType::I32, lanes);
    let mut load = |number: i64| {
        let pointer = b.offset_bytes(pointer, number * i64::from(lanes) * 4);
        b.load(ty, pointer, alignment.min(4 * lanes))
    };
    (0..grouping.rows()).map(&mut load).collect()
}

/// Number of rows of sums of a tile with this many rows: all rows are in pairs if they are
/// multiplied in pairs.
pub(crate) fn padded_rows(grouping: Option<Grouping>, rows: u32) -> u32 {
    rows.next_multiple_of(grouping.map_or(1, |grouping| grouping.rows() as u32))
}

/// Adds the products of groups of some rows, one row or a pair, to the sums of these rows.
/// `columns` are the groups of each part; see [`load_columns`].
pub(crate) fn multiply_rows(
    b: &mut FunctionBuilder,
    grouping: Grouping,
    rows: &[ValueId],
    (parts, columns): (&[Columns], &[Vec<ValueId>]),
    sums: &mut [ValueId],
) {
    let paired = match *rows {
        [row, next] => Some(b.shuffle(row, next, vec![0, 1, 2, 3])),
        [row] if grouping.sums == Sums::Pairs => Some(b.shuffle(row, row, vec![0, 1, 0, 1])),
        _ => None,
    };
    for (k, (part, columns)) in parts.iter().zip(columns).enumerate() {
        for (number, &column) in columns.iter().enumerate() {
            let element = match paired {
                Some(paired) => paired,
                None if grouping.sums == Sums::Across => rows[0],
                None => b.splat(rows[0], part.lanes),
            };
            let sum = &mut sums[number * parts.len() + k];
            *sum = multiply_add(b, grouping, element, column, *sum);
        }
    }
}

/// Returns a row of sums of these columns that are zero.
pub(crate) fn zeros(
    b: &mut FunctionBuilder,
    grouping: Option<Grouping>,
    scalar: ScalarType,
    parts: &[Columns],
) -> Vec<ValueId> {
    let each = if grouping.is_some_and(|grouping| grouping.sums == Sums::Halves) { 2 } else { 1 };
    parts.iter().map(|part| zero(b, Type::vector(scalar, each * part.lanes))).collect()
}

/// Returns a row of sums that begin with the numbers that the plan packed for all columns.
pub(crate) fn numbers(
    cx: &mut KernelContext<'_>,
    grouping: Option<Grouping>,
    column: &Index,
    parts: &[Columns],
) -> Result<Vec<ValueId>> {
    let grouping = grouping.ok_or_else(|| Error::internal("expected groups"))?;
    let first = first_number(cx, column)?;
    let each = |part: &Columns| {
        let pointer = cx.offset_bytes(first, part.offset * i64::from(WORD));
        let numbers = cx.load(Type::vector(ScalarType::I32, part.lanes), pointer, WORD);
        initial(cx, grouping, numbers)
    };
    Ok(parts.iter().map(each).collect())
}

/// Returns the address of the number with which the sums of a column begin.
pub(crate) fn first_number(cx: &mut KernelContext<'_>, column: &Index) -> Result<ValueId> {
    let packed = cx.packed().get(1).copied();
    let packed = packed.ok_or_else(|| Error::internal("missing numbers with which sums begin"))?;
    let column = cx.scalar_value(column)?;
    Ok(cx.offset(packed, column, i64::from(WORD)))
}

/// Returns the vector of sums that begins with a number for each column.
pub(crate) fn initial(b: &mut FunctionBuilder, grouping: Grouping, columns: ValueId) -> ValueId {
    if grouping.sums != Sums::Halves {
        return columns;
    }
    let ty = b.ty(columns);
    let zeros = b.integer(ty, 0);
    b.shuffle(columns, zeros, (0..ty.lanes).flat_map(|lane| [lane, ty.lanes + lane]).collect())
}

/// Adds the two lanes of each column.
fn add_halves(b: &mut FunctionBuilder, sum: ValueId) -> ValueId {
    let lanes = b.ty(sum).lanes;
    let [even, odd] = [0, 1].map(|first| b.shuffle(sum, sum, (first..lanes).step_by(2).collect()));
    b.add(even, odd)
}

/// Returns the sums of a tile's rows, row by row. There are `per_row` vectors per row.
pub(crate) fn rows_of(
    b: &mut FunctionBuilder,
    grouping: Option<Grouping>,
    sums: Vec<ValueId>,
    rows: u32,
    per_row: usize,
) -> Vec<ValueId> {
    match grouping.map_or(Sums::Lanes, |grouping| grouping.sums) {
        Sums::Lanes | Sums::Across | Sums::Tiles => return sums,
        Sums::Halves => return sums.into_iter().map(|sum| add_halves(b, sum)).collect(),
        Sums::Pairs => {}
    }
    let mut all = Vec::new();
    for pair in sums.chunks(2 * per_row) {
        let (first, second) = pair.split_at(per_row);
        for lanes in [[0, 1, 4, 5], [2, 3, 6, 7]] {
            let both = first.iter().zip(second);
            all.extend(both.map(|(&first, &second)| b.shuffle(first, second, lanes.to_vec())));
        }
    }
    all.truncate(rows as usize * per_row);
    all
}

/// Joins scalar sums of neighboring columns to a vector, with which an epilogue computes all of
/// them at once. Returns the sums of a tile, row by row, and the vectors of columns of a row.
pub(crate) fn joined<'p>(
    b: &mut FunctionBuilder,
    grouping: Option<Grouping>,
    sums: Vec<ValueId>,
    parts: &'p [Columns],
) -> (Vec<ValueId>, Cow<'p, [Columns]>) {
    let is_across = grouping.is_some_and(|grouping| grouping.sums == Sums::Across);
    if !is_across || parts != whole_columns(JOINED as u32, 1) {
        return (sums, Cow::Borrowed(parts));
    }
    let mut join = |row: &[ValueId]| {
        let first = b.splat(row[0], JOINED as u32);
        (1..).zip(&row[1..]).fold(first, |vector, (lane, &sum)| b.insert(vector, lane, sum))
    };
    let vectors = sums.chunks_exact(JOINED).map(&mut join).collect();
    (vectors, Cow::Owned(whole_columns(1, JOINED as u32)))
}

/// Returns what the sums of columns in a panel's header add to sums of flipped bytes. The header
/// contains the correction for signed bytes that become unsigned.
pub(crate) fn correction(b: &mut FunctionBuilder, grouping: Grouping, sums: ValueId) -> ValueId {
    if matches!(grouping.factors, Factors::Bytes { is_signed: true, .. }) {
        let zero = b.integer(b.ty(sums), 0);
        return b.sub(zero, sums);
    }
    sums
}

/// Loads up to four bytes as a group whose other bytes are 0.
fn load_bytes(b: &mut FunctionBuilder, pointer: ValueId, count: u32) -> ValueId {
    if count == 4 {
        return b.load(Type::scalar(ScalarType::I32), pointer, 1);
    }
    let mut group = None;
    let mut at = 0;
    while at < count {
        let bytes = if count - at >= 2 { 2 } else { 1 };
        let scalar = if bytes == 2 { ScalarType::I16 } else { ScalarType::I8 };
        let from = b.offset_bytes(pointer, i64::from(at));
        let part = b.load(Type::scalar(scalar), from, 1);
        let part = b.convert(ConvertOp::ZeroExtend, part, ScalarType::I32);
        let shift = b.integer(Type::scalar(ScalarType::I32), i64::from(8 * at));
        let part = if at == 0 { part } else { b.binary(BinaryOp::ShiftLeft, part, shift) };
        group = Some(match group {
            Some(group) => b.or(group, part),
            None => part,
        });
        at += bytes;
    }
    group.unwrap_or_else(|| b.integer(Type::scalar(ScalarType::I32), 0))
}
