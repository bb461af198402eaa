//! Sessions.

use crate::options::Options;
use crate::trace::Trace;
use ::session::ClusterProfile;
use shape::Literal;
use std::path::Path;
use support::Result;
use tf::model::{LoadOptions, VariablesToFeed};
use tf::proto::GraphDef;

/// A graph that is run: part by part, as often as wanted, its variables kept from run to run.
///
/// Runs may be called from several threads at once; they share variables as TensorFlow's do.
pub struct Session {
    inner: ::session::Session,
}

impl Session {
    /// A session of a graph. No variable has a value yet: give them some by [`set_variable`](Self::set_variable) or
    /// [`initialize`](Self::initialize).
    ///
    /// # Errors
    /// Options that contradict each other or the machine.
    pub fn new(graph: GraphDef, options: &Options) -> Result<Self> {
        Ok(Self { inner: ::session::Session::new(graph, options.of_session()?)? })
    }

    /// A session of a model: a SavedModel, MetaGraph or GraphDef, binary or text. Variables have the values that come with the
    /// model, else those of the graph's initialisers.
    ///
    /// # Errors
    /// What is wrong with the files or the options; an initialiser that cannot run.
    pub fn open(model: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let load = LoadOptions { variables_to_feed: VariablesToFeed::All, ..LoadOptions::default() };
        let path = model.as_ref();
        let model = compiler::guarded(|| tf::model::load(path, &load))?;
        let session = Self::new(model.graph, options)?;
        for (name, value) in &model.initial {
            session.set_variable(name, value)?;
        }
        session.initialize()?;
        Ok(session)
    }

    /// Runs what is needed for the fetches and the targets, once. Feeds and fetches are outputs, `node:1` or `node` for the
    /// first one; targets are nodes that are run for what they do. The answer is the fetches, in order.
    ///
    /// # Errors
    /// The node that is wrong or failed, and why.
    pub fn run(&self, feeds: &[(&str, Literal)], fetches: &[&str], targets: &[&str]) -> Result<Vec<Literal>> {
        self.inner.run(feeds, fetches, targets)
    }

    /// The same, and when each node ran and what it made.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_traced(
        &self,
        feeds: &[(&str, Literal)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<(Vec<Literal>, Trace)> {
        let (results, metadata) = self.inner.run_traced(feeds, fetches, targets)?;
        Ok((results, Trace::new(metadata)))
    }

    /// Runs the initialisers of the variables that have no value. The answer is the variables that have none.
    ///
    /// # Errors
    /// What an initialiser says that cannot run, with the variable's name in front.
    pub fn initialize(&self) -> Result<Vec<String>> {
        self.inner.initialize()
    }

    /// The variables of the graph, by the names of their nodes.
    pub fn variables(&self) -> Vec<String> {
        self.inner.variables().iter().map(|variable| variable.node().to_owned()).collect()
    }

    /// The value of a variable; `None` before it has one.
    ///
    /// # Errors
    /// A variable that is not there, or holds no array.
    pub fn variable(&self, name: &str) -> Result<Option<Literal>> {
        self.inner.variable_value(name)
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// A variable that is not there, or is of another type or shape.
    pub fn set_variable(&self, name: &str, value: &Literal) -> Result<()> {
        self.inner.set_variable(name, value)
    }

    /// The full names of the devices that nodes may be placed on.
    pub fn devices(&self) -> Vec<String> {
        self.inner.devices()
    }

    /// How many kernels were compiled so far; a cluster is one.
    pub fn compiled_kernels(&self) -> u64 {
        self.inner.compiled_kernels()
    }

    /// Returns when no cluster is being compiled in the background, as `--tf_xla_async_compilation` asks for.
    pub fn wait_for_compilations(&self) {
        self.inner.wait_for_compilations();
    }

    /// What the instructions of clusters took so far, if [`Options::profiles_clusters`] asks for it.
    pub fn cluster_profiles(&self) -> Vec<ClusterProfile> {
        self.inner.cluster_profiles()
    }
}
