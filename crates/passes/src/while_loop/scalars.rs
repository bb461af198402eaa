//! Scalars of integer types.

use shape::{ArrayShape, Scalar};

/// A number as an element of a type, if the type can represent it.
pub(super) fn integer(shape: &ArrayShape, value: i128) -> Option<Scalar> {
    let (element_type, bits) = (shape.element_type, shape.element_type.bit_width());
    if element_type.is_signed_integer() {
        let half = 1i128 << (bits - 1);
        return (-half..half).contains(&value).then_some(Scalar::Signed(value as i64));
    }
    let is_natural = element_type.is_unsigned_integer() && (0..1i128 << bits).contains(&value);
    is_natural.then_some(Scalar::Unsigned(value as u64))
}
