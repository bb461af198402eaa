//! A single call of loaded code on the caller's buffers.

use crate::instance::{Executable, alignment, bytes};
use crate::{ALIGNMENT, Frame, Workers};
use device::Instance as DeviceInstance;
use hlo::Interface;
use shape::ArrayShape;
use std::ffi::c_void;
use std::sync::Arc;
use support::{Error, Result};
use tfcompile_runtime::{ParallelFor, parallel_for};

/// Memory of an argument.
#[derive(Debug)]
pub enum Operand<'a> {
    /// Memory that is only read. Others may read it at the same time.
    Read(&'a [u8]),
    /// Memory that is read and written, for an argument aliased by a result.
    Write(&'a mut [u8]),
}

/// The buffers of one call. Each may be larger than the interface requires; see
/// [`Memory::takes_true_sizes`](crate::Memory::takes_true_sizes) for when it may be smaller.
pub struct Call<'c, 'm> {
    /// One operand for each argument.
    pub arguments: &'c mut [Operand<'m>],
    /// One buffer for each result that does not alias an argument, in order, at multiples of
    /// [`ALIGNMENT`].
    pub results: &'c mut [&'m mut [u8]],
    /// Temporaries, at a multiple of [`ALIGNMENT`]. Persistent state is at the beginning and must
    /// initially be zero.
    pub temps: &'c mut [u8],
    /// Scratch memory for all workers.
    pub scratch: &'c mut [u8],
    /// Workers that share the work; `None` runs it on the calling thread.
    pub workers: Option<&'c Arc<dyn Workers>>,
    /// Receives the true sizes of bounded dimensions.
    pub dynamic_sizes: &'c mut [i64],
    /// Counters to which the code adds its profile.
    pub profile_counters: &'c mut [i64],
}

/// Addresses, usually few enough to fit on the stack.
struct Addresses {
    few: [*mut c_void; Self::FEW],
    many: Vec<*mut c_void>,
    len: usize,
}

impl Addresses {
    const FEW: usize = 8;

    fn new(len: usize) -> Self {
        let many = if len > Self::FEW { vec![std::ptr::null_mut(); len] } else { Vec::new() };
        Self { few: [std::ptr::null_mut(); Self::FEW], many, len }
    }

    fn slice(&mut self) -> &mut [*mut c_void] {
        if self.len > Self::FEW { &mut self.many } else { &mut self.few[..self.len] }
    }
}

impl Executable {
    /// Runs the code once on these buffers.
    ///
    /// # Errors
    /// Fails if there are too few buffers, if a buffer is too small or misaligned, or with the
    /// code's own message.
    pub fn run(&self, call: &mut Call<'_, '_>) -> Result<()> {
        self.run_with(call, None)
    }

    /// Like [`Executable::run`], for code with a device program, loaded by
    /// [`Executable::device_instance`] of the same executable. Only one call may use it at a time.
    ///
    /// # Errors
    /// As for [`Executable::run`], or with the driver's message.
    pub fn run_with(&self, call: &mut Call<'_, '_>, device: Option<&mut DeviceInstance>) -> Result<()> {
        let (interface, memory) = (self.interface(), self.memory());
        let workers = call.workers.map_or(1, |workers| workers.count().max(1));
        let fits = call.arguments.len() == interface.arguments().len()
            && call.results.len() == interface.own_results().count()
            && fits(call.temps, memory.temps_bytes)
            && memory.scratch_bytes.checked_mul(workers).is_some_and(|bytes| call.scratch.len() >= bytes)
            && call.dynamic_sizes.len() >= interface.size_count()
            && call.profile_counters.len() >= memory.profile_counters;
        if !fits {
            return Err(Error::internal("the buffers of a call do not match the code's interface"));
        }
        let rows = if memory.takes_true_sizes { rows(interface, call.arguments) } else { None };
        let bytes = |shape: &ArrayShape, is_batch: bool| match rows {
            Some(rows) if is_batch => bytes(shape) / shape.size(0).max(1) as usize * rows,
            _ => bytes(shape),
        };
        let mut arguments = Addresses::new(interface.arguments().len());
        for (k, (operand, argument)) in call.arguments.iter_mut().zip(interface.arguments()).enumerate() {
            let (address, len) = match operand {
                Operand::Read(bytes) => (bytes.as_ptr().cast_mut(), bytes.len()),
                Operand::Write(bytes) => (bytes.as_mut_ptr(), bytes.len()),
            };
            let bytes = bytes(&argument.shape, !argument.named_dimensions.is_empty());
            if len < bytes || (bytes > 0 && !address.addr().is_multiple_of(alignment(argument))) {
                return Err(Error::internal(format!("argument {k} is too small or misaligned")));
            }
            arguments.slice()[k] = address.cast();
        }
        let mut results = Addresses::new(interface.results().len());
        let mut own = call.results.iter_mut();
        for (k, result) in interface.results().iter().enumerate() {
            results.slice()[k] = match result.alias {
                Some(argument) => match &mut call.arguments[argument] {
                    Operand::Write(bytes) => bytes.as_mut_ptr().cast(),
                    Operand::Read(_) => {
                        return Err(Error::internal(format!(
                            "argument {argument} is aliased by a result, but not writable"
                        )));
                    }
                },
                None => match own
                    .next()
                    .filter(|buffer| fits_result(buffer, bytes(&result.shape, !result.sizes().is_empty())))
                {
                    Some(bytes) => bytes.as_mut_ptr().cast(),
                    None => return Err(Error::internal(format!("result {k} is too small or misaligned"))),
                },
            };
        }
        let shared: Option<&dyn Workers> = call.workers.map(|workers| &**workers);
        let context = shared.as_ref().map(std::ptr::from_ref);
        let mut frame = Frame {
            args: arguments.slice().as_ptr(),
            results: results.slice().as_ptr(),
            temps: call.temps.as_mut_ptr().cast(),
            constants: self.constants_address(),
            parallel_for: context.map(|_| parallel_for as ParallelFor),
            context: context.map_or(std::ptr::null_mut(), |workers| workers.cast_mut().cast()),
            max_workers: workers as i64,
            scratch: call.scratch.as_mut_ptr().cast(),
            dynamic_sizes: call.dynamic_sizes.as_mut_ptr(),
            profile_counters: call.profile_counters.as_mut_ptr(),
            device: device.as_ref().map_or(std::ptr::null_mut(), |device| device.address()),
            ..Frame::empty()
        };
        // SAFETY: sizes and alignments were checked against the interface above. Written memory is
        // borrowed uniquely. Memory that is only read may be shared, because the code writes only
        // to aliased arguments, results, temporaries, scratch memory, sizes, and counters. The
        // workers' `Arc` outlives the call.
        #[expect(unsafe_code, reason = "generated code follows raw addresses")]
        let result = unsafe { self.enter(&mut frame) };
        match device {
            Some(device) if device.has_driver_error() => {
                result.map_err(|error| device::run_error(error.message().to_owned()))
            }
            _ => result,
        }
    }
}

/// Returns the number of rows of a call of code that computes a batch in pieces, at most the
/// largest one: for other numbers, the code fails before it accesses any array.
fn rows(interface: &Interface, arguments: &[Operand<'_>]) -> Option<usize> {
    let (number, _, range) = interface.sizes().next()?;
    let size: &[u8] = match &arguments[number] {
        Operand::Read(size) => size,
        Operand::Write(size) => size,
    };
    let size = i32::from_ne_bytes(size.get(..4)?.try_into().ok()?);
    Some(i64::from(size).clamp(0, range.high) as usize)
}

fn fits(bytes: &[u8], required: usize) -> bool {
    required == 0 || fits_result(bytes, required)
}

fn fits_result(bytes: &[u8], required: usize) -> bool {
    bytes.len() >= required && (required == 0 || bytes.as_ptr().addr().is_multiple_of(ALIGNMENT))
}
