//! `tfcompile run --jit`: a model in a session, node by node.

use crate::outputs::{self, Output};
use crate::run::Run;
use crate::session_model::{Request, SessionModel};
use crate::state;
use crate::steps::{Steps, told};
use crate::xla_flags::XlaFlags;
use shape::Literal;
use std::io::Write as _;
use support::Result;

/// Runs a model in a session and prints what is fetched.
pub(crate) fn run(arguments: &Run, xla: &XlaFlags) -> Result<()> {
    let request = Request {
        model: &arguments.model,
        given: &arguments.given,
        session: &arguments.session,
        threads: arguments.threads,
    };
    let model = SessionModel::open(&request, xla)?;
    let count = arguments.steps.or(model.batch_count()).unwrap_or(1);
    let traced = arguments.trace.step(count)?;
    let mut files = Vec::new();
    let mut results = Vec::new();
    let mut steps = Steps::new(count, arguments.model.quiet);
    for step in 0..count {
        results = model.step(step, |session, feeds, fetches, targets| match traced == Some(step) {
            false => session.run(feeds, fetches, targets),
            true => {
                let (results, metadata) = session.run_traced(feeds, fetches, targets)?;
                files.extend(arguments.trace.outputs(&metadata));
                Ok(results)
            }
        })?;
        let named = model.fetches.iter().map(String::as_str).zip(&results);
        steps.ended(step, &told(named, step, count))?;
    }
    let rate = steps.finish()?;
    if let Some(rate) = rate.filter(|_| !arguments.model.quiet) {
        // Nobody is left to tell if standard error is closed.
        let _ = writeln!(
            std::io::stderr(),
            "{count} steps, {rate:.0} steps/s behind the first, {} kernels compiled",
            model.session.compiled_kernels()
        );
    }
    let _ = std::io::stderr().write_all(cluster_tables(&model.session).as_bytes());
    if model.batches.has_test() {
        match model.test(arguments.accuracy.as_deref())? {
            Some((accuracy, images)) => {
                outputs::print(&format!("accuracy over {images} test images: {accuracy:.4}\n"))?;
            }
            None if arguments.model.quiet => {}
            None => drop(writeln!(
                std::io::stderr(),
                "note: no node of the graph is called accuracy; name what to fetch for the test images with --accuracy"
            )),
        }
    }
    files.extend(written(arguments, &model, &results)?);
    outputs::write(&files)
}

/// What `--xla_hlo_profile` counted, a table for each cluster, by the names of their nodes.
pub(crate) fn cluster_tables(session: &session::Session) -> String {
    let mut profiles = session.cluster_profiles();
    profiles.retain(|profile| profile.runs > 0);
    profiles.sort_by(|a, b| a.node.cmp(&b.node));
    let tables = profiles.iter().map(|profile| {
        let seconds = profile.time.as_secs_f64();
        let table = runner::hlo_profile(&profile.counters, &profile.ticks, profile.runs, seconds);
        format!("{}: {table}", profile.node)
    });
    tables.collect()
}

/// The files with results and variables.
fn written(arguments: &Run, model: &SessionModel, results: &[Literal]) -> Result<Vec<Output<'static>>> {
    let variables = model.variables()?;
    let mut files = Vec::new();
    if let Some(path) = &arguments.save {
        files.extend(state::outputs(path, &variables)?);
    }
    if let Some(path) = &arguments.out {
        let named = model.fetches.iter().cloned().zip(results.iter().cloned());
        let archive = crate::given::archive(named.chain(variables))?;
        files.push(Output { path: path.clone(), parts: vec![archive.into()] });
    }
    Ok(files)
}
