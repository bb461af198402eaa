//! Files of arrays, to and from literals: NumPy's `.npy`, one array, and `.npz`, a zip archive of them; `.safetensors`; IDX, as the
//! MNIST files have it, only read.
//!
//! Files come from anywhere: sizes are checked against a limit before anything is allocated, a malformed file is an
//! [`Error::invalid`](support::Error). Nothing here opens a file; callers hand over bytes. Types that NumPy lacks
//! (bfloat16, the float8s) stand in such files as integers of their width; the caller gives them their meaning back.

mod archive;
mod idx;
mod npy;
mod safetensors;

pub use archive::{Archive, write, write_stored};
pub use idx::parse_idx;
pub use npy::{parse_npy, write_npy};
pub use safetensors::{Safetensors, write_safetensors};
