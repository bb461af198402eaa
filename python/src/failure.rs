//! Conversion of errors to Python exceptions.

use pyo3::exceptions::{PyNotImplementedError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use support::{Error, ErrorKind};

/// Invalid input is a `ValueError`, an unsupported model a `NotImplementedError`, and a defect of
/// the compiler a `RuntimeError`. The attribute `code` is the code of the command line's message,
/// such as `"E0401"`.
pub(crate) fn failed(error: Error) -> PyErr {
    let message = error.message().to_owned();
    let raised = match error.kind() {
        ErrorKind::Invalid => PyValueError::new_err(message),
        ErrorKind::Unsupported => PyNotImplementedError::new_err(message),
        ErrorKind::Internal => PyRuntimeError::new_err(message),
    };
    // Python's exceptions accept attributes. If one does not, it still has its message.
    let _ = Python::attach(|py| raised.value(py).setattr("code", error.code().to_string()));
    raised
}
