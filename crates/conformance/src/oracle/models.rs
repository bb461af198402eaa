//! Realistic models. Configs, input rules, and recorded answers are stored; a script generates the
//! graphs.

use super::program::{self, Session};
use super::tools::{Model, Settings, Tools};
use super::training::{self, check_recorded, tolerance};
use super::{Check, config, entries, read_json, recipe, stem, values};
use npz::Archive;
use serde_json::Value;
use shape::Literal;
use std::path::{Path, PathBuf};

/// The one rule written as a sentence: a mask of the positions that hold a token.
const MASK_RULE: &str = "1 at positions below 100, else 0";
/// Number of tokens in that rule.
const MASKED: usize = 100;
/// Number of runs of a model with pools of threads.
const RUNS: usize = 5;

/// Returns a check for each model with a graph in `graphs`.
pub(super) fn checks(directory: &Path, graphs: &Path) -> Result<Vec<Check>, String> {
    let mut checks = Vec::new();
    for entry in entries(directory, "spec.json")? {
        let graph: PathBuf = graphs.join(stem(&entry)).join("graph.pb");
        if graph.is_file() {
            let name = format!("models/{}", stem(&entry));
            checks.push(Check::new(name, move |tools, work| check(tools, &entry, &graph, work)));
        }
    }
    Ok(checks)
}

fn check(tools: &Tools, entry: &Path, graph: &Path, work: &Path) -> Result<String, String> {
    let spec = read_json(&entry.join("spec.json"))?;
    let config_path = entry.join("config.pbtxt");
    let config = config::read(&config_path)?;
    let mut expected = values::open(&entry.join("expected.npz"))?;
    if spec["losses"].is_null() {
        let entry_point = format!("oracle_{}", stem(entry));
        let settings = Settings::Config(&config_path);
        let model = Model { graph, settings, class: "oracle::Model", entry_point: &entry_point };
        let mut session = program::start(tools, &model, &config, work)?;
        let runs = if tools.threads.is_empty() { 1 } else { RUNS };
        let largest = check_inference(&mut session, &config, &spec, &mut expected, runs)?;
        return remark(session, largest);
    }
    // For a training step, the tool is given only the loss.
    let fetch = config.fetches.first().ok_or("missing fetch in the config")?;
    let (inferred, mut session) = training::start(tools, graph, fetch, &stem(entry), work)?;
    let initial = graph.with_file_name("initial.npz");
    let inputs = [values::open(&entry.join("batches.npz"))?, values::open(&initial)?];
    let largest = check_training(&mut session, &inferred, &spec, &mut expected, inputs)?;
    remark(session, largest)
}

/// Returns the remark for a successful model.
fn remark(session: Session, largest: f64) -> Result<String, String> {
    Ok(format!("errors up to {largest:.2} of the tolerance, {}", session.finish()?))
}

/// Runs an inference graph. Returns the largest error relative to the tolerance.
fn check_inference(
    session: &mut Session,
    config: &config::Config,
    spec: &Value,
    expected: &mut Archive,
    runs: usize,
) -> Result<f64, String> {
    let mut feeds = Vec::new();
    for feed in &config.feeds {
        let recorded =
            spec["feeds"].as_array().and_then(|all| all.iter().find(|f| f["tensor"] == feed.tensor.as_str()));
        let recorded = recorded.ok_or_else(|| format!("missing feed {} in spec.json", feed.tensor))?;
        feeds.push(if recorded["rule"] == MASK_RULE {
            mask(&feed.sizes)
        } else {
            recipe::fill(
                &recorded["rule"],
                recorded["key"].as_str().ok_or("missing key of a feed")?,
                &feed.sizes,
            )?
        });
    }
    session.new_case(&[])?;
    let feeds: Vec<&[u8]> = feeds.iter().map(|feed| &feed.bytes()[..]).collect();
    let answer = session.run(&feeds)?;
    // Concurrency differs from run to run.
    for _ in 1..runs {
        if session.run(&feeds)?.results != answer.results {
            return Err("a repeated run on the same feeds returned different bits".to_owned());
        }
    }
    let fetches = spec["fetches"].as_array().ok_or("missing fetches in spec.json")?;
    let mut largest = 0f64;
    for fetch in fetches {
        let tensor = fetch["tensor"].as_str().ok_or("missing tensor of a fetch")?;
        let at =
            config.fetches.iter().position(|f| f == tensor).ok_or_else(|| format!("no fetch {tensor}"))?;
        let limit = tolerance(&fetch["tolerance"])?;
        largest = largest.max(check_recorded(tensor, &answer.results[at], fetch, "", expected, limit)?);
    }
    Ok(largest)
}

/// Runs a training step as often as it was recorded. Returns the largest error, like
/// [`check_inference`].
fn check_training(
    session: &mut Session,
    config: &config::Config,
    spec: &Value,
    expected: &mut Archive,
    [mut batches, mut initial]: [Archive; 2],
) -> Result<f64, String> {
    let steps = spec["steps"].as_u64().ok_or("missing steps in spec.json")? as usize;
    let start = config.variables.iter().map(|name| values::require(&mut initial, name));
    let start: Vec<Literal> = start.collect::<Result<_, _>>()?;
    session.new_case(&start.iter().map(|value| &value.bytes()[..]).collect::<Vec<_>>())?;
    let batches = config.feeds.iter().map(|feed| values::require(&mut batches, &feed.tensor));
    let batches: Vec<Literal> = batches.collect::<Result<_, _>>()?;
    let fetch = config.fetches.first().ok_or("missing fetch in the config")?;
    let losses = values::require(expected, fetch)?.to_vec::<f32>().ok_or("expected floating-point losses")?;
    let mut largest = 0f64;
    for step in 0..steps {
        let part = |all: &Literal| {
            let size = all.bytes().len() / steps;
            all.bytes().slice(step * size..(step + 1) * size)
        };
        let feeds: Vec<_> = batches.iter().map(part).collect();
        let answer = session.run(&feeds.iter().map(|feed| &feed[..]).collect::<Vec<_>>())?;
        let loss = Literal::scalar(*losses.get(step).ok_or("missing loss of a step")?);
        let limit = tolerance(&spec["loss_tolerance"][step])?;
        let error = values::check_whole(&format!("loss {step}"), &answer.results[0], &loss, limit)?;
        largest = largest.max(error);
        let moment = match step {
            0 => "first",
            _ if step + 1 == steps => "final",
            _ => continue,
        };
        for variable in spec["variables"].as_array().ok_or("missing variables in spec.json")? {
            let name = variable["name"].as_str().ok_or("missing name of a variable")?;
            let at = config
                .variables
                .iter()
                .position(|v| v == name)
                .ok_or_else(|| format!("no variable {name}"))?;
            let limit = tolerance(&variable[moment]["tolerance"])?;
            let prefix = format!("{moment}/");
            largest =
                largest.max(check_recorded(name, &answer.variables[at], variable, &prefix, expected, limit)?);
        }
    }
    Ok(largest)
}

/// Returns rows of ones, then zeros.
fn mask(sizes: &[i64]) -> Literal {
    let columns = sizes.last().map_or(1, |&c| c.max(1) as usize);
    let count = sizes.iter().product::<i64>().max(0) as usize;
    let values: Vec<i32> = (0..count).map(|i| i32::from(i % columns < MASKED)).collect();
    Literal::from_elements(sizes, &values)
}
