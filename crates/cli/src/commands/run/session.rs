//! `tfcompile run --jit`: runs a model in a session, node by node.

use crate::args::xla_flags::XlaFlags;
use crate::commands::run::Run;
use crate::files::outputs;
use crate::files::outputs::Output;
use crate::files::state;
use crate::report::steps::{Steps, step_lines};
use crate::session::clustering::cluster_tables;
use crate::session::model::{Request, SessionModel};
use crate::session::trace;
use shape::Literal;
use std::io::Write as _;
use support::Result;

/// Runs a model in a session and prints its fetches.
pub(crate) fn run(arguments: &Run, xla: &XlaFlags) -> Result<()> {
    let request = Request {
        model: &arguments.model,
        feeds: &arguments.feeds,
        session: &arguments.session,
        threads: arguments.threads,
    };
    let model = SessionModel::open(&request, xla)?;
    let count = arguments.steps.or(model.batch_count()).unwrap_or(1);
    let traced = arguments.trace.step(count)?;
    let mut files = Vec::new();
    let mut results = Vec::new();
    let mut steps = Steps::new(&arguments.model.stem(), count, arguments.model.quiet);
    for step in 0..count {
        results = model.step(step, |session, feeds, fetches, targets| {
            if traced == Some(step) {
                let (results, metadata) = session.run_traced(feeds, fetches, targets)?;
                files.extend(trace::outputs(&arguments.trace, &metadata));
                Ok(results)
            } else {
                session.run(feeds, fetches, targets)
            }
        })?;
        let named = model.fetches.iter().map(String::as_str).zip(&results);
        steps.ended(step, &step_lines(named, step, count))?;
    }
    let rate = steps.finish()?;
    if let Some(rate) = rate.filter(|_| !arguments.model.quiet) {
        // If standard error is closed, there is nowhere to report that.
        let _ = writeln!(
            std::io::stderr(),
            "{count} steps, {rate:.0} steps/s after the first, {} kernels compiled",
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
                "note: the graph has no node named accuracy; name the node to fetch for the test images with --accuracy"
            )),
        }
    }
    files.extend(state_files(arguments, &model, &results)?);
    outputs::write(&files)
}

/// Files with the results and the variables.
fn state_files(arguments: &Run, model: &SessionModel, results: &[Literal]) -> Result<Vec<Output<'static>>> {
    let variables = model.variables()?;
    let mut files = Vec::new();
    if let Some(path) = &arguments.save {
        files.extend(state::outputs(path, &variables)?);
    }
    if let Some(path) = &arguments.out {
        let named = model.fetches.iter().cloned().zip(results.iter().cloned());
        let archive = crate::files::state::archive(named.chain(variables))?;
        files.push(Output { path: path.clone(), parts: vec![archive.into()] });
    }
    Ok(files)
}
