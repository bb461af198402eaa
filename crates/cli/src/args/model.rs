//! What the commands that take a model have in common: which model, which feeds and fetches of it, for which machine.

use crate::args::inference::InferArgs;
use crate::args::parse::{custom_calls, variables_to_feed};
use clap::Args;
use std::path::PathBuf;
use support::Result;
use target::Target;
use tf::InferOptions;
use tf::model::LoadOptions;
use tf::proto::Config;
use tf::substitutions::{Asserts, Substitutions};

/// What to take of a model that holds more than a graph.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ChoiceArgs {
    /// The signature of a SavedModel to compile [default: serving_default, or the only one]
    #[arg(long, value_name = "KEY", alias = "signature_def_key", conflicts_with_all = ["config", "fetch"])]
    pub(crate) signature: Option<String>,
    /// The tags of the graph in a SavedModel, joined by commas [default: serve, or the only graph]
    #[arg(long, value_name = "TAGS", aliases = ["tag_set", "tags"])]
    pub(crate) tag_set: Option<String>,
    /// The values of the variables: a checkpoint's file, or the prefix of its files [default: the model's own]
    #[arg(long, value_name = "PATH", alias = "checkpoint_path")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// The variables that the caller holds, instead of constants: names of their nodes joined by commas, or `all`
    /// [default: those that the program writes]
    #[arg(long, value_name = "NAMES", alias = "variables_to_feed")]
    pub(crate) variables_to_feed: Option<String>,
    /// A function of the graph's library to compile: its arguments are fed, what it returns is fetched
    #[arg(long, value_name = "NAME", conflicts_with_all = ["config", "fetch", "signature"])]
    pub(crate) function: Option<String>,
    /// Call a C function of your own, which you link, in place of an op: `OP=symbol`, or `OP=symbol:OUTPUT;..` with a
    /// TYPE[SIZES] for each output, such as float[2,3], or TYPE[inputN] for the sizes of input N. See
    /// tfcompile/custom_call.h. May be given several times
    #[arg(long, alias = "custom_call", value_name = "OP=SYMBOL")]
    pub(crate) custom_call: Vec<String>,
    /// What becomes of the graph's asserts
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) assert: AssertFlag,
}

/// `--assert`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AssertFlag {
    /// Nothing is checked
    #[default]
    Ignore,
    /// A failed one fails the run: Run() returns false, and `error_msg()` says which
    Report,
    /// A failed one prints its message and ends the process
    Abort,
}

impl ChoiceArgs {
    /// What the flags say, for a model with this config or, without, one that is inferred so.
    pub(crate) fn options(&self, config: Option<Config>, infer: InferOptions) -> Result<LoadOptions> {
        Ok(LoadOptions {
            tags: self.tag_set.clone(),
            signature: self.signature.clone(),
            checkpoint: self.checkpoint.clone(),
            variables_to_feed: variables_to_feed(self.variables_to_feed.as_deref()),
            config,
            infer,
            function: self.function.clone(),
            substitutions: Substitutions {
                custom_calls: custom_calls(&self.custom_call)?,
                asserts: self.asserts(),
            },
        })
    }

    fn asserts(&self) -> Asserts {
        match self.assert {
            AssertFlag::Ignore => Asserts::Ignored,
            AssertFlag::Report => Asserts::Reported,
            AssertFlag::Abort => Asserts::Abort,
        }
    }
}

/// A model and what to compile of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// The model: a SavedModel (its directory, or saved_model.pb in it), a MetaGraph (.meta), or a GraphDef, binary or text;
    /// or a program: StableHLO as text (.mlir), as a portable artefact (.mlirbc) or of jax.export, HLO as text (.hlo) or as
    /// HloModuleProto, HloProto or HloSnapshot
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Feeds, fetches and variables: a tensorflow.tf2xla.Config file. Without, they are inferred from the graph
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Which part of a model, with which values.
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// What helps to infer them.
    #[command(flatten)]
    pub(crate) inference: InferArgs,
    /// The most iterations of a loop that nothing else bounds, by the name of its node or the scope that it is in. May be
    /// given several times
    #[arg(long, value_name = "NAME=N")]
    pub(crate) loop_bound: Vec<String>,
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
    /// How far rounding may differ.
    #[command(flatten)]
    pub(crate) numerics: crate::args::numerics::NumericsArgs,
    /// What was measured before.
    #[command(flatten)]
    pub(crate) tuning: crate::args::tuning::TuningArgs,
    /// Print nothing but results and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print how each kernel is computed, and a table of the stages' times
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl ModelArgs {
    /// What the plan may do, and what it is told to.
    pub(crate) fn plan_options(&self) -> Result<compiler::PlanOptions> {
        self.tuning.options(self.numerics.options())
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
