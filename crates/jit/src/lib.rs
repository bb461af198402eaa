//! Runs compiled code in this process.
//!
//! An [`Executable`] is a loaded object with its [`Interface`](hlo::Interface); an [`Instance`] owns what one user of it needs: results,
//! temps and the frame, like the generated C++ class.

mod aligned;
mod call;
mod instance;

pub use aligned::{ALIGNMENT, AlignedBytes};
pub use call::{Call, Operand};
pub use instance::{Constants, Executable, Instance, Memory};
pub use tfcompile_runtime::{Frame, Part, ThreadPool, Workers};

use support::{Error, Result};

/// A pool of `count` workers, the caller included. Errors: none or too many.
pub fn thread_pool(count: usize) -> Result<ThreadPool> {
    ThreadPool::new(count).map_err(|e| Error::invalid(format!("{count} threads: {e}")))
}
