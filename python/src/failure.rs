//! Our errors as Python's.

use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use support::{Error, ErrorKind};

/// What is wrong with the input is a `ValueError`, what cannot be compiled yet a `NotImplementedError`, a defect of ours a
/// `RuntimeError`. Their attribute `code` is the code of the command line's message, such as `"E0401"`.
pub(crate) fn failed(error: Error) -> PyErr {
    let message = error.message().to_owned();
    let raised = match error.kind() {
        ErrorKind::Invalid => PyValueError::new_err(message),
        ErrorKind::Unsupported => PyNotImplementedError::new_err(message),
        ErrorKind::Internal => PyRuntimeError::new_err(message),
    };
    // Python's exceptions take attributes; one that does not still has its message.
    let _ = Python::attach(|py| raised.value(py).setattr("code", error.code().to_string()));
    raised
}
