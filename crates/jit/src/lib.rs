//! Runs compiled code in this process.
//!
//! An [`Executable`] is a loaded object with its [`Interface`](hlo::Interface). An [`Instance`]
//! owns the buffers of one user of it: results, temporaries, and the frame, like the generated C++
//! class.

mod aligned;
mod call;
mod device_call;
mod device_instances;
mod instance;

pub use aligned::{ALIGNMENT, AlignedBytes};
pub use call::{Call, Operand};
pub use device::{
    Device, Instance as DeviceInstance, KernelFacts, Kind as DeviceKind, Memory as DeviceMemory,
    Operation as DeviceOperation, Options as DeviceOptions, Record as DeviceRecord, count as device_count,
};
pub use device_call::{DeviceCall, DeviceOperand, DeviceTrace};
pub use instance::{Constants, Executable, Instance, Memory};
pub use tfcompile_runtime::{Frame, Part, ThreadPool, Workers};

use support::{Code, Error, Result};

/// Creates a pool of `count` workers, including the caller. Fails for 0 or too many threads.
pub fn thread_pool(count: usize) -> Result<ThreadPool> {
    ThreadPool::new(count).map_err(|e| {
        let message = format!("cannot start {count} threads: {e}; use fewer, or allow more (ulimit -u)");
        Error::invalid(message).coded(Code::Resources)
    })
}
