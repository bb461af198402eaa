//! `tfcompile profile --jit`: writes a page with the time of each node of a session's steps.

use crate::args::xla_flags::XlaFlags;
use crate::commands::profile::{Profile, write};
use crate::session::clustering::cluster_tables;
use crate::session::model::{Request, SessionModel};
use std::time::Instant;
use support::Result;
use trace::{Roof, step_report};

/// Runs a model's steps in a session, traces all of them except the first, and writes a page about
/// them.
pub(crate) fn run(arguments: &Profile, xla: &XlaFlags) -> Result<()> {
    let xla = XlaFlags { is_profiled: true, ..xla.clone() };
    let request = Request {
        model: &arguments.model,
        feeds: &arguments.feeds,
        session: &arguments.session,
        threads: arguments.threads,
    };
    let model = SessionModel::open(&request, &xla)?;
    // The first step compiles.
    model.step(0, |session, feeds, fetches, targets| session.run(feeds, fetches, targets))?;
    let begin = Instant::now();
    let steps = (1..=arguments.steps).map(|step| {
        model.step(step, |session, feeds, fetches, targets| {
            Ok(session.run_recorded(feeds, fetches, targets)?.1)
        })
    });
    let steps = steps.collect::<Result<Vec<_>>>()?;
    let each = begin.elapsed().as_secs_f64() / arguments.steps as f64;
    let nodes: usize = steps.first().map_or(0, Vec::len);
    let subtitle = format!(
        "average of {} steps of a session, {} each; {nodes} nodes per step; {}; the timeline shows the median step",
        arguments.steps,
        terminal::seconds(each),
        arguments.thread_count_text(),
    );
    let mut report = step_report(&arguments.model.model.display().to_string(), &subtitle, 1e9 * each, steps);
    if !arguments.no_peak {
        let target = compiler::host(arguments.model.target_cpu.as_deref().unwrap_or("native"))?;
        let peak = runner::measure_peak(&target, arguments.threads.unwrap_or(1) as usize)?;
        report.peak = Some(Roof { flops: peak.flops, bytes: peak.bytes });
    }
    write(arguments, &report, &cluster_tables(&model.session))
}
