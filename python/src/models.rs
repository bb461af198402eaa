//! Conversion of a model's files to objects, HLO, and reports.

use crate::failure::failed;
use bytes::Bytes;
use compiler::{
    AotOptions, BackOptions, HloProgram, Input, LoopBounds, NoObserver, OpenSizes, PassRun, Source, Stage,
    at_stage, guarded,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use support::{Code, Error, Result};
use target::{Architecture, Level, Target};
use tf::model::{LoadOptions, VariablesToFeed};
use tf::proto::Config;
use tf::{BATCH_RANGE, DimSize, InferOptions};

/// Options of a model: the items of a dictionary.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ModelOptions {
    path: PathBuf,
    /// Name of the model in messages.
    name: String,
    config: Option<Vec<u8>>,
    signature: Option<String>,
    tags: Option<String>,
    checkpoint: Option<PathBuf>,
    variables_to_feed: Option<Vec<String>>,
    function: Option<String>,
    fetches: Vec<(String, i64)>,
    shapes: Vec<(String, i64, Vec<Option<i64>>)>,
    dims: BTreeMap<String, GivenSize>,
    /// Sizes of dimensions with a range that get code of their own.
    sizes: BTreeMap<String, Vec<i64>>,
    feed_constants: BTreeMap<String, String>,
    loop_bounds: BTreeMap<String, i64>,
    target: Option<String>,
    triple: Option<String>,
    cpu: Option<String>,
    features: Option<String>,
}

/// A size that the caller states: a number, the smallest and the largest size, or another name.
#[derive(Clone, FromPyObject)]
enum GivenSize {
    Known(i64),
    Range((i64, i64)),
    Named(String),
}

impl GivenSize {
    /// Returns the size of the dimension with this name.
    fn checked(&self, name: &str) -> Result<DimSize> {
        match self {
            Self::Named(other) => Ok(DimSize::Named(other.clone())),
            &Self::Known(size) if size >= 0 => Ok(DimSize::Known(size)),
            &Self::Range((low, high)) if low >= 0 && low == high => Ok(DimSize::Known(low)),
            &Self::Range((low, high)) if low >= 0 && low < high && high <= i64::from(i32::MAX) => {
                Ok(DimSize::Range(low, high))
            }
            _ => Err(Error::invalid(format!(
                "dims: expected a size such as 16, or the smallest and the largest one such as (1, 64), for '{name}'"
            ))),
        }
    }
}

/// A loaded model.
struct Model {
    input: Input,
    /// Parts of the config that could not be inferred.
    problems: Vec<String>,
    notes: Vec<String>,
}

impl ModelOptions {
    fn load_options(&self) -> Result<LoadOptions> {
        let config = self.config.clone().map(|bytes| tf::source::parse_config(Bytes::from(bytes), "config"));
        let dims = self.dims.iter().map(|(name, size)| Ok((name.clone(), size.checked(name)?)));
        Ok(LoadOptions {
            tags: self.tags.clone(),
            signature: self.signature.clone(),
            checkpoint: self.checkpoint.clone(),
            variables_to_feed: match &self.variables_to_feed {
                None => VariablesToFeed::Written,
                Some(names) if names.iter().any(|name| name == "all") => VariablesToFeed::All,
                Some(names) => VariablesToFeed::Named(names.clone()),
            },
            config: config.transpose()?,
            infer: InferOptions {
                fetches: self.fetches.clone(),
                shapes: self.shapes.iter().map(|(n, k, sizes)| ((n.clone(), *k), sizes.clone())).collect(),
                dims: dims.collect::<Result<_>>()?,
                // Programs for GPUs have fixed sizes.
                batch_range: self.devices()?.is_empty().then_some(BATCH_RANGE),
                sizes: self.sizes.clone(),
                shared_names: BTreeSet::new(),
                constants: self.feed_constants.clone(),
            },
            function: self.function.clone(),
            ..LoadOptions::default()
        })
    }

    fn read(&self) -> Result<Model> {
        if !self.path.is_dir() {
            let bytes = tf::source::read_bytes(&self.path)?;
            let sizes = OpenSizes::of_options(&self.load_options()?.infer);
            let read = || {
                let mut passes = PassRun { disabled: &[], observer: &mut NoObserver };
                HloProgram::of_file(&self.path, &bytes, None, &sizes, &mut passes)
            };
            if let Some((program, _)) = guarded(read)? {
                let notes = program.notes.clone();
                let input = Input::of_hlo(program, bytes);
                return Ok(Model { input, problems: Vec::new(), notes });
            }
        }
        let options = self.load_options()?;
        let mut model = compiler::load(&self.path, &options)?;
        model.name.clone_from(&self.name);
        let (config, problems, notes) = match &options.config {
            Some(config) => (config.clone(), Vec::new(), Vec::new()),
            None => {
                let inferred = model.infer()?;
                (inferred.config, inferred.problems, inferred.notes)
            }
        };
        let bounds: LoopBounds = self.loop_bounds.clone();
        let input = Input::of_model(model, config, None).with_loop_bounds(bounds);
        Ok(Model { input, problems, notes })
    }

    /// Returns the config, which must be complete.
    fn read_whole(&self) -> Result<Model> {
        let model = self.read()?;
        if model.problems.is_empty() {
            return Ok(model);
        }
        Err(Error::invalid(format!(
            "the config is missing and cannot be inferred from {}:\n  {}",
            self.name,
            model.problems.join("\n  ")
        ))
        .coded(Code::NotInferred))
    }

    /// Returns the GPUs that the target names; none for a processor.
    fn devices(&self) -> Result<Vec<Target>> {
        let devices = self.target.as_deref().map(target::parse_devices).transpose()?;
        Ok(devices.flatten().unwrap_or_default())
    }

    /// Returns the processors of the versions: the first one and the others. The default is three
    /// levels of x86-64.
    fn targets(&self) -> Result<(Target, Vec<Target>)> {
        let is_for_gpu = !self.devices()?.is_empty();
        let target = match (&self.target, self.cpu.as_deref()) {
            (Some(name), _) if !is_for_gpu => target::named(name)?,
            (_, Some("native")) if self.triple.is_none() => compiler::host("native")?,
            (_, cpu) => {
                let triple = self.triple.clone().unwrap_or_else(codegen::host_triple);
                Target::new(&triple, cpu.unwrap_or(""), self.features.as_deref().unwrap_or(""))?
            }
        };
        let is_open = self.target.is_none() && self.cpu.is_none() && self.features.is_none();
        if target.triple.architecture != Architecture::X86_64 || !is_open {
            return Ok((target, Vec::new()));
        }
        let version = |level: Level| Target::new(target.triple.as_str(), level.cpu(), "");
        Ok((version(Level::V2)?, vec![version(Level::V3)?, version(Level::V4)?]))
    }
}

/// Returns the object of a model, its C++ header, its constants file, and notes about decisions.
/// `constants` is the path of the constants file, which is written atomically.
#[pyfunction]
pub(crate) fn build<'py>(
    py: Python<'py>,
    options: ModelOptions,
    name: &str,
    class: &str,
    constants: PathBuf,
) -> PyResult<(Bound<'py, PyBytes>, String, Vec<String>)> {
    let made = py.detach(|| {
        guarded(|| {
            let model = options.read_whole()?;
            let (target, variants) = options.targets()?;
            let devices = options.devices()?;
            let back = BackOptions { variants, devices, ..BackOptions::new(target, name) };
            let options = AotOptions {
                constants: aot::ConstantsMode::File,
                describe_object: true,
                ..AotOptions::new(class, back)
            };
            let made = compiler::build(model.input, &options, &mut NoObserver)?;
            let file = made.constants_file.as_ref();
            let file = file.ok_or_else(|| Error::internal("the build returned no constants file"))?;
            write(&constants, &file.parts()?)?;
            Ok((made.function_object, made.header, model.notes))
        })
    });
    let (object, header, notes) = made.map_err(failed)?;
    Ok((PyBytes::new(py, &object), header, notes))
}

fn write(path: &Path, parts: &[std::borrow::Cow<'_, [u8]>]) -> Result<()> {
    use std::io::Write as _;
    let written = std::fs::File::create(path).and_then(|mut file| {
        parts.iter().try_for_each(|part| file.write_all(part))?;
        file.sync_all()
    });
    written.map_err(|e| Error::invalid(format!("cannot write '{}': {e}", path.display())))
}

/// Returns a model as HLO at a stage, in a format of `tfcompile hlo`.
#[pyfunction]
pub(crate) fn hlo<'py>(
    py: Python<'py>,
    options: ModelOptions,
    stage: &str,
    format: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = py.detach(|| {
        guarded(|| {
            let stage = match stage {
                "import" => Stage::Import,
                "optimized" => Stage::Optimized,
                "scheduled" => Stage::Scheduled,
                other => {
                    return Err(Error::invalid(format!(
                        "unknown stage '{other}': expected import, optimized, or scheduled"
                    )));
                }
            };
            let program =
                options.read_whole()?.input.source.without_checks()?.import_whole(&mut NoObserver)?;
            let result_names = program.interface.result_names();
            let options = BackOptions::new(options.targets()?.0, "entry");
            let module = at_stage(program.module, stage, &options, &mut NoObserver)?;
            let module = &*compiler::portable(&module);
            Ok(match format {
                "text" => module.to_text().into_bytes(),
                "proto" if stage == Stage::Scheduled => {
                    ::hlo::proto::to_scheduled_hlo_module_proto_bytes(module)?
                }
                "proto" => ::hlo::proto::to_hlo_module_proto_bytes(module)?,
                "snapshot" => ::hlo::proto::to_hlo_snapshot_bytes(module)?,
                "stablehlo" => {
                    let options = stablehlo::WriteOptions { result_names, ..Default::default() };
                    stablehlo::write(module, &options)?.into_bytes()
                }
                "dot" => picture::dot(module).into_bytes(),
                "html" => picture::html(module).into_bytes(),
                other => {
                    return Err(Error::invalid(format!(
                        "unknown format '{other}': expected text, proto, snapshot, stablehlo, dot, or html"
                    )));
                }
            })
        })
    });
    Ok(PyBytes::new(py, &bytes.map_err(failed)?))
}

/// A problem: its kind, node, op and message.
type Problem = (&'static str, String, String, String);

/// Returns the problems that prevent a model from compiling, warnings, notes, and each op with its
/// number of nodes and whether it is supported.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "Python unpacks it")]
pub(crate) fn check(
    py: Python<'_>,
    options: ModelOptions,
) -> PyResult<(Vec<Problem>, Vec<String>, Vec<String>, BTreeMap<String, (usize, bool)>)> {
    let checked = py.detach(|| {
        guarded(|| {
            let model = options.read()?;
            let options = BackOptions::new(options.targets()?.0, "model");
            let checked = match model.input.source {
                Source::Graph { graph, config, loop_bounds } => {
                    compiler::check(graph, &config, &model.problems, &loop_bounds, &options, &mut NoObserver)?
                }
                Source::Hlo(program) => compiler::check_program(program, &options, &mut NoObserver),
            };
            Ok((checked, model.notes))
        })
    });
    let (checked, notes) = checked.map_err(failed)?;
    let kind = |error: &Error| match error.kind() {
        support::ErrorKind::Invalid => "invalid",
        support::ErrorKind::Unsupported => "unsupported",
        support::ErrorKind::Internal => "internal",
    };
    let problems = checked.problems.iter();
    let problems =
        problems.map(|p| (kind(&p.error), p.node.clone(), p.op.clone(), p.error.message().to_owned()));
    Ok((problems.collect(), checked.warnings.clone(), notes, checked.ops.clone()))
}

/// Returns the config of a model, given or inferred, as text proto.
#[pyfunction]
pub(crate) fn config_text(py: Python<'_>, options: ModelOptions) -> PyResult<String> {
    let text = py.detach(|| {
        guarded(|| match options.read_whole()?.input.source {
            Source::Graph { config, .. } => Ok(tf::source::config_to_text(&config)),
            Source::Hlo(_) => Err(Error::invalid(format!(
                "{} is a program with its own arguments and results, so it has no config",
                options.name
            ))),
        })
    });
    text.map_err(failed)
}

/// A tensor of a config: node, output, name, shape with sizes and the names of dimensions (`None`:
/// unspecified), number of the type.
type Field = (String, i64, String, Option<Vec<(i64, String)>>, i32);

/// A dimension with a range: name, smallest and largest size, sizes with code of their own.
type RangeField = (String, i64, i64, Vec<i64>);

/// Feeds, fetches, variables with a flag for read-only ones, and dimensions with ranges.
type Fields = (Vec<Field>, Vec<Field>, Vec<(Field, bool)>, Vec<RangeField>);

/// Parses the parts of a config in text or binary form.
#[pyfunction]
pub(crate) fn config_fields(bytes: &[u8]) -> PyResult<Fields> {
    let config: Config = tf::source::parse_config(Bytes::copy_from_slice(bytes), "config").map_err(failed)?;
    let id = |id: &Option<tf::proto::TensorId>| {
        id.as_ref().map(|id| (id.node_name.clone(), id.output_index)).unwrap_or_default()
    };
    let sizes = |shape: &Option<tf::proto::TensorShapeProto>| {
        shape
            .as_ref()
            .filter(|s| !s.unknown_rank)
            .map(|s| s.dim.iter().map(|d| (d.size, d.name.clone())).collect())
    };
    let feed = |f: &tf::proto::Feed| {
        let (node, index) = id(&f.id);
        (node, index, f.name.clone(), sizes(&f.shape), f.r#type)
    };
    let fetch = |f: &tf::proto::Fetch| {
        let (node, index) = id(&f.id);
        (node, index, f.name.clone(), sizes(&f.shape), f.r#type)
    };
    let variable = |v: &tf::proto::Variable| {
        ((v.node_name.clone(), 0, v.name.clone(), sizes(&v.shape), v.r#type), v.readonly)
    };
    Ok((
        config.feed.iter().map(feed).collect(),
        config.fetch.iter().map(fetch).collect(),
        config.variable.iter().map(variable).collect(),
        config.dimension.iter().map(|d| (d.name.clone(), d.min, d.max, d.size.clone())).collect(),
    ))
}
