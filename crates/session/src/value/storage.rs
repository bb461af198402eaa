//! Memory of a tensor: on the host, on a GPU, or on both.
//!
//! A tensor starts where it was computed. The other side is filled when it is first needed, and
//! kept, so that each value is copied at most once in each direction.

use crate::buffer::Buffer;
use crate::gpu::Gpu;
use jit::DeviceMemory;
use std::sync::{Arc, OnceLock};
use support::{Error, Result};

/// The bytes of a tensor.
#[derive(Debug)]
pub(crate) struct Storage {
    len: usize,
    host: OnceLock<Buffer>,
    gpu: OnceLock<OnGpu>,
}

/// Memory on a GPU.
#[derive(Debug)]
struct OnGpu {
    memory: DeviceMemory,
    gpu: Arc<Gpu>,
}

impl Storage {
    /// Memory of the host.
    pub(crate) fn of_host(buffer: Buffer) -> Self {
        Self { len: buffer.len(), host: OnceLock::from(buffer), gpu: OnceLock::new() }
    }

    /// Memory of a GPU.
    pub(crate) fn of_gpu(memory: DeviceMemory, gpu: Arc<Gpu>) -> Self {
        Self { len: memory.len(), host: OnceLock::new(), gpu: OnceLock::from(OnGpu { memory, gpu }) }
    }

    /// Number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Identifies the memory: its address on the host, else on the GPU.
    pub(crate) fn address(&self) -> u64 {
        match (self.host.get(), self.gpu.get()) {
            (Some(buffer), _) => buffer.as_ptr().addr() as u64,
            (None, Some(side)) => side.memory.address(),
            (None, None) => 0,
        }
    }

    /// The GPU that has the bytes, if any.
    pub(crate) fn gpu(&self) -> Option<&Arc<Gpu>> {
        self.gpu.get().map(|side| &side.gpu)
    }

    /// The bytes, copied to the host if they are only on a GPU.
    pub(crate) fn bytes(&self) -> Result<&[u8]> {
        if self.host.get().is_none() {
            let side = self.gpu.get().ok_or_else(|| Error::internal("a tensor has no memory"))?;
            let mut buffer = Buffer::uninitialized(self.len)?;
            side.gpu.copy_out(&side.memory, &mut buffer)?;
            // Another thread may have been faster; its copy has the same bytes.
            let _ = self.host.set(buffer);
        }
        self.host.get().map(|buffer| &buffer[..]).ok_or_else(|| Error::internal("a tensor has no memory"))
    }

    /// The bytes on a GPU, copied there if they are only on the host. `None` if another GPU has
    /// them.
    pub(crate) fn on(&self, gpu: &Arc<Gpu>) -> Result<Option<&DeviceMemory>> {
        if self.gpu.get().is_none() {
            let memory = gpu.copy_in(self.bytes()?)?;
            let _ = self.gpu.set(OnGpu { memory, gpu: gpu.clone() });
        }
        Ok(self.gpu.get().filter(|side| Arc::ptr_eq(&side.gpu, gpu)).map(|side| &side.memory))
    }

    /// A copy on the host.
    pub(crate) fn duplicate(&self) -> Result<Self> {
        Ok(Self::of_host(Buffer::from_bytes(self.bytes()?)?))
    }

    /// A copy on a GPU.
    pub(crate) fn duplicate_on(&self, gpu: &Arc<Gpu>) -> Result<Self> {
        let memory = match self.gpu.get().filter(|side| Arc::ptr_eq(&side.gpu, gpu)) {
            Some(side) => gpu.duplicate(&side.memory)?,
            None => gpu.copy_in(self.bytes()?)?,
        };
        Ok(Self::of_gpu(memory, gpu.clone()))
    }

    /// The bytes for writing on the host, which drops those on a GPU.
    pub(crate) fn host_mut(&mut self) -> Result<&mut [u8]> {
        self.bytes()?;
        self.gpu.take();
        self.host
            .get_mut()
            .map(|buffer| &mut buffer[..])
            .ok_or_else(|| Error::internal("a tensor has no memory"))
    }

    /// The bytes for writing on a GPU, which drops those on the host.
    pub(crate) fn gpu_mut(&mut self, gpu: &Arc<Gpu>) -> Result<&mut DeviceMemory> {
        if self.on(gpu)?.is_none() {
            *self = self.duplicate_on(gpu)?;
        }
        self.host.take();
        self.gpu
            .get_mut()
            .map(|side| &mut side.memory)
            .ok_or_else(|| Error::internal("a tensor has no memory on the GPU"))
    }
}
