//! Small graphs like those in the original's tests, with recorded cases that have recorded runs.

use super::config;
use super::program::{self, Session};
use super::tools::{Model, Settings, Tools, describe_output, run};
use super::{Check, entries, read_json, recipe, stem, values};
use crate::tolerance::Tolerance;
use npz::Archive;
use serde_json::Value;
use shape::Literal;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limit for freezing a graph.
const FREEZE_LIMIT: Duration = Duration::from_secs(60);
/// Number of draws of a random result.
const DRAWS: usize = 100;

/// Returns a check for each entry of the directory.
pub(super) fn checks(directory: &Path) -> Result<Vec<Check>, String> {
    let entry = |path: PathBuf| {
        Check::new(format!("tfcompile_tests/{}", stem(&path)), move |tools, work| check(tools, &path, work))
    };
    Ok(entries(directory, "spec.json")?.into_iter().map(entry).collect())
}

fn check(tools: &Tools, entry: &Path, work: &Path) -> Result<String, String> {
    let spec = read_json(&entry.join("spec.json"))?;
    let class = spec["cpp_class"].as_str().ok_or("missing cpp_class in spec.json")?;
    let config_path = entry.join("config.pbtxt");
    let config = config::read(&config_path)?;
    let graph = graph(tools, entry, &config_path, work)?;
    let entry_point = format!("oracle_{}", stem(entry));
    let model =
        Model { graph: &graph, settings: Settings::Config(&config_path), class, entry_point: &entry_point };
    let mut session = program::start(tools, &model, &config, work)?;
    let rule = &spec["tolerance"];
    if rule["kind"] == "range" {
        let (lo, hi) = (
            rule["lo"].as_f64().ok_or("missing lo in spec.json")?,
            rule["hi"].as_f64().ok_or("missing hi in spec.json")?,
        );
        check_range(&mut session, lo, hi)?;
        return session.finish();
    }
    let tolerance = tolerance(rule).ok_or("unknown tolerance in spec.json")?;
    let mut vectors = values::open(&entry.join("vectors.npz"))?;
    let cases = spec["cases"].as_array().ok_or("missing cases in spec.json")?;
    for (n, runs) in cases.iter().enumerate() {
        let runs = runs.as_u64().ok_or("missing number of runs in a case of spec.json")?;
        let case = Case { prefix: format!("case{n}"), config: &config, recipe: &spec["recipe"], tolerance };
        case.check(&mut session, &mut vectors, runs)?;
    }
    session.finish()
}

/// Returns the graph to compile. If its checkpoint has the first version, the tool freezes it;
/// otherwise, the graph is used as is.
fn graph(tools: &Tools, entry: &Path, config: &Path, work: &Path) -> Result<PathBuf, String> {
    if !entry.join("graph.ckpt").is_file() {
        let frozen = entry.join("frozen.pb");
        return Ok(if frozen.is_file() { frozen } else { entry.join("graph.pb") });
    }
    let mut dump = Command::new(&tools.tool);
    dump.arg(format!("--config={}", config.display())).arg("--dump_fetch_nodes");
    let nodes = run(&mut dump, work, "nodes", FREEZE_LIMIT)?;
    if !nodes.status.success() {
        return Err(format!("--dump_fetch_nodes: {}", describe_output(&nodes)));
    }
    let frozen = work.join("frozen.pb");
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    let mut freeze = Command::new(&tools.tool);
    freeze.args([
        "freeze".to_owned(),
        flag("input_graph", &entry.join("graph.pb")),
        "--checkpoint_version=1".to_owned(),
        "--input_binary=true".to_owned(),
        flag("input_checkpoint", &entry.join("graph.ckpt")),
        flag("output_graph", &frozen),
        format!("--output_node_names={}", nodes.stdout.trim()),
    ]);
    if stem(entry).ends_with("_saver") {
        freeze.arg(flag("input_saver", &entry.join("graph.saver")));
    }
    let output = run(&mut freeze, work, "freeze", FREEZE_LIMIT)?;
    if !output.status.success() || !frozen.is_file() {
        return Err(format!("freeze: {}", describe_output(&output)));
    }
    Ok(frozen)
}

fn tolerance(rule: &Value) -> Option<Tolerance> {
    match rule["kind"].as_str()? {
        "exact" => Some(Tolerance::EXACT),
        "near" => Some(Tolerance { absolute: rule["atol"].as_f64()?, relative: rule["rtol"].as_f64()? }),
        _ => None,
    }
}

/// Draws many times, and checks that all numbers are in `lo..hi` and not always the same.
fn check_range(session: &mut Session, lo: f64, hi: f64) -> Result<(), String> {
    session.new_case(&[])?;
    let mut drawn = Vec::new();
    for _ in 0..DRAWS {
        let answer = session.run(&[])?;
        for result in &answer.results {
            let result = values::flat(result, shape::PrimitiveType::F32).ok_or("expected f32 results")?;
            drawn.extend(result.to_vec::<f32>().ok_or("expected f32 results")?);
        }
    }
    if drawn.len() != DRAWS {
        return Err(format!("{DRAWS} draws returned {} numbers", drawn.len()));
    }
    if let Some(out) = drawn.iter().map(|&v| f64::from(v)).find(|v| !(lo..hi).contains(v)) {
        return Err(format!("drew {out}, which is outside {lo} to {hi}"));
    }
    let lower_half = drawn.iter().filter(|&&v| f64::from(v) < (lo + hi) / 2.0).count();
    // Of 100 fair coin tosses, fewer than 15 show the same side about once in 10^13 times.
    if (15..=85).contains(&lower_half) {
        Ok(())
    } else {
        Err(format!("{lower_half} of {DRAWS} draws are in the lower half"))
    }
}

/// One recorded case.
struct Case<'a> {
    /// Prefix of its keys.
    prefix: String,
    config: &'a config::Config,
    /// Rules of generated feeds.
    recipe: &'a Value,
    tolerance: Tolerance,
}

impl Case<'_> {
    fn check(&self, session: &mut Session, vectors: &mut Archive, runs: u64) -> Result<(), String> {
        let Self { prefix, config, .. } = self;
        let feeds = self.feeds(vectors)?;
        let feeds: Vec<&[u8]> = feeds.iter().map(|feed| &feed.bytes()[..]).collect();
        let start =
            config.variables.iter().map(|name| values::require(vectors, &format!("{prefix}/var/{name}")));
        let start: Vec<Literal> = start.collect::<Result<_, _>>()?;
        session.new_case(&start.iter().map(|value| &value.bytes()[..]).collect::<Vec<_>>())?;
        for r in 0..runs {
            let answer = session.run(&feeds)?;
            let what = |name: &str| format!("{prefix} run {r} {name}");
            for (fetch, got) in config.fetches.iter().zip(&answer.results) {
                let want = values::require(vectors, &format!("{prefix}/run{r}/{fetch}"))?;
                match vectors.get(&format!("index/{fetch}")).map_err(|e| e.to_string())? {
                    Some(at) => values::check(&what(fetch), got, &want, Some(&at), self.tolerance)?,
                    None => values::check_whole(&what(fetch), got, &want, self.tolerance)?,
                };
            }
            for (variable, got) in config.variables.iter().zip(&answer.variables) {
                let want = values::require(vectors, &format!("{prefix}/run{r}/var/{variable}"))?;
                values::check_whole(&what(variable), got, &want, self.tolerance)?;
            }
        }
        Ok(())
    }

    fn feeds(&self, vectors: &mut Archive) -> Result<Vec<Literal>, String> {
        let mut feeds = Vec::new();
        for feed in &self.config.feeds {
            let rule = &self.recipe[&feed.tensor];
            feeds.push(match rule["key"].as_str() {
                Some(key) => recipe::fill(&rule["rule"], key, &feed.sizes)?,
                None => values::require(vectors, &format!("{}/{}", self.prefix, feed.tensor))?,
            });
        }
        Ok(feeds)
    }
}
