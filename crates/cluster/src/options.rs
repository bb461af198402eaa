//! Options, state, and observers of clustering.

use crate::devices::Registration;
use crate::flags::Flags;
use std::collections::BTreeMap;

/// `OptimizerOptions.GlobalJitLevel`: which nodes are clustered without an explicit request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum JitLevel {
    /// None.
    Off,
    /// The default of the session, which is none.
    #[default]
    Default,
    /// Nodes that very likely benefit.
    On1,
    /// All nodes.
    On2,
}

impl JitLevel {
    /// The level of a number: negative is off, 0 is the default, and 1 or more is on.
    pub fn from_number(number: i32) -> Self {
        match number {
            i32::MIN..=-1 => Self::Off,
            0 => Self::Default,
            1 => Self::On1,
            2.. => Self::On2,
        }
    }
}

/// Options of clustering.
#[derive(Clone, Debug)]
pub struct Options {
    /// Level from the session's configuration. `--tf_xla_auto_jit` takes precedence over it.
    pub level: JitLevel,
    /// `TF_XLA_FLAGS`.
    pub flags: Flags,
    /// True if the session's configuration applies the level to CPUs, too (`cpu_global_jit`), like
    /// `--tf_xla_cpu_global_jit`.
    pub cpu_global_jit: bool,
    /// Device of nodes that do not name one.
    pub default_device: String,
    /// Kinds of devices that have a compiler, by name. [`registrations`](crate::registrations)
    /// lists TensorFlow's.
    pub devices: BTreeMap<String, Registration>,
    /// Prefix of the names of clusters; `cluster` if empty.
    pub name_prefix: String,
    /// Nodes whose outputs the caller feeds. They stay unchanged.
    pub feeds: Vec<String>,
    /// Tensors (`name` or `name:output`) that the caller fetches.
    pub fetches: Vec<String>,
    /// Nodes that the caller runs for their side effects.
    pub targets: Vec<String>,
    /// Removes everything that neither fetches nor targets need. A cluster runs as a whole, so it
    /// must not contain unwanted side effects: a graph with initializers or savers must be pruned,
    /// either here or before.
    pub prunes: bool,
    /// Keeps the names of fetched tensors and targets: a node of that name forwards the cluster's
    /// results.
    pub keeps_names: bool,
    /// Also clusters the bodies of functions that are called outside clusters.
    pub cluster_functions: bool,
    /// Lists every refused node and edge in the report.
    pub reports_refusals: bool,
}

impl Options {
    /// TensorFlow's settings for these flags and this level.
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

/// State that persists across the graphs of a session.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Number of nodes that have become candidates.
    pub(crate) fuel_used: i64,
    /// Number of named clusters, by the fingerprint of their graph.
    pub(crate) sequence: BTreeMap<u64, u64>,
    /// True if the warning about excluded CPUs has been issued.
    pub(crate) has_warned: bool,
}

/// Receives events during clustering.
pub trait Observer {
    /// True if the observer needs graphs.
    fn wants_graphs(&self) -> bool {
        false
    }

    /// Called with a graph, under TensorFlow's name for its dump, such as
    /// `before_mark_for_compilation`.
    fn graph(&mut self, _name: &str, _graph: &tf::proto::GraphDef) {}

    /// Called with a warning for the user.
    fn warning(&mut self, _text: &str) {}
}

/// Ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}
