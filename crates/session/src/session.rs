//! Sessions: a graph, its state, and runs of parts of it.

mod initialize;

use crate::device;
use crate::executor::pool::Pool;
use crate::executor::{self, Engine, Limits};
use crate::gpu::{Copies, Gpus};
use crate::kernels::{Background, Kernels};
use crate::lock::lock;
use crate::options::Options;
use crate::placement::{Placement, Rules};
use crate::plan::Plan;
use crate::plan::program::Program;
use crate::recorder::Recorder;
use crate::recorder::profile::ClusterProfile;
use crate::resources::Resources;
use crate::shared::Shared;
use crate::value::Variable;
use crate::value::{Tensor, Value};
use jit::{Workers, thread_pool};
use shape::Literal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use support::{Code, Coded as _, Error, Result};
use tf::proto::{GraphDef, RunMetadata};
use tf::{DataType, RunRequest};
use trace::Execution;

/// A graph that can be run any number of times, in whole or in part. Its variables persist across
/// runs.
///
/// Several threads may call runs at once. They share variables as TensorFlow's runs do.
pub struct Session {
    graph: GraphDef,
    options: Options,
    engine: Arc<Engine>,
    programs: Mutex<BTreeMap<RunRequest, Arc<Program>>>,
}

impl Session {
    /// Creates a session of a graph. Nothing is compiled yet, and no variable has a value.
    pub fn new(graph: GraphDef, options: Options) -> Result<Self> {
        tf::check_versions(graph.versions.as_ref())?;
        let target = compiler::host(&options.cpu)?;
        let mut back = compiler::in_process_options(target);
        back.plan = options.plan.clone();
        back.cache = options.cache.clone();
        let workers: Option<Arc<dyn Workers>> = match options.intra_op_threads {
            0 | 1 => None,
            count => Some(Arc::new(thread_pool(count)?)),
        };
        let pool = Pool::new(options.inter_op_threads.max(1))?;
        let gpus = Gpus::find(&graph, options.default_device.as_deref(), &options.gpu);
        let shared = Shared {
            resources: Resources::default(),
            workers,
            devices: device::all(options.cpu_devices, &gpus.all),
            gpus,
            seed: options.seed,
            output: options.output.clone(),
            launches: options.launches.clone(),
        };
        let kernels = Arc::new(Kernels::new(back, options.profiles_clusters));
        let engine = Arc::new(Engine { shared, kernels, background: Background::default(), pool });
        let session = Self { graph, options, engine, programs: Mutex::default() };
        session.declare_variables().coded(Code::Session)?;
        Ok(session)
    }

    /// Runs everything that the fetches and the targets need, once. Feeds and fetches name outputs,
    /// as `node:1`, or `node` for the first output. Targets name nodes. Returns the fetches in
    /// order.
    ///
    /// Errors name the node that is invalid or that failed.
    pub fn run(&self, feeds: &[(&str, Literal)], fetches: &[&str], targets: &[&str]) -> Result<Vec<Literal>> {
        literals(&self.run_values(&values(feeds)?, fetches, targets)?, fetches)
    }

    /// Like [`Self::run`], and also returns the time of each node as run metadata, like
    /// TensorFlow's full trace.
    pub fn run_traced(
        &self,
        feeds: &[(&str, Literal)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<(Vec<Literal>, RunMetadata)> {
        let recorder = Arc::new(Recorder::new());
        let results = self.run_with_recorder(&values(feeds)?, fetches, targets, Some(recorder.clone()))?;
        Ok((literals(&results, fetches)?, recorder.metadata()?))
    }

    /// Like [`Self::run`], and also returns the executions of nodes in the order of their ends.
    pub fn run_recorded(
        &self,
        feeds: &[(&str, Literal)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<(Vec<Literal>, Vec<Execution>)> {
        let recorder = Arc::new(Recorder::new());
        let results = self.run_with_recorder(&values(feeds)?, fetches, targets, Some(recorder.clone()))?;
        Ok((literals(&results, fetches)?, recorder.executions()?))
    }

    /// Like [`Self::run`], for values of every kind.
    pub fn run_values(
        &self,
        feeds: &[(&str, Value)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Value>> {
        self.run_with_recorder(feeds, fetches, targets, None)
    }

    fn run_with_recorder(
        &self,
        feeds: &[(&str, Value)],
        fetches: &[&str],
        targets: &[&str],
        recorder: Option<Arc<Recorder>>,
    ) -> Result<Vec<Value>> {
        let request = RunRequest {
            feeds: feeds.iter().map(|(name, _)| output(name)).collect::<Result<_>>()?,
            fetches: fetches.iter().map(|name| output(name)).collect::<Result<_>>()?,
            targets: targets.iter().map(|name| (*name).trim_start_matches('^').to_owned()).collect(),
        };
        let program = self.program(&request)?;
        let arguments: Vec<Value> = feeds.iter().map(|(_, value)| value.clone()).collect();
        for ((name, value), data_type) in feeds.iter().zip(&program.feed_types) {
            check_feed(name, value, *data_type).coded(Code::GivenArray)?;
        }
        let deadline = self.options.step_timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let limits = Limits { deadline, depth: 0 };
        executor::run(&self.engine, &program, &program.plan, arguments, recorder, limits)
            .coded(Code::SessionStep)
    }

    /// The cached program for `request`, or a new one.
    fn program(&self, request: &RunRequest) -> Result<Arc<Program>> {
        if let Some(program) = lock(&self.programs).get(request) {
            return Ok(program.clone());
        }
        let program = Arc::new(compiler::guarded(|| self.make_program(request)).coded(Code::Session)?);
        Ok(lock(&self.programs).entry(request.clone()).or_insert(program).clone())
    }

    fn make_program(&self, request: &RunRequest) -> Result<Program> {
        let shared = &self.engine.shared;
        let rules = Rules {
            is_soft: self.options.allow_soft_placement,
            default: self.options.default_device.as_deref(),
            no_gpu: shared.gpus.missing.as_deref(),
        };
        let (placed, rewritten);
        let mut graph = &self.graph;
        // Clusters follow devices, so the default device is assigned before.
        if rules.default.is_some() && self.options.rewrite.is_some() {
            let resolved = tf::resolve(graph, request)?;
            let mut copy = graph.clone();
            Placement::new(graph, &resolved.graph, &shared.devices, rules)?.write(&mut copy, &shared.devices);
            placed = copy;
            graph = &placed;
        }
        if let Some(rewrite) = &self.options.rewrite {
            rewritten = rewrite(graph, request)?;
            graph = &rewritten;
        }
        let resolved = tf::resolve(graph, request)?;
        let placement = Placement::new(graph, &resolved.graph, &shared.devices, rules)?;
        if self.options.logs_placement {
            (self.options.output)(&placement.log(&resolved.graph, &shared.devices));
        }
        let place = |node: &tf::Node| placement.of(node);
        let plan = Plan::new(
            &resolved.graph,
            &resolved.library,
            &resolved.fetches,
            &resolved.targets,
            &self.engine.shared.resources,
            &place,
        )?;
        let argument = |k: usize| {
            let named = resolved.graph.nodes.values().nth(k).filter(|node| node.op == "_Arg");
            named.and_then(|node| node.output_types.first().copied())
        };
        let types = (0..request.feeds.len()).map(|k| argument(k).unwrap_or(DataType::Float)).collect();
        Ok(Program::new(plan, resolved.library, types))
    }

    pub(crate) fn graph(&self) -> &GraphDef {
        &self.graph
    }

    /// Registers the graph's variables under the names of their nodes.
    fn declare_variables(&self) -> Result<()> {
        for node in &self.graph.node {
            if matches!(node.op.as_str(), "VariableV2" | "Variable" | "VarHandleOp") {
                self.engine.shared.resources.variable(&tf::Node::of_def(node, &[]))?;
            }
        }
        Ok(())
    }

    /// The variables of the graph, sorted by resource.
    pub fn variables(&self) -> Vec<Arc<Variable>> {
        self.engine.shared.resources.variables()
    }

    fn variable(&self, name: &str) -> Result<Arc<Variable>> {
        let variable = self.variables().into_iter().find(|variable| variable.node() == name);
        variable.ok_or_else(|| Error::invalid(format!("the graph has no variable '{name}'")))
    }

    /// Value of the variable with this node name; `None` if it has no value yet.
    pub fn variable_value(&self, name: &str) -> Result<Option<Literal>> {
        match self.variable(name)?.get() {
            None => Ok(None),
            Some(Value::Tensor(tensor)) => Ok(Some(tensor.to_literal())),
            Some(other) => Err(Error::unsupported(format!("variable '{name}' holds {}", other.kind()))),
        }
    }

    /// Assigns a value to a variable.
    pub fn set_variable(&self, name: &str, value: &Literal) -> Result<()> {
        let variable = self.variable(name)?;
        let is_checked = variable.states_shape();
        variable.assign(Tensor::from_literal(value)?.into(), is_checked)
    }

    /// Number of kernels compiled so far.
    pub fn compiled_kernels(&self) -> u64 {
        self.engine.kernels.compiled()
    }

    /// Waits until no cluster is being compiled in the background (see
    /// [`Launches::is_async`](crate::Launches::is_async)). The next run uses the compiled code.
    pub fn wait_for_compilations(&self) {
        self.engine.background.wait();
    }

    /// Counters of the clusters' code; empty unless [`Options::profiles_clusters`] is set.
    pub fn cluster_profiles(&self) -> Vec<ClusterProfile> {
        self.engine.kernels.profiles()
    }

    /// Copies between the host and GPUs so far, of all GPUs.
    pub fn copies(&self) -> Copies {
        let each = self.engine.shared.gpus.all.iter().map(|gpu| gpu.copies());
        each.fold(Copies::default(), |sum, copies| Copies {
            to_gpu: sum.to_gpu + copies.to_gpu,
            to_gpu_bytes: sum.to_gpu_bytes + copies.to_gpu_bytes,
            to_host: sum.to_host + copies.to_host,
            to_host_bytes: sum.to_host_bytes + copies.to_host_bytes,
        })
    }

    /// Full names of the session's devices.
    pub fn devices(&self) -> Vec<String> {
        self.engine.shared.devices.values().map(|device| device.name().to_owned()).collect()
    }
}

/// Splits the name of an output into its node and number.
fn output(name: &str) -> Result<(String, i64)> {
    let wrong = || Error::invalid(format!("invalid output '{name}': expected node or node:number"));
    match name.rsplit_once(':') {
        None if name.is_empty() => Err(wrong()),
        None => Ok((name.to_owned(), 0)),
        Some((node, number)) => {
            let number = number.parse::<u32>().map_err(|_| wrong())?;
            if node.is_empty() { Err(wrong()) } else { Ok((node.to_owned(), i64::from(number))) }
        }
    }
}

fn check_feed(name: &str, value: &Value, expected: DataType) -> Result<()> {
    let fits = match value {
        Value::Tensor(tensor) => expected.primitive_type() == Some(tensor.shape().element_type),
        Value::Strings(_) => expected == DataType::String,
        Value::Resource(_) => expected == DataType::Resource,
        Value::List(_) => expected == DataType::Variant,
        Value::Reference(_) => true,
    };
    if fits {
        return Ok(());
    }
    let actual = match value {
        Value::Tensor(tensor) => tensor.shape().to_string(),
        other => other.kind().to_owned(),
    };
    Err(Error::invalid(format!("feed '{name}': expected {expected}, got {actual}")))
}

/// Converts feeds to values.
fn values<'n>(feeds: &[(&'n str, Literal)]) -> Result<Vec<(&'n str, Value)>> {
    let value = |(name, literal): &(&'n str, Literal)| match literal {
        Literal::Array { .. } => Ok((*name, Value::Tensor(Tensor::from_literal(literal)?))),
        Literal::Tuple(_) => Err(Error::invalid(format!("feed '{name}' is a tuple: feed an array"))),
    };
    feeds.iter().map(value).collect()
}

/// Converts fetched values to literals.
fn literals(results: &[Value], fetches: &[&str]) -> Result<Vec<Literal>> {
    let literals = results.iter().zip(fetches).map(|(value, name)| match value {
        Value::Tensor(tensor) => Ok(tensor.to_literal()),
        other => Err(Error::unsupported(format!(
            "fetch '{name}' is {}: fetch an array, or use run_values",
            other.kind()
        ))),
    });
    literals.collect()
}
