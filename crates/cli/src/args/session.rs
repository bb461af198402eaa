//! Flags of models that run in a session: level of just-in-time compilation, batches, placement.

use clap::{Args, ValueEnum};
use cluster::JitLevel;
use std::path::PathBuf;
use support::{Error, Result};
use tf::proto::ConfigProto;

/// How just-in-time compilation groups nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Jit {
    /// Every node is a kernel of its own, but for what the graph itself asks to be compiled together
    Off,
    /// The same as 1
    On,
    /// Nodes that can be compiled together are, where that very likely gains
    #[value(name = "1")]
    One,
    /// Nodes that can be compiled together are
    #[value(name = "2")]
    Two,
}

impl Jit {
    fn level(self) -> JitLevel {
        match self {
            Self::Off => JitLevel::Off,
            Self::On | Self::One => JitLevel::On1,
            Self::Two => JitLevel::On2,
        }
    }
}

/// What makes the model run in a session.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "session")]
pub(crate) struct LevelArgs {
    /// Run the graph in a session, node by node, instead of compiling it as a whole
    #[arg(long, value_name = "LEVEL")]
    jit: Option<Jit>,
    /// Run the graph in a session that a ConfigProto describes, a file of text or binary: level of just-in-time compilation
    /// (if --jit is not given; as in TensorFlow, CPUs take part if cpu_global_jit or TF_XLA_FLAGS say so), threads, devices,
    /// soft placement
    #[arg(long, value_name = "FILE", alias = "session_config")]
    session_config: Option<PathBuf>,
}

impl LevelArgs {
    /// Whether the model runs in a session.
    pub(crate) fn is_given(&self) -> bool {
        self.jit.is_some() || self.session_config.is_some()
    }

    /// What the config says.
    pub(crate) fn config(&self) -> Result<ConfigProto> {
        let Some(path) = &self.session_config else { return Ok(ConfigProto::default()) };
        let config =
            tf::source::parse_session_config(tf::source::read_bytes(path)?, &path.display().to_string())?;
        if session::jit_level(&config) > JitLevel::Default && self.jit == Some(Jit::Off) {
            return Err(Error::invalid(
                "--session-config asks for just-in-time compilation, and --jit=off against it: give only one",
            ));
        }
        Ok(config)
    }

    /// Threads for what the config leaves open: as many as there are processors if there is a config, as TensorFlow has it.
    pub(crate) fn threads(&self) -> usize {
        match &self.session_config {
            Some(_) => std::thread::available_parallelism().map_or(1, usize::from),
            None => 1,
        }
    }

    /// The level of just-in-time compilation, if the flags state one.
    pub(crate) fn jit(&self) -> Option<JitLevel> {
        self.jit.map(Jit::level)
    }
}

/// What only a session takes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) level: LevelArgs,
    #[command(flatten)]
    pub(crate) batches: BatchArgs,
    /// Run nodes on the host that cannot run where they are placed
    #[arg(long, requires = "session")]
    pub(crate) soft_placement: bool,
}

/// Where a session's batches come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BatchArgs {
    /// Data for the feeds: a .npz file whose members have their names, cut into batches along the first dimension
    #[arg(long, value_name = "FILE.npz", requires = "session")]
    pub(crate) batches: Option<PathBuf>,
    /// Handwritten digits for the feeds: the directory with the four IDX files of MNIST, packed with gzip or not. Pixels are
    /// fed as numbers from 0 to 1, labels as numbers or one-hot, as the feeds want them
    #[arg(long, value_name = "DIR", requires = "session", conflicts_with = "batches")]
    pub(crate) mnist: Option<PathBuf>,
    /// Which rows of --batches or --mnist make each batch: a .npy file of integers, a row for each batch [default: one batch
    /// after the other]
    #[arg(long, value_name = "FILE.npy", requires = "session", alias = "batch_rows")]
    pub(crate) batch_rows: Option<PathBuf>,
}
