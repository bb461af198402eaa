//! Options of a session.

pub(crate) mod config;

use std::sync::Arc;
use std::time::Duration;
use support::Result;
use tf::RunRequest;
use tf::proto::GraphDef;

/// Rewrites a graph before it is pruned to the requested outputs, for example to group nodes into
/// clusters.
pub type Rewrite = Arc<dyn Fn(&GraphDef, &RunRequest) -> Result<GraphDef> + Send + Sync>;

/// Sink for the output of `Print` and similar ops.
pub type Output = Arc<dyn Fn(&str) + Send + Sync>;

/// Launch policy of clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// Runs a cluster node by node when a shape occurs for the first time, except for its very
    /// first shapes (`--tf_xla_enable_lazy_compilation`). Otherwise the cluster is compiled for
    /// every shape.
    pub is_lazy: bool,
    /// Compiles a lazy cluster in the background as soon as a shape occurs, and runs it node by
    /// node until the code is ready (`--tf_xla_async_compilation`). If compilation fails,
    /// [`Options::output`] gets a message and the cluster continues to run node by node.
    pub is_async: bool,
    /// Always runs clusters node by node (`--tf_xla_always_defer_compilation`).
    pub is_deferred: bool,
    /// Prints the results of launches (`--tf_xla_print_cluster_outputs`).
    pub prints_outputs: bool,
    /// Reports NaN and infinities in inputs as errors (`--tf_xla_check_cluster_input_numerics`).
    pub checks_inputs: bool,
    /// Reports NaN and infinities in outputs as errors (`--tf_xla_check_cluster_output_numerics`).
    pub checks_outputs: bool,
}

impl From<&cluster::Flags> for Launches {
    fn from(flags: &cluster::Flags) -> Self {
        Self {
            is_lazy: flags.enable_lazy_compilation,
            is_async: flags.async_compilation,
            is_deferred: flags.always_defer_compilation,
            prints_outputs: flags.print_cluster_outputs,
            checks_inputs: flags.check_cluster_input_numerics,
            checks_outputs: flags.check_cluster_output_numerics,
        }
    }
}

/// Options of a session.
#[derive(Clone)]
pub struct Options {
    /// Number of threads that run independent nodes. Results never depend on it.
    pub inter_op_threads: usize,
    /// Number of threads that share the work of one kernel. Results never depend on it.
    pub intra_op_threads: usize,
    /// LLVM's name of the processor. `native` selects this machine's, an empty name the baseline.
    pub cpu: String,
    /// Seed for random nodes that have no seed of their own.
    pub seed: u64,
    /// Time limit of a run, checked after each node. A unit of compilation, such as a cluster,
    /// always finishes first.
    pub step_timeout: Option<Duration>,
    /// Runs nodes on the host if they cannot run on their requested device.
    pub allow_soft_placement: bool,
    /// Number of CPU devices that the host provides.
    pub cpu_devices: usize,
    /// GPUs, and how their memory is used.
    pub gpu: crate::gpu::GpuOptions,
    /// Device of nodes that request none and can run there, such as `XLA_GPU:0`.
    pub default_device: Option<String>,
    /// Lists the device of each node in [`Options::output`] (`log_device_placement`).
    pub logs_placement: bool,
    /// Options for the code of kernels.
    pub plan: compiler::PlanOptions,
    /// Cache that preserves generated code across sessions.
    pub cache: Option<Arc<dyn compiler::UnitCache>>,
    /// Rewrite that is applied to the graph first.
    pub rewrite: Option<Rewrite>,
    /// Sink for the output of `Print` and similar ops.
    pub output: Output,
    /// Launch policy of clusters. By default they are always compiled.
    pub launches: Launches,
    /// Adds counters to the code of clusters that measure the time of each instruction; see
    /// [`Session::cluster_profiles`](crate::Session::cluster_profiles).
    pub profiles_clusters: bool,
}

impl Default for Options {
    /// One thread, this machine's processor, and no output from nodes that print.
    fn default() -> Self {
        Self {
            inter_op_threads: 1,
            intra_op_threads: 1,
            cpu: "native".to_owned(),
            seed: 0,
            step_timeout: None,
            allow_soft_placement: false,
            cpu_devices: 1,
            gpu: crate::gpu::GpuOptions::default(),
            default_device: None,
            logs_placement: false,
            plan: compiler::PlanOptions::default(),
            cache: None,
            rewrite: None,
            output: Arc::new(|_| {}),
            launches: Launches::default(),
            profiles_clusters: false,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("inter_op_threads", &self.inter_op_threads)
            .field("intra_op_threads", &self.intra_op_threads)
            .field("cpu", &self.cpu)
            .field("seed", &self.seed)
            .field("step_timeout", &self.step_timeout)
            .field("allow_soft_placement", &self.allow_soft_placement)
            .field("cpu_devices", &self.cpu_devices)
            .field("gpu", &self.gpu)
            .field("default_device", &self.default_device)
            .finish_non_exhaustive()
    }
}
