//! Attributes and types of VHLO.
//!
//! The result matches the text of a StableHLO program: an enumerator becomes its name, a record a
//! dictionary.

use super::cursor::Cursor;
use super::pool::Pool;
use super::vhlo_codes::{AttributeCode, TypeCode};
use super::{builtin, damaged, newer};
use crate::attribute::{Attribute, Attributes};
use crate::types::{Quantization, Type};
use shape::PrimitiveType;
use support::Result;

pub(super) fn attribute(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let number = cursor.number()?;
    let code = AttributeCode::from_number(number);
    let code = code.ok_or_else(|| newer(format_args!("attribute {number}")))?;
    let mut enumerator = |names: &[&str]| {
        let value = cursor.index()?;
        let name = names.get(value).filter(|name| !name.is_empty());
        let name = name
            .ok_or_else(|| damaged(format_args!("unknown enumerator {value} of vhlo attribute {number}")))?;
        Ok(Attribute::Keyword((*name).to_owned()))
    };
    match code {
        AttributeCode::ComparisonDirection => enumerator(&["EQ", "NE", "GE", "GT", "LE", "LT"]),
        AttributeCode::ComparisonType => enumerator(&["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]),
        AttributeCode::CustomCallApiVersion => enumerator(&API_VERSIONS),
        AttributeCode::FftType => enumerator(&["FFT", "IFFT", "RFFT", "IRFFT"]),
        AttributeCode::Precision => enumerator(&["DEFAULT", "HIGH", "HIGHEST"]),
        AttributeCode::RngAlgorithm => enumerator(&["DEFAULT", "THREE_FRY", "PHILOX"]),
        AttributeCode::RngDistribution => enumerator(&["", "UNIFORM", "NORMAL"]),
        AttributeCode::Transpose => {
            enumerator(&["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
        }
        AttributeCode::ResultAccuracyMode => enumerator(&["DEFAULT", "HIGHEST", "TOLERANCE"]),
        AttributeCode::Array => Ok(Attribute::list(pool.next_attributes(cursor)?)),
        AttributeCode::Boolean => Ok(Attribute::Bool(cursor.number()? != 0)),
        AttributeCode::Float => {
            let number_type = pool.next_type(cursor)?;
            Ok(Attribute::Float(builtin::float(&number_type, cursor)?))
        }
        AttributeCode::Integer => {
            let number_type = pool.next_type(cursor)?;
            builtin::integer(&number_type, cursor)
        }
        AttributeCode::String => Ok(Attribute::String(pool.string(cursor)?)),
        AttributeCode::Tensor => {
            let tensor = pool.next_type(cursor)?;
            Ok(Attribute::Elements(builtin::elements(&tensor, cursor.blob()?)?))
        }
        AttributeCode::Type => Ok(Attribute::Type(pool.next_type(cursor)?)),
        AttributeCode::Dictionary
        | AttributeCode::OutputOperandAlias
        | AttributeCode::TypeExtensions
        | AttributeCode::ResultAccuracy
        | AttributeCode::SubAxisInfo
        | AttributeCode::AxisRef
        | AttributeCode::ReplicaGroupMeshAxes
        | AttributeCode::MeshAxis
        | AttributeCode::Mesh => {
            let mut fields = Attributes::default();
            read_fields(pool, code, cursor, &mut fields)?;
            Ok(Attribute::Dictionary(fields))
        }
    }
}

/// Names of the versions of the custom-call interface, by number.
pub(super) const API_VERSIONS: [&str; 5] = [
    "API_VERSION_UNSPECIFIED",
    "API_VERSION_ORIGINAL",
    "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED",
    "API_VERSION_TYPED_FFI",
];

/// Reads the fields of a record attribute.
fn read_fields(
    pool: &mut Pool<'_>,
    code: AttributeCode,
    cursor: &mut Cursor<'_>,
    fields: &mut Attributes,
) -> Result<()> {
    match code {
        AttributeCode::Dictionary => {
            for _ in 0..cursor.count()? {
                let name = pool.text(cursor)?;
                fields.set(name, pool.next_attribute(cursor)?);
            }
        }
        AttributeCode::OutputOperandAlias => {
            let list = |numbers: Vec<i64>| {
                Attribute::list(numbers.into_iter().map(|number| Attribute::Integer(number.into())).collect())
            };
            fields.set("output_tuple_indices", list(signed_list(cursor)?));
            fields.set("operand_index", Attribute::Integer(cursor.signed()?.into()));
            fields.set("operand_tuple_indices", list(signed_list(cursor)?));
        }
        AttributeCode::TypeExtensions => {
            let bound = |bound: i64| if bound == i64::MIN { -1 } else { bound };
            let bounds = signed_list(cursor)?.into_iter().map(bound).collect();
            fields.set("bounds", Attribute::Integers(bounds));
        }
        AttributeCode::ResultAccuracy => {
            let double = Type::Scalar(PrimitiveType::F64);
            fields.set("atol", Attribute::Float(builtin::float(&double, cursor)?));
            fields.set("rtol", Attribute::Float(builtin::float(&double, cursor)?));
            fields.set("ulps", Attribute::Integer(cursor.signed()?.into()));
            fields.set("mode", pool.next_attribute(cursor)?);
        }
        AttributeCode::SubAxisInfo => {
            fields.set("pre_size", Attribute::Integer(cursor.signed()?.into()));
            fields.set("size", Attribute::Integer(cursor.signed()?.into()));
        }
        AttributeCode::AxisRef => {
            fields.set("name", pool.next_attribute(cursor)?);
            if cursor.number()? != 0 {
                fields.set("sub_axis_info", pool.next_attribute(cursor)?);
            }
        }
        AttributeCode::ReplicaGroupMeshAxes => {
            fields.set("mesh", pool.next_attribute(cursor)?);
            fields.set("axes", pool.next_attribute(cursor)?);
        }
        AttributeCode::MeshAxis => {
            fields.set("name", pool.next_attribute(cursor)?);
            fields.set("size", Attribute::Integer(cursor.signed()?.into()));
        }
        AttributeCode::Mesh => {
            fields.set("axes", pool.next_attribute(cursor)?);
            if let Some(devices) = pool.next_optional_attribute(cursor)? {
                fields.set("device_ids", devices);
            }
        }
        _ => {}
    }
    Ok(())
}

fn signed_list(cursor: &mut Cursor<'_>) -> Result<Vec<i64>> {
    (0..cursor.count()?).map(|_| cursor.signed()).collect()
}

pub(super) fn read_type(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Type> {
    use PrimitiveType as P;
    let number = cursor.number()?;
    let code = TypeCode::from_number(number).ok_or_else(|| newer(format_args!("type {number}")))?;
    let other = |name: &str| Type::Other(name.to_owned());
    Ok(match code {
        TypeCode::Boolean => Type::Scalar(P::Pred),
        TypeCode::Bf16 => Type::Scalar(P::Bf16),
        TypeCode::F16 => Type::Scalar(P::F16),
        TypeCode::F32 => Type::Scalar(P::F32),
        TypeCode::F64 => Type::Scalar(P::F64),
        TypeCode::F8E4M3Fn => Type::Scalar(P::F8e4m3fn),
        TypeCode::F8E5M2 => Type::Scalar(P::F8e5m2),
        TypeCode::S2 => Type::Scalar(P::S2),
        TypeCode::S4 => Type::Scalar(P::S4),
        TypeCode::S8 => Type::Scalar(P::S8),
        TypeCode::S16 => Type::Scalar(P::S16),
        TypeCode::S32 => Type::Scalar(P::S32),
        TypeCode::S64 => Type::Scalar(P::S64),
        TypeCode::U2 => Type::Scalar(P::U2),
        TypeCode::U4 => Type::Scalar(P::U4),
        TypeCode::U8 => Type::Scalar(P::U8),
        TypeCode::U16 => Type::Scalar(P::U16),
        TypeCode::U32 => Type::Scalar(P::U32),
        TypeCode::U64 => Type::Scalar(P::U64),
        TypeCode::F8E4M3Fnuz => Type::Scalar(P::F8e4m3fnuz),
        TypeCode::F8E5M2Fnuz => Type::Scalar(P::F8e5m2fnuz),
        TypeCode::F8E4M3B11Fnuz => Type::Scalar(P::F8e4m3b11fnuz),
        TypeCode::F8E4M3 => Type::Scalar(P::F8e4m3),
        TypeCode::F8E3M4 => Type::Scalar(P::F8e3m4),
        TypeCode::F4E2M1Fn => Type::Scalar(P::F4e2m1fn),
        TypeCode::F6E2M3Fn => Type::Scalar(P::F6e2m3fn),
        TypeCode::F6E3M2Fn => Type::Scalar(P::F6e3m2fn),
        TypeCode::F8E8M0Fnu => Type::Scalar(P::F8e8m0fnu),
        TypeCode::Complex => {
            let part = pool.next_type(cursor)?;
            builtin::complex(&part)
        }
        TypeCode::Function => {
            Type::Function { inputs: pool.next_types(cursor)?, results: pool.next_types(cursor)? }
        }
        TypeCode::Index => Type::Index,
        TypeCode::RankedTensor => {
            let sizes = builtin::sizes(cursor)?;
            builtin::tensor(sizes, pool.next_type(cursor)?, None)
        }
        TypeCode::RankedTensorWithEncoding => {
            let encoding = pool.next_attribute(cursor)?;
            let sizes = builtin::sizes(cursor)?;
            builtin::tensor(sizes, pool.next_type(cursor)?, Some(encoding))
        }
        TypeCode::Token => Type::Token,
        TypeCode::Tuple => Type::Tuple(pool.next_types(cursor)?),
        TypeCode::UniformQuantized => quantized(pool, cursor, false)?,
        TypeCode::UniformQuantizedPerAxis => quantized(pool, cursor, true)?,
        TypeCode::None => Type::None,
        TypeCode::Tf32 => other("tf32"),
        TypeCode::UnrankedTensor => other("an unranked tensor"),
        TypeCode::Witness => other("!shape.witness"),
        TypeCode::Buffer => other("a buffer"),
        TypeCode::Future => other("!stablehlo.future"),
    })
}

/// Quantized integers, with one scale per index of a dimension or one scale for all.
fn quantized(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>, is_per_axis: bool) -> Result<Type> {
    let is_signed = cursor.number()? & 1 == 1;
    let Type::Scalar(storage) = pool.next_type(cursor)? else {
        return Err(damaged("a quantized type whose storage type is not a number type"));
    };
    let Type::Scalar(expressed) = pool.next_type(cursor)? else {
        return Err(damaged("a quantized type whose expressed type is not a number type"));
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

/// The integer type of the same width with the given signedness.
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
