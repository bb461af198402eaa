//! The session, the main type of the crate.

use crate::options::Options;
use crate::trace::Trace;
use ::session::ClusterProfile;
use shape::Literal;
use std::path::Path;
use support::Result;
use tf::model::{LoadOptions, VariablesToFeed};
use tf::proto::GraphDef;

/// A graph and the values of its variables, which persist from run to run.
///
/// Several threads may call [`run`](Self::run) at the same time. They share the variables, with the
/// same guarantees as in TensorFlow.
pub struct Session {
    inner: ::session::Session,
}

impl Session {
    /// Creates a session for a graph. Its variables have no values yet; assign them with
    /// [`set_variable`](Self::set_variable) or [`initialize`](Self::initialize).
    ///
    /// # Errors
    /// Returns an error if the options contradict each other or do not suit this machine.
    pub fn new(graph: GraphDef, options: &Options) -> Result<Self> {
        Ok(Self { inner: ::session::Session::new(graph, options.of_session()?)? })
    }

    /// Opens a model: a SavedModel, a MetaGraph, or a GraphDef in binary or text form. Variables
    /// get the values stored with the model; the others get those of the graph's initializers.
    ///
    /// # Errors
    /// Returns an error if a file or the options are invalid, or if an initializer cannot run.
    pub fn open(model: impl AsRef<Path>, options: &Options) -> Result<Self> {
        let load = LoadOptions { variables_to_feed: VariablesToFeed::All, ..LoadOptions::default() };
        let path = model.as_ref();
        let model = compiler::guarded(|| compiler::load(path, &load))?;
        let session = Self::new(model.graph, options)?;
        for (name, value) in &model.initial {
            session.set_variable(name, value)?;
        }
        session.initialize()?;
        Ok(session)
    }

    /// Runs the part of the graph that the fetches and targets need, once, and returns the fetches
    /// in order.
    ///
    /// Feeds and fetches name outputs of nodes: `node:1`, or `node` for the first output. Targets
    /// name nodes that run for their side effects.
    ///
    /// # Errors
    /// Returns an error that names the node that is invalid or failed, and the reason.
    pub fn run(&self, feeds: &[(&str, Literal)], fetches: &[&str], targets: &[&str]) -> Result<Vec<Literal>> {
        self.inner.run(feeds, fetches, targets)
    }

    /// Like [`run`](Self::run), and also returns the time and the outputs of each node.
    ///
    /// # Errors
    /// Returns the same errors as [`run`](Self::run).
    pub fn run_traced(
        &self,
        feeds: &[(&str, Literal)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<(Vec<Literal>, Trace)> {
        let (results, metadata) = self.inner.run_traced(feeds, fetches, targets)?;
        Ok((results, Trace::new(metadata)))
    }

    /// Runs the initializers of all variables that have no value, and returns the names of those
    /// variables that have no initializer.
    ///
    /// # Errors
    /// Returns the error of an initializer that cannot run, preceded by the name of its variable.
    pub fn initialize(&self) -> Result<Vec<String>> {
        self.inner.initialize()
    }

    /// Returns the node names of the graph's variables.
    pub fn variables(&self) -> Vec<String> {
        self.inner.variables().iter().map(|variable| variable.node().to_owned()).collect()
    }

    /// Returns the value of a variable, or `None` if it has none yet.
    ///
    /// # Errors
    /// Returns an error if there is no such variable or its value is not an array.
    pub fn variable(&self, name: &str) -> Result<Option<Literal>> {
        self.inner.variable_value(name)
    }

    /// Assigns a value to a variable.
    ///
    /// # Errors
    /// Returns an error if there is no such variable, or if its type or shape differs.
    pub fn set_variable(&self, name: &str, value: &Literal) -> Result<()> {
        self.inner.set_variable(name, value)
    }

    /// Returns the number of copies between the host and GPUs so far, and their bytes.
    pub fn copies(&self) -> crate::Copies {
        self.inner.copies()
    }

    /// Returns the full names of the devices on which nodes may be placed.
    pub fn devices(&self) -> Vec<String> {
        self.inner.devices()
    }

    /// Returns the number of kernels compiled so far. A cluster counts as one.
    pub fn compiled_kernels(&self) -> u64 {
        self.inner.compiled_kernels()
    }

    /// Blocks until no cluster is being compiled in the background. Such compilations exist only
    /// with `--tf_xla_async_compilation`.
    pub fn wait_for_compilations(&self) {
        self.inner.wait_for_compilations();
    }

    /// Returns the time that each cluster's instructions have taken so far. Empty unless
    /// [`Options::profiles_clusters`] is set.
    pub fn cluster_profiles(&self) -> Vec<ClusterProfile> {
        self.inner.cluster_profiles()
    }
}
