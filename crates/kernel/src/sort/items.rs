//! Items of a sort: conversion of elements and places to words, and back.

use super::network::{Item, Rows};
use crate::context::KernelContext;
use crate::context::parameters::Memory;
use crate::element::Element;
use crate::elemental;
use crate::index::Position;
use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, UnaryOp, ValueId};
use plan::{SortItems, SortKey, SortPlan};
use shape::PrimitiveType;
use support::Result;

impl Rows {
    pub(super) fn of(plan: &SortPlan) -> Self {
        let word = if plan.items.bits() == 64 { ScalarType::I64 } else { ScalarType::I32 };
        Self { word, words: plan.items.words(), lanes: plan.lanes }
    }
}

/// Returns the array of keys as integers if its type allows: the bits are the key, except for the
/// order.
fn as_integers(key: &SortKey, memory: &Memory) -> Memory {
    let mut bits = memory.clone();
    bits.shape.element_type = match key.element_type {
        PrimitiveType::Pred => PrimitiveType::U8,
        t if key.is_element() && t.is_floating_point() && t.byte_size() == 2 => PrimitiveType::S16,
        t => t,
    };
    bits
}

fn integer_of(bits: u32) -> ScalarType {
    match bits {
        8 => ScalarType::I8,
        16 => ScalarType::I16,
        32 => ScalarType::I32,
        _ => ScalarType::I64,
    }
}

/// Flips the bits below the sign of negative floats, as in total order. The function is its own
/// inverse.
fn flip(b: &mut FunctionBuilder, bits: ValueId) -> ValueId {
    let ty = b.ty(bits);
    let last = b.integer(ty, 8 * ty.scalar.byte_size() as i64 - 1);
    let one = b.integer(ty, 1);
    let sign = b.binary(BinaryOp::ShiftRightArithmetic, bits, last);
    let below = b.binary(BinaryOp::ShiftRightLogical, sign, one);
    b.binary(BinaryOp::Xor, bits, below)
}

/// Maps the order of unsigned integers to that of signed ones, and back.
fn flip_sign(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let ty = b.ty(value);
    let sign = b.integer(ty, -1 << (8 * ty.scalar.byte_size() - 1));
    b.binary(BinaryOp::Xor, value, sign)
}

fn largest(b: &mut FunctionBuilder, ty: Type) -> ValueId {
    b.integer(ty, i64::MAX >> (64 - 8 * ty.scalar.byte_size()))
}

/// True if the signed order of the bits must be flipped to be that of the type.
fn is_flipped(key: &SortKey) -> bool {
    key.element_type.is_unsigned_integer() || key.element_type == PrimitiveType::Pred
}

/// Returns the keys of the elements at a position: integers that increase in sort order. Unordered
/// NaNs have the largest key, which no other element has.
pub(crate) fn read_keys(
    cx: &mut KernelContext<'_>,
    key: &SortKey,
    memory: &Memory,
    position: &Position,
) -> Result<ValueId> {
    let value = cx.load_at(&as_integers(key, memory), position)?.real();
    let ty = cx.ty(value);
    let mut is_nan = None;
    let mut integer = if ty.scalar.is_float() {
        let value = if key.is_total {
            value
        } else {
            is_nan = Some(cx.compare(Predicate::NotEqual, value, value));
            let zero = cx.float(ty, 0.0);
            let is_zero = cx.compare(Predicate::Equal, value, zero);
            cx.select(is_zero, zero, value)
        };
        let bits = cx.bitcast(value, ty.with_scalar(integer_of(8 * ty.scalar.byte_size() as u32)));
        flip(cx, bits)
    } else if key.element_type.is_floating_point() {
        flip(cx, value)
    } else if is_flipped(key) {
        flip_sign(cx, value)
    } else {
        value
    };
    if key.is_falling {
        integer = cx.unary(UnaryOp::Not, integer);
    }
    if let Some(is_nan) = is_nan {
        let ty = cx.ty(integer);
        let last = largest(cx, ty);
        integer = cx.select(is_nan, last, integer);
    }
    Ok(integer)
}

/// Writes the elements with these keys.
pub(crate) fn write_keys(
    cx: &mut KernelContext<'_>,
    key: &SortKey,
    memory: &Memory,
    position: &Position,
    keys: ValueId,
) -> Result<()> {
    let mut value = keys;
    if key.is_falling {
        value = cx.unary(UnaryOp::Not, value);
    }
    if key.element_type.is_floating_point() {
        value = flip(cx, value);
        if key.element_type.byte_size() >= 4 {
            let scalar = if key.element_type.byte_size() == 8 { ScalarType::F64 } else { ScalarType::F32 };
            let ty = cx.ty(value).with_scalar(scalar);
            value = cx.bitcast(value, ty);
        }
    } else if is_flipped(key) {
        value = flip_sign(cx, value);
    }
    cx.store_at(&as_integers(key, memory), position, Element::Real(value))
}

/// Returns the number of bits to the right of the key in a packed word.
fn place_bits(plan: &SortPlan) -> i64 {
    i64::from(plan.items.bits()) - i64::from(plan.key.bits())
}

/// Packs keys and their places (`I64`, with the same number of lanes) into items.
pub(crate) fn items(b: &mut FunctionBuilder, plan: &SortPlan, keys: ValueId, places: ValueId) -> Item {
    let word = Rows::of(plan).word;
    let keys = b.convert(ConvertOp::SignExtend, keys, word);
    if matches!(plan.items, SortItems::Keys(_)) {
        return vec![keys];
    }
    let mut places = b.convert(ConvertOp::Truncate, places, word);
    if plan.key.last_first {
        let last = b.integer(b.ty(places), plan.sizes[1] - 1);
        places = b.sub(last, places);
    }
    if plan.items == SortItems::Pairs {
        return vec![keys, places];
    }
    let shift = b.integer(b.ty(keys), place_bits(plan));
    let high = b.binary(BinaryOp::ShiftLeft, keys, shift);
    vec![b.or(high, places)]
}

/// Returns the keys of items.
pub(crate) fn keys_of(b: &mut FunctionBuilder, plan: &SortPlan, item: &[ValueId]) -> ValueId {
    let mut key = item[0];
    if matches!(plan.items, SortItems::Packed(_)) {
        let shift = b.integer(b.ty(key), place_bits(plan));
        key = b.binary(BinaryOp::ShiftRightArithmetic, key, shift);
    }
    b.convert(ConvertOp::Truncate, key, integer_of(plan.key.bits()))
}

/// Returns the original places of items, as `I64`.
pub(crate) fn places_of(b: &mut FunctionBuilder, plan: &SortPlan, item: &[ValueId]) -> ValueId {
    let mut places = item[item.len() - 1];
    if matches!(plan.items, SortItems::Packed(_)) {
        let mask = b.integer(b.ty(places), (1 << place_bits(plan)) - 1);
        places = b.and(places, mask);
    }
    if plan.key.last_first {
        let last = b.integer(b.ty(places), plan.sizes[1] - 1);
        places = b.sub(last, places);
    }
    b.convert(ConvertOp::ZeroExtend, places, ScalarType::I64)
}

/// True if an item has the key of unordered NaNs.
pub(super) fn is_nan(b: &mut FunctionBuilder, plan: &SortPlan, item: &[ValueId]) -> ValueId {
    let key = keys_of(b, plan, item);
    let last = largest(b, b.ty(key));
    b.compare(Predicate::Equal, key, last)
}

/// Writes places, converted to the type of the array.
pub(crate) fn write_places(
    cx: &mut KernelContext<'_>,
    memory: &Memory,
    position: &Position,
    places: ValueId,
) -> Result<()> {
    let to = memory.shape.element_type;
    let places = elemental::convert(cx, PrimitiveType::S64, to, Element::Real(places))?;
    cx.store_at(memory, position, places)
}
