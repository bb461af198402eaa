//! Data-dependent indices.

use crate::array::scalar;
use shape::{Literal, Scalar};
use support::{Error, Result};

/// Converts an integer to an index. Values beyond `i64` are outside every array, so they saturate.
pub(crate) fn index_of(value: Scalar) -> Result<i64> {
    match value {
        Scalar::Signed(value) => Ok(value),
        Scalar::Unsigned(value) => Ok(value.try_into().unwrap_or(i64::MAX)),
        Scalar::Pred(_) | Scalar::Float(_) | Scalar::Complex(..) => {
            Err(Error::invalid(format!("expected an integer index, got {value:?}")))
        }
    }
}

/// Reads one scalar operand per dimension.
pub(crate) fn indices_of(operands: &[&Literal]) -> Result<Vec<i64>> {
    operands.iter().map(|operand| index_of(scalar(operand)?)).collect()
}
