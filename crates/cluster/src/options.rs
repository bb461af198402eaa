//! What clustering is told.

use crate::devices::Registration;
use crate::flags::Flags;
use std::collections::BTreeMap;

/// `OptimizerOptions.GlobalJitLevel`: how much is clustered without being asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum JitLevel {
    /// Nothing.
    Off,
    /// What the session thinks best, which is nothing.
    #[default]
    Default,
    /// What very likely gains.
    On1,
    /// Everything.
    On2,
}

impl JitLevel {
    /// The level of a number: negative is off, 0 the default, 1 and more is on.
    pub fn from_number(number: i32) -> Self {
        match number {
            i32::MIN..=-1 => Self::Off,
            0 => Self::Default,
            1 => Self::On1,
            2.. => Self::On2,
        }
    }
}

/// What clustering is told beside the graph.
#[derive(Clone, Debug)]
pub struct Options {
    /// The level that the session's configuration asks for. `--tf_xla_auto_jit` goes before it.
    pub level: JitLevel,
    /// `TF_XLA_FLAGS`.
    pub flags: Flags,
    /// Whether the session's configuration says that the level holds for CPUs too (`cpu_global_jit`), as
    /// `--tf_xla_cpu_global_jit` does.
    pub cpu_global_jit: bool,
    /// The device of nodes that name none.
    pub default_device: String,
    /// The kinds of devices that have a compiler, by name. [`registrations`](crate::registrations) lists TensorFlow's.
    pub devices: BTreeMap<String, Registration>,
    /// What clusters are called; `cluster` if empty.
    pub name_prefix: String,
    /// Nodes whose outputs the caller feeds: they stay as they are.
    pub feeds: Vec<String>,
    /// The tensors (`name` or `name:output`) that the caller wants.
    pub fetches: Vec<String>,
    /// The nodes that the caller runs for their effects.
    pub targets: Vec<String>,
    /// Whether what neither fetches nor targets need is left out. A cluster runs as a whole, so it must hold nothing that has an
    /// effect that is not wanted: a graph with initialisers or savers is either pruned before or here.
    pub prunes: bool,
    /// Whether what the caller wants keeps its name: a node of that name then hands on what the cluster makes.
    pub keeps_names: bool,
    /// Whether the bodies of functions that stay outside of clusters are clustered too.
    pub cluster_functions: bool,
    /// Whether the report lists every node and edge that was refused.
    pub reports_refusals: bool,
}

impl Options {
    /// TensorFlow's choices for some flags and a level.
    pub fn new(level: JitLevel, flags: Flags) -> Self {
        Self {
            level,
            cpu_global_jit: false,
            default_device: "/device:CPU:0".to_owned(),
            devices: crate::devices::registrations(flags.cpu_global_jit),
            name_prefix: String::new(),
            feeds: Vec::new(),
            fetches: Vec::new(),
            targets: Vec::new(),
            prunes: false,
            keeps_names: false,
            cluster_functions: true,
            reports_refusals: false,
            flags,
        }
    }
}

/// What goes on from one graph of a session to the next.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// How many nodes have become candidates.
    pub(crate) fuel_used: i64,
    /// How many clusters have a name, by the fingerprint of their graph.
    pub(crate) sequence: BTreeMap<u64, u64>,
    /// Whether it was said that CPUs are left out.
    pub(crate) has_warned: bool,
}

/// What clustering tells while it works.
pub trait Observer {
    /// Whether graphs are wanted.
    fn wants_graphs(&self) -> bool {
        false
    }

    /// A graph, under the name that TensorFlow gives its dump: `before_mark_for_compilation`.
    fn graph(&mut self, _name: &str, _graph: &tf::proto::GraphDef) {}

    /// Something the user should know.
    fn warning(&mut self, _text: &str) {}
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
