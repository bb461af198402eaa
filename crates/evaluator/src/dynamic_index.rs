//! Indices that are values.

use crate::array::scalar;
use shape::{Literal, Scalar};
use support::{Error, Result};

/// An integer as an index; what is beyond `i64` is beyond every array, so it saturates.
pub(crate) fn index_of(value: Scalar) -> Result<i64> {
    match value {
        Scalar::Signed(value) => Ok(value),
        Scalar::Unsigned(value) => Ok(value.try_into().unwrap_or(i64::MAX)),
        Scalar::Pred(_) | Scalar::Float(_) | Scalar::Complex(..) => {
            Err(Error::invalid(format!("an index must be an integer, not {value:?}")))
        }
    }
}

/// One scalar operand for each dimension.
pub(crate) fn indices_of(operands: &[&Literal]) -> Result<Vec<i64>> {
    operands.iter().map(|operand| index_of(scalar(operand)?)).collect()
}
