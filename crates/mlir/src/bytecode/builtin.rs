//! Attributes and types of the builtin dialect. The numbers come from `BuiltinDialectBytecode.td`.

use super::cursor::Cursor;
use super::damaged;
use super::pool::Pool;
use crate::attribute::{Attribute, Attributes, Elements};
use crate::types::{TensorType, Type};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::Result;

/// Code of a location with a name.
pub(super) const NAME_LOCATION: u64 = 14;

pub(super) fn attribute(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    Ok(match cursor.number()? {
        0 => Attribute::list(pool.next_attributes(cursor)?),
        1 => dictionary(pool, cursor)?,
        2 => Attribute::String(pool.string(cursor)?),
        3 => {
            let text = pool.string(cursor)?;
            pool.next_type(cursor)?;
            Attribute::String(text)
        }
        4 => Attribute::Symbol(pool.text(cursor)?),
        5 => {
            let root = pool.text(cursor)?;
            match pool.next_attributes(cursor)?.pop() {
                Some(Attribute::Symbol(last)) => Attribute::Symbol(last),
                _ => Attribute::Symbol(root),
            }
        }
        6 => Attribute::Type(pool.next_type(cursor)?),
        7 => Attribute::Unit,
        8 => {
            let number_type = pool.next_type(cursor)?;
            integer(&number_type, cursor)?
        }
        9 => {
            let number_type = pool.next_type(cursor)?;
            Attribute::Float(float(&number_type, cursor)?)
        }
        kind @ (10..=15 | 22) => Attribute::Other(format!("loc {kind}")),
        16 => Attribute::Other("dense_resource".to_owned()),
        17 => numbers(pool, cursor)?,
        18 => {
            let tensor = pool.next_type(cursor)?;
            Attribute::Elements(elements(&tensor, cursor.blob()?)?)
        }
        kind @ 19..=21 => Attribute::Other(format!("builtin attribute {kind}")),
        kind => return Err(damaged(format_args!("builtin attribute {kind}"))),
    })
}

fn dictionary(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let mut fields = Attributes::default();
    for _ in 0..cursor.count()? {
        let name = pool.text(cursor)?;
        fields.set(name, pool.next_attribute(cursor)?);
    }
    Ok(Attribute::Dictionary(fields))
}

/// An integer of the given type. A one-bit integer is a boolean.
pub(super) fn integer(number_type: &Type, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let element = match number_type {
        Type::Scalar(element) => *element,
        Type::Index => PrimitiveType::S64,
        _ => return Err(damaged("an integer attribute whose type is not an integer type")),
    };
    let bits = cursor.integer_of_width(element.bit_width())?;
    Ok(match element {
        PrimitiveType::Pred => Attribute::Bool(bits & 1 == 1),
        _ if element.is_unsigned_integer() => {
            let mask = u64::MAX >> (64 - element.bit_width());
            Attribute::Integer(i128::from(bits as u64 & mask))
        }
        _ => Attribute::Integer(i128::from(bits)),
    })
}

/// Converts the bits of a floating-point number to its value.
pub(super) fn float(number_type: &Type, cursor: &mut Cursor<'_>) -> Result<f64> {
    let Type::Scalar(element) = number_type else {
        return Err(damaged("a floating-point attribute whose type is not a number type"));
    };
    if !element.is_floating_point() {
        return Err(damaged(format_args!("a floating-point number of type {element}")));
    }
    let bits = cursor.integer_of_width(element.bit_width())?.to_le_bytes();
    let bytes = bits[..element.byte_size()].to_vec();
    let literal = Literal::from_bytes(ArrayShape::new(*element, &[]), bytes.into());
    let value = literal.and_then(|literal| literal.scalar_at(0).as_f64());
    value.ok_or_else(|| damaged("a floating-point number"))
}

/// `array<i64: ...>`, stored as the bytes of the numbers in memory.
fn numbers(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Attribute> {
    let Type::Scalar(element) = pool.next_type(cursor)? else {
        return Err(damaged("an array whose element type is not a number type"));
    };
    let count = cursor.index()?;
    let bytes = cursor.blob()?;
    let shape = ArrayShape::new(element, &[i64::try_from(count).unwrap_or(i64::MAX)]);
    let literal = Literal::from_bytes(shape, bytes.to_vec().into());
    let literal = literal.ok_or_else(|| damaged("an array whose length does not match its bytes"))?;
    if element.is_floating_point() {
        Ok(Attribute::Floats(literal.floats().unwrap_or_default()))
    } else {
        let numbers = literal.scalars().map(Scalar::as_i64).collect::<Option<_>>();
        numbers.map(Attribute::Integers).ok_or_else(|| damaged("an array with a number that exceeds 64 bits"))
    }
}

/// The elements of a tensor, or a splat. Booleans are packed eight to a byte, unless each takes one
/// byte.
pub(super) fn elements(tensor: &Type, bytes: &[u8]) -> Result<Elements> {
    let shape = static_shape(tensor)?;
    let count = shape.element_count();
    if shape.element_type == PrimitiveType::Pred {
        if let [splat @ (0 | 0xff)] = bytes {
            return Ok(Elements::splat(shape, &[splat & 1]));
        }
        let packed = (count as u64).div_ceil(8);
        if bytes.len() as u64 == packed && bytes.len() as i64 != count {
            let bits = (0..count as usize).map(|index| bytes[index / 8] >> (index % 8) & 1).collect();
            return whole(shape, bits);
        }
    }
    if bytes.len() == shape.element_type.byte_size() {
        return Ok(Elements::splat(shape, bytes));
    }
    whole(shape, bytes.to_vec())
}

fn whole(shape: ArrayShape, bytes: Vec<u8>) -> Result<Elements> {
    let message = format!("{} bytes for a constant of shape {shape}", bytes.len());
    Elements::whole(shape, bytes).ok_or_else(|| damaged(message))
}

/// Returns the shape of a constant.
fn static_shape(tensor: &Type) -> Result<ArrayShape> {
    let Some(tensor) = tensor.as_tensor() else { return Err(damaged("a constant that is not a tensor")) };
    let element = match *tensor.element {
        Type::Scalar(element) => element,
        Type::Index => PrimitiveType::S64,
        Type::Quantized(ref quantization) => quantization.storage,
        ref other => {
            return Err(support::Error::unsupported(format!("a constant with elements of type {other:?}")));
        }
    };
    let sizes: Option<Vec<i64>> = tensor.sizes.iter().copied().collect();
    let sizes = sizes.ok_or_else(|| damaged("a constant with dynamic sizes"))?;
    let shape = ArrayShape::new(element, &sizes);
    if shape.element_count() == i64::MAX || sizes.iter().any(|size| *size < 0) {
        Err(damaged(format_args!("a constant of shape {shape}")))
    } else {
        Ok(shape)
    }
}

pub(super) fn read_type(pool: &mut Pool<'_>, cursor: &mut Cursor<'_>) -> Result<Type> {
    use PrimitiveType::{Bf16, F16, F32, F64};
    Ok(match cursor.number()? {
        0 => integer_type(cursor.number()?),
        1 => Type::Index,
        2 => Type::Function { inputs: pool.next_types(cursor)?, results: pool.next_types(cursor)? },
        3 => Type::Scalar(Bf16),
        4 => Type::Scalar(F16),
        5 => Type::Scalar(F32),
        6 => Type::Scalar(F64),
        9 => {
            let part = pool.next_type(cursor)?;
            complex(&part)
        }
        12 => Type::None,
        13 => {
            let sizes = sizes(cursor)?;
            tensor(sizes, pool.next_type(cursor)?, None)
        }
        14 => {
            let encoding = pool.next_attribute(cursor)?;
            let sizes = sizes(cursor)?;
            tensor(sizes, pool.next_type(cursor)?, Some(encoding))
        }
        15 => Type::Tuple(pool.next_types(cursor)?),
        kind @ (7 | 8 | 10 | 11 | 16..=20) => Type::Other(format!("builtin type {kind}")),
        kind => return Err(damaged(format_args!("builtin type {kind}"))),
    })
}

/// Decodes an integer type: a width above two bits that state its signedness.
fn integer_type(width_and_sign: u64) -> Type {
    use PrimitiveType::*;
    let is_unsigned = width_and_sign & 3 == 2;
    Type::Scalar(match (width_and_sign >> 2, is_unsigned) {
        (1, _) => Pred,
        (2, false) => S2,
        (4, false) => S4,
        (8, false) => S8,
        (16, false) => S16,
        (32, false) => S32,
        (64, false) => S64,
        (2, true) => U2,
        (4, true) => U4,
        (8, true) => U8,
        (16, true) => U16,
        (32, true) => U32,
        (64, true) => U64,
        (width, _) => return Type::Other(format!("i{width}")),
    })
}

/// The complex type with the given type of parts.
pub(super) fn complex(part: &Type) -> Type {
    match part {
        Type::Scalar(PrimitiveType::F32) => Type::Scalar(PrimitiveType::C64),
        Type::Scalar(PrimitiveType::F64) => Type::Scalar(PrimitiveType::C128),
        other => Type::Other(format!("complex<{other:?}>")),
    }
}

/// A tensor's sizes. The smallest `i64` stands for a dynamic size.
pub(super) fn sizes(cursor: &mut Cursor<'_>) -> Result<Vec<Option<i64>>> {
    let size = |cursor: &mut Cursor<'_>| match cursor.signed()? {
        size @ 0.. => Ok(Some(size)),
        i64::MIN => Ok(None),
        size => Err(damaged(format_args!("a tensor with a size of {size}"))),
    };
    (0..cursor.count()?).map(|_| size(cursor)).collect()
}

pub(super) fn tensor(sizes: Vec<Option<i64>>, element: Type, encoding: Option<Attribute>) -> Type {
    Type::Tensor(TensorType { sizes, element: Box::new(element), encoding: encoding.map(Box::new) })
}
