//! Our errors as Python's.

use pyo3::PyErr;
use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyValueError};
use support::{Error, ErrorKind};

/// What is wrong with the input is a `ValueError`, what cannot be compiled yet a `NotImplementedError`, a defect of ours a
/// `RuntimeError`.
pub(crate) fn failed(error: Error) -> PyErr {
    let message = error.message().to_owned();
    match error.kind() {
        ErrorKind::Invalid => PyValueError::new_err(message),
        ErrorKind::Unsupported => PyNotImplementedError::new_err(message),
        ErrorKind::Internal => PyRuntimeError::new_err(message),
    }
}
