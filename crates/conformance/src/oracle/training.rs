//! Training steps: the original graph with only the loss named. Checks every loss and every
//! variable.

use super::config::{self, Config};
use super::program::{self, Session};
use super::tools::{Model, Settings, Tools, describe_output, run};
use super::{Check, entries, read_json, recipe, stem, values};
use crate::tolerance::Tolerance;
use npz::Archive;
use serde_json::Value;
use shape::Literal;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a check for each experiment of the directory.
pub(super) fn checks(directory: &Path) -> Result<Vec<Check>, String> {
    let entry = |path: PathBuf| {
        let name = format!("{}/{}", stem(directory), stem(&path));
        Check::new(name, move |tools, work| check(tools, &path, work))
    };
    Ok(entries(directory, "spec.json")?.into_iter().map(entry).collect())
}

/// Compiles a graph given only the fetched tensor, and starts its program. Returns the inferred
/// config, too.
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
        return Err(format!("tfcompile config: {}", describe_output(&output)));
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
    let fetch = spec["fetch"].as_str().ok_or("missing fetch in spec.json")?;
    let (config, mut session) = start(tools, &entry.join("graph.pb"), fetch, &stem(entry), work)?;
    let runs = spec["runs"].as_array().filter(|runs| !runs.is_empty()).ok_or("missing runs in spec.json")?;
    let (mut steps, mut largest) = (0, 0f64);
    for recorded in runs {
        let file = recorded["file"].as_str().ok_or("missing file of a run")?;
        let mut expected = values::open(&entry.join(file))?;
        let (run, error) = check_run(&mut session, &config, &spec, recorded, &mut expected)
            .map_err(|e| format!("{file}: {e}"))?;
        steps += run;
        largest = largest.max(error);
    }
    Ok(format!("{steps} steps, errors up to {largest:.2} of the tolerance, {}", session.finish()?))
}

/// Starts from the recorded variables, and compares each loss and the final variables. Returns the
/// number of steps, and the largest error relative to the tolerance.
fn check_run(
    session: &mut Session,
    config: &Config,
    spec: &Value,
    recorded: &Value,
    expected: &mut Archive,
) -> Result<(usize, f64), String> {
    let variables = recorded["variables"].as_array().ok_or("missing variables of a run")?;
    let unused = spec["unused_variables"].as_array().ok_or("missing unused_variables in spec.json")?;
    let known = |name: &str| {
        let variable_entry = variables.iter().find(|variable| variable["name"] == name);
        variable_entry.ok_or_else(|| format!("variable {name} was not recorded"))
    };
    for variable in variables {
        let name = variable["name"].as_str().ok_or("missing name of a variable")?;
        if !config.variables.iter().any(|v| v == name) && !unused.contains(&variable["name"]) {
            return Err(format!("variable {name} was not inferred"));
        }
    }
    let mut start = Vec::new();
    for name in &config.variables {
        let value = initial_value(known(name)?)?;
        check_recorded(name, value.bytes(), known(name)?, "initial/", expected, Tolerance::EXACT)?;
        start.push(value);
    }
    session.new_case(&start.iter().map(|value| &value.bytes()[..]).collect::<Vec<_>>())?;

    let steps =
        recorded["steps"].as_u64().filter(|&steps| steps > 0).ok_or("missing steps of a run")? as usize;
    let fetch = config.fetches.first().ok_or("missing fetch in the config")?;
    let losses = values::require(expected, fetch)?.to_vec::<f32>().ok_or("expected floating-point losses")?;
    let limit = tolerance(&recorded["loss_tolerance"])?;
    let mut last = start.iter().map(|value| value.bytes().to_vec()).collect();
    let mut largest = 0f64;
    for step in 0..steps {
        let feeds =
            config.feeds.iter().map(|feed| feed_value(spec, feed, step)).collect::<Result<Vec<_>, _>>()?;
        let answer = session.run(&feeds.iter().map(|feed| &feed.bytes()[..]).collect::<Vec<_>>())?;
        let loss = Literal::scalar(*losses.get(step).ok_or("missing loss of a step")?);
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

/// Returns the initial value of a variable.
fn initial_value(variable: &Value) -> Result<Literal, String> {
    let key = variable["key"].as_str().ok_or("missing key of a variable")?;
    let sizes = variable["shape"].as_array().ok_or("missing shape of a variable")?;
    let sizes: Vec<i64> = sizes.iter().filter_map(Value::as_i64).collect();
    recipe::fill(&variable["rule"], key, &sizes)
}

/// Returns the value of a feed in a step.
fn feed_value(spec: &Value, feed: &config::Feed, step: usize) -> Result<Literal, String> {
    let recorded = spec["feeds"].as_array().and_then(|all| all.iter().find(|f| f["tensor"] == *feed.tensor));
    let recorded = recorded.ok_or_else(|| format!("missing feed {} in spec.json", feed.tensor))?;
    let key = recorded["key"].as_str().ok_or("missing key of a feed")?;
    recipe::fill(&recorded["rule"], &key.replace("<step>", &step.to_string()), &feed.sizes)
}

/// Compares with the record under `prefix` and the name, whole or in samples. Returns the largest
/// error, like [`values::check`].
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

/// Returns a recorded tolerance, which is absolute.
pub(super) fn tolerance(value: &Value) -> Result<Tolerance, String> {
    let absolute = value.as_f64().ok_or("missing tolerance in spec.json")?;
    Ok(Tolerance { absolute, relative: 0.0 })
}
