//! Sessions, which run graphs node by node.

use crate::failure::failed;
use bytes::Bytes;
use cluster::{JitLevel, Silent};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use session::{Options, Strings, Tensor, Value};
use shape::{ArrayShape, Literal, PrimitiveType};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use support::{Error, Result};
use tf::model::{LoadOptions, VariablesToFeed};
use tf::proto::{ConfigProto, StepStats};
use trace::TimelineOptions;

/// An array for a run: type, sizes, bytes.
type Fed = (String, Vec<i64>, Vec<u8>);

/// A fed value: an array, or strings.
#[derive(FromPyObject)]
pub(crate) enum Feed {
    /// Sizes and elements.
    Strings((Vec<i64>, Vec<Vec<u8>>)),
    /// Type, sizes, bytes.
    Array(Fed),
}

/// Fetched values, and the `RunMetadata` of a traced run.
type Run<'py> = (Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyBytes>>);

/// A graph with its variables.
#[pyclass(frozen, module = "tfcompile._native")]
pub(crate) struct Session {
    session: session::Session,
    /// The types of placeholders.
    placeholders: BTreeMap<String, &'static str>,
    /// Nodes that are run but not fetched.
    effects: Vec<String>,
}

#[pymethods]
impl Session {
    /// Creates a session of a graph (a GraphDef, binary or text) with a `ConfigProto`.
    #[new]
    fn new(py: Python<'_>, graph: &[u8], config: Option<&[u8]>, seed: u64) -> PyResult<Self> {
        py.detach(|| Self::open(graph, config, seed)).map_err(failed)
    }

    /// Returns the fetched values, and the run's metadata if it is traced.
    fn run<'py>(
        &self,
        py: Python<'py>,
        feeds: Vec<(String, Feed)>,
        fetches: Vec<String>,
        targets: Vec<String>,
        is_traced: bool,
    ) -> PyResult<Run<'py>> {
        let run = || -> Result<(Vec<Value>, Option<Vec<u8>>)> {
            let feeds: Vec<(String, Value)> =
                feeds.into_iter().map(|(name, feed)| Ok((name, value(feed)?))).collect::<Result<_>>()?;
            let feeds: Vec<(&str, Value)> =
                feeds.iter().map(|(name, v)| (name.as_str(), v.clone())).collect();
            let fetches: Vec<&str> = fetches.iter().map(String::as_str).collect();
            let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
            if !is_traced {
                return Ok((self.session.run_values(&feeds, &fetches, &targets)?, None));
            }
            let literals: Vec<(&str, Literal)> = feeds.iter().map(array).collect::<Result<_>>()?;
            let (results, metadata) = self.session.run_traced(&literals, &fetches, &targets)?;
            let results =
                results.iter().map(|r| Ok(Tensor::from_literal(r)?.into())).collect::<Result<_>>()?;
            Ok((results, Some(tf::source::run_metadata_to_bytes(&metadata))))
        };
        let (results, metadata) = py.detach(run).map_err(failed)?;
        let results = results.iter().map(|result| told(py, result)).collect::<PyResult<_>>()?;
        Ok((results, metadata.map(|bytes| PyBytes::new(py, &bytes))))
    }

    /// Runs the initializers of uninitialized variables. Returns the variables without an
    /// initializer.
    fn initialize(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.detach(|| self.session.initialize()).map_err(failed)
    }

    /// Types of placeholders by name.
    #[getter]
    fn placeholders(&self) -> BTreeMap<String, &'static str> {
        self.placeholders.clone()
    }

    /// Nodes without outputs.
    #[getter]
    fn effects(&self) -> Vec<String> {
        self.effects.clone()
    }

    /// Names of the variables.
    fn variables(&self) -> Vec<String> {
        self.session.variables().iter().map(|variable| variable.node().to_owned()).collect()
    }

    /// Value of a variable, or none.
    fn variable<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.session.variable_value(name).map_err(failed)?;
        let value = value.map(|literal| Tensor::from_literal(&literal)).transpose().map_err(failed)?;
        value.map(|tensor| told(py, &tensor.into())).transpose()
    }

    /// Sets the value of a variable.
    fn set_variable(&self, name: &str, array: Fed) -> PyResult<()> {
        literal(array).and_then(|literal| self.session.set_variable(name, &literal)).map_err(failed)
    }

    /// Full names of the devices.
    fn devices(&self) -> Vec<String> {
        self.session.devices()
    }
}

impl Session {
    fn open(graph: &[u8], config: Option<&[u8]>, seed: u64) -> Result<Self> {
        let graph = tf::source::parse_graph_def(Bytes::copy_from_slice(graph), "graph")?;
        let config = match config {
            Some(bytes) => tf::source::parse_session_config(Bytes::copy_from_slice(bytes), "config")?,
            None => ConfigProto::default(),
        };
        let level = session::jit_level(&config);
        // A device name in the config refers to this machine, which is a CPU.
        let asked = (level > JitLevel::Default).then_some(level);
        let flags = cluster::Flags::default();
        let launches = session::Launches::from(&flags);
        let clusters = session::cluster_options(asked, &config, flags);
        let options = Options {
            seed,
            rewrite: Some(session::clusters(clusters, Box::new(Silent))),
            output: Arc::new(|text| eprint!("{text}")),
            launches,
            ..Options::default()
        };
        let placeholders = graph.node.iter().filter(|node| node.op.starts_with("Placeholder"));
        let placeholders = placeholders.filter_map(|node| {
            let attributes = tf::Attributes::new(&node.name, &node.op, node.attr.clone());
            Some((node.name.clone(), attributes.ty("dtype").ok()?.primitive_type()?.name()))
        });
        let placeholders = placeholders.collect();
        let is_effect =
            |op: &str| tf::op_signature(op).is_some_and(|signature| signature.output_arg.is_empty());
        let effects =
            graph.node.iter().filter(|node| is_effect(&node.op)).map(|node| node.name.clone()).collect();
        let session = session::Session::new(graph, options.with_config(&config)?)?;
        Ok(Self { session, placeholders, effects })
    }
}

fn literal((element, sizes, bytes): Fed) -> Result<Literal> {
    let element_type = PrimitiveType::ALL.into_iter().find(|known| known.name() == element);
    let element_type = element_type.ok_or_else(|| Error::invalid(format!("unknown type '{element}'")))?;
    let shape = ArrayShape::new(element_type, &sizes);
    let text = shape.to_string();
    Literal::from_bytes(shape, bytes.into())
        .ok_or_else(|| Error::invalid(format!("the size of the array differs from the size of {text}")))
}

fn value(feed: Feed) -> Result<Value> {
    match feed {
        Feed::Array(array) => Ok(Tensor::from_literal(&literal(array)?)?.into()),
        Feed::Strings((sizes, strings)) => {
            let strings = strings.into_iter().map(Bytes::from).collect();
            Ok(Strings { sizes, strings }.into())
        }
    }
}

fn array<'n>((name, value): &(&'n str, Value)) -> Result<(&'n str, Literal)> {
    match value {
        Value::Tensor(tensor) => {
            let bytes = Bytes::copy_from_slice(tensor.bytes());
            let literal = Literal::from_bytes(tensor.shape().clone(), bytes);
            Ok((
                name,
                literal.ok_or_else(|| Error::internal("a tensor does not have the size of its shape"))?,
            ))
        }
        _ => Err(Error::unsupported(format!("feed '{name}': a traced run accepts only arrays"))),
    }
}

/// A value for Python: `(type, sizes, bytes)`, or `(sizes, strings)`.
fn told<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Tensor(tensor) => {
            let shape = tensor.shape();
            let bytes = PyByteArray::new(py, tensor.bytes());
            (shape.element_type.name(), shape.sizes(), bytes).into_bound_py_any(py)
        }
        Value::Strings(strings) => {
            let elements: Vec<_> = strings.strings.iter().map(|s| PyBytes::new(py, s)).collect();
            (strings.sizes.clone(), elements).into_bound_py_any(py)
        }
        _ => Err(failed(Error::unsupported(
            "a fetch is neither an array nor strings: fetch a value computed from it",
        ))),
    }
}

/// Returns the timeline of a run's metadata, as JSON for chrome://tracing.
#[pyfunction]
pub(crate) fn chrome_trace(metadata: &[u8], dataflow: bool, memory: bool) -> PyResult<String> {
    let metadata =
        tf::source::parse_run_metadata(Bytes::copy_from_slice(metadata), "run_metadata").map_err(failed)?;
    let none = StepStats::default();
    let stats = metadata.step_stats.as_ref().unwrap_or(&none);
    Ok(trace::chrome_trace(stats, TimelineOptions { dataflow, memory }))
}

/// Returns a saved model: its graph, and the value of each variable by name.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "Python unpacks it")]
pub(crate) fn initial_values<'py>(
    py: Python<'py>,
    path: PathBuf,
    checkpoint: Option<PathBuf>,
) -> PyResult<(Bound<'py, PyBytes>, Vec<(String, Bound<'py, PyAny>)>)> {
    let options =
        LoadOptions { checkpoint, variables_to_feed: VariablesToFeed::All, ..LoadOptions::default() };
    let model = py.detach(|| compiler::guarded(|| compiler::load(&path, &options))).map_err(failed)?;
    let text = tf::source::graph_def_to_text(&model.graph);
    let mut values = Vec::new();
    for (name, literal) in &model.initial {
        let tensor = Tensor::from_literal(literal).map_err(failed)?;
        values.push((name.clone(), told(py, &tensor.into())?));
    }
    Ok((PyBytes::new(py, text.as_bytes()), values))
}
