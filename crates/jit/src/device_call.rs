//! A single call of a device program on memory of its device.

use crate::device_instances::lock;
use crate::instance::{Executable, bytes};
use device::{Instance as DeviceInstance, KernelFacts, Memory, Record};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Memory of an argument on the device.
#[derive(Debug)]
pub enum DeviceOperand<'a> {
    /// Memory that is only read.
    Read(&'a Memory),
    /// Memory that is read and written, for an argument aliased by a result.
    Write(&'a mut Memory),
}

impl DeviceOperand<'_> {
    fn memory(&self) -> &Memory {
        match self {
            Self::Read(memory) => memory,
            Self::Write(memory) => memory,
        }
    }
}

/// The memory of one call. Each block may be larger than the interface requires.
pub struct DeviceCall<'c, 'm> {
    /// One operand for each argument.
    pub arguments: &'c [DeviceOperand<'m>],
    /// One block for each result that does not alias an argument, in order.
    pub results: &'c mut [Memory],
    /// Receives the true sizes of bounded dimensions.
    pub dynamic_sizes: &'c mut [i64],
    /// Owner of the program's persistent state, for programs that have one. Calls with the same
    /// owner run one after another.
    pub owner: Option<&'c str>,
    /// Receives what the device did, if wanted.
    pub trace: Option<&'c mut DeviceTrace>,
}

/// Operations of the device in a call.
#[derive(Debug, Default)]
pub struct DeviceTrace {
    /// Kernels and copies.
    pub records: Vec<Record>,
    /// Resources of the kernels, by their numbers.
    pub kernels: BTreeMap<u32, KernelFacts>,
}

impl Executable {
    /// Runs the device program once on memory of its device, and waits for it.
    ///
    /// # Errors
    /// Fails if there are too few blocks, or if a block is too small or on another device, with the
    /// driver's error, or with the program's own message.
    pub fn run_on_device(&self, call: &mut DeviceCall<'_, '_>) -> Result<()> {
        let create = || {
            // SAFETY: `self` owns its instances, which are dropped before the object.
            #[expect(unsafe_code, reason = "addresses in the loaded object")]
            let instance = unsafe { self.device_instance() }?;
            instance.ok_or_else(|| Error::internal("the code has no device program"))
        };
        let Some(owner) = call.owner else {
            let mut instance = self.device_instances.take_idle().map_or_else(create, Ok)?;
            let result = self.run_on_device_with(call, &mut instance);
            self.device_instances.add_idle(instance);
            return result;
        };
        let instance = self.device_instances.owned(owner, create)?;
        let mut instance = lock(&instance);
        self.run_on_device_with(call, &mut instance)
    }

    /// Like [`Executable::run_on_device`], with an instance that was loaded by
    /// [`Executable::device_instance`] of the same executable. It has the program's persistent
    /// state, so the call's owner is ignored.
    ///
    /// # Errors
    /// As for [`Executable::run_on_device`].
    pub fn run_on_device_with(
        &self,
        call: &mut DeviceCall<'_, '_>,
        instance: &mut DeviceInstance,
    ) -> Result<()> {
        let interface = self.interface();
        let fits =
            |memory: &Memory, len: usize| memory.len() >= len && memory.device().is_same(instance.device());
        let shapes = interface.arguments().iter().map(|argument| bytes(&argument.shape));
        let own = interface.own_results().map(|result| bytes(&result.whole()));
        let is_valid = call.arguments.len() == interface.arguments().len()
            && call.results.len() == interface.own_results().count()
            && call.dynamic_sizes.len() == interface.size_count()
            && call.arguments.iter().zip(shapes).all(|(operand, len)| fits(operand.memory(), len))
            && call.results.iter().zip(own).all(|(memory, len)| fits(memory, len));
        let is_writable = |argument: usize| matches!(call.arguments[argument], DeviceOperand::Write(_));
        if !is_valid || !interface.results().iter().filter_map(|result| result.alias).all(is_writable) {
            return Err(Error::internal("the device memory of a call does not match the code's interface"));
        }
        let arguments: Vec<u64> = call.arguments.iter().map(|operand| operand.memory().address()).collect();
        let mut own = call.results.iter();
        let results: Vec<u64> = interface
            .results()
            .iter()
            .map(|result| match result.alias {
                Some(argument) => arguments[argument],
                None => own.next().map_or(0, Memory::address),
            })
            .collect();
        if call.trace.is_some() {
            instance.set_profiled(true)?;
        }
        // SAFETY: number, sizes, and device of all blocks were checked against the interface.
        // Written blocks are borrowed uniquely: aliased arguments and results.
        #[expect(unsafe_code, reason = "addresses on a device")]
        let result = unsafe { instance.run(&arguments, &results, call.dynamic_sizes) };
        if let Some(trace) = &mut call.trace {
            trace.records = instance.take_records();
            for record in &trace.records {
                trace.kernels.entry(record.kernel).or_insert_with(|| instance.kernel_facts(record.kernel));
            }
            instance.set_profiled(false)?;
        }
        result
    }
}
