//! Native part of the Python package `tfcompile`: models, artifacts, and sessions. The public
//! interface is Python code on top of it.

mod device_array;
mod failure;
mod models;
mod program;
mod sessions;

use pyo3::prelude::*;

/// Compiles, runs, and describes models.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::device_array::DeviceArray;
    #[pymodule_export]
    use crate::models::{build, check, config_fields, config_text, hlo};
    #[pymodule_export]
    use crate::program::{ExactCalls, Program};
    #[pymodule_export]
    use crate::sessions::{Session, chrome_trace, initial_values};

    #[pymodule_init]
    fn version(module: &super::Bound<'_, super::PyModule>) -> super::PyResult<()> {
        use super::PyModuleMethods as _;
        module.add("VERSION", env!("CARGO_PKG_VERSION"))
    }
}
