//! A model in a session: its flags, the initial values of its variables, and the feeds of each
//! step.

use crate::args::feeds::FeedArgs;
use crate::args::model::ModelArgs;
use crate::args::session::SessionArgs;
use crate::args::xla_flags::XlaFlags;
use crate::program::arguments::Arguments;
use crate::session::batches::Batches;
use hlo::{Argument, Identifier, Interface, Role};
use runner::{Fill, Inputs, Signature};
use session::{Options, Session};
use shape::{ArrayShape, Literal};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use support::{Error, Result};
use tf::model::VariablesToFeed;
use tf::proto::attr_value::Value as Attr;
use tf::proto::{Config, GraphDef};
use tf::{PartialShape, RunRequest};

/// Flags of a model in a session.
pub(crate) struct Request<'a> {
    pub(crate) model: &'a ModelArgs,
    pub(crate) feeds: &'a FeedArgs,
    pub(crate) session: &'a SessionArgs,
    pub(crate) threads: Option<u32>,
}

/// A model in a session, ready to run.
pub(crate) struct SessionModel {
    pub(crate) session: Session,
    /// Names of the fetches.
    pub(crate) fetches: Vec<String>,
    pub(crate) batches: Batches,
    feeds: Vec<String>,
    targets: Vec<String>,
    inputs: Inputs,
    /// Shapes of the feeds, as far as the graph states them.
    open_shapes: Vec<Option<PartialShape>>,
    /// True if the graph has a node named [`ACCURACY`].
    has_accuracy: bool,
}

/// Name of the node that computes a graph's accuracy.
const ACCURACY: &str = "accuracy";

impl SessionModel {
    /// Reads a model and its inputs, and initializes its variables.
    pub(crate) fn open(request: &Request<'_>, xla: &XlaFlags) -> Result<Self> {
        if !request.model.quiet {
            xla.warn();
        }
        let mut read = Read::new(request.model)?;
        let batches = Batches::read(&request.session.batches, &read.signature)?;
        let generated =
            generated_indices(&read.signature, |at, feed| batches.has(at) || request.feeds.has_feed(feed));
        if !generated.is_empty() {
            limit_indices(&read.graph, &read.config, &mut read.signature);
        }
        let Arguments { inputs, notes } =
            Arguments::read(request.feeds, &read.signature, &read.initial, Some(Fill::Random))?;
        let name = |(node, output): &(String, i64)| format!("{node}:{output}");
        let model = Self {
            fetches: read.request.fetches.iter().map(name).collect(),
            feeds: read.request.feeds.iter().map(name).collect(),
            open_shapes: read.request.feeds.iter().map(|(node, _)| open_shape(&read.graph, node)).collect(),
            has_accuracy: read.graph.node.iter().any(|node| node.name == ACCURACY),
            targets: read.request.targets,
            session: Session::new(read.graph, options(request, xla)?)?,
            batches,
            inputs,
        };
        initialize(&model.session, &read.signature, &read.initial, &model.inputs.first, request.feeds)?;
        if !request.model.quiet {
            // If standard error is closed, there is nowhere to report that.
            notes.iter().for_each(|note| drop(writeln!(std::io::stderr(), "note: {note}")));
        }
        Ok(model)
    }

    /// Number of steps in one pass over the data.
    pub(crate) fn batch_count(&self) -> Option<u64> {
        self.inputs.batch_count().or(self.batches.count())
    }

    /// Values of the feeds in a step.
    fn values(&self, step: u64) -> Result<Vec<Literal>> {
        let mut values: Vec<Literal> = self.inputs.first[..self.feeds.len()].to_vec();
        for (at, literal) in self.inputs.at(step).filter(|(at, _)| *at < self.feeds.len()) {
            values[at] = literal.clone();
        }
        self.batches.put(step, &mut values)?;
        Ok(values)
    }

    /// Calls `run` with the session and a step's feeds, fetches, and targets.
    pub(crate) fn step<T>(
        &self,
        step: u64,
        run: impl FnOnce(&Session, &[(&str, Literal)], &[&str], &[&str]) -> Result<T>,
    ) -> Result<T> {
        let feeds: Vec<(&str, Literal)> =
            self.feeds.iter().map(String::as_str).zip(self.values(step)?).collect();
        let fetches: Vec<&str> = self.fetches.iter().map(String::as_str).collect();
        let targets: Vec<&str> = self.targets.iter().map(String::as_str).collect();
        run(&self.session, &feeds, &fetches, &targets)
    }

    /// Mean of a scalar over the test set, and the number of rows. The scalar is `fetch`, or the
    /// graph's accuracy by default. Returns `None` if there is no test set or nothing to fetch.
    pub(crate) fn test(&self, fetch: Option<&str>) -> Result<Option<(f64, usize)>> {
        let fetch = match fetch {
            Some(fetch) => fetch,
            None if self.has_accuracy => ACCURACY,
            None => return Ok(None),
        };
        let fits = |at: usize, sizes: &[i64]| {
            self.open_shapes.get(at).is_none_or(|shape| shape.as_ref().is_none_or(|s| s.allows(sizes)))
        };
        let (mut sum, mut count) = (0.0, 0);
        self.batches.test(&self.values(0)?, &fits, &mut |rows, values| {
            let feeds: Vec<(&str, Literal)> = self.feeds.iter().map(String::as_str).zip(values).collect();
            let results = self.session.run(&feeds, &[fetch], &[])?;
            let value = results.first().filter(|value| value.array_shape().element_count() == 1);
            let value = value.and_then(Literal::floats).and_then(|floats| floats.first().copied());
            let value = value.ok_or_else(|| {
                Error::invalid(format!("--accuracy {fetch}: expected a floating-point number"))
            })?;
            sum += value * rows as f64;
            count += rows;
            Ok(())
        })?;
        Ok((count > 0).then(|| (sum / count as f64, count)))
    }

    /// Values of the initialized variables.
    pub(crate) fn variables(&self) -> Result<BTreeMap<String, Literal>> {
        let mut variables = BTreeMap::new();
        for variable in self.session.variables() {
            if let Some(value) = self.session.variable_value(variable.node())? {
                variables.insert(variable.node().to_owned(), value);
            }
        }
        Ok(variables)
    }
}

/// Shape that a placeholder states, or `None` if it states none or the node is not found.
fn open_shape(graph: &GraphDef, node: &str) -> Option<PartialShape> {
    let node = graph.node.iter().find(|other| other.name == node)?;
    match node.attr.get("shape")?.value.as_ref()? {
        Attr::Shape(shape) => PartialShape::from_proto(shape).ok(),
        _ => None,
    }
}

fn options(request: &Request<'_>, xla: &XlaFlags) -> Result<Options> {
    let level = &request.session.level;
    let config = level.config()?;
    let threads = request.threads.map_or_else(|| level.threads(), |threads| threads as usize);
    let clusters = session::cluster_options(level.jit(), &config, xla.jit.clone());
    let options = Options {
        cache: crate::files::kernel_cache::KernelCache::of_flags(&xla.jit)
            .map(|cache| Arc::new(cache) as Arc<dyn compiler::UnitCache>),
        rewrite: Some(crate::session::clustering::rewrite(clusters, xla)),
        inter_op_threads: threads,
        intra_op_threads: threads,
        seed: request.feeds.random.unwrap_or(0),
        allow_soft_placement: request.session.soft_placement,
        gpu: request.session.gpu_options(xla.device_driver.as_deref())?,
        default_device: request.session.default_device(),
        plan: request.model.plan_options()?,
        cpu: request.model.target_cpu.clone().unwrap_or_else(|| "native".to_owned()),
        output: Arc::new(|text| drop(write!(std::io::stderr(), "{text}"))),
        launches: session::Launches::from(&xla.jit),
        profiles_clusters: xla.is_profiled,
        ..Options::default()
    };
    options.with_config(&config)
}

/// A model's graph, with its feeds and fetches.
struct Read {
    graph: GraphDef,
    config: Config,
    signature: Signature,
    request: RunRequest,
    initial: BTreeMap<String, Literal>,
}

impl Read {
    fn new(flags: &ModelArgs) -> Result<Self> {
        let (config, model) = compiler::guarded(|| {
            let config = match &flags.config {
                Some(path) => Some(tf::source::read_config(path)?),
                None => None,
            };
            let mut load =
                flags.choice.options(config.clone(), flags.inference.fixed_options("a session")?)?;
            load.variables_to_feed = VariablesToFeed::All;
            let model = compiler::load(&flags.model, &load)?;
            match config {
                Some(config) => Ok((tf::without_constant_feeds(&config), model)),
                None => {
                    let inferred = model.infer()?;
                    if !inferred.problems.is_empty() {
                        return Err(crate::program::model::not_inferred(&model.name, &inferred));
                    }
                    Ok((tf::without_constant_feeds(&inferred.config), model))
                }
            }
        })?;
        let (signature, request) = signature(&model.graph, &config)?;
        Ok(Self { graph: model.graph, config, signature, request, initial: model.initial })
    }
}

/// Numbers of the integer feeds without a value, for which random ones are generated.
fn generated_indices(signature: &Signature, is_given: impl Fn(usize, &Argument) -> bool) -> Vec<usize> {
    let is_index =
        |argument: &Argument| argument.role == Role::Feed && argument.shape.element_type.is_integer();
    let arguments = signature.arguments().iter().enumerate();
    arguments
        .filter(|(at, argument)| is_index(argument) && !is_given(*at, argument))
        .map(|(at, _)| at)
        .collect()
}

/// Determines the ranges of integer feeds, which requires an import of the graph. Graphs that do
/// not compile as a whole have no limits.
fn limit_indices(graph: &GraphDef, config: &Config, signature: &mut Signature) {
    let front =
        compiler::guarded(|| compiler::import(graph.clone(), config.clone(), &mut compiler::NoObserver));
    if let Ok(front) = front {
        for (current, limit) in signature.limits.iter_mut().zip(runner::index_limits(&front.module)) {
            *current = limit;
        }
    }
}

/// Signature with the feeds and variables of a config, and the parts of the graph to run.
fn signature(graph: &GraphDef, config: &Config) -> Result<(Signature, RunRequest)> {
    let id = |id: &Option<tf::proto::TensorId>| {
        id.as_ref().map(|id| (id.node_name.clone(), id.output_index)).unwrap_or_default()
    };
    let mut request =
        RunRequest { feeds: config.feed.iter().map(|feed| id(&feed.id)).collect(), ..RunRequest::default() };
    let has_outputs = |name: &str| {
        let node = graph.node.iter().find(|node| node.name == name);
        let signature = node.and_then(|node| tf::op_signature(&node.op));
        signature.is_none_or(|op| !op.output_arg.is_empty())
    };
    for fetch in &config.fetch {
        let fetch = id(&fetch.id);
        if has_outputs(&fetch.0) { request.fetches.push(fetch) } else { request.targets.push(fetch.0) }
    }
    let resolved = compiler::guarded(|| tf::resolve(graph, &request))?;
    let mut arguments = Vec::new();
    for ((feed, output), node) in config.feed.iter().zip(&request.feeds).zip(resolved.graph.nodes.values()) {
        let shape = feed.shape.as_ref().map(tf::PartialShape::from_proto).transpose()?;
        let sizes = shape.and_then(|shape| shape.sizes()).unwrap_or_default();
        let element_type = node.output_types.first().and_then(|t| t.primitive_type());
        let element_type = element_type.ok_or_else(|| {
            Error::unsupported(format!(
                "feed '{}:{}' is not numeric: feed it from a program",
                output.0, output.1
            ))
        })?;
        let id = Identifier::Output { node: output.0.clone(), index: output.1 };
        arguments.push(argument(id, &feed.name, Role::Feed, ArrayShape::new(element_type, &sizes)));
    }
    for variable in &config.variable {
        let shape = variable.shape.as_ref().map(tf::PartialShape::from_proto).transpose()?;
        let data_type = tf::DataType::from_number(variable.r#type).and_then(tf::DataType::primitive_type);
        let (Some(sizes), Some(element_type)) = (shape.and_then(|shape| shape.sizes()), data_type) else {
            continue;
        };
        let (id, shape) =
            (Identifier::Variable(variable.node_name.clone()), ArrayShape::new(element_type, &sizes));
        arguments.push(argument(id, &variable.name, Role::Variable, shape));
    }
    Ok((Signature::unlimited(Interface::new(arguments, Vec::new())), request))
}

/// Creates an argument. Without a name in the config, its name is its shortest identifier.
fn argument(id: Identifier, name: &str, role: Role, shape: ArrayShape) -> Argument {
    let name = if name.is_empty() { id.short() } else { name.to_owned() };
    Argument::new(Some(name), id, shape, role)
}

/// Initializes the variables with the given values, else with the model's, else with those of its
/// initializers.
fn initialize(
    session: &Session,
    signature: &Signature,
    initial: &BTreeMap<String, Literal>,
    arguments: &[Literal],
    given: &FeedArgs,
) -> Result<()> {
    let is_given = |argument: &Argument| {
        let names_it = |word: &String| word.split('=').next().is_some_and(|name| argument.is_called(name));
        given.var.iter().any(names_it) || !given.variables.is_empty()
    };
    let from_file = given.var.iter().any(|word| word.starts_with('@'));
    for (argument, value) in signature.arguments().iter().zip(arguments) {
        if argument.role == Role::Variable && (from_file || is_given(argument)) {
            session.set_variable(argument.id.node(), value)?;
        }
    }
    for (name, value) in initial {
        if session.variable_value(name)?.is_none() {
            session.set_variable(name, value)?;
        }
    }
    let uninitialized = session.initialize()?;
    for (argument, value) in signature.arguments().iter().zip(arguments) {
        if argument.role == Role::Variable && uninitialized.iter().any(|name| name == argument.id.node()) {
            session.set_variable(argument.id.node(), value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use shape::PrimitiveType;

    #[test]
    fn only_integers_without_a_value_are_generated() {
        let feed = |name: &str, element_type, role| {
            argument(Identifier::first_of(name), name, role, ArrayShape::new(element_type, &[2]))
        };
        let arguments = vec![
            feed("x", PrimitiveType::F32, Role::Feed),
            feed("labels", PrimitiveType::S64, Role::Feed),
            feed("ids", PrimitiveType::S32, Role::Feed),
            feed("step", PrimitiveType::S64, Role::Variable),
        ];
        let signature = Signature::unlimited(Interface::new(arguments, Vec::new()));
        let generated = |words: &[&str], batches: &[usize]| {
            let feed = words.iter().map(|&word| word.to_owned()).collect();
            let given = FeedArgs { feed, ..FeedArgs::default() };
            generated_indices(&signature, |at, feed| batches.contains(&at) || given.has_feed(feed))
        };
        assert_eq!(generated(&[], &[]), [1, 2]);
        assert_eq!(generated(&["labels=l.npy"], &[]), [2]);
        assert_eq!(generated(&["labels:0=zeros"], &[2]), [0; 0]);
        // The members of an archive are unknown before it is read. Random numbers count as
        // generated.
        assert_eq!(generated(&["@all.npz", "ids=random", "x=x.npy"], &[]), [1, 2]);
    }
}
