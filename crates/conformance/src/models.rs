//! Runs models of other formats with recorded answers: archives in `tests/tflite` and `tests/onnx`,
//! one per operator.

use bytes::Bytes;
use compiler::{Executable, Input, NoObserver, host, in_process_options};
use hlo::Role;
use npz::Archive;
use serde_json::Value;
use shape::{ArrayShape, Literal, Scalar};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use support::{Error, Result};
use tf::model::LoadOptions;

/// Largest size of an archive's members.
const MOST_BYTES: u64 = 1 << 30;

/// The outcome of the cases that ran.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Number of cases that passed.
    pub passed: usize,
    /// Number of these that need some inputs as constants, because they state shapes.
    pub with_constants: usize,
    /// Listed cases that failed as expected.
    pub known: Vec<String>,
    /// Other failures with their reasons, and listed cases that passed.
    pub failures: Vec<String>,
}

/// Runs every `step`-th case of archives, or of the archives in folders. `evaluates` selects the
/// evaluator. `known` lists cases that fail, with reasons.
pub fn run(
    paths: &[PathBuf],
    evaluates: bool,
    step: usize,
    known: &BTreeMap<String, String>,
) -> Result<Report> {
    let mut archives = Vec::new();
    for path in paths {
        if !path.is_dir() {
            archives.push(path.clone());
            continue;
        }
        let entries =
            std::fs::read_dir(path).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
        let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
        archives.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "npz")));
    }
    archives.sort();
    let mut report = Report::default();
    let mut number = 0;
    for archive in archives {
        let cases = read(&archive).map_err(|e| e.context(archive.display().to_string()))?;
        for case in cases {
            number += 1;
            if number % step != 0 {
                continue;
            }
            let result = compiler::guarded(|| case.check(evaluates));
            match (result, known.contains_key(&case.name)) {
                (Ok(takes_constants), false) => {
                    report.passed += 1;
                    report.with_constants += usize::from(takes_constants);
                }
                (Ok(_), true) => {
                    report.failures.push(format!("{}: listed as failing, but it passes", case.name))
                }
                (Err(_), true) => report.known.push(case.name),
                (Err(error), false) => report.failures.push(format!("{}: {error}", case.name)),
            }
        }
    }
    Ok(report)
}

/// A model with inputs and answers.
#[derive(Debug)]
pub struct ModelCase {
    /// Archive and case, such as `conv_2d/int8_same`.
    pub name: String,
    /// A name for the model's file, whose ending is that of its format.
    file: PathBuf,
    model: Bytes,
    meta: Value,
    feeds: Vec<Literal>,
    /// The answers of each run.
    runs: Vec<Vec<Literal>>,
    /// For each choice of inputs that become constants, what to append to the model.
    constants: Vec<Bytes>,
}

/// A model as a program, and what its arguments are.
struct Imported {
    program: hlo::Program,
    arguments: Vec<Literal>,
}

/// Reads the cases of an archive.
pub fn read(path: &Path) -> Result<Vec<ModelCase>> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = std::fs::read(path).map_err(|e| Error::invalid(format!("{}: {e}", path.display())))?;
    let mut archive = Archive::open(bytes.into(), MOST_BYTES)?;
    let names: BTreeSet<String> =
        archive.names().filter_map(|member| Some(member.strip_suffix("/meta.json")?.to_owned())).collect();
    let read = |name: String| {
        let meta = archive.require_bytes(&format!("{name}/meta.json"))?;
        let meta: Value =
            serde_json::from_slice(&meta).map_err(|e| Error::invalid(format!("{name}: {e}")))?;
        let count = |key: &str| meta[key].as_array().map_or(0, Vec::len);
        let feeds = (0..count("feeds"))
            .map(|k| archive.require(&format!("{name}/feed/{k}")))
            .collect::<Result<_>>()?;
        let mut runs = Vec::new();
        for run in 1..=meta["runs"].as_u64().unwrap_or(1) {
            let folder = if run == 1 { "fetch".to_owned() } else { format!("fetch_{run}") };
            let fetch = |k| archive.require(&format!("{name}/{folder}/{k}"));
            runs.push((0..count("fetches")).map(fetch).collect::<Result<_>>()?);
        }
        let is_lite = archive.contains(&format!("{name}/model.tflite"));
        let file = if is_lite { "model.tflite" } else { "model.onnx" };
        let model = archive.require_bytes(&format!("{name}/{file}"))?;
        let constants = (0..count("constants"))
            .map(|k| archive.require_bytes(&format!("{name}/constants/{k}")))
            .collect::<Result<_>>()?;
        let name = format!("{stem}/{name}");
        Ok(ModelCase { file: Path::new(&name).join(file), name, model, meta, feeds, runs, constants })
    };
    names.into_iter().map(read).collect()
}

/// Reads and translates a model.
pub fn import(name: &Path, bytes: Bytes) -> Result<()> {
    let mut options = LoadOptions::default();
    let foreign = compiler::foreign(name, &bytes, &mut options)?;
    let foreign = foreign.ok_or_else(|| Error::invalid("the format is unknown"))?;
    let model = tf::model::load_foreign(name, bytes, foreign, &options)?;
    let inferred = model.infer()?;
    if !inferred.problems.is_empty() {
        return Err(Error::invalid(inferred.problems.join("; ")));
    }
    Input::of_model(model, inferred.config, None).source.import(&mut NoObserver)?;
    Ok(())
}

impl ModelCase {
    /// The model's file.
    pub fn model(&self) -> &Bytes {
        &self.model
    }

    /// Type of the operands, as recorded.
    pub fn kind(&self) -> &str {
        self.meta["kind"].as_str().unwrap_or("")
    }

    /// The model with these inputs as arguments.
    fn import(&self, bytes: &Bytes, feeds: &[Literal]) -> Result<Imported> {
        let mut options = LoadOptions {
            signature: self.meta["signature"].as_str().map(str::to_owned),
            ..LoadOptions::default()
        };
        let read = |options: &mut LoadOptions| {
            let foreign = compiler::foreign(&self.file, bytes, options)?;
            foreign.ok_or_else(|| Error::invalid("the format is unknown"))
        };
        let mut foreign = read(&mut options)?;
        // The program has no arguments for feeds that it does not need.
        let fed =
            |feed: &tf::proto::Feed| feed.id.as_ref().map(|id| id.node_name.clone()).unwrap_or_default();
        let fed: Vec<String> = foreign.config.feed.iter().map(fed).collect();
        if is_resized(&foreign.config, feeds) {
            let sizes = |feed: &Literal| feed.array_shape().sizes().into_iter().map(Some).collect();
            let shapes = fed.iter().zip(feeds).map(|(node, feed)| ((node.clone(), 0), sizes(feed)));
            options.infer.shapes = shapes.collect();
            foreign = read(&mut options)?;
        }
        let model = tf::model::load_foreign(&self.file, bytes.clone(), foreign, &options)?;
        let inferred = model.infer()?;
        if !inferred.problems.is_empty() {
            return Err(Error::invalid(inferred.problems.join("; ")));
        }
        let initial = model.initial.clone();
        let program = Input::of_model(model, inferred.config, None).source.import(&mut NoObserver)?;
        let mut arguments = Vec::new();
        for argument in program.interface.arguments() {
            arguments.push(match argument.role {
                Role::Variable => {
                    let value = initial.get(argument.id.node()).cloned();
                    value.ok_or_else(|| {
                        Error::invalid(format!("variable '{}' has no value", argument.label()))
                    })?
                }
                _ => {
                    let position = fed.iter().position(|node| node == argument.id.node());
                    let feed = position.and_then(|position| feeds.get(position));
                    let feed = feed.ok_or_else(|| Error::invalid("more feeds than recorded"))?;
                    typed(feed, &argument.shape)?
                }
            });
        }
        Ok(Imported { program, arguments })
    }

    /// The model with some inputs as constants, if they must be.
    fn import_with_constants(&self) -> Result<(Imported, bool)> {
        let first = match self.import(&self.model, &self.feeds) {
            Ok(imported) => return Ok((imported, false)),
            Err(error) => error,
        };
        for (k, constants) in self.constants.iter().enumerate() {
            let chosen: Vec<u64> = self.meta["constants"][k]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_u64)
                .collect();
            let feeds: Vec<Literal> = (0..self.feeds.len())
                .filter(|&k| !chosen.contains(&(k as u64)))
                .map(|k| self.feeds[k].clone())
                .collect();
            let bytes = [&self.model[..], &constants[..]].concat().into();
            if let Ok(imported) = compiler::guarded(|| self.import(&bytes, &feeds)) {
                return Ok((imported, true));
            }
        }
        Err(first)
    }

    /// Runs the model and compares its results. `evaluates` selects the evaluator. Returns true if
    /// some inputs had to be constants.
    pub fn check(&self, evaluates: bool) -> Result<bool> {
        let (Imported { program, mut arguments }, takes_constants) = self.import_with_constants()?;
        let interface = program.interface.clone();
        let executable = if evaluates {
            None
        } else {
            let options = in_process_options(host("native")?);
            let module = program.module.clone();
            let compiled = compiler::guarded(|| compiler::compile_module(module, &options, &mut NoObserver))?;
            Some(Executable::load(&compiled)?)
        };
        for (run, wanted) in self.runs.iter().enumerate() {
            let results = match &executable {
                Some(executable) => executable.run(&arguments)?,
                None => match evaluator::evaluate(&program.module, &arguments)? {
                    Literal::Tuple(results) => results,
                    array => vec![array],
                },
            };
            if interface.fetches().len() != wanted.len() {
                return Err(Error::invalid(format!(
                    "{} results, not {}",
                    interface.fetches().len(),
                    wanted.len()
                )));
            }
            for (k, (result, wanted)) in results.iter().zip(wanted).enumerate() {
                self.check_type(k, result, wanted)?;
                self.compare(result, wanted).map_err(|e| e.context(format!("run {run}, result {k}")))?;
            }
            for (k, argument) in interface.arguments().iter().enumerate() {
                if argument.role == Role::Variable
                    && let Some(index) = interface.new_value(k)
                {
                    arguments[k] = results[index].clone();
                }
            }
        }
        Ok(takes_constants)
    }

    /// Checks that a result has the type of the recorded array, or else the one whose bits are
    /// recorded, by NumPy's name. Elements of few bits have bytes.
    fn check_type(&self, k: usize, result: &Literal, wanted: &Literal) -> Result<()> {
        if result.array_shape().element_type == wanted.array_shape().element_type {
            return Ok(());
        }
        let actual = result.array_shape().element_type.name();
        let recorded = self.meta["fetches"][k]["dtype"].as_str().unwrap_or_default();
        let split = recorded.find(|c: char| c.is_ascii_digit()).unwrap_or(recorded.len());
        let (kind, bits) = recorded.split_at(split);
        let name = match (kind, bits) {
            ("bool", _) => "pred".to_owned(),
            // One byte for each element, in either type.
            ("int", "2" | "4") if actual == "s8" => return Ok(()),
            ("uint", "2" | "4") if actual == "u8" => return Ok(()),
            ("float", bits) if bits.starts_with("8_") => format!("f{}", bits.replace('_', "")),
            ("int", bits) => format!("s{bits}"),
            ("uint", bits) => format!("u{bits}"),
            ("float", bits) => format!("f{bits}"),
            ("bfloat", bits) => format!("bf{bits}"),
            ("complex", bits) => format!("c{bits}"),
            _ => return Err(Error::invalid(format!("result {k} is recorded as '{recorded}'"))),
        };
        if actual == name {
            Ok(())
        } else {
            Err(Error::invalid(format!("result {k} is {actual}, not {name}")))
        }
    }

    fn compare(&self, result: &Literal, wanted: &Literal) -> Result<()> {
        let shape = ArrayShape::new(result.array_shape().element_type, &wanted.array_shape().sizes());
        if result.array_shape().sizes() != shape.sizes() {
            return Err(Error::invalid(format!("shape {}, not {}", result.array_shape(), shape)));
        }
        let wanted = typed(wanted, &shape)?;
        let number = |key: &str| self.meta[key].as_f64().unwrap_or(0.0);
        let is_float = shape.element_type.is_floating_point() || shape.element_type.is_complex();
        let parts = |scalar| match scalar {
            Scalar::Complex(re, im) => [re, im],
            other => [other.as_f64().unwrap_or(0.0), 0.0],
        };
        let mut wrong = 0;
        let mut first = None;
        for (index, (a, w)) in result.scalars().zip(wanted.scalars()).enumerate() {
            let agrees = parts(a).into_iter().zip(parts(w)).all(|(a, w)| {
                let allowed =
                    if is_float { number("atol") + number("rtol") * w.abs() } else { number("step") };
                a == w || (a.is_nan() && w.is_nan()) || (a - w).abs() <= allowed
            });
            if !agrees {
                wrong += 1;
                first.get_or_insert((index, a, w));
            }
        }
        match first {
            None => Ok(()),
            Some((index, a, w)) => Err(Error::invalid(format!(
                "{wrong} of {} elements differ; element {index} is {a:?}, not {w:?}",
                wanted.array_shape().element_count()
            ))),
        }
    }
}

/// True if the inputs have other sizes than the file states.
fn is_resized(config: &tf::proto::Config, feeds: &[Literal]) -> bool {
    let differ = |(feed, recorded): (&tf::proto::Feed, &Literal)| {
        let Some(shape) = &feed.shape else { return true };
        let stated = shape.dim.iter().map(|dim| dim.size);
        shape.unknown_rank || !stated.eq(recorded.array_shape().sizes())
    };
    config.feed.iter().zip(feeds).any(differ)
}

/// An array with the type of a program for one that NumPy stores as bits.
fn typed(stored: &Literal, shape: &ArrayShape) -> Result<Literal> {
    if stored.array_shape() == shape {
        return Ok(stored.clone());
    }
    Literal::from_bytes(shape.clone(), stored.bytes().clone())
        .ok_or_else(|| Error::invalid(format!("recorded as {}, but the program has {shape}", stored.shape())))
}
