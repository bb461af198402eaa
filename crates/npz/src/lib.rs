//! Readers and writers of array files: NumPy's `.npy` (one array) and `.npz` (a zip archive of
//! arrays), `.safetensors`, and IDX, the format of MNIST (read only).
//!
//! Files are untrusted: sizes are checked against a limit before any allocation, and a malformed
//! file is an [`Error::invalid`](support::Error). This crate opens no files; callers pass the
//! bytes. Types that NumPy does not support (bfloat16, float8) are stored as unsigned integers of
//! their width, and the caller restores the type.

mod archive;
mod idx;
mod npy;
mod safetensors;

pub use archive::{Archive, write, write_stored};
pub use idx::parse_idx;
pub use npy::{parse_npy, write_npy};
pub use safetensors::{Safetensors, write_safetensors};
