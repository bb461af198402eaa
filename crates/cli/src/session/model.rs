//! A model in a session: what the flags say of it, its variables' first values, the feeds of each step.

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
use tf::{PartialShape, Wanted};

/// What the flags ask for.
pub(crate) struct Request<'a> {
    pub(crate) model: &'a ModelArgs,
    pub(crate) feeds: &'a FeedArgs,
    pub(crate) session: &'a SessionArgs,
    pub(crate) threads: Option<u32>,
}

/// A model in a session, ready to run.
pub(crate) struct SessionModel {
    pub(crate) session: Session,
    /// The names of what is fetched.
    pub(crate) fetches: Vec<String>,
    pub(crate) batches: Batches,
    feeds: Vec<String>,
    targets: Vec<String>,
    inputs: Inputs,
    /// What the graph says of the feeds' sizes.
    open_shapes: Vec<Option<PartialShape>>,
    /// Whether a node of the graph is called so.
    has_accuracy: bool,
}

/// What a graph's accuracy is called.
const ACCURACY: &str = "accuracy";

impl SessionModel {
    /// Reads a model and what is given for it, and gives its variables their first values.
    pub(crate) fn open(request: &Request<'_>, xla: &XlaFlags) -> Result<Self> {
        if !request.model.quiet {
            xla.warn();
        }
        let mut read = Read::new(request.model)?;
        let batches = Batches::read(&request.session.batches, &read.signature)?;
        let made_up =
            made_up_indices(&read.signature, |at, feed| batches.has(at) || request.feeds.has_feed(feed));
        if !made_up.is_empty() {
            limit_indices(&read.graph, &read.config, &mut read.signature);
        }
        let Arguments { inputs, notes } =
            Arguments::read(request.feeds, &read.signature, &read.initial, Some(Fill::Random))?;
        let name = |(node, output): &(String, i64)| format!("{node}:{output}");
        let model = Self {
            fetches: read.wanted.fetches.iter().map(name).collect(),
            feeds: read.wanted.feeds.iter().map(name).collect(),
            open_shapes: read.wanted.feeds.iter().map(|(node, _)| open_shape(&read.graph, node)).collect(),
            has_accuracy: read.graph.node.iter().any(|node| node.name == ACCURACY),
            targets: read.wanted.targets,
            session: Session::new(read.graph, options(request, xla)?)?,
            batches,
            inputs,
        };
        initialize(&model.session, &read.signature, &read.initial, &model.inputs.first, request.feeds)?;
        if !request.model.quiet {
            // Nobody is left to tell if standard error is closed.
            notes.iter().for_each(|note| drop(writeln!(std::io::stderr(), "note: {note}")));
        }
        Ok(model)
    }

    /// How many steps the data are enough for, once.
    pub(crate) fn batch_count(&self) -> Option<u64> {
        self.inputs.batch_count().or(self.batches.count())
    }

    /// What is fed in a step.
    fn values(&self, step: u64) -> Result<Vec<Literal>> {
        let mut values: Vec<Literal> = self.inputs.first[..self.feeds.len()].to_vec();
        for (at, literal) in self.inputs.at(step).filter(|(at, _)| *at < self.feeds.len()) {
            values[at] = literal.clone();
        }
        self.batches.put(step, &mut values)?;
        Ok(values)
    }

    /// Calls for what a step feeds, fetches and updates.
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

    /// The mean of a scalar over the test set, and over how many rows; of the graph's accuracy if none is named. `None` if there
    /// is no test set, or nothing to fetch.
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
                Error::invalid(format!("--accuracy {fetch}: a floating-point number is wanted, not an array"))
            })?;
            sum += value * rows as f64;
            count += rows;
            Ok(())
        })?;
        Ok((count > 0).then(|| (sum / count as f64, count)))
    }

    /// The variables that have values.
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

/// The shape that a placeholder states; `None` if it states none, or cannot be asked.
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
        plan: request.model.plan_options()?,
        cpu: request.model.target_cpu.clone().unwrap_or_else(|| "native".to_owned()),
        output: Arc::new(|text| drop(write!(std::io::stderr(), "{text}"))),
        launches: session::Launches::from(&xla.jit),
        profiles_clusters: xla.is_profiled,
        ..Options::default()
    };
    options.with_config(&config)
}

/// A model's graph, and what is fed and fetched of it.
struct Read {
    graph: GraphDef,
    config: Config,
    signature: Signature,
    wanted: Wanted,
    initial: BTreeMap<String, Literal>,
}

impl Read {
    fn new(flags: &ModelArgs) -> Result<Self> {
        let (config, model) = compiler::guarded(|| {
            let config = match &flags.config {
                Some(path) => Some(tf::source::read_config(path)?),
                None => None,
            };
            let mut load = flags.choice.options(config.clone(), flags.inference.options()?)?;
            load.variables_to_feed = VariablesToFeed::All;
            let model = tf::model::load(&flags.model, &load)?;
            match config {
                Some(config) => Ok((config, model)),
                None => {
                    let inferred = model.infer()?;
                    if !inferred.problems.is_empty() {
                        return Err(crate::program::model::not_inferred(&model.name, &inferred));
                    }
                    Ok((inferred.config, model))
                }
            }
        })?;
        let (signature, wanted) = signature(&model.graph, &config)?;
        Ok(Self { graph: model.graph, config, signature, wanted, initial: model.initial })
    }
}

/// The feeds of integers for which nothing is given, by their numbers.
fn made_up_indices(signature: &Signature, is_given: impl Fn(usize, &Argument) -> bool) -> Vec<usize> {
    let is_index =
        |argument: &Argument| argument.role == Role::Feed && argument.shape.element_type.is_integer();
    let arguments = signature.arguments().iter().enumerate();
    arguments
        .filter(|(at, argument)| is_index(argument) && !is_given(*at, argument))
        .map(|(at, _)| at)
        .collect()
}

/// Finds out which numbers feeds of integers may hold, which takes an import of the graph. Only graphs that compile as a whole
/// say it.
fn limit_indices(graph: &GraphDef, config: &Config, signature: &mut Signature) {
    let front =
        compiler::guarded(|| compiler::import(graph.clone(), config.clone(), &mut compiler::NoObserver));
    if let Ok(front) = front {
        for (known, limit) in signature.limits.iter_mut().zip(runner::index_limits(&front.module)) {
            *known = limit;
        }
    }
}

/// The feeds and variables of a config with their shapes, and what is wanted of the graph.
fn signature(graph: &GraphDef, config: &Config) -> Result<(Signature, Wanted)> {
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
        if has_outputs(&fetch.0) { wanted.fetches.push(fetch) } else { wanted.targets.push(fetch.0) }
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
        let id = Identifier::Output { node: fed.0.clone(), index: fed.1 };
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
    Ok((Signature::unlimited(Interface::new(arguments, Vec::new())), wanted))
}

/// An argument that has a name in any case: the shortest identifier for want of one in the config.
fn argument(id: Identifier, name: &str, role: Role, shape: ArrayShape) -> Argument {
    let name = if name.is_empty() { id.short() } else { name.to_owned() };
    Argument { name: Some(name), id, shape, role }
}

/// Gives variables their first values: those that are given, those of the model, else those of its initialisers.
fn initialize(
    session: &Session,
    signature: &Signature,
    initial: &BTreeMap<String, Literal>,
    arguments: &[Literal],
    given: &FeedArgs,
) -> Result<()> {
    let is_given = |argument: &Argument| {
        let named = |word: &String| word.split('=').next().is_some_and(|name| argument.is_called(name));
        given.var.iter().any(named) || !given.variables.is_empty()
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
    let left = session.initialize()?;
    for (argument, value) in signature.arguments().iter().zip(arguments) {
        if argument.role == Role::Variable && left.iter().any(|name| name == argument.id.node()) {
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
    fn only_integers_that_nobody_gives_are_made_up() {
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
        let made_up = |words: &[&str], batches: &[usize]| {
            let feed = words.iter().map(|&word| word.to_owned()).collect();
            let given = FeedArgs { feed, var: Vec::new(), variables: Vec::new(), random: None };
            made_up_indices(&signature, |at, feed| batches.contains(&at) || given.has_feed(feed))
        };
        assert_eq!(made_up(&[], &[]), [1, 2]);
        assert_eq!(made_up(&["labels=l.npy"], &[]), [2]);
        assert_eq!(made_up(&["labels:0=zeros"], &[2]), [0; 0]);
        // What a file of several arrays holds is not known yet; random numbers are made up.
        assert_eq!(made_up(&["@all.npz", "ids=random", "x=x.npy"], &[]), [1, 2]);
    }
}
