//! What all runs of a session share.

use crate::device::Device;
use crate::executor::Pool;
use crate::kernels::{Background, Kernels};
use crate::options::{Launches, Output};
use crate::resources::Resources;
use jit::Workers;
use std::sync::Arc;

/// Resources, kernels, threads and devices of a session.
pub(crate) struct Shared {
    pub(crate) resources: Resources,
    pub(crate) kernels: Arc<Kernels>,
    /// Who compiles clusters that runs do not wait for.
    pub(crate) background: Background,
    pub(crate) pool: Pool,
    /// Who shares the work of one large kernel; none is the thread that runs it.
    pub(crate) workers: Option<Arc<dyn Workers>>,
    pub(crate) devices: Vec<Arc<dyn Device>>,
    /// What nodes whose seeds are zero draw from, with their names.
    pub(crate) seed: u64,
    /// Where `Print` and its kin write.
    pub(crate) output: Output,
    pub(crate) launches: Launches,
}
