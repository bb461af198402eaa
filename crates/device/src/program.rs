//! Device programs in memory, apart from the objects that usually contain them.

use crate::{Device, Instance};
use std::ffi::{CStr, c_void};
use support::{Code, Error, Result};
use tfcompile_runtime::Frame;

/// Offsets in the header of a device program (`codegen::bundle` writes it).
mod header {
    pub(super) const MAGIC: &[u8; 8] = b"TFCDEV1\0";
    pub(super) const BYTES: usize = 160;
    pub(super) const ARGUMENT_COUNT: usize = 64;
    pub(super) const RESULT_COUNT: usize = 68;
    pub(super) const SIZE_COUNT: usize = 72;
    pub(super) const ARGUMENTS_AT: usize = 96;
    pub(super) const RESULTS_AT: usize = 104;
    /// Size of an entry in both tables.
    pub(super) const ENTRY: usize = 16;
}

/// A device program with its constants.
#[derive(Clone, Debug)]
pub struct Program {
    /// The program, in words so that it is aligned.
    program: Vec<u64>,
    constants: Vec<u64>,
    /// Size of each argument in bytes.
    arguments: Vec<usize>,
    /// Size of each result in bytes, and the argument whose memory it shares.
    results: Vec<(usize, Option<usize>)>,
    size_count: usize,
}

impl Program {
    /// Reads a program. Errors: `invalid` if it is not one.
    pub fn new(program: &[u8], constants: &[u8]) -> Result<Self> {
        let malformed = || Error::invalid("not a device program").coded(Code::ParseFile);
        if program.len() < header::BYTES || !program.starts_with(header::MAGIC) {
            return Err(malformed());
        }
        let bytes = |at: usize, count: usize| program.get(at..at.checked_add(count)?);
        let long = |at: usize| Some(u64::from_le_bytes(bytes(at, 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(bytes(at, 4)?.try_into().ok()?) as usize);
        let table = |place: usize, count: usize| -> Option<Vec<(usize, usize)>> {
            let start = usize::try_from(long(place)?).ok()?;
            let entry = |k: usize| {
                let at = start.checked_add(k.checked_mul(header::ENTRY)?)?;
                Some((usize::try_from(long(at)?).ok()?, short(at.checked_add(8)?)?))
            };
            (0..short(count)?).map(entry).collect()
        };
        let arguments = table(header::ARGUMENTS_AT, header::ARGUMENT_COUNT).ok_or_else(malformed)?;
        let results = table(header::RESULTS_AT, header::RESULT_COUNT).ok_or_else(malformed)?;
        Ok(Self {
            program: words(program),
            constants: words(constants),
            arguments: arguments.into_iter().map(|(bytes, _)| bytes).collect(),
            results: results.into_iter().map(|(bytes, shared)| (bytes, shared.checked_sub(1))).collect(),
            size_count: short(header::SIZE_COUNT).ok_or_else(malformed)?,
        })
    }

    /// Size of each argument in bytes.
    pub fn arguments(&self) -> &[usize] {
        &self.arguments
    }

    /// Loads the program on a device.
    pub fn load(&self, device: &Device) -> Result<LoadedProgram<'_>> {
        let (program, constants) = (self.program.as_ptr().cast(), self.constants.as_ptr().cast());
        // SAFETY: both blocks live as long as the instance, which borrows `self`. The runtime
        // checks the program.
        #[expect(unsafe_code, reason = "the C runtime")]
        let instance = unsafe { Instance::create(device, program, constants) }?;
        let results = self.results.iter().map(|&(bytes, _)| vec![0; bytes.div_ceil(8)]).collect();
        Ok(LoadedProgram { program: self, instance, results, sizes: vec![0; self.size_count] })
    }
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(padded)
    };
    bytes.chunks(8).map(word).collect()
}

/// A program on a device, with host memory for its results.
#[derive(Debug)]
pub struct LoadedProgram<'p> {
    program: &'p Program,
    instance: Instance,
    results: Vec<Vec<u64>>,
    sizes: Vec<i64>,
}

impl LoadedProgram<'_> {
    /// The instance, for profiles.
    pub fn instance(&mut self) -> &mut Instance {
        &mut self.instance
    }

    /// Runs the program on arguments in host memory, each of the program's size. Arguments that the
    /// program updates in place receive their new values.
    ///
    /// Errors: `invalid` for arguments of another number or size, with code `Device` for failures
    /// of the driver, and with code `FailedRun` for failed checks of the program.
    pub fn run(&mut self, arguments: &mut [Vec<u8>]) -> Result<()> {
        let sizes: Vec<usize> = arguments.iter().map(Vec::len).collect();
        if sizes != self.program.arguments {
            return Err(Error::invalid(format!(
                "arguments of {sizes:?} bytes; the program expects {:?}",
                self.program.arguments
            )));
        }
        let places: Vec<*mut c_void> = arguments.iter_mut().map(|a| a.as_mut_ptr().cast()).collect();
        let results: Vec<*mut c_void> = (self.program.results.iter().zip(&mut self.results))
            .map(|(&(_, shared), own)| shared.map_or(own.as_mut_ptr().cast(), |argument| places[argument]))
            .collect();
        let mut frame = Frame {
            args: places.as_ptr(),
            results: results.as_ptr(),
            constants: self.program.constants.as_ptr().cast(),
            dynamic_sizes: self.sizes.as_mut_ptr(),
            device: self.instance.address(),
            ..Frame::empty()
        };
        // SAFETY: the first member of an instance is the function; all buffers have the program's
        // sizes and are borrowed uniquely.
        #[expect(unsafe_code, reason = "the C runtime")]
        let status = unsafe {
            type Run = unsafe extern "C" fn(*mut c_void, *const c_void, *mut Frame) -> i32;
            let run = *self.instance.address().cast::<Run>();
            run(self.instance.address(), self.program.program.as_ptr().cast(), &mut frame)
        };
        if status == 0 {
            return Ok(());
        }
        let message = if frame.error.is_null() {
            format!("the run returned status {status}")
        } else {
            // SAFETY: the runtime sets a NUL-terminated text that lives as long as the instance.
            #[expect(unsafe_code, reason = "the C runtime")]
            unsafe {
                CStr::from_ptr(frame.error).to_string_lossy().into_owned()
            }
        };
        let code = if self.instance.has_driver_error() { Code::Device } else { Code::FailedRun };
        Err(Error::invalid(message).coded(code))
    }

    /// Bytes of a result that has memory of its own; the others are in their arguments.
    pub fn result(&self, index: usize) -> Vec<u8> {
        let bytes = self.program.results[index].0;
        let words = self.results[index].iter().flat_map(|word| word.to_ne_bytes());
        words.take(bytes).collect()
    }

    /// The argument whose memory a result shares.
    pub fn shared_argument(&self, result: usize) -> Option<usize> {
        self.program.results[result].1
    }

    /// Actual sizes of bounded dimensions.
    pub fn sizes(&self) -> &[i64] {
        &self.sizes
    }
}
