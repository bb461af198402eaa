//! Flags of models that run in a session: level of just-in-time compilation, batches, and
//! placement.

use clap::{Args, ValueEnum};
use cluster::JitLevel;
use std::path::PathBuf;
use support::{Error, Result};
use tf::proto::ConfigProto;

/// Level of just-in-time compilation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Jit {
    /// Run every node as its own kernel, except for nodes that the graph marks to be compiled
    /// together
    Off,
    /// Same as 1
    On,
    /// Compile nodes together where that is very likely faster
    #[value(name = "1")]
    One,
    /// Compile nodes together wherever possible
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

/// Flags that make the model run in a session.
#[derive(Args, Clone, Debug, Default)]
#[group(id = "session")]
pub(crate) struct LevelArgs {
    /// Run the graph in a session, node by node, instead of compiling it as a whole
    #[arg(long, value_name = "LEVEL")]
    jit: Option<Jit>,
    /// Run the graph in a session with the settings of a ConfigProto, binary or text: level of
    /// just-in-time compilation (unless --jit is given; as in TensorFlow, on CPUs only if
    /// cpu_global_jit or TF_XLA_FLAGS enables it), threads, devices, and soft placement
    #[arg(long, value_name = "FILE", alias = "session_config")]
    session_config: Option<PathBuf>,
}

impl LevelArgs {
    /// True if the model runs in a session.
    pub(crate) fn is_given(&self) -> bool {
        self.jit.is_some() || self.session_config.is_some()
    }

    /// Reads the session's config, or returns the default.
    pub(crate) fn config(&self) -> Result<ConfigProto> {
        let Some(path) = &self.session_config else { return Ok(ConfigProto::default()) };
        let config =
            tf::source::parse_session_config(tf::source::read_bytes(path)?, &path.display().to_string())?;
        if session::jit_level(&config) > JitLevel::Default && self.jit == Some(Jit::Off) {
            return Err(Error::invalid(
                "--session-config enables just-in-time compilation, but --jit=off disables it: give only one of them",
            ));
        }
        Ok(config)
    }

    /// Number of threads where the config states none: as in TensorFlow, all processors if there is
    /// a config.
    pub(crate) fn threads(&self) -> usize {
        match &self.session_config {
            Some(_) => std::thread::available_parallelism().map_or(1, usize::from),
            None => 1,
        }
    }

    /// Level of just-in-time compilation, if the flags state one.
    pub(crate) fn jit(&self) -> Option<JitLevel> {
        self.jit.map(Jit::level)
    }
}

/// Flags that require a session.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SessionArgs {
    #[command(flatten)]
    pub(crate) level: LevelArgs,
    #[command(flatten)]
    pub(crate) batches: BatchArgs,
    /// Run nodes on the host that their device does not support
    #[arg(long, requires = "session")]
    pub(crate) soft_placement: bool,
    /// Device of the nodes that request none and can run there, such as XLA_GPU:0 (one cluster for
    /// all that compiles) or GPU:0. The others run on the host
    #[arg(long, value_name = "DEVICE", requires = "session")]
    pub(crate) device: Option<String>,
    /// Driver of the GPUs [default: that of TFCOMPILE_DEVICE_DRIVER, or cuda]
    #[arg(long, value_name = "DRIVER", requires = "session", value_parser = ["cuda", "opencl"], alias = "device_driver")]
    pub(crate) device_driver: Option<String>,
}

impl SessionArgs {
    /// GPUs of the session. `from_environment` is the driver that the environment names.
    pub(crate) fn gpu_options(&self, from_environment: Option<&str>) -> Result<session::GpuOptions> {
        let driver = match (&self.device_driver, from_environment) {
            (Some(name), _) => Some(compiler::device_kind(name)?),
            (None, Some(name)) => {
                Some(compiler::device_kind(name).map_err(|error| error.context("TFCOMPILE_DEVICE_DRIVER"))?)
            }
            (None, None) => None,
        };
        Ok(session::GpuOptions { driver, ..session::GpuOptions::default() })
    }

    /// Full form of `--device`: `/device:XLA_GPU:0` for `XLA_GPU:0`.
    pub(crate) fn default_device(&self) -> Option<String> {
        let device = self.device.as_deref()?;
        Some(if device.starts_with('/') { device.to_owned() } else { format!("/device:{device}") })
    }
}

/// Flags for the source of a session's batches.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BatchArgs {
    /// Data for the feeds: a .npz file whose members are named after the feeds, split into batches
    /// along the first dimension
    #[arg(long, value_name = "FILE.npz", requires = "session")]
    pub(crate) batches: Option<PathBuf>,
    /// Handwritten digits for the feeds: the directory with the four IDX files of MNIST, gzipped or
    /// not. Pixels are fed as numbers from 0 to 1, labels as numbers or one-hot, depending on the
    /// feed
    #[arg(long, value_name = "DIR", requires = "session", conflicts_with = "batches")]
    pub(crate) mnist: Option<PathBuf>,
    /// Rows of --batches or --mnist in each batch: a .npy file of integers with one row per batch
    /// [default: consecutive rows]
    #[arg(long, value_name = "FILE.npy", requires = "session", alias = "batch_rows")]
    pub(crate) batch_rows: Option<PathBuf>,
}
