//! Arithmetic of groups of narrow numbers, which take the place of single summands in tiles.

use nest::{BinaryOp, ConvertOp, FunctionBuilder, GroupKind, ScalarType, Type, ValueId};
use plan::{Factors, Grouping};

/// The upper bit of each byte of a group.
const UPPER_BITS: i64 = 0x8080_8080_u32 as i32 as i64;

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
    let kind = match grouping.factors {
        Factors::Bytes { is_signed: true, .. } => GroupKind::SignedBytes,
        Factors::Bytes { is_signed: false, .. } => GroupKind::UnsignedBytes,
        Factors::Bf16 => GroupKind::Bf16,
        Factors::F16 => GroupKind::F16,
    };
    b.group_multiply_add(kind, x, y, sum)
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

/// Loads one to three bytes as a group whose other bytes are 0.
pub(crate) fn load_bytes(b: &mut FunctionBuilder, pointer: ValueId, count: u32) -> ValueId {
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
