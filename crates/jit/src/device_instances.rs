//! Instances of a device program that an executable keeps between calls.

use device::Instance as DeviceInstance;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use support::Result;

/// Instances of a device program: idle ones without state, and those with the state of an owner.
#[derive(Debug, Default)]
pub(crate) struct DeviceInstances {
    idle: Mutex<Vec<DeviceInstance>>,
    owned: Mutex<BTreeMap<String, Arc<Mutex<DeviceInstance>>>>,
}

impl DeviceInstances {
    /// Takes an idle instance.
    pub(crate) fn take_idle(&self) -> Option<DeviceInstance> {
        lock(&self.idle).pop()
    }

    /// Adds an idle instance.
    pub(crate) fn add_idle(&self, instance: DeviceInstance) {
        lock(&self.idle).push(instance);
    }

    /// Returns the instance of an owner, which is created for its first call.
    pub(crate) fn owned(
        &self,
        owner: &str,
        create: impl FnOnce() -> Result<DeviceInstance>,
    ) -> Result<Arc<Mutex<DeviceInstance>>> {
        let known = lock(&self.owned).get(owner).cloned();
        if let Some(instance) = known {
            return Ok(instance);
        }
        let new = Arc::new(Mutex::new(create()?));
        Ok(lock(&self.owned).entry(owner.to_owned()).or_insert(new).clone())
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave these collections in an invalid state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
