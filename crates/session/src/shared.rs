//! State and settings that all runs of a session share.

use crate::device::{Device, DeviceId};
use crate::options::{Launches, Output};
use crate::resources::Resources;
use jit::Workers;
use std::sync::Arc;
use support::IdVec;

/// State, devices and settings of a session.
pub(crate) struct Shared {
    pub(crate) resources: Resources,
    /// Threads that share the work of one large kernel; `None` is the thread that runs it.
    pub(crate) workers: Option<Arc<dyn Workers>>,
    pub(crate) devices: IdVec<DeviceId, Arc<dyn Device>>,
    /// The seed of nodes whose own seeds are zero. Their names are part of it.
    pub(crate) seed: u64,
    /// The sink for what `Print` and its kin write.
    pub(crate) output: Output,
    pub(crate) launches: Launches,
}
