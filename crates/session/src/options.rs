//! How a session runs.

pub(crate) mod config;

use std::sync::Arc;
use std::time::Duration;
use support::Result;
use tf::Wanted;
use tf::proto::GraphDef;

/// Changes a graph before it is pruned to what is wanted: groups nodes into clusters, say.
pub type Rewrite = Arc<dyn Fn(&GraphDef, &Wanted) -> Result<GraphDef> + Send + Sync>;

/// Where `Print` and its kin write.
pub type Output = Arc<dyn Fn(&str) + Send + Sync>;

/// How clusters are launched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launches {
    /// A cluster runs node by node for shapes that it meets for the first time, but for the very first ones
    /// (`--tf_xla_enable_lazy_compilation`). Else it is compiled for all.
    pub is_lazy: bool,
    /// A lazy cluster is compiled in the background for all shapes, at once, and runs node by node until that is done
    /// (`--tf_xla_async_compilation`). Where it cannot be compiled, that is told as `Print` tells, and its nodes go on.
    pub is_async: bool,
    /// Clusters always run node by node (`--tf_xla_always_defer_compilation`).
    pub is_deferred: bool,
    /// What launches make is printed (`--tf_xla_print_cluster_outputs`).
    pub prints_outputs: bool,
    /// NaN and infinities that go in are errors (`--tf_xla_check_cluster_input_numerics`).
    pub checks_inputs: bool,
    /// The same of those that come out (`--tf_xla_check_cluster_output_numerics`).
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

/// How a session runs.
#[derive(Clone)]
pub struct Options {
    /// Threads that run nodes which do not depend on each other; results never depend on it.
    pub inter_op_threads: usize,
    /// Threads that share the work of one kernel; results never depend on it.
    pub intra_op_threads: usize,
    /// LLVM's name of the processor; `native` is this machine's, empty the baseline.
    pub cpu: String,
    /// What random nodes without seeds draw from.
    pub seed: u64,
    /// How long a run may take: the node that ends after is the last one. What is compiled as one, a cluster say, ends first.
    pub step_timeout: Option<Duration>,
    /// Whether nodes that cannot run where they are placed run on the host.
    pub allow_soft_placement: bool,
    /// How many devices the host counts as.
    pub cpu_devices: usize,
    /// What the code of kernels may do.
    pub plan: compiler::PlanOptions,
    /// Where generated code is kept from one session to the next.
    pub cache: Option<Arc<dyn compiler::UnitCache>>,
    /// What is done with the graph first.
    pub rewrite: Option<Rewrite>,
    /// Where `Print` and its kin write.
    pub output: Output,
    /// How clusters are launched; by default they are compiled whatever comes.
    pub launches: Launches,
    /// Whether the code of clusters counts how long its instructions take: see
    /// [`Session::cluster_profiles`](crate::Session::cluster_profiles).
    pub profiles_clusters: bool,
}

impl Default for Options {
    /// One thread, this machine's processor; what nodes print is dropped.
    fn default() -> Self {
        Self {
            inter_op_threads: 1,
            intra_op_threads: 1,
            cpu: "native".to_owned(),
            seed: 0,
            step_timeout: None,
            allow_soft_placement: false,
            cpu_devices: 1,
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
            .finish_non_exhaustive()
    }
}
