//! Options of a session, and readers of the messages that it takes.

use ::session::{DeviceKind, Output};
use cluster::{Flags, JitLevel, Silent};
use compiler::{PlanOptions, UnitCache};
use std::sync::Arc;
use support::Result;
use tf::proto::{ConfigProto, GraphDef};

/// Options of a [`Session`](crate::Session). They correspond to flags of `tfcompile run`.
#[derive(Clone)]
pub struct Options {
    /// Level of just-in-time compilation: off, clusters that are expected to gain, or every cluster
    /// that can be compiled. `None` leaves the decision to `config`.
    pub jit: Option<JitLevel>,
    /// TensorFlow's session options: threads, devices, soft placement, and the level of
    /// just-in-time compilation if `jit` is `None`. As in TensorFlow, that level applies to the CPU
    /// only if `cpu_global_jit` is set in the config or in `flags`.
    pub config: ConfigProto,
    /// Contents of `TF_XLA_FLAGS`. This crate never reads the environment itself.
    pub flags: Flags,
    /// Driver of the GPUs, CUDA by default. `config.gpu_options` has their other options. Drivers
    /// are opened only for graphs that name a GPU, or with `device`.
    pub driver: Option<DeviceKind>,
    /// Device of nodes that request none and can run there, such as `/device:XLA_GPU:0`.
    pub device: Option<String>,
    /// Number of threads, inter-op and intra-op, unless `config` sets them. Results never depend on
    /// it.
    pub threads: usize,
    /// LLVM's name of the processor to compile for: `native` for this machine's, empty for the
    /// baseline of the architecture.
    pub cpu: String,
    /// Seed of random nodes that have no seed of their own.
    pub seed: u64,
    /// Winograd transforms that convolutions may use, and measured choices of kernels.
    pub plan: PlanOptions,
    /// Cache of generated code that outlives the session, if any.
    pub cache: Option<Arc<dyn UnitCache>>,
    /// Destination of the output of `Print` and similar nodes. Discarded by default.
    pub output: Output,
    /// True to measure the time of each instruction in clusters; see
    /// [`Session::cluster_profiles`](crate::Session::cluster_profiles).
    pub profiles_clusters: bool,
}

impl Default for Options {
    /// Defaults: no clusters except those that the graph itself marks, one thread, this machine's
    /// processor.
    fn default() -> Self {
        let options = ::session::Options::default();
        Self {
            jit: None,
            config: ConfigProto::default(),
            flags: Flags::default(),
            driver: None,
            device: None,
            threads: 1,
            cpu: options.cpu,
            seed: options.seed,
            plan: options.plan,
            cache: None,
            output: options.output,
            profiles_clusters: false,
        }
    }
}

impl Options {
    /// Converts to the options of the executor.
    pub(crate) fn of_session(&self) -> Result<::session::Options> {
        let clusters = ::session::cluster_options(self.jit, &self.config, self.flags.clone());
        let options = ::session::Options {
            inter_op_threads: self.threads,
            intra_op_threads: self.threads,
            gpu: ::session::GpuOptions { driver: self.driver, ..::session::GpuOptions::default() },
            default_device: self.device.clone(),
            cpu: self.cpu.clone(),
            seed: self.seed,
            plan: self.plan.clone(),
            cache: self.cache.clone(),
            rewrite: Some(::session::clusters(clusters, Box::new(Silent))),
            output: self.output.clone(),
            launches: ::session::Launches::from(&self.flags),
            profiles_clusters: self.profiles_clusters,
            ..::session::Options::default()
        };
        options.with_config(&self.config)
    }
}

/// Parses a `GraphDef` in binary or text form.
///
/// # Errors
/// Returns an error if `data` is neither.
pub fn parse_graph(data: Vec<u8>) -> Result<GraphDef> {
    tf::source::parse_graph_def(data.into(), "the graph")
}

/// Parses a `ConfigProto` in binary or text form.
///
/// # Errors
/// Returns an error if `data` is neither.
pub fn parse_config(data: Vec<u8>) -> Result<ConfigProto> {
    tf::source::parse_session_config(data.into(), "the config")
}
