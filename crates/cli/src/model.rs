//! What the commands that take a model have in common: which model, which feeds and fetches of it, for which machine.

use crate::infer::{InferArgs, not_inferred};
use crate::module_file;
use crate::progress::Progress;
use bytes::Bytes;
use clap::Args;
use compiler::{Input, LoopBounds, Observer as _};
use shape::Literal;
use std::collections::BTreeMap;
use std::path::PathBuf;
use support::{Code, Error, Result};
use target::Target;
use tf::model::{LoadOptions, Model, VariablesToFeed};
use tf::proto::Config;
use tf::substitutions::{Asserts, CustomCall, CustomOutput, Substitutions};
use tf::{InferOptions, Inferred};

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

/// What flags `--custom-call OP=symbol[:OUTPUT;..]` say.
fn custom_calls(flags: &[String]) -> Result<BTreeMap<String, CustomCall>> {
    let mut calls = BTreeMap::new();
    for flag in flags {
        let at_flag = |e: Error| e.context(format!("--custom-call {flag}")).coded(Code::CustomCall);
        let parsed = flag.split_once('=').filter(|(op, _)| !op.is_empty());
        let (op, call) = parsed.ok_or_else(|| at_flag(Error::invalid("OP=symbol is wanted")))?;
        let (symbol, outputs) = call.split_once(':').unwrap_or((call, ""));
        if !support::is_c_identifier(symbol) || symbol == hlo::custom_call::ALLOCATE_BUFFER {
            return Err(at_flag(Error::invalid(format!("'{symbol}' cannot be the name of a C function"))));
        }
        let outputs = CustomOutput::parse_all(outputs).map_err(at_flag)?;
        if calls.insert(op.to_owned(), CustomCall { symbol: symbol.to_owned(), outputs }).is_some() {
            return Err(at_flag(Error::invalid(format!("it is given twice for '{op}'"))));
        }
    }
    Ok(calls)
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
    pub(crate) numerics: crate::numerics::NumericsArgs,
    /// What was measured before.
    #[command(flatten)]
    pub(crate) tuning: crate::tuning::TuningArgs,
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

    /// The model and its config, inferred if no file is given. What the user may want to know of it is printed to
    /// standard error.
    pub(crate) fn read(&self, progress: &mut Progress) -> Result<Read> {
        if let Some((input, initial)) = module_file::read(self)? {
            progress.ended("read", &String::new);
            return Ok(Read { input, initial });
        }
        let (model, file) = self.load()?;
        let (config, file) = match file {
            Some((config, bytes)) => (config, Some(bytes)),
            None => (self.inferred_config(&model, progress)?, None),
        };
        let initial = model.initial.clone();
        progress.ended("read", &String::new);
        let loop_bounds = loop_bounds(&self.loop_bound)?;
        Ok(Read { input: Input::of_model(model, config, file).with_loop_bounds(loop_bounds), initial })
    }

    /// The model, and the config with its bytes if a file is given.
    pub(crate) fn load(&self) -> Result<(Model, Option<(Config, Bytes)>)> {
        compiler::guarded(|| {
            let config = match &self.config {
                Some(path) => {
                    let bytes = tf::source::read_bytes(path)?;
                    Some((tf::source::parse_config(bytes.clone(), &path.display().to_string())?, bytes))
                }
                None => None,
            };
            let stated = config.as_ref().map(|(config, _)| config.clone());
            let options = self.choice.options(stated, self.inference.options()?)?;
            Ok((tf::model::load(&self.model, &options)?, config))
        })
    }

    /// What can be inferred of the model's config, with all that cannot.
    pub(crate) fn infer(&self, model: &Model) -> Result<Inferred> {
        let options = self.inference.options()?;
        compiler::guarded(|| model.infer(&options))
    }

    fn inferred_config(&self, model: &Model, progress: &Progress) -> Result<Config> {
        let inferred = self.infer(model)?;
        if !inferred.problems.is_empty() {
            return Err(not_inferred(&model.name, &inferred));
        }
        inferred.notes.iter().for_each(|note| progress.note(note));
        Ok(inferred.config)
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

/// The variables that a flag names.
pub(crate) fn variables_to_feed(names: Option<&str>) -> VariablesToFeed {
    match names {
        None | Some("") => VariablesToFeed::Written,
        Some(all) if all.eq_ignore_ascii_case("all") => VariablesToFeed::All,
        Some(names) => {
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            VariablesToFeed::Named(names.map(str::to_owned).collect())
        }
    }
}

/// A model with its config.
pub(crate) struct Read {
    /// For the compiler.
    pub(crate) input: Input,
    /// The values that the model comes with: of variables before the first run, by the name of the variable's node; of
    /// the arguments of a snapshot, by name.
    pub(crate) initial: BTreeMap<String, Literal>,
}

/// What flags `--loop-bound NAME=N` promise.
pub(crate) fn loop_bounds(flags: &[String]) -> Result<LoopBounds> {
    let mut bounds = LoopBounds::new();
    for flag in flags {
        let parsed = flag.rsplit_once('=').and_then(|(name, bound)| Some((name, bound.parse::<i64>().ok()?)));
        let Some((name, bound)) = parsed.filter(|&(name, bound)| !name.is_empty() && bound >= 0) else {
            return Err(Error::invalid(format!(
                "--loop-bound {flag}: NAME=N is wanted, the name of a loop and the most iterations, at least 0"
            )));
        };
        if bounds.insert(name.to_owned(), bound).is_some() {
            return Err(Error::invalid(format!("--loop-bound is given twice for '{name}'")));
        }
    }
    Ok(bounds)
}
