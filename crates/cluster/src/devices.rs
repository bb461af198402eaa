//! Device names, and the clustering rules of each kind of device.

use std::collections::{BTreeMap, HashMap};
use support::{Error, IdVec, Result};

/// Condition for clustering nodes on a kind of device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Only if `_XlaCompile` requests it.
    IfExplicitlyRequested,
    /// If `_XlaCompile` requests it, or if the JIT level is on.
    IfEnabledGlobally,
    /// Always: everything on the device must be compiled.
    Always,
}

/// Clustering rules of a kind of device, with the field names of XLA's `DeviceRegistration`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Condition for clustering.
    pub policy: Policy,
    /// Clusters may reorder reads and writes of variables.
    pub cluster_resource_variable_ops_unsafely: bool,
    /// Cluster ops on stacks.
    pub cluster_stack_ops: bool,
    /// Cluster ops on tensor arrays.
    pub cluster_tensor_array_ops: bool,
    /// Cluster stateful random ops.
    pub cluster_stateful_rng_ops: bool,
    /// Cluster `ControlTrigger`, which is live even if its inputs are dead.
    pub cluster_control_trigger: bool,
    /// Cluster `Assert` and `CheckNumerics`, which compiled code drops.
    pub elide_assert_and_checknumerics: bool,
    /// Cluster ops with variant operands or results.
    pub cluster_variant_ops: bool,
    /// Cluster ops that are slow in XLA.
    pub cluster_slow_ops: bool,
    /// Cluster ops that are inaccurate in XLA.
    pub cluster_inaccurate_ops: bool,
}

impl Registration {
    /// A regular device, on which clusters must not change behavior.
    pub fn plain(policy: Policy) -> Self {
        Self {
            policy,
            cluster_resource_variable_ops_unsafely: false,
            cluster_stack_ops: false,
            cluster_tensor_array_ops: false,
            cluster_stateful_rng_ops: false,
            cluster_control_trigger: false,
            elide_assert_and_checknumerics: false,
            cluster_variant_ops: false,
            cluster_slow_ops: false,
            cluster_inaccurate_ops: false,
        }
    }

    /// A device on which everything is compiled.
    pub fn must_compile() -> Self {
        Self {
            policy: Policy::Always,
            cluster_resource_variable_ops_unsafely: true,
            cluster_stack_ops: false,
            cluster_tensor_array_ops: true,
            cluster_stateful_rng_ops: true,
            cluster_control_trigger: true,
            elide_assert_and_checknumerics: true,
            cluster_variant_ops: true,
            cluster_slow_ops: true,
            cluster_inaccurate_ops: true,
        }
    }
}

/// TensorFlow's kinds of devices with a JIT: `CPU`, `GPU`, `XLA_CPU`, `XLA_GPU`.
pub fn registrations(cpu_global_jit: bool) -> BTreeMap<String, Registration> {
    let cpu = if cpu_global_jit { Policy::IfEnabledGlobally } else { Policy::IfExplicitlyRequested };
    BTreeMap::from([
        ("CPU".to_owned(), Registration::plain(cpu)),
        ("GPU".to_owned(), Registration::plain(Policy::IfEnabledGlobally)),
        ("XLA_CPU".to_owned(), Registration::must_compile()),
        ("XLA_GPU".to_owned(), Registration::must_compile()),
    ])
}

/// A parsed device name: `/job:worker/replica:0/task:0/device:CPU:0`, with every part optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceName {
    job: Option<String>,
    replica: Option<u32>,
    task: Option<u32>,
    /// Kind of device, such as `CPU`.
    pub kind: Option<String>,
    /// Index among the devices of its kind.
    pub index: Option<u32>,
}

impl DeviceName {
    /// Parses a device name. Also accepts the older forms `/cpu:0` and `/gpu:*`.
    pub fn parse(name: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "invalid device name '{name}'; expected a name like /device:CPU:0 or /job:localhost/replica:0/task:0/device:CPU:0"
            ))
        };
        let mut parsed = Self::default();
        let rest = name.strip_prefix('/').ok_or_else(wrong)?;
        for part in rest.split('/') {
            let (key, value) = part.split_once(':').ok_or_else(wrong)?;
            let number = |text: &str| match text {
                "*" => Ok(None),
                _ => text.parse::<u32>().map(Some).map_err(|_| wrong()),
            };
            match key {
                "job" => parsed.job = (value != "*").then(|| value.to_owned()),
                "replica" => parsed.replica = number(value)?,
                "task" => parsed.task = number(value)?,
                "device" => {
                    let (kind, index) = value.split_once(':').unwrap_or((value, "*"));
                    parsed.kind = (kind != "*").then(|| kind.to_owned());
                    parsed.index = number(index)?;
                }
                "cpu" | "CPU" | "gpu" | "GPU" => {
                    parsed.kind = Some(key.to_uppercase());
                    parsed.index = number(value)?;
                }
                _ => return Err(wrong()),
            }
        }
        Ok(parsed)
    }

    /// True if both can name the same device.
    fn is_compatible(&self, other: &Self) -> bool {
        fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_none() || other.is_none() || one == other
        }
        agree(&self.job, &other.job)
            && agree(&self.replica, &other.replica)
            && agree(&self.task, &other.task)
            && agree(&self.kind, &other.kind)
            && agree(&self.index, &other.index)
    }

    /// True if `other` matches every device that `self` matches.
    fn is_within(&self, other: &Self) -> bool {
        fn within<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            other.is_none() || one == other
        }
        within(&self.job, &other.job)
            && within(&self.replica, &other.replica)
            && within(&self.task, &other.task)
            && within(&self.kind, &other.kind)
            && within(&self.index, &other.index)
    }
}

support::id_type!(
    /// Device of a graph.
    DeviceId,
    "d"
);
support::id_type!(
    /// Set of devices.
    DeviceSet,
    "s"
);

/// Name of a device, as text and parsed.
#[derive(Debug)]
struct Device {
    text: String,
    name: DeviceName,
}

/// Devices that the nodes of a cluster are on.
#[derive(Debug)]
struct Members {
    devices: Vec<DeviceId>,
    /// Device that a cluster of such nodes runs on, if they are compatible.
    cluster_device: Option<DeviceId>,
}

/// The devices of a graph, and sets of them, each with the device that a cluster of its nodes runs
/// on.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    all: IdVec<DeviceId, Device>,
    by_name: HashMap<String, DeviceId>,
    sets: IdVec<DeviceSet, Members>,
    by_members: HashMap<Vec<DeviceId>, DeviceSet>,
    unions: HashMap<(DeviceSet, DeviceSet), DeviceSet>,
}

impl Devices {
    pub(crate) fn id(&mut self, name: &str) -> Result<DeviceId> {
        if let Some(&id) = self.by_name.get(name) {
            return Ok(id);
        }
        let device = Device { text: name.to_owned(), name: DeviceName::parse(name)? };
        let id = self.all.push(device);
        self.by_name.insert(name.to_owned(), id);
        Ok(id)
    }

    pub(crate) fn name(&self, id: DeviceId) -> &str {
        &self.all[id].text
    }

    /// Kind of a device, such as `CPU`; empty if the name states none.
    pub(crate) fn kind(&self, id: DeviceId) -> &str {
        self.all[id].name.kind.as_deref().unwrap_or("")
    }

    /// The set that contains only this device.
    pub(crate) fn set(&mut self, id: DeviceId) -> DeviceSet {
        self.intern(vec![id])
    }

    pub(crate) fn union(&mut self, one: DeviceSet, other: DeviceSet) -> DeviceSet {
        if one == other {
            return one;
        }
        let key = (one.min(other), one.max(other));
        if let Some(&set) = self.unions.get(&key) {
            return set;
        }
        let mut members = self.sets[one].devices.clone();
        members.extend(&self.sets[other].devices);
        members.sort_unstable();
        members.dedup();
        let set = self.intern(members);
        self.unions.insert(key, set);
        set
    }

    /// Device of a cluster with nodes on all of these devices. A GPU takes precedence over a CPU.
    /// `None` if the devices are incompatible.
    pub(crate) fn cluster_device(&self, set: DeviceSet) -> Option<DeviceId> {
        self.sets[set].cluster_device
    }

    fn intern(&mut self, members: Vec<DeviceId>) -> DeviceSet {
        if let Some(&set) = self.by_members.get(&members) {
            return set;
        }
        let cluster_device = self.pick(&members);
        let set = self.sets.push(Members { devices: members.clone(), cluster_device });
        self.by_members.insert(members, set);
        set
    }

    fn pick(&self, members: &[DeviceId]) -> Option<DeviceId> {
        let (mut gpu, mut cpu, mut unknown) = (None, None, None);
        for &id in members {
            match self.kind(id) {
                "GPU" => gpu = Some(self.more_specific(id, gpu)?),
                "CPU" => cpu = Some(self.more_specific(id, cpu)?),
                _ if unknown.is_some() => return None,
                _ => unknown = Some(id),
            }
        }
        match (gpu, cpu, unknown) {
            (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => None,
            _ => gpu.or(unknown).or(cpu),
        }
    }

    /// The more specific of two names that can be the same device; `None` if they cannot.
    fn more_specific(&self, id: DeviceId, other: Option<DeviceId>) -> Option<DeviceId> {
        let Some(other) = other else { return Some(id) };
        let (one, two) = (&self.all[id].name, &self.all[other].name);
        if !one.is_compatible(two) {
            None
        } else if two.is_within(one) {
            Some(other)
        } else if one.is_within(two) {
            Some(id)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_are_parsed() {
        let name = DeviceName::parse("/job:worker/replica:0/task:3/device:XLA_CPU:1").expect("a name");
        assert_eq!((name.kind.as_deref(), name.index, name.task), (Some("XLA_CPU"), Some(1), Some(3)));
        assert_eq!(DeviceName::parse("/cpu:0"), DeviceName::parse("/device:CPU:0"));
        for wrong in ["", "CPU:0", "/device", "/device:CPU:x", "/nothing:0"] {
            assert!(DeviceName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cluster_runs_on_the_gpu_or_on_the_most_specific_device() {
        let mut devices = Devices::default();
        let names = [
            "/device:CPU:0",
            "/device:GPU:0",
            "/device:GPU:1",
            "/device:XLA_CPU:0",
            "/job:a/task:0/device:CPU:0",
        ];
        let ids: Vec<DeviceId> = names.iter().map(|name| devices.id(name).expect("a name")).collect();
        let mut cluster_device = |members: &[usize]| {
            let mut set = devices.set(ids[members[0]]);
            for &member in &members[1..] {
                let one = devices.set(ids[member]);
                set = devices.union(set, one);
            }
            devices.cluster_device(set)
        };
        assert_eq!(cluster_device(&[0, 1]), Some(ids[1]));
        assert_eq!(cluster_device(&[1, 2]), None);
        assert_eq!(cluster_device(&[0, 3]), None);
        assert_eq!(cluster_device(&[1, 3]), None);
        assert_eq!(cluster_device(&[3]), Some(ids[3]));
        assert_eq!(cluster_device(&[0, 4]), Some(ids[4]));
    }
}
