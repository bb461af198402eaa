//! Training steps: the graph as it is, nothing but the loss named, every loss and every variable judged.

use super::config::{self, Config};
use super::program::{self, Session};
use super::tools::{Model, Settings, Tools, run, said};
use super::{Check, entries, read_json, recipe, stem, values};
use crate::tolerance::Tolerance;
use npz::Archive;
use serde_json::Value;
use shape::Literal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A check for each experiment of the directory.
pub(super) fn checks(directory: &Path) -> Result<Vec<Check>, String> {
    let entry = |path: PathBuf| {
        let name = format!("{}/{}", stem(directory), stem(&path));
        Check::new(name, move |tools, work| check(tools, &path, work))
    };
    Ok(entries(directory, "spec.json")?.into_iter().map(entry).collect())
}

/// Compiles a graph of which only the fetched tensor is said, and starts its program. The answer has what was inferred.
pub(super) fn start(
    tools: &Tools,
    graph: &Path,
    fetch: &str,
    name: &str,
    work: &Path,
) -> Result<(Config, Session), String> {
    let mut command = Command::new(&tools.tool);
    command.arg("config").arg(graph).arg(format!("--fetch={fetch}"));
    let output = run(&mut command, work, "config", tools.limit)?;
    if !output.status.success() {
        return Err(format!("tfcompile config: {}", said(&output)));
    }
    let path = work.join("inferred.pbtxt");
    std::fs::write(&path, output.stdout).map_err(|e| e.to_string())?;
    let config = config::read(&path)?;
    let entry_point = format!("oracle_{name}");
    let settings = Settings::Fetch(fetch);
    let model = Model { graph, settings, class: "oracle::Model", entry_point: &entry_point };
    let session = program::start(tools, &model, &config, work)?;
    Ok((config, session))
}

/// Runs an experiment as often as it was recorded.
fn check(tools: &Tools, entry: &Path, work: &Path) -> Result<String, String> {
    let spec = read_json(&entry.join("spec.json"))?;
    let fetch = spec["fetch"].as_str().ok_or("spec.json has no fetch")?;
    let (config, mut session) = start(tools, &entry.join("graph.pb"), fetch, &stem(entry), work)?;
    let runs = spec["runs"].as_array().filter(|runs| !runs.is_empty()).ok_or("spec.json has no runs")?;
    let (mut steps, mut largest) = (0, 0f64);
    for recorded in runs {
        let file = recorded["file"].as_str().ok_or("a run without a file")?;
        let mut expected = values::open(&entry.join(file))?;
        let (run, error) = check_run(&mut session, &config, &spec, recorded, &mut expected)
            .map_err(|e| format!("{file}: {e}"))?;
        steps += run;
        largest = largest.max(error);
    }
    Ok(format!("{steps} steps, errors up to {largest:.2} of what is tolerated, {}", session.finish()?))
}

/// Starts from the recorded variables, and compares each loss, and the variables at the end. The answer is how many steps
/// were run, and the largest error as a share of what is tolerated.
fn check_run(
    session: &mut Session,
    config: &Config,
    spec: &Value,
    recorded: &Value,
    expected: &mut Archive,
) -> Result<(usize, f64), String> {
    let variables = recorded["variables"].as_array().ok_or("a run without variables")?;
    let unused = spec["unused_variables"].as_array().ok_or("spec.json has no unused_variables")?;
    let known = |name: &str| {
        let found = variables.iter().find(|variable| variable["name"] == name);
        found.ok_or_else(|| format!("variable {name} was not recorded"))
    };
    for variable in variables {
        let name = variable["name"].as_str().ok_or("a variable without a name")?;
        if !config.variables.iter().any(|v| v == name) && !unused.contains(&variable["name"]) {
            return Err(format!("variable {name} was not inferred"));
        }
    }
    let mut start = Vec::new();
    for name in &config.variables {
        let value = made(known(name)?)?;
        check_recorded(name, value.bytes(), known(name)?, "initial/", expected, Tolerance::EXACT)?;
        start.push(value);
    }
    session.new_case(&start.iter().map(|value| &value.bytes()[..]).collect::<Vec<_>>())?;

    let steps = recorded["steps"].as_u64().filter(|&steps| steps > 0).ok_or("a run without steps")? as usize;
    let fetch = config.fetches.first().ok_or("the config has no fetch")?;
    let losses = values::require(expected, fetch)?.to_vec::<f32>().ok_or("losses are no floats")?;
    let limit = tolerance(&recorded["loss_tolerance"])?;
    let mut last = start.iter().map(|value| value.bytes().to_vec()).collect();
    let mut largest = 0f64;
    for step in 0..steps {
        let feeds = config.feeds.iter().map(|feed| fed(spec, feed, step)).collect::<Result<Vec<_>, _>>()?;
        let answer = session.run(&feeds.iter().map(|feed| &feed.bytes()[..]).collect::<Vec<_>>())?;
        let loss = Literal::scalar(*losses.get(step).ok_or("a step without a loss")?);
        let error = values::check_whole(&format!("loss {step}"), &answer.results[0], &loss, limit)?;
        largest = largest.max(error);
        last = answer.variables;
    }
    for (name, value) in config.variables.iter().zip(&last) {
        let variable = known(name)?;
        let limit = tolerance(&variable["tolerance"])?;
        largest = largest.max(check_recorded(name, value, variable, "final/", expected, limit)?);
    }
    Ok((steps, largest))
}

/// The value that a variable starts with.
fn made(variable: &Value) -> Result<Literal, String> {
    let key = variable["key"].as_str().ok_or("a variable without a key")?;
    let sizes = variable["shape"].as_array().ok_or("a variable without a shape")?;
    let sizes: Vec<i64> = sizes.iter().filter_map(Value::as_i64).collect();
    recipe::fill(&variable["rule"], key, &sizes)
}

/// What a feed takes in a step.
fn fed(spec: &Value, feed: &config::Feed, step: usize) -> Result<Literal, String> {
    let given = spec["feeds"].as_array().and_then(|all| all.iter().find(|f| f["tensor"] == *feed.tensor));
    let given = given.ok_or_else(|| format!("spec.json has no feed {}", feed.tensor))?;
    let key = given["key"].as_str().ok_or("a feed without a key")?;
    recipe::fill(&given["rule"], &key.replace("<step>", &step.to_string()), &feed.sizes)
}

/// Compares with what is recorded under `prefix` and the name, whole or in samples. The answer is as of [`values::check`].
pub(super) fn check_recorded(
    name: &str,
    got: &[u8],
    entry: &Value,
    prefix: &str,
    expected: &mut Archive,
    tolerance: Tolerance,
) -> Result<f64, String> {
    let want = values::require(expected, &format!("{prefix}{name}"))?;
    let what = format!("{prefix}{name}");
    if entry["stored"] == "samples" {
        let at = values::require(expected, &format!("index/{name}"))?;
        values::check(&what, got, &want, Some(&at), tolerance)
    } else {
        values::check_whole(&what, got, &want, tolerance)
    }
}

/// A recorded tolerance, which is absolute.
pub(super) fn tolerance(value: &Value) -> Result<Tolerance, String> {
    let absolute = value.as_f64().ok_or("spec.json lacks a tolerance")?;
    Ok(Tolerance { absolute, relative: 0.0 })
}
