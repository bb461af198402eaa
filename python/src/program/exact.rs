//! Calls whose arrays have exactly the types, sizes, and layout of the program's arguments. They
//! skip all conversions. Every other call is left to the Python part, which converts arrays or
//! raises an exception that names the argument.

use super::{Program, State, check_apart};
use crate::failure::failed;
use hlo::SizeRange;
use jit::{ALIGNMENT, Operand};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use shape::ArrayShape;
use shape::index::row_major_strides;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use support::Result;

/// Runs of this length or longer release the GIL. Without contention, releasing and taking it back
/// costs about 0.1 µs. If another thread executes Python code, the latter waits for up to 5 ms.
const SHORT: Duration = Duration::from_micros(10);

/// Calls of a program on the processor.
#[pyclass(frozen, module = "tfcompile._native")]
pub(crate) struct ExactCalls {
    program: Py<Program>,
    /// `numpy.ndarray`, `numpy.empty`, and `numpy.uint8`.
    array: Py<PyType>,
    empty: Py<PyAny>,
    byte: Py<PyAny>,
    /// Names of the feeds in their order.
    feeds: Vec<Py<PyString>>,
    inputs: Vec<Input>,
    sizes: Vec<SizeRange>,
    outputs: Vec<Fetch>,
    /// Runs whose feeds have fewer bytes than this keep the GIL: a larger one was short, and since
    /// then, none of at most that size was long.
    short_below: AtomicUsize,
}

/// An argument of the program.
enum Input {
    Array(Array),
    /// The size with this number.
    Size(usize),
}

struct Array {
    /// The object whose attribute `array` is the variable. `None` for a feed.
    variable: Option<Py<PyAny>>,
    /// NumPy's type. There is one object of each.
    dtype: Py<PyAny>,
    extents: Vec<Extent>,
    /// Required alignment in bytes, and bytes of an array with the largest sizes.
    alignment: usize,
    bytes: usize,
    is_written: bool,
}

/// Size of a dimension.
enum Extent {
    Fixed(i64),
    /// The size with this number.
    Named(usize),
}

/// A result for the caller.
struct Fetch {
    name: Py<PyString>,
    dtype: Py<PyAny>,
    shape: ArrayShape,
    /// Dimensions with true sizes, and the position of each size among those that a run reports.
    bounded: Vec<(usize, usize)>,
}

/// A view of an array's memory, which is contiguous in row-major order. The array cannot be resized
/// while the view exists.
struct View(Box<ffi::Py_buffer>);

/// Value of a size argument: an `s32[]`.
#[repr(align(4))]
struct SizeValue([u8; 4]);

#[pymethods]
impl ExactCalls {
    /// Prepares calls. Feeds and fetches have names and types, variables the object whose attribute
    /// `array` is the variable, and their types.
    #[new]
    fn new(
        py: Python<'_>,
        program: Bound<'_, Program>,
        feeds: Vec<(Bound<'_, PyString>, Py<PyAny>)>,
        variables: Vec<(Py<PyAny>, Py<PyAny>)>,
        fetches: Vec<(Py<PyString>, Py<PyAny>)>,
    ) -> PyResult<Self> {
        let numpy = py.import("numpy")?;
        let interface = program.get().code.interface();
        let sizes: Vec<(usize, SizeRange)> = interface.sizes().map(|(k, _, range)| (k, range)).collect();
        let slot = |argument: usize| sizes.iter().position(|(k, _)| *k == argument);
        let names = feeds.iter().map(|(name, _)| name.clone().unbind()).collect();
        let mut feeds = feeds.into_iter().map(|(_, dtype)| (None, dtype));
        let mut variables = variables.into_iter().map(|(memory, dtype)| (Some(memory), dtype));
        let mut inputs = Vec::new();
        for (k, argument) in interface.arguments().iter().enumerate() {
            if let Some(size) = slot(k) {
                inputs.push(Input::Size(size));
                continue;
            }
            let is_feed = argument.role == hlo::Role::Feed;
            let next = if is_feed { feeds.next() } else { variables.next() };
            let (variable, dtype) = next.ok_or_else(|| failed(unexpected_arrays()))?;
            let mut extents: Vec<Extent> = argument.shape.sizes().into_iter().map(Extent::Fixed).collect();
            for named in &argument.named_dimensions {
                let size = slot(named.size).ok_or_else(|| failed(unexpected_arrays()))?;
                extents[named.dimension] = Extent::Named(size);
            }
            inputs.push(Input::Array(Array {
                variable,
                dtype,
                extents,
                alignment: argument.shape.element_type.real_part().byte_size().max(1),
                bytes: argument.shape.byte_size() as usize,
                is_written: interface.new_value(k).is_some(),
            }));
        }
        let outputs = interface.own_results().zip(fetches).map(|(result, (name, dtype))| Fetch {
            name,
            dtype,
            shape: result.shape.clone(),
            bounded: result.sizes().iter().map(|size| (size.dimension, size.index)).collect(),
        });
        Ok(Self {
            outputs: outputs.collect(),
            program: program.unbind(),
            array: numpy.getattr("ndarray")?.cast_into::<PyType>()?.unbind(),
            empty: numpy.getattr("empty")?.unbind(),
            byte: numpy.getattr("dtype")?.call1(("uint8",))?.unbind(),
            feeds: names,
            inputs,
            sizes: sizes.into_iter().map(|(_, range)| range).collect(),
            short_below: AtomicUsize::new(0),
        })
    }

    /// Runs once with feeds in their order and by name, and returns the fetches by name. Returns
    /// `None` without running if an array is not exactly as the program expects.
    fn call<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(arrays) = self.arrays(py, arguments, named)? else { return Ok(None) };
        let Some(views) = self.views(py, &arrays)? else { return Ok(None) };
        let Some(sizes) = self.sizes(&views) else { return Ok(None) };
        let memories = self.memories(py, &sizes)?;
        let (mut operands, mut ranges, mut fed_bytes) = (Vec::new(), Vec::new(), 0);
        let mut next = views.iter();
        let values: Vec<SizeValue> =
            sizes.iter().map(|&size| SizeValue((size as i32).to_ne_bytes())).collect();
        for input in &self.inputs {
            operands.push(match input {
                Input::Size(size) => Operand::Read(&values[*size].0),
                Input::Array(array) => {
                    let view = next.next().ok_or_else(|| failed(unexpected_arrays()))?;
                    ranges.push((view.address(), view.bytes(), array.is_written));
                    fed_bytes += if array.variable.is_none() { view.bytes() } else { 0 };
                    // SAFETY: the views outlive the run. Written arrays do not overlap others, as
                    // checked below. Python code that modifies an array during a run violates the
                    // package's contract.
                    #[expect(unsafe_code, reason = "memory of arrays")]
                    unsafe {
                        if array.is_written {
                            Operand::Write(view.write())
                        } else {
                            Operand::Read(view.read())
                        }
                    }
                }
            });
        }
        // Results are new memory.
        if ranges.iter().any(|(_, _, is_written)| *is_written) {
            check_apart(ranges).map_err(failed)?;
        }
        let mut results = Vec::new();
        for memory in &memories {
            // SAFETY: the view outlives the run, and nothing else refers to this new memory.
            #[expect(unsafe_code, reason = "memory of arrays")]
            results.push(unsafe { &mut memory.view.write()[memory.begin..][..memory.bytes] });
        }
        let program = self.program.get();
        let mut reported = vec![0; program.code.interface().size_count()];
        self.run(py, fed_bytes, |state| program.enter(state, &mut operands, &mut results, &mut reported))?;
        let found = PyDict::new(py);
        for (fetch, memory) in self.outputs.iter().zip(memories) {
            found.set_item(&fetch.name, self.result(py, fetch, memory, &reported)?)?;
        }
        Ok(Some(found))
    }
}

/// New memory for a result, which begins at a multiple of [`ALIGNMENT`].
struct ResultMemory<'py> {
    array: Bound<'py, PyAny>,
    view: View,
    begin: usize,
    bytes: usize,
}

impl ExactCalls {
    /// Returns the arrays in the order of the program's arguments, or `None` if the names or types
    /// of feeds are not exact.
    fn arrays<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        named: &Bound<'py, PyDict>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        if arguments.len() + named.len() != self.feeds.len() {
            return Ok(None);
        }
        let mut arrays = Vec::with_capacity(self.inputs.len());
        let mut feed = 0;
        for input in &self.inputs {
            let Input::Array(input) = input else { continue };
            let array = match &input.variable {
                Some(memory) => Some(memory.bind(py).getattr(intern!(py, "array"))?),
                None => {
                    feed += 1;
                    if feed <= arguments.len() {
                        Some(arguments.get_item(feed - 1)?)
                    } else {
                        named.get_item(&self.feeds[feed - 1])?
                    }
                }
            };
            // Subclasses may have a different meaning, such as masks.
            let Some(array) = array.filter(|array| array.get_type().is(&self.array)) else { return Ok(None) };
            if !array.getattr(intern!(py, "dtype"))?.is(&input.dtype) {
                return Ok(None);
            }
            arrays.push(array);
        }
        Ok(Some(arrays))
    }

    /// Returns views of arrays, or `None` if one is not contiguous, aligned, or writable where it
    /// must be.
    fn views(&self, py: Python<'_>, arrays: &[Bound<'_, PyAny>]) -> PyResult<Option<Vec<View>>> {
        let inputs = self.inputs.iter().filter_map(|input| match input {
            Input::Array(array) => Some(array),
            Input::Size(_) => None,
        });
        let mut views = Vec::with_capacity(arrays.len());
        for (input, array) in inputs.zip(arrays) {
            let Some(view) = View::of(py, array, input.is_written) else { return Ok(None) };
            if !view.address().is_multiple_of(input.alignment) && view.bytes() > 0 {
                return Ok(None);
            }
            views.push(view);
        }
        Ok(Some(views))
    }

    /// Returns the sizes of named dimensions, or `None` if the arrays do not have the program's
    /// sizes, contradict each other, or need a copy.
    fn sizes(&self, views: &[View]) -> Option<Vec<i64>> {
        let takes_true_sizes = self.program.get().code.memory().takes_true_sizes;
        let mut sizes: Vec<Option<i64>> = vec![None; self.sizes.len()];
        let mut next = views.iter();
        for input in &self.inputs {
            let Input::Array(input) = input else { continue };
            let view = next.next()?;
            if view.rank() != input.extents.len() {
                return None;
            }
            let mut is_largest = true;
            for (&size, extent) in view.sizes().iter().zip(&input.extents) {
                let size = size as i64;
                match extent {
                    Extent::Fixed(expected) if size != *expected => return None,
                    Extent::Fixed(_) => {}
                    Extent::Named(number) => {
                        let range = self.sizes[*number];
                        if !range.contains(size) || sizes[*number].is_some_and(|known| known != size) {
                            return None;
                        }
                        sizes[*number] = Some(size);
                        is_largest &= size == range.high;
                    }
                }
            }
            // Compiled code may read elements beyond the sizes.
            if is_largest && view.bytes() != input.bytes || !is_largest && !takes_true_sizes {
                return None;
            }
        }
        // A size that no feed has is the largest.
        Some(sizes.iter().zip(&self.sizes).map(|(size, range)| size.unwrap_or(range.high)).collect())
    }

    /// Allocates memory for the results.
    fn memories<'py>(&self, py: Python<'py>, sizes: &[i64]) -> PyResult<Vec<ResultMemory<'py>>> {
        let takes_true_sizes = self.program.get().code.memory().takes_true_sizes;
        let allocate = |fetch: &Fetch| {
            let mut bytes = fetch.shape.byte_size() as usize;
            // Such code writes no rows beyond the size.
            if let (true, false, [rows, ..]) = (takes_true_sizes, fetch.bounded.is_empty(), sizes) {
                bytes = bytes / fetch.shape.size(0).max(1) as usize * *rows as usize;
            }
            let array = self.empty.bind(py).call1((bytes + ALIGNMENT, &self.byte))?;
            let view = View::of(py, &array, true).ok_or_else(|| failed(unexpected_arrays()))?;
            let begin = view.address().next_multiple_of(ALIGNMENT) - view.address();
            Ok(ResultMemory { array, view, begin, bytes })
        };
        self.outputs.iter().map(allocate).collect()
    }

    /// Runs, and releases the GIL unless the run is likely to be short.
    fn run(
        &self,
        py: Python<'_>,
        fed_bytes: usize,
        run: impl FnOnce(&mut State) -> Result<()> + Send,
    ) -> PyResult<()> {
        let state = &self.program.get().state;
        let timed = |state: &mut State| {
            let begin = Instant::now();
            (run(state), begin.elapsed())
        };
        let keeps_gil = fed_bytes < self.short_below.load(Ordering::Relaxed);
        // A run in another thread may be long.
        let own = if keeps_gil { state.try_lock().ok() } else { None };
        let (result, elapsed) = match own {
            Some(mut state) => timed(&mut state),
            None => py.detach(|| timed(&mut state.lock().unwrap_or_else(PoisonError::into_inner))),
        };
        if elapsed < SHORT {
            self.short_below.fetch_max(fed_bytes + 1, Ordering::Relaxed);
        } else {
            self.short_below.fetch_min(fed_bytes, Ordering::Relaxed);
        }
        result.map_err(failed)
    }

    /// Returns the part of a result's memory that the run computed.
    fn result<'py>(
        &self,
        py: Python<'py>,
        fetch: &Fetch,
        memory: ResultMemory<'py>,
        reported: &[i64],
    ) -> PyResult<Bound<'py, PyAny>> {
        let largest = fetch.shape.sizes();
        let mut sizes = largest.clone();
        for &(dimension, index) in &fetch.bounded {
            sizes[dimension] = reported[index];
        }
        let shape = PyTuple::new(py, &sizes)?;
        let array = self.array.bind(py);
        if sizes.iter().skip(1).eq(largest.iter().skip(1)) {
            return array.call1((shape, &fetch.dtype, memory.array, memory.begin));
        }
        let element = fetch.shape.element_type.byte_size() as i64;
        let strides = row_major_strides(&largest).into_iter().map(|stride| stride * element);
        let strides = PyTuple::new(py, strides.collect::<Vec<_>>())?;
        array.call1((shape, &fetch.dtype, memory.array, memory.begin, strides))
    }
}

impl View {
    /// Returns a view, or `None` if the memory is not contiguous or not writable.
    fn of(py: Python<'_>, array: &Bound<'_, PyAny>, is_written: bool) -> Option<Self> {
        let flags = ffi::PyBUF_ND | if is_written { ffi::PyBUF_WRITABLE } else { 0 };
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: the structure is empty, and it does not move before it is released.
        #[expect(unsafe_code, reason = "Python's buffer protocol")]
        let status = unsafe { ffi::PyObject_GetBuffer(array.as_ptr(), &raw mut *view, flags) };
        if status != 0 {
            drop(PyErr::take(py));
            return None;
        }
        Some(Self(view))
    }

    fn address(&self) -> usize {
        self.0.buf.addr()
    }

    fn bytes(&self) -> usize {
        self.0.len as usize
    }

    fn rank(&self) -> usize {
        self.0.ndim as usize
    }

    fn sizes(&self) -> &[isize] {
        if self.rank() == 0 {
            return &[];
        }
        // SAFETY: because of `PyBUF_ND`, the view has a size for each dimension.
        #[expect(unsafe_code, reason = "Python's buffer protocol")]
        unsafe {
            std::slice::from_raw_parts(self.0.shape, self.rank())
        }
    }

    /// Returns the memory, in which nothing may be written meanwhile.
    #[expect(unsafe_code, reason = "memory of arrays")]
    unsafe fn read(&self) -> &[u8] {
        match self.bytes() {
            // An empty array may have no address.
            0 => &[],
            // SAFETY: the array owns these bytes while the view exists.
            bytes => unsafe { std::slice::from_raw_parts(self.0.buf.cast(), bytes) },
        }
    }

    /// Returns the memory, to which nothing else may refer meanwhile. The view must be writable.
    #[expect(unsafe_code, reason = "memory of arrays")]
    #[expect(clippy::mut_from_ref, reason = "the caller ensures that this is the only reference")]
    unsafe fn write(&self) -> &mut [u8] {
        match self.bytes() {
            0 => &mut [],
            // SAFETY: as in `read`.
            bytes => unsafe { std::slice::from_raw_parts_mut(self.0.buf.cast(), bytes) },
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: the view is released once, by a thread that has the GIL: a view never leaves a
        // call, which has it when it returns.
        #[expect(unsafe_code, reason = "Python's buffer protocol")]
        unsafe {
            ffi::PyBuffer_Release(&raw mut *self.0);
        }
    }
}

/// The error of lists that do not match the program's interface.
fn unexpected_arrays() -> support::Error {
    support::Error::internal("unexpected number of arrays in a run")
}
