//! Runs of programs on arrays in the memory of a GPU.

use super::{check_apart, whole};
use crate::device_array::DeviceArray;
use jit::{Device, DeviceCall, DeviceInstance, DeviceMemory, DeviceOperand, Executable};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use shape::ArrayShape;
use std::collections::BTreeMap;
use support::{Error, Result};

/// An argument. Type, sizes, and layout of all but buffers were checked by the Python part.
#[derive(FromPyObject)]
pub(crate) enum Given {
    /// An array of this package.
    Array(Py<DeviceArray>),
    /// An array of another library: its address, and the stream to wait for. Stream 0 is the whole
    /// device, and `None` none.
    Foreign((u64, Option<usize>)),
    /// Memory of the host.
    Host(PyBuffer<u8>),
}

/// Device memory for the arguments and results of the host, by number. It is kept, because runs on
/// the same addresses are recorded as graphs.
pub(super) type Copies = BTreeMap<usize, DeviceMemory>;

/// Place of an argument or a result of a run.
#[derive(Clone, Copy)]
enum Place {
    /// A buffer that [`whole`] has checked.
    Host(*mut u8),
    Device(u64),
}

impl Place {
    fn address(self) -> usize {
        match self {
            Self::Host(memory) => memory.addr(),
            Self::Device(address) => address as usize,
        }
    }
}

impl Given {
    /// Returns the place of the argument, which is on this device or in host memory.
    fn place(&self, name: &str, shape: &ArrayShape, is_written: bool, device: &Device) -> Result<Place> {
        match self {
            Self::Host(buffer) => Ok(Place::Host(whole(buffer, name, shape, is_written, false)?.0)),
            Self::Foreign((address, _)) => Ok(Place::Device(*address)),
            Self::Array(array) => {
                let (memory, bytes) = (array.get().memory(), shape.byte_size() as usize);
                if memory.device().is_same(device) && memory.len() >= bytes {
                    return Ok(Place::Device(memory.address()));
                }
                Err(Error::internal(format!(
                    "'{name}': expected {bytes} bytes on {}, got {} on {}",
                    device.label(),
                    memory.len(),
                    memory.device().label()
                )))
            }
        }
    }

    /// Waits for the work of others that writes the array.
    fn wait(&self, device: &Device) -> Result<()> {
        match self {
            Self::Foreign((_, Some(0))) => device.synchronize(),
            // SAFETY: the other library promises that this is a stream of the device.
            #[expect(unsafe_code, reason = "a stream of another library")]
            Self::Foreign((_, Some(stream))) => unsafe { device.synchronize_stream(*stream) },
            _ => Ok(()),
        }
    }
}

/// Runs once. Without buffers for the results, returns new arrays. Also returns the actual sizes of
/// bounded dimensions.
pub(super) fn run(
    code: &Executable,
    instance: &mut DeviceInstance,
    copies: &mut Copies,
    arguments: &[Given],
    results: Option<&[PyBuffer<u8>]>,
) -> Result<(Vec<DeviceArray>, Vec<i64>)> {
    let (interface, device) = (code.interface(), instance.device().clone());
    let result_count = interface.own_results().count();
    if arguments.len() != interface.arguments().len()
        || results.is_some_and(|results| results.len() != result_count)
    {
        return Err(Error::internal("unexpected number of arrays in a run"));
    }
    let is_written = |k: usize| interface.new_value(k).is_some();
    let mut places = Vec::new();
    let mut ranges = Vec::new();
    for (k, (given, argument)) in arguments.iter().zip(interface.arguments()).enumerate() {
        let place = given.place(&argument.label(), &argument.shape, is_written(k), &device)?;
        places.push(place);
        ranges.push((place.address(), argument.shape.byte_size() as usize, is_written(k)));
    }
    for (buffer, result) in results.into_iter().flatten().zip(interface.own_results()) {
        let (memory, bytes) = whole(buffer, &result.label(), &result.shape, true, false)?;
        places.push(Place::Host(memory));
        ranges.push((memory.addr(), bytes, true));
    }
    let lens: Vec<usize> = ranges.iter().map(|&(_, bytes, _)| bytes).collect();
    check_apart(ranges)?;

    let mut memories = Vec::new();
    for (k, (given, argument)) in arguments.iter().zip(interface.arguments()).enumerate() {
        given.wait(&device)?;
        let bytes = argument.shape.byte_size() as usize;
        // SAFETY: the caller keeps the arrays during the run. Written ones do not overlap others,
        // as checked above. Code that uses an array during a run violates the package's contract.
        #[expect(unsafe_code, reason = "memory of arrays")]
        memories.push(match places[k] {
            Place::Host(from) => {
                let mut memory = take(copies, k, &device, bytes)?;
                memory.copy_in(unsafe { std::slice::from_raw_parts(from, bytes) })?;
                memory
            }
            Place::Device(address) => unsafe { DeviceMemory::of_caller(&device, address, bytes) },
        });
    }
    let mut outputs = Vec::new();
    for (k, result) in interface.own_results().enumerate() {
        let bytes = result.whole().byte_size() as usize;
        outputs.push(match results {
            Some(_) => take(copies, arguments.len() + k, &device, bytes)?,
            None => DeviceMemory::uninitialized(&device, bytes)?,
        });
    }
    let mut sizes = vec![0; interface.size_count()];
    let operand = |(k, memory)| {
        if is_written(k) { DeviceOperand::Write(memory) } else { DeviceOperand::Read(memory) }
    };
    let operands: Vec<DeviceOperand<'_>> = memories.iter_mut().enumerate().map(operand).collect();
    let mut call = DeviceCall {
        arguments: &operands,
        results: &mut outputs,
        dynamic_sizes: &mut sizes,
        owner: None,
        trace: None,
    };
    code.run_on_device_with(&mut call, instance)?;

    let mut arrays = Vec::new();
    if results.is_none() {
        for (memory, result) in outputs.drain(..).zip(interface.own_results()) {
            let sizes = result.shape.sizes().iter().map(|&size| size as usize).collect();
            arrays.push(DeviceArray::new(memory, result.shape.element_type, sizes));
        }
    }
    for (k, memory) in memories.into_iter().chain(outputs).enumerate() {
        let Place::Host(to) = places[k] else { continue };
        if k >= arguments.len() || is_written(k) {
            // SAFETY: as above, and `whole` has checked that the buffer is writable.
            #[expect(unsafe_code, reason = "memory of arrays")]
            memory.copy_out(unsafe { std::slice::from_raw_parts_mut(to, lens[k]) })?;
        }
        copies.insert(k, memory);
    }
    Ok((arrays, sizes))
}

/// Takes the device memory for an argument or result of the host, or allocates it.
fn take(copies: &mut Copies, number: usize, device: &Device, bytes: usize) -> Result<DeviceMemory> {
    copies.remove(&number).map_or_else(|| DeviceMemory::uninitialized(device, bytes), Ok)
}
