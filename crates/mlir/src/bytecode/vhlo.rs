//! Attributes and types of VHLO; their numbers are those of `VhloBytecode.cpp` in StableHLO.
//!
//! They come out as the text of a StableHLO program has them: an enumerator as its name, a record as a dictionary.

use super::cursor::Cursor;
use super::pool::Pool;
use super::{builtin, damaged};
use crate::attribute::{Attribute, Attributes};
use crate::types::{Quantization, Type};
use shape::PrimitiveType;
use support::Result;

pub(super) fn attribute(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let kind = cursor.number()?;
    if let Some(names) = enumerators(kind) {
        let value = cursor.index()?;
        let name = names.get(value).filter(|name| !name.is_empty());
        let name =
            name.ok_or_else(|| damaged(format_args!("enumerator {value} of vhlo attribute {kind}")))?;
        return Ok(Attribute::Keyword((*name).to_owned()));
    }
    Ok(match kind {
        1 => Attribute::list(pool.next_attributes(cursor)?),
        2 => Attribute::Bool(cursor.number()? != 0),
        6 => {
            let mut fields = Attributes::default();
            for _ in 0..cursor.count()? {
                let name = pool.text(cursor)?;
                fields.set(name, pool.next_attribute(cursor)?);
            }
            Attribute::Dictionary(fields)
        }
        8 => {
            let number_type = pool.next_type(cursor)?;
            Attribute::Float(builtin::float(&number_type, cursor)?)
        }
        9 => {
            let number_type = pool.next_type(cursor)?;
            builtin::integer(&number_type, cursor)?
        }
        14 => Attribute::String(pool.string(cursor)?),
        15 => {
            let tensor = pool.next_type(cursor)?;
            Attribute::Elements(builtin::elements(&tensor, cursor.blob()?)?)
        }
        17 => Attribute::Type(pool.next_type(cursor)?),
        kind => Attribute::Dictionary(record(pool, kind, cursor)?),
    })
}

/// The names of an enumeration's values, by number.
fn enumerators(kind: u64) -> Option<&'static [&'static str]> {
    Some(match kind {
        3 => &["EQ", "NE", "GE", "GT", "LE", "LT"],
        4 => &["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"],
        5 => &super::upgrade::API_VERSIONS,
        7 => &["FFT", "IFFT", "RFFT", "IRFFT"],
        11 => &["DEFAULT", "HIGH", "HIGHEST"],
        12 => &["DEFAULT", "THREE_FRY", "PHILOX"],
        13 => &["", "UNIFORM", "NORMAL"],
        16 => &["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"],
        19 => &["DEFAULT", "HIGHEST", "TOLERANCE"],
        _ => return None,
    })
}

/// The fields of an attribute that has several.
fn record(pool: &mut Pool<'_>, kind: u64, cursor: &mut Cursor<'_>) -> Result<Attributes> {
    let mut fields = Attributes::default();
    match kind {
        10 => {
            let list = |numbers: Vec<i64>| {
                Attribute::list(numbers.into_iter().map(|number| Attribute::Integer(number.into())).collect())
            };
            fields.set("output_tuple_indices", list(signed_list(cursor)?));
            fields.set("operand_index", Attribute::Integer(cursor.signed()?.into()));
            fields.set("operand_tuple_indices", list(signed_list(cursor)?));
        }
        18 => {
            let bound = |bound: i64| if bound == i64::MIN { -1 } else { bound };
            let bounds = signed_list(cursor)?.into_iter().map(bound).collect();
            fields.set("bounds", Attribute::Integers(bounds));
        }
        20 => {
            let double = Type::Scalar(PrimitiveType::F64);
            fields.set("atol", Attribute::Float(builtin::float(&double, cursor)?));
            fields.set("rtol", Attribute::Float(builtin::float(&double, cursor)?));
            fields.set("ulps", Attribute::Integer(cursor.signed()?.into()));
            fields.set("mode", pool.next_attribute(cursor)?);
        }
        21 => {
            fields.set("pre_size", Attribute::Integer(cursor.signed()?.into()));
            fields.set("size", Attribute::Integer(cursor.signed()?.into()));
        }
        22 => {
            fields.set("name", pool.next_attribute(cursor)?);
            if cursor.number()? != 0 {
                fields.set("sub_axis_info", pool.next_attribute(cursor)?);
            }
        }
        23 => {
            fields.set("mesh", pool.next_attribute(cursor)?);
            fields.set("axes", pool.next_attribute(cursor)?);
        }
        24 => {
            fields.set("name", pool.next_attribute(cursor)?);
            fields.set("size", Attribute::Integer(cursor.signed()?.into()));
        }
        25 => {
            fields.set("axes", pool.next_attribute(cursor)?);
            if let Some(devices) = pool.next_optional_attribute(cursor)? {
                fields.set("device_ids", devices);
            }
        }
        kind => return Err(newer(format_args!("attribute {kind}"))),
    }
    Ok(fields)
}

/// An error about what only a newer StableHLO has.
pub(super) fn newer(what: impl std::fmt::Display) -> support::Error {
    support::Error::unsupported(format!(
        "vhlo {what}, which StableHLO has not up to version 1.20.0: write the program for an older version"
    ))
}

fn signed_list(cursor: &mut Cursor<'_>) -> Result<Vec<i64>> {
    (0..cursor.count()?).map(|_| cursor.signed()).collect()
}

pub(super) fn read_type(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Type> {
    let kind = cursor.number()?;
    if let Some(number) = number_type(kind) {
        return Ok(number);
    }
    Ok(match kind {
        1 => {
            let part = pool.next_type(cursor)?;
            builtin::complex(&part)
        }
        8 => Type::Function { inputs: pool.next_types(cursor)?, results: pool.next_types(cursor)? },
        9 => Type::Index,
        20 => {
            let sizes = builtin::sizes(cursor)?;
            builtin::tensor(sizes, pool.next_type(cursor)?, None)
        }
        21 => {
            let encoding = pool.next_attribute(cursor)?;
            let sizes = builtin::sizes(cursor)?;
            builtin::tensor(sizes, pool.next_type(cursor)?, Some(encoding))
        }
        22 => Type::Token,
        23 => Type::Tuple(pool.next_types(cursor)?),
        24 | 30 => quantized(pool, cursor, kind == 30)?,
        33 => Type::None,
        25 => Type::Other("an unranked tensor".to_owned()),
        26 => Type::Other("!shape.witness".to_owned()),
        41 => Type::Other("a buffer".to_owned()),
        42 => Type::Other("!stablehlo.future".to_owned()),
        kind => return Err(newer(format_args!("type {kind}"))),
    })
}

/// The types of numbers.
fn number_type(kind: u64) -> Option<Type> {
    use PrimitiveType::*;
    Some(Type::Scalar(match kind {
        0 => Pred,
        2 => Bf16,
        3 => F16,
        4 => F32,
        5 => F64,
        6 => F8e4m3fn,
        7 => F8e5m2,
        10 => S4,
        11 => S8,
        12 => S16,
        13 => S32,
        14 => S64,
        15 => U4,
        16 => U8,
        17 => U16,
        18 => U32,
        19 => U64,
        31 => S2,
        32 => U2,
        27 => F8e4m3fnuz,
        28 => F8e5m2fnuz,
        29 => F8e4m3b11fnuz,
        34 => return other("tf32"),
        35 => F8e4m3,
        36 => F8e3m4,
        37 => F4e2m1fn,
        38 => F6e2m3fn,
        39 => F6e3m2fn,
        40 => F8e8m0fnu,
        _ => return None,
    }))
}

/// A type that nothing computes with, as text has it.
fn other(name: &str) -> Option<Type> {
    Some(Type::Other(name.to_owned()))
}

/// Integers that stand for real numbers, with a scale each for the indices of a dimension or one for all.
fn quantized(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>, is_per_axis: bool) -> Result<Type> {
    let is_signed = cursor.number()? & 1 == 1;
    let Type::Scalar(storage) = pool.next_type(cursor)? else {
        return Err(damaged("quantized numbers that are stored as none"));
    };
    let Type::Scalar(expressed) = pool.next_type(cursor)? else {
        return Err(damaged("quantized numbers that stand for none"));
    };
    let double = Type::Scalar(PrimitiveType::F64);
    let (dimension, scales, zero_points, range);
    if is_per_axis {
        dimension = Some(cursor.index()?);
        range = (cursor.signed()?, cursor.signed()?);
        scales = (0..cursor.count()?).map(|_| builtin::float(&double, cursor)).collect::<Result<_>>()?;
        zero_points = signed_list(cursor)?;
    } else {
        dimension = None;
        scales = vec![builtin::float(&double, cursor)?];
        zero_points = vec![cursor.signed()?];
        range = (cursor.signed()?, cursor.signed()?);
    }
    let storage = with_sign(storage, is_signed);
    let width = storage.bit_width();
    let whole = if is_signed {
        (-(1i64 << (width - 1)), (1i64 << (width - 1)) - 1)
    } else {
        (0, (1i64 << width.min(62)) - 1)
    };
    let storage_range = (range != whole).then_some(range);
    Ok(Type::Quantized(Box::new(Quantization {
        storage,
        storage_range,
        expressed,
        dimension,
        scales,
        zero_points,
    })))
}

/// The integers of the same width, with a sign or without.
fn with_sign(storage: PrimitiveType, is_signed: bool) -> PrimitiveType {
    use PrimitiveType::*;
    match (storage.bit_width(), is_signed) {
        (2, true) => S2,
        (4, true) => S4,
        (8, true) => S8,
        (16, true) => S16,
        (32, true) => S32,
        (2, false) => U2,
        (4, false) => U4,
        (8, false) => U8,
        (16, false) => U16,
        (32, false) => U32,
        _ => storage,
    }
}
