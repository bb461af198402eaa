//! The oracle: whole programs through the actual tool. Each check compiles a graph to an object and
//! a header, builds a C++ program with them, feeds it recorded inputs, and compares its outputs
//! with TensorFlow's recorded answers.
//!
//! The tool is used only through its command line, so these checks do not depend on the compiler's
//! crates.

mod config;
mod errors;
mod graphs;
mod mnist;
mod models;
mod program;
mod recipe;
mod tools;
mod training;
mod values;

pub use tools::Tools;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// One check: its name, and the function that runs it in a separate empty directory. The function
/// returns a remark, or the reason for its failure.
pub struct Check {
    /// `suite/name`.
    pub name: String,
    run: Box<CheckFn>,
}

type CheckFn = dyn Fn(&Tools, &Path) -> Result<String, String> + Send + Sync;

impl Check {
    fn new(
        name: impl Into<String>,
        run: impl Fn(&Tools, &Path) -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), run: Box::new(run) }
    }
}

/// Returns all checks of a directory with the oracle's layout: `tfcompile_tests`, its `errors`,
/// `mnist_softmax`, `cerebras14`, and those `models` whose graphs are in the directory `graphs`.
pub fn checks(root: &Path, graphs: Option<&Path>) -> Result<Vec<Check>, String> {
    let mut checks = graphs::checks(&root.join("tfcompile_tests"))?;
    checks.extend(errors::checks(&root.join("tfcompile_tests/errors"))?);
    checks.extend(mnist::checks(&root.join("mnist_softmax"))?);
    checks.extend(training::checks(&root.join("cerebras14"))?);
    if let Some(graphs) = graphs {
        checks.extend(models::checks(&root.join("models"), graphs)?);
    }
    Ok(checks)
}

/// Runs `jobs` checks in parallel. Calls `done` with each one's position, result, and seconds, in
/// order of completion.
pub fn run(
    checks: &[Check],
    tools: &Tools,
    work: &Path,
    jobs: usize,
    done: impl FnMut(usize, Result<String, String>, f64) + Send,
) {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(done));
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, checks.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(check) = checks.get(index) else { return };
                    let directory = work.join(check.name.replace('/', "-"));
                    let start = Instant::now();
                    let result = create_empty(&directory).and_then(|()| (check.run)(tools, &directory));
                    (done.lock().expect("`done` never panics"))(index, result, start.elapsed().as_secs_f64());
                }
            });
        }
    });
}

/// Creates an empty directory.
fn create_empty(directory: &Path) -> Result<(), String> {
    if directory.exists() {
        std::fs::remove_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    }
    std::fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))
}

/// Returns the subdirectories that contain this file, sorted, or none if the directory does not
/// exist.
fn entries(directory: &Path, file: &str) -> Result<Vec<PathBuf>, String> {
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let list = std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut paths: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.join(file).is_file());
    paths.sort();
    Ok(paths)
}

/// Returns the last component of a path as text.
fn stem(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Reads a JSON file.
fn read_json(path: &Path) -> Result<serde_json::Value, String> {
    let data = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_slice(&data).map_err(|e| format!("{}: {e}", path.display()))
}
