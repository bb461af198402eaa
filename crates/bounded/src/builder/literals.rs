//! Literals of numbers: scalars, and vectors of integers.

use shape::{ArrayShape, Literal, PrimitiveType, Scalar};

/// Converts a number to an element of a type, rounding or wrapping as necessary.
pub fn scalar_of(element_type: PrimitiveType, value: f64) -> Scalar {
    match element_type {
        PrimitiveType::Pred => Scalar::Pred(value != 0.0),
        t if t.is_signed_integer() => Scalar::Signed(value as i64),
        t if t.is_unsigned_integer() => Scalar::Unsigned(value as u64),
        t if t.is_complex() => Scalar::Complex(value, 0.0),
        _ => Scalar::Float(value),
    }
}

/// Returns a scalar literal.
pub fn scalar_literal(element_type: PrimitiveType, value: f64) -> Literal {
    Literal::from_scalars(ArrayShape::new(element_type, &[]), [scalar_of(element_type, value)])
}

/// Returns a vector of integers of an integer type, or `None` if one does not fit.
pub fn integer_vector(element_type: PrimitiveType, values: &[i64]) -> Option<Literal> {
    let bits = element_type.bit_width();
    let (low, high) = match element_type {
        t if t.is_signed_integer() => (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits)),
        PrimitiveType::U64 => (0, i64::MAX),
        _ => (0, (1i64 << bits) - 1),
    };
    if !values.iter().all(|value| (low..=high).contains(value)) {
        return None;
    }
    let scalar = |&value: &i64| {
        if element_type.is_signed_integer() { Scalar::Signed(value) } else { Scalar::Unsigned(value as u64) }
    };
    Some(Literal::from_scalars(
        ArrayShape::new(element_type, &[values.len() as i64]),
        values.iter().map(scalar),
    ))
}
