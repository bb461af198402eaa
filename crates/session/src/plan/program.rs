//! A graph pruned for a run, with the functions that it calls while it runs.

use crate::device::DeviceId;
use crate::lock::lock;
use crate::plan::Plan;
use crate::resources::Resources;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use support::{Error, Result};
use tf::{DataType, FunctionLibrary};

/// The cached program for one combination of feeds, fetches, and targets.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) plan: Arc<Plan>,
    pub(crate) library: Arc<FunctionLibrary>,
    /// Types of the feeds.
    pub(crate) feed_types: Vec<DataType>,
    /// Plans of the functions that conditionals and loops call, built on first call.
    functions: Mutex<BTreeMap<(String, DeviceId), Arc<Plan>>>,
}

impl Program {
    pub(crate) fn new(plan: Plan, library: FunctionLibrary, feed_types: Vec<DataType>) -> Self {
        Self { plan: Arc::new(plan), library: Arc::new(library), feed_types, functions: Mutex::default() }
    }

    /// The plan of a function that runs on `device`.
    pub(crate) fn function(&self, name: &str, device: DeviceId, resources: &Resources) -> Result<Arc<Plan>> {
        let key = (name.to_owned(), device);
        if let Some(plan) = lock(&self.functions).get(&key) {
            return Ok(plan.clone());
        }
        let function = self
            .library
            .get(name)
            .ok_or_else(|| Error::invalid(format!("the graph's library has no function '{name}'")))?;
        let place = |_: &tf::Node| Ok(device);
        let plan = Arc::new(Plan::of_function(function, &self.library, resources, &place)?);
        Ok(lock(&self.functions).entry(key).or_insert(plan).clone())
    }
}
