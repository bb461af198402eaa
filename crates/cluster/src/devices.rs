//! Devices: their names, and what may be clustered on each kind.

use std::collections::{BTreeMap, HashMap};
use support::{Error, IdVec, Result};

/// When nodes of a kind of device are clustered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Only where `_XlaCompile` asks for it.
    IfExplicitlyRequested,
    /// There, and if the JIT level is on.
    IfEnabledGlobally,
    /// Whatever is placed there must be compiled.
    Always,
}

/// What may be clustered on a kind of device; the names are those of XLA's `DeviceRegistration`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// When.
    pub policy: Policy,
    /// Whether the order of reads and writes of variables is left to the cluster.
    pub cluster_resource_variable_ops_unsafely: bool,
    /// Stacks.
    pub cluster_stack_ops: bool,
    /// Tensor arrays.
    pub cluster_tensor_array_ops: bool,
    /// Random numbers with state.
    pub cluster_stateful_rng_ops: bool,
    /// `ControlTrigger`, which is live when its inputs are dead.
    pub cluster_control_trigger: bool,
    /// `Assert` and `CheckNumerics`, which a cluster leaves out.
    pub elide_assert_and_checknumerics: bool,
    /// What makes or takes variants.
    pub cluster_variant_ops: bool,
    /// Ops that XLA is slow at.
    pub cluster_slow_ops: bool,
    /// Ops that XLA is inaccurate at.
    pub cluster_inaccurate_ops: bool,
}

impl Registration {
    /// A plain device, where clusters must not be noticed.
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

/// TensorFlow's kinds of devices that have a JIT: `CPU`, `GPU`, `XLA_CPU`, `XLA_GPU`.
pub fn registrations(cpu_global_jit: bool) -> BTreeMap<String, Registration> {
    let cpu = if cpu_global_jit { Policy::IfEnabledGlobally } else { Policy::IfExplicitlyRequested };
    BTreeMap::from([
        ("CPU".to_owned(), Registration::plain(cpu)),
        ("GPU".to_owned(), Registration::plain(Policy::IfEnabledGlobally)),
        ("XLA_CPU".to_owned(), Registration::must_compile()),
        ("XLA_GPU".to_owned(), Registration::must_compile()),
    ])
}

/// A device's name, taken apart: `/job:worker/replica:0/task:0/device:CPU:0`, each part optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceName {
    job: Option<String>,
    replica: Option<u32>,
    task: Option<u32>,
    /// `CPU`.
    pub kind: Option<String>,
    /// Which of its kind.
    pub index: Option<u32>,
}

impl DeviceName {
    /// Reads a name; also the older `/cpu:0` and `/gpu:*`.
    pub fn parse(name: &str) -> Result<Self> {
        let wrong = || {
            Error::invalid(format!(
                "'{name}' is no device name; one looks like /device:CPU:0 or /job:localhost/replica:0/task:0/device:CPU:0"
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

    /// Whether both may name one device.
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

    /// Whether every device that `self` may name is one that `other` may name.
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

/// A device's name as text, and taken apart.
#[derive(Debug)]
struct Device {
    text: String,
    name: DeviceName,
}

/// Devices that the nodes of a cluster are on.
#[derive(Debug)]
struct Members {
    devices: Vec<DeviceId>,
    /// The device that a cluster of such nodes runs on, if they go together.
    chosen: Option<DeviceId>,
}

/// The devices of a graph by number, and sets of them, each with the device that a cluster of its nodes runs on.
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

    /// `CPU`; empty if the name says none.
    pub(crate) fn kind(&self, id: DeviceId) -> &str {
        self.all[id].name.kind.as_deref().unwrap_or("")
    }

    /// The set of one device.
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

    /// The device on which a cluster with nodes on all of these runs: one GPU before one CPU; `None` if they do not go
    /// together.
    pub(crate) fn chosen(&self, set: DeviceSet) -> Option<DeviceId> {
        self.sets[set].chosen
    }

    fn intern(&mut self, members: Vec<DeviceId>) -> DeviceSet {
        if let Some(&set) = self.by_members.get(&members) {
            return set;
        }
        let chosen = self.pick(&members);
        let set = self.sets.push(Members { devices: members.clone(), chosen });
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

    /// Of two names that may be one device, the one that says more; `None` if they cannot be one.
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
    fn names_of_devices_are_taken_apart() {
        let name = DeviceName::parse("/job:worker/replica:0/task:3/device:XLA_CPU:1").expect("a name");
        assert_eq!((name.kind.as_deref(), name.index, name.task), (Some("XLA_CPU"), Some(1), Some(3)));
        assert_eq!(DeviceName::parse("/cpu:0"), DeviceName::parse("/device:CPU:0"));
        for wrong in ["", "CPU:0", "/device", "/device:CPU:x", "/nothing:0"] {
            assert!(DeviceName::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cluster_runs_on_the_gpu_or_on_what_is_said_most_exactly() {
        let mut devices = Devices::default();
        let names = [
            "/device:CPU:0",
            "/device:GPU:0",
            "/device:GPU:1",
            "/device:XLA_CPU:0",
            "/job:a/task:0/device:CPU:0",
        ];
        let ids: Vec<DeviceId> = names.iter().map(|name| devices.id(name).expect("a name")).collect();
        let mut chosen = |members: &[usize]| {
            let mut set = devices.set(ids[members[0]]);
            for &member in &members[1..] {
                let one = devices.set(ids[member]);
                set = devices.union(set, one);
            }
            devices.chosen(set)
        };
        assert_eq!(chosen(&[0, 1]), Some(ids[1]));
        assert_eq!(chosen(&[1, 2]), None);
        assert_eq!(chosen(&[0, 3]), None);
        assert_eq!(chosen(&[1, 3]), None);
        assert_eq!(chosen(&[3]), Some(ids[3]));
        assert_eq!(chosen(&[0, 4]), Some(ids[4]));
    }
}
