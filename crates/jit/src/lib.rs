//! Runs compiled code in this process.
//!
//! An [`Executable`] is a loaded object with its [`Interface`]; an [`Instance`] owns what one user of it needs: results,
//! temps and the frame, like the generated C++ class.

mod aligned;
mod call;
mod frame;
mod instance;
mod workers;

pub use aligned::{ALIGNMENT, AlignedBytes};
pub use call::{Call, Operand};
pub use frame::Frame;
pub use instance::{BufferSpec, Executable, Instance, Interface, ResultSpec};
pub use workers::{Part, ThreadPool, Workers};
