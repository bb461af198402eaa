//! Arrays in the memory of a GPU.

use crate::failure::failed;
use jit::{Device, DeviceKind, DeviceMemory};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use shape::PrimitiveType;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Error, Result};

/// An array in the memory of a GPU. `Model.to_device` and `Model.run_on_device` create it.
///
/// `numpy.asarray(array)` copies it to the host. With CUDA, other libraries use the memory itself,
/// through `__cuda_array_interface__`.
#[pyclass(frozen, module = "tfcompile")]
pub(crate) struct DeviceArray {
    block: Arc<Block>,
    element_type: PrimitiveType,
    sizes: Vec<usize>,
}

/// The memory of arrays.
struct Block {
    memory: DeviceMemory,
    /// True if the address is known to other libraries, which may use it on streams of their own.
    is_exported: AtomicBool,
}

impl Drop for Block {
    fn drop(&mut self) {
        if !self.is_exported.load(Ordering::Relaxed) {
            return;
        }
        // The pool hands out the memory again at once, so work of other libraries that uses it must
        // be done. That work may need the interpreter. An error concerns that work.
        let wait = || drop(self.memory.device().synchronize());
        if Python::try_attach(|py| py.detach(wait)).is_none() {
            wait();
        }
    }
}

impl DeviceArray {
    pub(crate) fn new(memory: DeviceMemory, element_type: PrimitiveType, sizes: Vec<usize>) -> Self {
        let block = Block { memory, is_exported: AtomicBool::new(false) };
        Self { block: Arc::new(block), element_type, sizes }
    }

    /// Copies an array of the host to a device. `bytes` is a contiguous buffer.
    pub(crate) fn from_host(
        device: &Device,
        element: &str,
        sizes: Vec<usize>,
        bytes: &PyBuffer<u8>,
    ) -> Result<Self> {
        let element_type = PrimitiveType::ALL.into_iter().find(|known| known.name() == element);
        let element_type =
            element_type.ok_or_else(|| Error::internal(format!("unknown type '{element}'")))?;
        let count =
            sizes.iter().try_fold(element_type.byte_size(), |product, &size| product.checked_mul(size));
        if count != Some(bytes.len_bytes()) || !bytes.is_c_contiguous() {
            return Err(Error::internal("the size of a buffer differs from that of its array"));
        }
        let memory = match bytes.len_bytes() {
            0 => DeviceMemory::uninitialized(device, 0)?,
            len => {
                // SAFETY: the buffer is contiguous, and Python keeps it during the call. Python
                // code that modifies an array meanwhile violates the package's contract.
                #[expect(unsafe_code, reason = "memory of Python's")]
                let bytes = unsafe { std::slice::from_raw_parts(bytes.buf_ptr().cast::<u8>(), len) };
                DeviceMemory::from_bytes(device, bytes)?
            }
        };
        Ok(Self::new(memory, element_type, sizes))
    }

    pub(crate) fn memory(&self) -> &DeviceMemory {
        &self.block.memory
    }

    /// Number of bytes, of those in the memory.
    fn bytes(&self) -> usize {
        self.sizes.iter().product::<usize>() * self.element_type.byte_size()
    }

    /// Copies the array to a contiguous, writable buffer of its size.
    fn copy_to(&self, to: &PyBuffer<u8>) -> Result<()> {
        let len = self.bytes();
        if !to.is_c_contiguous() || to.readonly() || to.len_bytes() != len {
            return Err(Error::internal("a buffer that receives an array is unsuitable"));
        }
        if len == 0 {
            return Ok(());
        }
        let memory = self.memory();
        // SAFETY: the buffer is contiguous, writable, and new. The array is in the memory, which
        // lives as long as `self`.
        #[expect(unsafe_code, reason = "memory of Python's")]
        unsafe {
            let to = std::slice::from_raw_parts_mut(to.buf_ptr().cast::<u8>(), len);
            DeviceMemory::of_caller(memory.device(), memory.address(), len).copy_out(to)
        }
    }

    /// Returns NumPy's type of the elements.
    fn numpy_type<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("tfcompile._arrays")?.call_method1("dtype", (self.element_type.name(),))
    }
}

#[pymethods]
impl DeviceArray {
    /// Sizes of the dimensions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.sizes)
    }

    /// Type of the elements.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy_type(py)
    }

    /// Size in bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.bytes()
    }

    /// Name of the device, such as `cuda:0`.
    #[getter]
    fn device(&self) -> String {
        self.memory().device().label()
    }

    /// Copies the array to the host, for `numpy.asarray`.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err(
                "an array on a GPU cannot become a NumPy array without a copy",
            ));
        }
        let arrays = py.import("tfcompile._arrays")?;
        let sizes = PyTuple::new(py, &self.sizes)?;
        let array = arrays.call_method1("empty", (self.element_type.name(), sizes))?;
        let buffer: PyBuffer<u8> = PyBuffer::get(&arrays.call_method1("bytes_of", (&array,))?)?;
        py.detach(|| self.copy_to(&buffer)).map_err(failed)?;
        match dtype {
            Some(dtype) => {
                let options = PyDict::new(py);
                options.set_item("copy", false)?;
                array.call_method("astype", (dtype,), Some(&options))
            }
            None => Ok(array),
        }
    }

    /// The array for other libraries, version 3 of the interface. Runs are done when they return,
    /// so there is no stream to wait for.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        if self.memory().device().kind() != DeviceKind::Cuda {
            return Err(PyAttributeError::new_err(format!(
                "the array is on {}: only arrays of CUDA have __cuda_array_interface__",
                self.device()
            )));
        }
        self.block.is_exported.store(true, Ordering::Relaxed);
        let address = if self.bytes() == 0 { 0 } else { self.memory().address() };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", self.shape(py)?)?;
        interface.set_item("typestr", self.numpy_type(py)?.getattr("str")?)?;
        interface.set_item("data", (address, false))?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", py.None())?;
        Ok(interface)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!(
            "<tfcompile.DeviceArray {}{:?} on {}>",
            self.numpy_type(py)?.str()?,
            self.sizes,
            self.device()
        ))
    }

    /// Returns the first elements along dimension 0, in the same memory.
    fn _first(&self, count: usize) -> PyResult<Self> {
        match self.sizes.split_first() {
            Some((&size, rest)) if count <= size => {
                let sizes = std::iter::once(count).chain(rest.iter().copied()).collect();
                Ok(Self { block: self.block.clone(), element_type: self.element_type, sizes })
            }
            _ => {
                Err(PyValueError::new_err(format!("the array does not have {count} elements in dimension 0")))
            }
        }
    }
}
