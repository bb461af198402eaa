//! Flags of the commands that take a model: which model, which feeds and fetches, which machine.

use crate::args::inference::InferArgs;
use crate::args::parse::{custom_calls, variables_to_feed};
use clap::Args;
use compiler::{BackOptions, DeviceKind};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use support::{Code, Error, Result};
use target::Target;
use tf::InferOptions;
use tf::model::LoadOptions;
use tf::proto::Config;
use tf::substitutions::{Asserts, Substitutions};

/// Flags that select a part of a model that contains more than one graph.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ChoiceArgs {
    /// Signature of the model, or public function of the StableHLO program, to compile [default:
    /// serving_default or main, or the only one]
    #[arg(long, value_name = "KEY", alias = "signature_def_key", conflicts_with_all = ["config", "fetch"])]
    pub(crate) signature: Option<String>,
    /// Tags of the graph in the SavedModel, joined by commas [default: serve, or the only graph]
    #[arg(long, value_name = "TAGS", aliases = ["tag_set", "tags"])]
    pub(crate) tag_set: Option<String>,
    /// Values of the variables: a checkpoint file, or the prefix of its files [default: the model's
    /// own]
    #[arg(long, value_name = "PATH", alias = "checkpoint_path")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Variables that the caller owns, instead of constants: names of their nodes joined by commas,
    /// or `all` [default: the variables that the program writes]
    #[arg(long, value_name = "NAMES", alias = "variables_to_feed")]
    pub(crate) variables_to_feed: Option<String>,
    /// Function of the graph's library to compile: its arguments are the feeds, its results the
    /// fetches
    #[arg(long, value_name = "NAME", conflicts_with_all = ["config", "fetch", "signature"])]
    pub(crate) function: Option<String>,
    /// Call a C function that you link in place of an op: `OP=symbol`, or `OP=symbol:OUTPUT;..`
    /// with TYPE[SIZES] for each output, such as float[2,3], or TYPE[inputN] for the sizes of input
    /// N. See tfcompile/custom_call.h. Can be repeated
    #[arg(long, alias = "custom_call", value_name = "OP=SYMBOL")]
    pub(crate) custom_call: Vec<String>,
    /// Effect of the graph's asserts
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub(crate) assert: AssertFlag,
}

/// `--assert`.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AssertFlag {
    /// Check nothing
    #[default]
    Ignore,
    /// Fail the run: Run() returns false, and `error_msg()` names the assert
    Report,
    /// Print the assert's message and end the process
    Abort,
}

impl ChoiceArgs {
    /// Returns the options for loading a model with this config, or with one inferred from `infer`.
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

/// A model, the part of it to compile, and the machine to compile it for.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArgs {
    /// Model: a SavedModel (its directory, or saved_model.pb in it), a MetaGraph (.meta), a
    /// GraphDef, binary or text, a TensorFlow Lite model (.tflite), a graph model of TensorFlow.js
    /// (model.json), or an ONNX model (.onnx); or a program: StableHLO as text (.mlir), as a
    /// portable artifact (.mlirbc), or from jax.export; HLO as text (.hlo), or as HloModuleProto,
    /// HloProto, or HloSnapshot
    #[arg(value_name = "MODEL")]
    pub(crate) model: PathBuf,
    /// Feeds, fetches, and variables: a tensorflow.tf2xla.Config file [default: inferred from the
    /// graph]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Values of arguments of a StableHLO or HLO program, which become constants: a .safetensors or
    /// .npz file with an array for each, by name
    #[arg(long, value_name = "FILE")]
    pub(crate) weights: Option<PathBuf>,
    /// The arrays of that file, once they are read: all functions of a model share them.
    #[arg(skip)]
    pub(crate) arrays: Arc<OnceLock<BTreeMap<String, Literal>>>,
    /// Selects the part of the model.
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
    /// Guides the inference of the config.
    #[command(flatten)]
    pub(crate) inference: InferArgs,
    /// Upper bound on the iterations of a loop that has no other bound, by the name of its node or
    /// of its scope. Can be repeated
    #[arg(long, value_name = "NAME=N")]
    pub(crate) loop_bound: Vec<String>,
    /// Machine to compile for, by a short name such as aarch64-linux; or a GPU: cuda,
    /// cuda:sm_80,sm_90a with architectures, opencl, or opencl:c. The other flags then describe
    /// the host
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Machine to compile for, as an LLVM triple [default: this machine's architecture]
    #[arg(long, value_name = "TRIPLE", alias = "target_triple")]
    pub(crate) target_triple: Option<String>,
    /// Processor to compile for, by LLVM's name; `native` is this machine's
    #[arg(long, value_name = "CPU", alias = "target_cpu")]
    pub(crate) target_cpu: Option<String>,
    /// Processor features, such as +avx2,+fma
    #[arg(long, value_name = "FEATURES", alias = "target_features", allow_hyphen_values = true)]
    pub(crate) target_features: Option<String>,
    /// Bounds rounding errors.
    #[command(flatten)]
    pub(crate) numerics: crate::args::numerics::NumericsArgs,
    /// Names the tuning file.
    #[command(flatten)]
    pub(crate) tuning: crate::args::tuning::TuningArgs,
    /// Print only results and errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print the algorithm of each kernel and the time of each stage
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// The flags of [`ModelArgs`] that determine only the code of a program.
pub(crate) const COMPILATION: [&str; 9] = [
    "target",
    "target_triple",
    "target_cpu",
    "target_features",
    "allow_winograd",
    "precise",
    "allow_tf32",
    "precision",
    "tuning",
];

impl ModelArgs {
    /// Returns an error if one of the flags is given that determine only the code of a program.
    /// `command` does not compile.
    pub(crate) fn refuse_compilation(&self, command: &str) -> Result<()> {
        let given = [
            ("--target", self.target.is_some()),
            ("--target-triple", self.target_triple.is_some()),
            ("--target-cpu", self.target_cpu.is_some()),
            ("--target-features", self.target_features.is_some()),
            ("--tuning", self.tuning.file().is_some()),
        ];
        let given = given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag));
        match given.or(self.numerics.given()) {
            Some(flag) => Err(Error::invalid(format!(
                "{flag} has no effect on {command}, which writes a model: remove the flag, and pass it to the build of that model"
            ))
            .coded(Code::CommandLine)),
            None => Ok(()),
        }
    }

    /// True if no progress line is drawn.
    pub(crate) fn hides_progress(&self) -> bool {
        self.quiet || self.verbose
    }

    /// Name of the model's file without its extension.
    pub(crate) fn stem(&self) -> String {
        self.model.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the plan's options: numerics and tuned choices.
    pub(crate) fn plan_options(&self) -> Result<compiler::PlanOptions> {
        self.tuning.options(self.numerics.options())
    }

    /// Returns the kind of GPU that `--target` names, such as `cuda` or `cuda:sm_80`, if it names
    /// one.
    pub(crate) fn device_kind(&self) -> Result<Option<DeviceKind>> {
        let name = self.target.as_deref().unwrap_or_default();
        match name.split(':').next().unwrap_or_default() {
            kind @ ("cuda" | "opencl") => compiler::device_kind(kind).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the options of the inference of a config, for the machine that `--target` names.
    pub(crate) fn infer_options(&self) -> Result<tf::InferOptions> {
        let mut options = self.inference.options()?;
        if self.device_kind()?.is_some() {
            self.inference.refuse_sizes(compiler::GPU_HAS_ONE_SIZE)?;
            options.batch_range = None;
        }
        Ok(options)
    }

    /// Returns the GPUs that `--target` names, the least capable one first; none for a processor.
    pub(crate) fn devices(&self) -> Result<Vec<Target>> {
        let devices = self.target.as_deref().map(target::parse_devices).transpose()?;
        Ok(devices.flatten().unwrap_or_default())
    }

    /// Options for an open device, with the forms of code that `--target` names for OpenCL.
    pub(crate) fn with_forms(&self, back: BackOptions) -> Result<BackOptions> {
        let names_forms = self.target.as_deref().is_some_and(|name| name.starts_with("opencl:"));
        Ok(if names_forms { BackOptions { devices: self.devices()?, ..back } } else { back })
    }

    /// Returns the machine that the flags name, or the host of a GPU, with `default_cpu` (which may
    /// be `native`) if they name no processor.
    pub(crate) fn target(&self, default_cpu: &str) -> Result<Target> {
        if let Some(name) = &self.target
            && self.devices()?.is_empty()
        {
            let host = [
                ("--target-triple", &self.target_triple),
                ("--target-cpu", &self.target_cpu),
                ("--target-features", &self.target_features),
            ];
            if let Some((flag, _)) = host.iter().find(|(_, value)| value.is_some()) {
                return Err(Error::invalid(format!(
                    "--target={name} and {flag} both select the machine: remove one of them"
                )));
            }
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
