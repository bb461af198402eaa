//! Artifacts that run in this process.

mod device;
mod exact;

pub(crate) use exact::ExactCalls;

use crate::device_array::DeviceArray;
use crate::failure::failed;
use device::{Copies, Given};
use hlo::{Argument, Identifier, Output, Role, SizeRange};
use jit::{
    AlignedBytes, Call, Device, DeviceInstance, DeviceKind, DeviceOptions, Executable, Memory, Operand,
    Workers,
};
use memmap2::Mmap;
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use shape::{ArrayShape, Quantization};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use support::{Error, Result};

/// An argument or a result for Python: kind, name, node, type, sizes, a flag for sizes that are
/// bounds, and scale and zero point if it is quantized.
type Told = (String, String, String, &'static str, Vec<i64>, Vec<bool>, Option<(f32, i32)>);

/// The size of a named dimension for Python: the argument that holds it, the smallest and the
/// largest size, and the arguments' dimensions that have it.
type Size = (usize, i64, i64, Vec<(usize, usize)>);

/// Memory that persists between runs.
struct State {
    temps: AlignedBytes,
    scratch: AlignedBytes,
    workers: Option<Arc<dyn Workers>>,
    /// The program on a device, if it runs on one. Dropped before the code.
    device: Option<DeviceInstance>,
    /// Memory of the device for arrays of the host.
    copies: Copies,
}

/// An artifact's loaded code, with its constants mapped from their file.
#[pyclass(frozen, module = "tfcompile._native")]
pub(crate) struct Program {
    state: Mutex<State>,
    code: Executable,
    /// The device of a program for GPUs.
    device: Option<Device>,
}

/// Block of constants of a mapped file. Processes that map the same file share its memory.
struct Mapped(Mmap);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0[aot::CONSTANTS_FILE_HEADER..]
    }
}

impl Mapped {
    /// Maps a file, which must have this layout and must not be modified.
    fn open(path: &Path, layout: &str) -> Result<Self> {
        let wrong = |why: &str| Error::invalid(format!("'{}': {why}", path.display()));
        // A pipe would wait for another process to write to it.
        if !std::fs::metadata(path).map_err(|e| wrong(&e.to_string()))?.is_file() {
            return Err(wrong("it is not a file"));
        }
        let file = std::fs::File::open(path).map_err(|e| wrong(&e.to_string()))?;
        // SAFETY: constants files are renamed into place and never modified afterward.
        #[expect(unsafe_code, reason = "a file that is mapped")]
        let map = unsafe { Mmap::map(&file) }.map_err(|e| wrong(&e.to_string()))?;
        let header =
            map.get(..aot::CONSTANTS_FILE_HEADER).ok_or_else(|| wrong("the constants file is truncated"))?;
        let hash: String = header[16..48].iter().map(|byte| format!("{byte:02x}")).collect();
        if header[..8] != aot::CONSTANTS_FILE_MAGIC || hash != layout {
            return Err(wrong("the constants belong to another program"));
        }
        if header[48..56] != ((map.len() - aot::CONSTANTS_FILE_HEADER) as u64).to_le_bytes() {
            return Err(wrong("the constants file is truncated"));
        }
        Ok(Self(map))
    }
}

#[pymethods]
impl Program {
    /// Loads an object that `build` wrote for this machine, and maps its constants. The object is
    /// code, so it is trusted. `device` names the GPU of a program for GPUs, such as `cuda:0`; the
    /// default is the first one.
    #[new]
    #[pyo3(signature = (object, constants, device = None))]
    fn new(py: Python<'_>, object: &[u8], constants: PathBuf, device: Option<&str>) -> PyResult<Self> {
        py.detach(|| Self::load(object, &constants, device)).map_err(failed)
    }

    /// Feeds, then variables.
    #[getter]
    fn arguments(&self) -> Vec<Told> {
        let interface = self.code.interface();
        let told = |(k, argument): (usize, &Argument)| {
            let kind = match argument.role {
                Role::Variable if interface.new_value(k).is_none() => "readonly variable",
                Role::Feed if argument.range.is_some() => "size",
                role => role.name(),
            };
            told(kind, argument.label(), &argument.id, &argument.shape, argument.quantization)
        };
        interface.arguments().iter().enumerate().map(told).collect()
    }

    /// Sizes of named dimensions.
    #[getter]
    fn sizes(&self) -> Vec<Size> {
        let interface = self.code.interface();
        let arguments = interface.arguments().iter().enumerate();
        let dimensions = arguments.flat_map(|(k, argument)| {
            argument.named_dimensions.iter().map(move |named| (named.size, (k, named.dimension)))
        });
        let dimensions: Vec<_> = dimensions.collect();
        let size = |(k, _, range): (usize, &Argument, SizeRange)| {
            let named = dimensions.iter().filter(|(size, _)| *size == k).map(|(_, place)| *place);
            (k, range.low, range.high, named.collect())
        };
        interface.sizes().map(size).collect()
    }

    /// Fetches, then written variables.
    #[getter]
    fn results(&self) -> Vec<Told> {
        let told = |result: &Output| {
            let kind = if result.alias.is_some() { "variable" } else { "fetch" };
            told(kind, result.label(), &result.id, &result.shape, result.quantization)
        };
        self.code.interface().results().iter().map(told).collect()
    }

    /// Distributes the work of later runs over this many threads. The results do not depend on it.
    fn set_threads(&self, count: usize) -> PyResult<()> {
        let set = || -> Result<()> {
            let workers: Option<Arc<dyn Workers>> = match count {
                1 => None,
                _ => Some(Arc::new(jit::thread_pool(count)?)),
            };
            let bytes = self.code.memory().scratch_bytes.saturating_mul(count);
            let scratch = AlignedBytes::zeroed(bytes)?;
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.scratch, state.workers) = (scratch, workers);
            Ok(())
        };
        set().map_err(failed)
    }

    /// Runs once on buffers of bytes: arguments, including written variables, which receive their
    /// new values, and fetches, which are written. Returns the actual sizes of bounded dimensions.
    fn run(
        &self,
        py: Python<'_>,
        arguments: Vec<PyBuffer<u8>>,
        results: Vec<PyBuffer<u8>>,
    ) -> PyResult<Vec<i64>> {
        py.detach(|| self.call(&arguments, &results)).map_err(failed)
    }

    /// True if feeds may have their true sizes instead of the largest: the code does not read
    /// beyond them.
    #[getter]
    fn takes_true_sizes(&self) -> bool {
        self.code.memory().takes_true_sizes
    }

    /// Name of the device of a program for GPUs, such as `cuda:0`.
    #[getter]
    fn device(&self) -> Option<String> {
        self.device.as_ref().map(Device::label)
    }

    /// Copies an array of the host to the device: its type, sizes, and bytes.
    fn to_device(
        &self,
        py: Python<'_>,
        element: &str,
        sizes: Vec<usize>,
        bytes: PyBuffer<u8>,
    ) -> PyResult<DeviceArray> {
        let device = self.device.as_ref().ok_or_else(|| failed(runs_on_the_processor()))?;
        py.detach(|| DeviceArray::from_host(device, element, sizes, &bytes)).map_err(failed)
    }

    /// Runs once on arrays of the device, of other libraries, and buffers of bytes: arguments,
    /// including written variables, which receive their new values, and fetches. Fetches are
    /// written to buffers if there are any, and otherwise returned. Also returns the actual sizes
    /// of bounded dimensions.
    fn run_on_device(
        &self,
        py: Python<'_>,
        arguments: Vec<Given>,
        results: Option<Vec<PyBuffer<u8>>>,
    ) -> PyResult<(Vec<DeviceArray>, Vec<i64>)> {
        let run = || {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let State { device, copies, .. } = &mut *state;
            let instance = device.as_mut().ok_or_else(runs_on_the_processor)?;
            device::run(&self.code, instance, copies, &arguments, results.as_deref())
        };
        py.detach(run).map_err(failed)
    }
}

impl Program {
    fn load(object: &[u8], constants: &Path, device: Option<&str>) -> Result<Self> {
        let found = aot::read_metadata(object)?;
        let metadata = &found.first().ok_or_else(|| Error::invalid("the object has no metadata"))?.metadata;
        let damaged = || Error::invalid("the object's metadata is damaged");
        let text = |key: &str| metadata[key].as_str().ok_or_else(damaged);
        let number = |key: &str| metadata["memory"][key].as_u64().map(|n| n as usize).ok_or_else(damaged);
        let interface = aot::read_interface(metadata)?;
        let driver = metadata["device"]["driver"].as_str();
        let memory = match driver {
            None => Memory {
                temps_bytes: number("temps")?,
                scratch_bytes: number("scratch_per_worker")?,
                profile_counters: 0,
                takes_true_sizes: metadata["sizes"].as_array().is_some_and(|sizes| !sizes.is_empty()),
            },
            Some(_) => Memory::default(),
        };
        let layout = metadata["memory"]["constants_file"].as_str().ok_or_else(damaged)?;
        let constants = Mapped::open(constants, layout)?;
        let entry_point = text("entry_point")?;
        let mut code =
            Executable::load_with(object, entry_point, interface, memory, Some(Box::new(constants)))?;
        let options = device_options(driver, device)?;
        let device = options.map(|options| Device::open(&options)).transpose()?;
        if let Some(device) = &device {
            code = code.on_device(device.clone());
        }
        // SAFETY: the state is dropped before the code, and nothing moves it out of the program.
        #[expect(unsafe_code, reason = "addresses in the loaded object")]
        let instance = unsafe { code.device_instance() }?;
        let state = State {
            temps: AlignedBytes::zeroed(memory.temps_bytes)?,
            scratch: AlignedBytes::zeroed(memory.scratch_bytes)?,
            workers: None,
            device: instance,
            copies: Copies::new(),
        };
        Ok(Self { state: Mutex::new(state), code, device })
    }

    fn call(&self, arguments: &[PyBuffer<u8>], results: &[PyBuffer<u8>]) -> Result<Vec<i64>> {
        let interface = self.code.interface();
        if arguments.len() != interface.arguments().len() || results.len() != interface.own_results().count()
        {
            return Err(Error::internal("unexpected number of arrays in a run"));
        }
        let is_written = |k: &usize| interface.new_value(*k).is_some();
        let range =
            |buffer: &PyBuffer<u8>, is_written| (buffer.buf_ptr().addr(), buffer.len_bytes(), is_written);
        let read = arguments.iter().enumerate().map(|(k, buffer)| range(buffer, is_written(&k)));
        check_apart(read.chain(results.iter().map(|buffer| range(buffer, true))).collect())?;
        let mut operands = Vec::new();
        for (k, (buffer, argument)) in arguments.iter().zip(interface.arguments()).enumerate() {
            let may_be_short = self.code.memory().takes_true_sizes && !argument.named_dimensions.is_empty();
            let (address, bytes) =
                whole(buffer, &argument.label(), &argument.shape, is_written(&k), may_be_short)?;
            // SAFETY: the buffer is contiguous, and Python keeps it while `arguments` lives.
            // Written buffers do not overlap others, as checked above. Python code that modifies an
            // array during a run violates the package's contract.
            #[expect(unsafe_code, reason = "memory of Python's")]
            operands.push(if is_written(&k) {
                Operand::Write(unsafe { std::slice::from_raw_parts_mut(address, bytes) })
            } else {
                Operand::Read(unsafe { std::slice::from_raw_parts(address, bytes) })
            });
        }
        let mut outputs = Vec::new();
        for (buffer, result) in results.iter().zip(interface.own_results()) {
            let (address, bytes) = whole(buffer, &result.label(), &result.shape, true, false)?;
            // SAFETY: as above.
            #[expect(unsafe_code, reason = "memory of Python's")]
            outputs.push(unsafe { std::slice::from_raw_parts_mut(address, bytes) });
        }
        let mut sizes = vec![0; interface.size_count()];
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.enter(&mut state, &mut operands, &mut outputs, &mut sizes)?;
        Ok(sizes)
    }

    /// Runs once on memory of the host. Sizes receive the actual ones of bounded dimensions.
    fn enter<'m>(
        &self,
        state: &mut State,
        operands: &mut [Operand<'m>],
        outputs: &mut [&'m mut [u8]],
        sizes: &mut [i64],
    ) -> Result<()> {
        let mut ticks = vec![0; self.code.memory().profile_counters];
        let State { temps, scratch, workers, device, .. } = state;
        let mut call = Call {
            arguments: operands,
            results: outputs,
            temps,
            scratch,
            workers: workers.as_ref(),
            dynamic_sizes: sizes,
            profile_counters: &mut ticks,
        };
        self.code.run_with(&mut call, device.as_mut())
    }
}

/// Returns how to open the device that the caller names, or the first one of the program's driver.
/// `None` if the program runs on the processor.
fn device_options(driver: Option<&str>, name: Option<&str>) -> Result<Option<DeviceOptions>> {
    let kind = match (driver, name) {
        (None, None) => return Ok(None),
        (None, Some(name)) => {
            return Err(Error::invalid(format!(
                "device '{name}': the program runs on the processor; compile it with target='cuda' or 'opencl'"
            )));
        }
        (Some("cuda"), _) => DeviceKind::Cuda,
        (Some("opencl"), _) => DeviceKind::OpenCl,
        (Some(_), _) => return Err(Error::invalid("the object's metadata is damaged: unknown driver")),
    };
    let Some(name) = name else { return Ok(Some(DeviceOptions::new(kind, 0))) };
    let (own, number) = name.split_once(':').unwrap_or((name, "0"));
    match number.parse() {
        Ok(ordinal) if own == kind.name() => Ok(Some(DeviceOptions::new(kind, ordinal))),
        _ => Err(Error::invalid(format!("device '{name}': expected a name such as '{}:0'", kind.name()))),
    }
}

/// The error of arrays on a device for a program that has none.
fn runs_on_the_processor() -> Error {
    Error::invalid(
        "the model runs on the processor and has no device memory: compile it with target='cuda' or 'opencl'",
    )
}

/// Returns the address range of a buffer, which has the size of the shape or, if it may be short,
/// at most that.
fn whole(
    buffer: &PyBuffer<u8>,
    name: &str,
    shape: &ArrayShape,
    is_written: bool,
    may_be_short: bool,
) -> Result<(*mut u8, usize)> {
    let all = shape.byte_size() as usize;
    let bytes = if may_be_short { all.min(buffer.len_bytes()) } else { all };
    if !buffer.is_c_contiguous() || buffer.len_bytes() != bytes || is_written && buffer.readonly() {
        return Err(Error::invalid(format!(
            "'{name}': expected a contiguous buffer of {} bytes{}",
            bytes,
            if is_written { " that is writable" } else { "" }
        )));
    }
    // An empty buffer may have no address.
    match bytes {
        0 => Ok((std::ptr::dangling_mut::<u64>().cast(), 0)),
        _ => Ok((buffer.buf_ptr().cast(), bytes)),
    }
}

/// An array of a run: its address, its number of bytes, and true if the run writes it.
type Range = (usize, usize, bool);

/// Checks that written arrays do not overlap others.
fn check_apart(ranges: Vec<Range>) -> Result<()> {
    let mut ranges: Vec<((usize, usize), bool)> = ranges
        .into_iter()
        .map(|(begin, bytes, writes)| ((begin, begin.saturating_add(bytes)), writes))
        .collect();
    ranges.retain(|((begin, end), _)| begin < end);
    ranges.sort_unstable();
    let (mut read, mut written) = (0, 0);
    for ((begin, end), writes) in ranges {
        if begin < written || writes && begin < read {
            return Err(Error::invalid(
                "two arrays of a run share memory, and one of them is written: pass separate arrays for the variables",
            ));
        }
        read = read.max(end);
        if writes {
            written = written.max(end);
        }
    }
    Ok(())
}

fn told(
    kind: &str,
    name: String,
    id: &Identifier,
    shape: &ArrayShape,
    quantization: Option<Quantization>,
) -> Told {
    let quantization = quantization.map(|Quantization { scale, zero_point }| (scale, zero_point));
    let bounded = shape.dimensions.iter().map(|dimension| dimension.is_dynamic).collect();
    (kind.to_owned(), name, id.to_string(), shape.element_type.name(), shape.sizes(), bounded, quantization)
}
