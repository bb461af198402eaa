//! What the commands that take a model have in common: which model, which feeds and fetches of it, for which machine.

use clap::Args;
use compiler::Input;
use std::path::{Path, PathBuf};
use support::Result;
use target::Target;

/// A model and what to compile of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// The model: a GraphDef file, binary or text
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Feeds, fetches and variables: a tensorflow.tf2xla.Config file. Without, they are inferred from the graph
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// What to compute: a node, or one of its outputs. May be given several times
    #[arg(long, value_name = "NODE[:K]", conflicts_with = "config")]
    pub(crate) fetch: Vec<String>,
    /// The shape of a feed that the graph leaves open, such as x=1,224,224,3. May be given several times
    #[arg(long, value_name = "NODE=SIZES", conflicts_with = "config")]
    pub(crate) shape: Vec<String>,
    /// The size of leading dimensions that the graph leaves open
    #[arg(long, value_name = "N", conflicts_with = "config", value_parser = clap::value_parser!(i64).range(1..))]
    pub(crate) batch: Option<i64>,
    /// The machine to compile for, by a short name such as aarch64-linux
    #[arg(long, value_name = "NAME", conflicts_with_all = ["target_triple", "target_cpu", "target_features"])]
    pub(crate) target: Option<String>,
    /// The machine to compile for, as an LLVM triple [default: this machine's architecture]
    #[arg(long, value_name = "TRIPLE", alias = "target_triple")]
    pub(crate) target_triple: Option<String>,
    /// Its processor, by LLVM's name; `native` is this machine's
    #[arg(long, value_name = "CPU", alias = "target_cpu")]
    pub(crate) target_cpu: Option<String>,
    /// Its features, such as +avx2,+fma
    #[arg(long, value_name = "FEATURES", alias = "target_features", allow_hyphen_values = true)]
    pub(crate) target_features: Option<String>,
    /// Print nothing but results and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print how each kernel is computed, and a table of the stages' times
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl ModelArgs {
    /// The graph and its config, the latter inferred and in text form if no file is given.
    pub(crate) fn read(&self) -> Result<(Input, Input)> {
        let graph = self.read_graph()?;
        let config = match self.read_config()? {
            Some(config) => config,
            None => crate::infer::config(self, &graph)?,
        };
        Ok((graph, config))
    }

    /// The graph.
    pub(crate) fn read_graph(&self) -> Result<Input> {
        input(&self.model)
    }

    /// The config, if a file is given.
    pub(crate) fn read_config(&self) -> Result<Option<Input>> {
        self.config.as_deref().map(input).transpose()
    }

    /// The machine that the flags name; `default_cpu` (which may be `native`) where they name no processor.
    pub(crate) fn target(&self, default_cpu: &str) -> Result<Target> {
        if let Some(name) = &self.target {
            return target::named(name);
        }
        let triple = self.target_triple.clone().unwrap_or_else(codegen::host_triple);
        let features = self.target_features.as_deref().unwrap_or("");
        let default_cpu = if self.target_triple.is_none() { default_cpu } else { "" };
        match self.target_cpu.as_deref().unwrap_or(default_cpu) {
            "native" => {
                let (cpu, host_features) = codegen::host_target();
                let features =
                    if features.is_empty() { host_features } else { format!("{host_features},{features}") };
                Target::new(&triple, &cpu, &features)
            }
            cpu => Target::new(&triple, cpu, features),
        }
    }
}

fn input(path: &Path) -> Result<Input> {
    Ok(Input { name: path.display().to_string(), bytes: tf::source::read_bytes(path)? })
}
