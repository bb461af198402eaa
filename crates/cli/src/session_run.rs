//! `tfcompile run --jit`: a model in a session, node by node.

use crate::given::Arguments;
use crate::outputs::Output;
use crate::run::Run;
use crate::tracing::TraceArgs;
use crate::xla_flags::XlaFlags;
use crate::{outputs, state};
use clap::{Args, ValueEnum};
use runner::{Argument, Fill, Role, Signature, summary};
use session::{Options, Session};
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use support::{Error, Result};
use tf::Wanted;
use tf::model::VariablesToFeed;
use tf::proto::{Config, ConfigProto};

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

/// What only a session takes.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SessionArgs {
    /// Run the graph in a session, node by node, instead of compiling it as a whole
    #[arg(long, value_name = "LEVEL")]
    pub(crate) jit: Option<Jit>,
    /// A ConfigProto file, text or binary: threads, devices, soft placement
    #[arg(long, value_name = "FILE", requires = "jit", alias = "session_config")]
    pub(crate) session_config: Option<PathBuf>,
    /// Data for the feeds: a .npz file whose members have their names, cut into batches along the first dimension
    #[arg(long, value_name = "FILE.npz", requires = "jit")]
    pub(crate) batches: Option<PathBuf>,
    /// Run nodes on the host that cannot run where they are placed
    #[arg(long, requires = "jit")]
    pub(crate) soft_placement: bool,
    #[command(flatten)]
    trace: TraceArgs,
}

/// The largest array that is read from an archive, in bytes.
const MAX_ARRAY: u64 = 16 << 30;

/// A model with what is run of it.
struct Model {
    session: Session,
    signature: Signature,
    feeds: Vec<String>,
    fetches: Vec<String>,
    targets: Vec<String>,
    initial: BTreeMap<String, Literal>,
}

/// Runs a model in a session and prints what is fetched.
pub(crate) fn run(arguments: &Run, xla: &XlaFlags) -> Result<()> {
    if !arguments.model.quiet {
        xla.warn();
    }
    let options = options(arguments, xla)?;
    let model = load(arguments, options)?;
    let Arguments { inputs, notes } =
        arguments.given.arguments(&model.signature, &model.initial, Some(Fill::Random))?;
    initialize(&model, &inputs.first, arguments)?;
    let batches = match &arguments.session.batches {
        Some(path) => Batches::read(path, &model)?,
        None => Batches::default(),
    };
    if !arguments.model.quiet {
        // Nobody is left to tell if standard error is closed.
        notes.iter().for_each(|note| drop(writeln!(std::io::stderr(), "note: {note}")));
    }
    let steps = arguments.steps.or(inputs.batch_count()).or(batches.count()).unwrap_or(1);
    let fetches: Vec<&str> = model.fetches.iter().map(String::as_str).collect();
    let targets: Vec<&str> = model.targets.iter().map(String::as_str).collect();
    let traced = arguments.session.trace.step(steps)?;
    let mut files = Vec::new();
    let begin = Instant::now();
    let mut results = Vec::new();
    let mut first = begin.elapsed();
    for step in 0..steps {
        let mut values: Vec<Literal> = inputs.first[..model.feeds.len()].to_vec();
        for (at, literal) in inputs.at(step).filter(|(at, _)| *at < model.feeds.len()) {
            values[at] = literal.clone();
        }
        batches.put(step, &mut values)?;
        let feeds: Vec<(&str, Literal)> = model.feeds.iter().map(String::as_str).zip(values).collect();
        results = match traced == Some(step) {
            false => model.session.run(&feeds, &fetches, &targets)?,
            true => {
                let (results, metadata) = model.session.run_traced(&feeds, &fetches, &targets)?;
                files.extend(arguments.session.trace.outputs(&metadata));
                results
            }
        };
        if step == 0 {
            first = begin.elapsed();
        }
        outputs::print(&told(&model.fetches, &results, step, steps))?;
    }
    if !arguments.model.quiet && steps > 1 {
        let rest = (begin.elapsed() - first).as_secs_f64();
        let _ = writeln!(
            std::io::stderr(),
            "{steps} steps, {:.0} steps/s behind the first, {} kernels compiled",
            (steps - 1) as f64 / rest.max(1e-9),
            model.session.compiled_kernels()
        );
    }
    files.extend(written(arguments, &model, &results)?);
    outputs::write(&files)
}

/// What is fetched in a step: scalars in a line of their own, where there are several steps.
fn told(names: &[String], results: &[Literal], step: u64, steps: u64) -> String {
    let mut text = String::new();
    for (name, array) in names.iter().zip(results) {
        let shape = array.array_shape();
        let _ = match (steps > 1, shape.rank()) {
            (true, 0) => {
                let number = summary::number(array.scalar_at(0), shape.element_type);
                writeln!(text, "step {step}  {name}: {number}")
            }
            (true, _) => write!(text, "step {step}  {name}: {}", summary::describe(array)),
            (false, _) => write!(text, "{name}: {}", summary::describe(array)),
        };
    }
    text
}

/// The files with results and variables.
fn written(arguments: &Run, model: &Model, results: &[Literal]) -> Result<Vec<Output<'static>>> {
    let mut variables = BTreeMap::new();
    for variable in model.session.variables() {
        if let Some(value) = model.session.variable_value(variable.node())? {
            variables.insert(variable.node().to_owned(), value);
        }
    }
    let mut files = Vec::new();
    if let Some(path) = &arguments.save {
        files.extend(state::outputs(path, &variables)?);
    }
    if let Some(path) = &arguments.out {
        let named = model.fetches.iter().cloned().zip(results.iter().cloned());
        let archive = crate::given::archive(named.chain(variables.clone()))?;
        files.push(Output { path: path.clone(), parts: vec![archive.into()] });
    }
    Ok(files)
}

fn options(arguments: &Run, xla: &XlaFlags) -> Result<Options> {
    let threads = arguments.threads as usize;
    let jit = arguments.session.jit.unwrap_or(Jit::Off);
    let options = Options {
        cache: crate::kernel_cache::KernelCache::of_flags(&xla.jit)
            .map(|cache| Arc::new(cache) as Arc<dyn compiler::UnitCache>),
        rewrite: Some(crate::clustering::rewrite(jit, xla)),
        inter_op_threads: threads,
        intra_op_threads: threads,
        seed: arguments.given.random.unwrap_or(0),
        allow_soft_placement: arguments.session.soft_placement,
        plan: arguments.model.plan_options()?,
        cpu: arguments.model.target_cpu.clone().unwrap_or_else(|| "native".to_owned()),
        output: Arc::new(|text| drop(write!(std::io::stderr(), "{text}"))),
        ..Options::default()
    };
    let config = match &arguments.session.session_config {
        Some(path) => {
            tf::source::parse_session_config(tf::source::read_bytes(path)?, &path.display().to_string())?
        }
        None => ConfigProto::default(),
    };
    if matches!(session::jit_level(&config), 1 | 2) && arguments.session.jit == Some(Jit::Off) {
        return Err(Error::invalid(
            "--session-config asks for just-in-time compilation, and --jit=off against it: give only one",
        ));
    }
    options.with_config(&config)
}

/// Reads the model, and what is fed and fetched of it.
fn load(arguments: &Run, options: Options) -> Result<Model> {
    let flags = &arguments.model;
    let (config, model) = compiler::guarded(|| {
        let config = match &flags.config {
            Some(path) => Some(tf::source::read_config(path)?),
            None => None,
        };
        let infer = flags.inference.options()?;
        let mut load = flags.choice.options(config.clone(), infer.clone())?;
        load.variables_to_feed = VariablesToFeed::All;
        let model = tf::model::load(&flags.model, &load)?;
        match config {
            Some(config) => Ok((config, model)),
            None => {
                let inferred = model.infer(&infer)?;
                if !inferred.problems.is_empty() {
                    return Err(crate::infer::not_inferred(&model.name, &inferred));
                }
                Ok((inferred.config, model))
            }
        }
    })?;
    let (signature, wanted) = signature(&model.graph, &config)?;
    let name = |(node, output): &(String, i64)| format!("{node}:{output}");
    Ok(Model {
        session: Session::new(model.graph, options)?,
        signature,
        feeds: wanted.feeds.iter().map(name).collect(),
        fetches: wanted.fetches.iter().map(name).collect(),
        targets: wanted.targets,
        initial: model.initial,
    })
}

/// The feeds and variables of a config with their shapes, and what is wanted of the graph.
fn signature(graph: &tf::proto::GraphDef, config: &Config) -> Result<(Signature, Wanted)> {
    let id = |id: &Option<tf::proto::TensorId>| {
        id.as_ref().map(|id| (id.node_name.clone(), id.output_index)).unwrap_or_default()
    };
    let mut wanted =
        Wanted { feeds: config.feed.iter().map(|feed| id(&feed.id)).collect(), ..Wanted::default() };
    let has_outputs = |name: &str| {
        let node = graph.node.iter().find(|node| node.name == name);
        let signature = node.and_then(|node| tf::op_signature(&node.op));
        signature.is_none_or(|op| !op.output_arg.is_empty())
    };
    for fetch in &config.fetch {
        let fetch = id(&fetch.id);
        match has_outputs(&fetch.0) {
            true => wanted.fetches.push(fetch),
            false => wanted.targets.push(fetch.0),
        }
    }
    let resolved = compiler::guarded(|| tf::resolve(graph, &wanted))?;
    let mut arguments = Vec::new();
    for ((feed, fed), node) in config.feed.iter().zip(&wanted.feeds).zip(resolved.graph.nodes.values()) {
        let shape = feed.shape.as_ref().map(tf::PartialShape::from_proto).transpose()?;
        let sizes = shape.and_then(|shape| shape.sizes()).unwrap_or_default();
        let element_type = node.output_types.first().and_then(|t| t.primitive_type());
        let element_type = element_type.ok_or_else(|| {
            Error::unsupported(format!("feed '{}:{}' is of no numbers: feed it from a program", fed.0, fed.1))
        })?;
        arguments.push(argument(Role::Feed, &feed.name, fed, ArrayShape::new(element_type, &sizes)));
    }
    for variable in &config.variable {
        let shape = variable.shape.as_ref().map(tf::PartialShape::from_proto).transpose()?;
        let data_type = tf::DataType::from_number(variable.r#type).and_then(tf::DataType::primitive_type);
        let (Some(sizes), Some(element_type)) = (shape.and_then(|shape| shape.sizes()), data_type) else {
            continue;
        };
        let node = (variable.node_name.clone(), 0);
        arguments.push(argument(
            Role::Variable,
            &variable.name,
            &node,
            ArrayShape::new(element_type, &sizes),
        ));
    }
    Ok((Signature { arguments, results: Vec::new() }, wanted))
}

fn argument(role: Role, name: &str, (node, output): &(String, i64), shape: ArrayShape) -> Argument {
    let mut aliases = vec![format!("{node}:{output}")];
    if *output == 0 {
        aliases.push(node.clone());
    }
    let name = if name.is_empty() { aliases.last().cloned().unwrap_or_default() } else { name.to_owned() };
    Argument { name, aliases, role, shape }
}

/// Gives variables their first values: those that are given, those of the model, else those of its initialisers.
fn initialize(model: &Model, arguments: &[Literal], flags: &Run) -> Result<()> {
    let is_given = |argument: &Argument| {
        let named = |word: &String| word.split('=').next().is_some_and(|name| argument.is_called(name));
        flags.given.var.iter().any(named) || !flags.given.variables.is_empty()
    };
    let from_file = flags.given.var.iter().any(|word| word.starts_with('@'));
    for (argument, value) in model.signature.arguments.iter().zip(arguments) {
        if argument.role == Role::Variable && (from_file || is_given(argument)) {
            model.session.set_variable(argument.graph_name(), value)?;
        }
    }
    for (name, value) in &model.initial {
        if model.session.variable_value(name)?.is_none() {
            model.session.set_variable(name, value)?;
        }
    }
    let left = model.session.initialize()?;
    for (argument, value) in model.signature.arguments.iter().zip(arguments) {
        if argument.role == Role::Variable && left.iter().any(|name| name == argument.graph_name()) {
            model.session.set_variable(argument.graph_name(), value)?;
        }
    }
    Ok(())
}

/// Data that is cut into batches.
#[derive(Default)]
struct Batches {
    /// For a feed, its number, all rows, and how many make a batch.
    data: Vec<(usize, Literal, i64)>,
}

impl Batches {
    fn read(path: &Path, model: &Model) -> Result<Self> {
        let at_file = |error: Error| error.context(format!("--batches {}", path.display()));
        let mut archive = npz::Archive::open(tf::source::read_bytes(path)?, MAX_ARRAY).map_err(at_file)?;
        let names: Vec<String> = archive.names().map(str::to_owned).collect();
        let mut data = Vec::new();
        for name in names {
            let at =
                model.signature.arguments.iter().position(|a| a.role == Role::Feed && a.is_called(&name));
            let Some(at) = at else { continue };
            let Some(rows) = archive.get(&name).map_err(at_file)? else { continue };
            let argument = &model.signature.arguments[at];
            let (whole, batch) = (rows.array_shape().sizes(), argument.shape.sizes());
            let fits = rows.array_shape().element_type == argument.shape.element_type
                && !batch.is_empty()
                && whole.len() == batch.len()
                && whole[1..] == batch[1..]
                && (1..=whole[0]).contains(&batch[0]);
            if !fits {
                return Err(at_file(Error::invalid(format!(
                    "'{name}' is {}, from which no batches {} can be cut",
                    rows.array_shape(),
                    argument.shape
                ))));
            }
            data.push((at, rows, batch[0]));
        }
        if data.is_empty() {
            return Err(at_file(Error::invalid("none of its members is a feed of the model")));
        }
        Ok(Self { data })
    }

    /// How many whole batches there are.
    fn count(&self) -> Option<u64> {
        let counts = self.data.iter().map(|(_, rows, batch)| rows.array_shape().size(0) / batch);
        counts.min().and_then(|count| u64::try_from(count).ok())
    }

    /// Puts the batch of a step in; after the last comes the first.
    fn put(&self, step: u64, values: &mut [Literal]) -> Result<()> {
        let count = self.count().unwrap_or(1).max(1);
        for (at, rows, batch) in &self.data {
            let shape = rows.array_shape();
            let mut sizes = shape.sizes();
            let row = shape.byte_size() as usize / sizes[0] as usize;
            sizes[0] = *batch;
            let start = (step % count) as usize * *batch as usize * row;
            let bytes = rows.bytes().slice(start..start + *batch as usize * row);
            let cut = Literal::from_bytes(ArrayShape::new(shape.element_type, &sizes), bytes);
            values[*at] = cut.ok_or_else(|| Error::internal("a batch has not its shape's bytes"))?;
        }
        Ok(())
    }
}
