//! Writes HLO modules with arguments and our results, to be checked by XLA (`scripts/test_xla.sh`).

use conformance::arguments::Arguments;
use conformance::export::{module_of_graph, module_of_model, modules_of_test, write};
use conformance::forms::{write_case, write_forms};
use conformance::select::{self, fnv1a64};
use hlo::Module;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
    hlo-cases OUT [--hlo DIR] [--sample N] [--graphs DIR...] [--models FILE...] [--cases DIR [--case-sample N]]

Writes NAME.hlo, and NAME.npz with arguments and results, for each module in the file tests in --hlo (with --sample,
for N of them). Writes every form of the program, before and after optimization, for each graph (graph.pb next to
config.pbtxt) in --graphs, each model of --models (fetching its node `loss`), and each recorded case in --cases (with
--case-sample, for N of them).
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.is_empty() || words.iter().any(|word| word == "--help") {
        print!("{HELP}");
        return ExitCode::from(if words.is_empty() { 2 } else { 0 });
    }
    match export(words) {
        Ok(count) => {
            println!("{count} modules");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("hlo-cases: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Source of a module.
enum Source {
    Text(String),
    Graph { graph: PathBuf, config: PathBuf },
    Model(PathBuf),
    Case(PathBuf),
}

fn export(mut words: Vec<String>) -> Result<usize, String> {
    let graphs = list_after(&mut words, "--graphs");
    let models = list_after(&mut words, "--models");
    let mut arguments = Arguments::new(words);
    let hlo: Option<PathBuf> = arguments.value("--hlo")?;
    let sample: Option<usize> = arguments.value("--sample")?;
    let cases: Option<PathBuf> = arguments.value("--cases")?;
    let case_sample: Option<usize> = arguments.value("--case-sample")?;
    let out: PathBuf = match arguments.rest()?.as_slice() {
        [out] => out.into(),
        _ => return Err("expected one output directory".to_owned()),
    };
    let mut sources = Vec::new();
    if let Some(root) = hlo.filter(|root| root.is_dir()) {
        add_tests(&root, &root, &mut sources)?;
    }
    for root in &graphs {
        add_graphs(Path::new(root), Path::new(root), &mut sources)?;
    }
    sources.sort_by(|(a, _), (b, _)| a.cmp(b));
    if let Some(count) = sample {
        sources.sort_by_key(|(name, _)| fnv1a64(name.as_bytes()));
        sources.truncate(count);
    }
    // Explicitly named models are not part of the sample.
    for model in models {
        let stem = Path::new(&model).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        sources.push((format!("model-{stem}"), Source::Model(model.into())));
    }
    if let Some(root) = cases {
        let all = select::find(&[root]).map_err(|e| e.to_string())?;
        for case in select::sample(all, case_sample.unwrap_or(usize::MAX)) {
            sources.push((format!("case-{}", case.name.replace(['/', '.'], "-")), Source::Case(case.path)));
        }
    }
    std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let mut failed = 0;
    for (name, source) in &sources {
        // A module that fails to compile does not affect the others.
        if let Err(error) = compiler::guarded(|| write_source(&out, name, source)) {
            failed += 1;
            std::fs::write(out.join(format!("{name}.failed")), error.message())
                .map_err(|e| format!("{name}: {e}"))?;
        }
    }
    if failed > 0 {
        println!("{failed} failed; see the .failed files");
    }
    Ok(sources.len())
}

fn write_source(out: &Path, name: &str, source: &Source) -> support::Result<()> {
    let whole = |module: Module| write_forms(out, name, &module, None);
    match source {
        Source::Text(text) => write(out, name, &hlo::parse(text)?),
        Source::Graph { graph, config } => whole(module_of_graph(graph, config)?),
        Source::Model(path) => whole(module_of_model(path, "loss")?),
        Source::Case(path) => write_case(out, name, path),
    }
}

/// Removes a flag and the words after it, up to the next flag.
fn list_after(words: &mut Vec<String>, flag: &str) -> Vec<String> {
    let Some(at) = words.iter().position(|word| word == flag) else { return Vec::new() };
    let end =
        words[at + 1..].iter().position(|word| word.starts_with('-')).map_or(words.len(), |n| at + 1 + n);
    words.drain(at..end).skip(1).collect()
}

/// Adds the modules of every file test, named by their paths.
fn add_tests(root: &Path, directory: &Path, sources: &mut Vec<(String, Source)>) -> Result<(), String> {
    for path in list(directory)? {
        if path.is_dir() {
            add_tests(root, &path, sources)?;
        } else if path.extension().is_some_and(|e| e == "hlo") {
            let test = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            for (k, text) in modules_of_test(&test).into_iter().enumerate() {
                sources.push((format!("{}-{k}", flat_name(root, &path)), Source::Text(text.to_owned())));
            }
        }
    }
    Ok(())
}

/// Adds every graph with a config, except erroneous ones.
fn add_graphs(root: &Path, directory: &Path, sources: &mut Vec<(String, Source)>) -> Result<(), String> {
    let frozen = directory.join("frozen.pb");
    let graph = if frozen.is_file() { frozen } else { directory.join("graph.pb") };
    let config = directory.join("config.pbtxt");
    // A graph that must be frozen first contains the restore ops of its variables.
    let needs_freezing = directory.join("graph.ckpt").exists() && graph.ends_with("graph.pb");
    if graph.is_file() && config.is_file() && !needs_freezing {
        sources.push((flat_name(root, directory), Source::Graph { graph, config }));
    }
    for path in list(directory)? {
        if path.is_dir() && !path.ends_with("errors") {
            add_graphs(root, &path, sources)?;
        }
    }
    Ok(())
}

fn list(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).collect())
}

/// Returns the path relative to the root's parent as one name.
fn flat_name(root: &Path, path: &Path) -> String {
    let below = root.parent().and_then(|parent| path.strip_prefix(parent).ok()).unwrap_or(path);
    below.with_extension("").display().to_string().replace(['/', '\\', '.'], "-")
}
