//! What a session is told, and the messages that it takes.

use ::session::Output;
use cluster::{Flags, JitLevel, Silent};
use compiler::{PlanOptions, UnitCache};
use std::sync::Arc;
use support::Result;
use tf::proto::{ConfigProto, GraphDef};

/// How a [`Session`](crate::Session) runs. The same things as the flags of `tfcompile run` say.
#[derive(Clone)]
pub struct Options {
    /// How much is compiled just in time: nothing, what very likely gains, or all that can be. `None` leaves it to `config`.
    pub jit: Option<JitLevel>,
    /// Threads, devices, soft placement; the level of just-in-time compilation if `jit` does not say it. As in TensorFlow, such
    /// a level holds for this machine's CPU only if `cpu_global_jit` of the config or of the flags says so.
    pub config: ConfigProto,
    /// `TF_XLA_FLAGS`. Nothing here reads the environment.
    pub flags: Flags,
    /// Threads for what the config leaves open. Results never depend on them.
    pub threads: usize,
    /// LLVM's name of the processor; `native` is this machine's, empty the baseline.
    pub cpu: String,
    /// What random nodes without seeds draw from.
    pub seed: u64,
    /// How far rounding may differ.
    pub plan: PlanOptions,
    /// Where generated code is kept from one session to the next.
    pub cache: Option<Arc<dyn UnitCache>>,
    /// Where `Print` and its kin write; dropped by default.
    pub output: Output,
    /// Whether clusters count how long their instructions take: see
    /// [`Session::cluster_profiles`](crate::Session::cluster_profiles).
    pub profiles_clusters: bool,
}

impl Default for Options {
    /// Nothing is compiled but what the graph itself asks for; one thread; this machine's processor.
    fn default() -> Self {
        let options = ::session::Options::default();
        Self {
            jit: None,
            config: ConfigProto::default(),
            flags: Flags::default(),
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
    /// The same in the words of the executor.
    pub(crate) fn of_session(&self) -> Result<::session::Options> {
        let clusters = ::session::cluster_options(self.jit, &self.config, self.flags.clone());
        let options = ::session::Options {
            inter_op_threads: self.threads,
            intra_op_threads: self.threads,
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

/// A GraphDef, binary or text.
///
/// # Errors
/// What is neither.
pub fn parse_graph(data: Vec<u8>) -> Result<GraphDef> {
    tf::source::parse_graph_def(data.into(), "the graph")
}

/// A ConfigProto, binary or text.
///
/// # Errors
/// What is neither.
pub fn parse_config(data: Vec<u8>) -> Result<ConfigProto> {
    tf::source::parse_session_config(data.into(), "the config")
}
