//! State and settings shared by all runs of a session.

use crate::device::{DeviceId, Place};
use crate::gpu::Gpus;
use crate::options::{Launches, Output};
use crate::resources::Resources;
use jit::Workers;
use std::sync::Arc;
use support::IdVec;

/// State, devices and settings of a session.
pub(crate) struct Shared {
    pub(crate) resources: Resources,
    /// Threads that share the work of one large kernel. `None` runs it on the calling thread only.
    pub(crate) workers: Option<Arc<dyn Workers>>,
    pub(crate) devices: IdVec<DeviceId, Place>,
    pub(crate) gpus: Gpus,
    /// Seed of nodes whose own seeds are zero. It is combined with their names.
    pub(crate) seed: u64,
    /// Sink for the output of `Print` and similar ops.
    pub(crate) output: Output,
    pub(crate) launches: Launches,
}
