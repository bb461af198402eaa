//! Requests to responses: gathers the tensors of requests, runs the program, and scatters the
//! results.
//!
//! Every request gets exactly one response and is released. An error concerns one request: if a run
//! of several fails, each of them runs again alone.

use crate::api;
use crate::batch::{Load, runs};
use crate::block::{Part, dense_bytes, place, take};
use crate::config::Settings;
use crate::frame::Memory;
use crate::server::{Failure, Input, Instance, Request, Times, log};
use crate::signature::{Rows, Signature, Size, Tensor};
use shape::PrimitiveType;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use support::{Error, Result};

/// A model's program and its settings, which instances share.
pub struct Model {
    /// The program.
    pub program: Arc<crate::program::Program>,
    /// Its tensors.
    pub signature: Signature,
    /// Settings from the configuration.
    pub settings: Settings,
}

/// A request whose tensors were checked.
struct Job<'r> {
    request: &'r Request,
    inputs: Vec<Input<'r>>,
    /// Sizes of named dimensions, by argument, without the rows that requests share.
    sizes: Vec<(usize, i64)>,
    /// Rows of the request; 1 if it runs alone.
    rows: i64,
}

/// Answers requests.
pub fn execute(
    model: &Model,
    memory: &mut Memory,
    instance: Instance,
    requests: Vec<Request>,
    now: fn() -> Duration,
) {
    let nanoseconds = || now().as_nanos() as u64;
    let start = nanoseconds();
    let mut jobs = Vec::new();
    let mut refused = Vec::new();
    for request in &requests {
        match caught(|| job(model, request)) {
            Ok(job) => jobs.push(job),
            Err(failure) => refused.push((request, failure)),
        }
    }
    for (request, failure) in refused {
        let end = nanoseconds();
        note(request.refuse(&failure));
        note(instance.report(request, false, [start, start, end, end]));
    }
    let rows = model.settings.rows;
    let load = |job: &Job<'_>| Load {
        rows: rows.map(|_| job.rows),
        sizes: job.sizes.iter().map(|(_, size)| *size).collect(),
    };
    let loads: Vec<Load> = jobs.iter().map(load).collect();
    for run in runs(&loads, rows.map_or(1, |rows| rows.high)) {
        let run: Vec<&Job<'_>> = run.into_iter().map(|k| &jobs[k]).collect();
        let is_done = answer_run(model, memory, instance, &run, start, &nanoseconds, run.len() == 1);
        if !is_done {
            for job in run {
                answer_run(model, memory, instance, &[job], start, &nanoseconds, true);
            }
        }
    }
    drop(jobs);
    requests.into_iter().for_each(|request| note(request.release()));
}

/// Turns a panic into an error. Some requests may be answered already, so the server must not
/// answer all of them.
fn caught<T, E: From<Error>>(run: impl FnOnce() -> std::result::Result<T, E>) -> std::result::Result<T, E> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Error::internal("the backend has a bug").into()))
}

/// Runs the program once for these requests, answers them, and returns true. If the run fails and
/// others can be tried, returns false.
fn answer_run(
    model: &Model,
    memory: &mut Memory,
    instance: Instance,
    run: &[&Job<'_>],
    start: u64,
    nanoseconds: &impl Fn() -> u64,
    is_last: bool,
) -> bool {
    let begin = nanoseconds();
    let computed = caught(|| compute(model, memory, run));
    let done = nanoseconds();
    let total: i64 = run.iter().map(|job| job.rows).sum();
    let sizes = match computed {
        Ok(sizes) => sizes,
        Err(_) if !is_last => return false,
        Err(error) => {
            let failure = Failure::Failed(error);
            for job in run {
                note(job.request.refuse(&failure));
                note(instance.report(job.request, false, [start, begin, done, nanoseconds()]));
            }
            return true;
        }
    };
    let mut first = 0;
    for job in run {
        let sent = caught(|| respond(model, memory, job, &sizes, first));
        if let Err(error) = &sent {
            log(api::TRITONSERVER_LOG_ERROR, &format!("a response failed: {error}"));
        }
        let times: Times = [start, begin, done, nanoseconds()];
        note(instance.report(job.request, sent.is_ok(), times));
        first += job.rows;
    }
    note(instance.report_run(total as u64, [start, begin, done, nanoseconds()]));
    true
}

/// Writes a failure of the server's own functions to its log: there is no other receiver.
fn note(result: Result<()>) {
    if let Err(error) = result {
        log(api::TRITONSERVER_LOG_ERROR, error.message());
    }
}

/// Reads a request and checks it against the program.
fn job<'r>(model: &Model, request: &'r Request) -> std::result::Result<Job<'r>, Failure> {
    if request.is_cancelled()? {
        return Err(Failure::Cancelled);
    }
    let mut inputs = Vec::new();
    let mut sizes: Vec<(usize, i64)> = Vec::new();
    let mut rows = None;
    for tensor in &model.signature.inputs {
        let mut input = request.input(&tensor.name)?;
        if tensor.sizes.is_empty() && input.sizes == [1] {
            // The server has no tensors without dimensions.
            input.sizes.clear();
        }
        check(model.settings.rows, tensor, &input, &mut rows, &mut sizes)?;
        inputs.push(input);
    }
    sizes.sort_unstable();
    Ok(Job { request, inputs, sizes, rows: rows.unwrap_or(1) })
}

/// Checks one tensor of a request. Adds its named sizes to those of the request.
fn check(
    shared: Option<Rows>,
    tensor: &Tensor,
    input: &Input<'_>,
    rows: &mut Option<i64>,
    sizes: &mut Vec<(usize, i64)>,
) -> Result<()> {
    let name = &tensor.name;
    let wrong = |why: String| Err(Error::invalid(format!("input '{name}': {why}")));
    if input.data_type != tensor.data_type() {
        return wrong(format!("expected elements of {}", tensor.type_name()));
    }
    if input.sizes.len() != tensor.sizes.len() {
        return wrong(format!(
            "expected {} dimensions, got {}: {:?}",
            tensor.sizes.len(),
            input.sizes.len(),
            input.sizes
        ));
    }
    for (d, (&given, &own)) in input.sizes.iter().zip(&tensor.sizes).enumerate() {
        if let (0, Some(shared)) = (d, shared) {
            if *rows.get_or_insert(given) != given {
                return wrong(format!("it has {given} rows, and another input has {}", rows.unwrap_or(0)));
            }
            if !(1..=shared.high).contains(&given) {
                return wrong(format!("expected 1 to {} rows, got {given}", shared.high));
            }
            continue;
        }
        if !own.permits(given) {
            let expected = match own {
                Size::Named { range, .. } => format!("{range}"),
                Size::Fixed(size) | Size::Computed(size) => size.to_string(),
            };
            return wrong(format!("expected {expected} in dimension {d}, got {given}"));
        }
        if let Size::Named { argument, .. } = own {
            match sizes.iter().find(|(known, _)| *known == argument) {
                Some((_, size)) if *size != given => {
                    return wrong(format!(
                        "it has {given} in dimension {d}, and another tensor has {size} there"
                    ));
                }
                Some(_) => {}
                None => sizes.push((argument, given)),
            }
        }
    }
    let expected = dense_bytes(&input.sizes, tensor.element_bytes());
    let got: usize = input.buffers.iter().map(|buffer| buffer.len()).sum();
    match expected {
        Some(bytes) if bytes == got => Ok(()),
        _ => wrong(format!("expected {} bytes, got {got}", expected.unwrap_or(usize::MAX))),
    }
}

/// Runs the program for these requests. Returns the true sizes of bounded dimensions.
fn compute(model: &Model, memory: &mut Memory, run: &[&Job<'_>]) -> Result<Vec<i64>> {
    let rows = model.settings.rows;
    let total: i64 = run.iter().map(|job| job.rows).sum();
    set_sizes(model, memory, run[0], total);
    let padded = rows.map_or(total, |rows| total.max(rows.low));
    let mut given: Vec<(usize, &[u8])> = Vec::new();
    for (k, tensor) in model.signature.inputs.iter().enumerate() {
        if let [job] = run
            && padded == total
            && let Some(bytes) = in_place(memory, tensor, &job.inputs[k])
        {
            given.push((tensor.number, bytes));
            continue;
        }
        let mut row = 0;
        for job in run {
            gather(tensor, &job.inputs[k], row, memory.argument(tensor.number));
            row += job.rows;
        }
        if padded > total {
            let row_bytes = dense_bytes(&tensor.whole()[1..], tensor.element_bytes()).unwrap_or(0);
            let (from, to) = (total as usize * row_bytes, padded as usize * row_bytes);
            memory.argument(tensor.number)[from..to].fill(0);
        }
    }
    let sizes = memory.run(&given)?.to_vec();
    if rows.is_some_and(|rows| rows.argument.is_some()) {
        for tensor in &model.signature.outputs {
            let got = memory.program().interface.results()[tensor.number].true_sizes(&sizes);
            if got.first() != Some(&padded) {
                return Err(Error::invalid(format!(
                    "output '{}' has {} rows for a batch of {padded}; set max_batch_size to 0 in config.pbtxt",
                    tensor.name,
                    got.first().unwrap_or(&0)
                )));
            }
        }
    }
    Ok(sizes)
}

/// Sets the sizes of named dimensions: those of the requests, or else the largest.
fn set_sizes(model: &Model, memory: &mut Memory, job: &Job<'_>, total: i64) {
    let sizes: Vec<(usize, i64)> = memory
        .program()
        .interface
        .sizes()
        .map(|(number, _, range)| {
            let size = match model.settings.rows {
                Some(Rows { argument: Some(argument), low, .. }) if argument == number => total.max(low),
                _ => {
                    job.sizes.iter().find(|(known, _)| *known == number).map_or(range.high, |(_, size)| *size)
                }
            };
            (number, size)
        })
        .collect();
    for (number, size) in sizes {
        memory.argument(number)[..4].copy_from_slice(&(size as i32).to_ne_bytes());
    }
}

/// Returns the bytes of a tensor that the program can read where they are.
fn in_place<'r>(memory: &Memory, tensor: &Tensor, input: &Input<'r>) -> Option<&'r [u8]> {
    let &[bytes] = input.buffers.as_slice() else { return None };
    // Without proof, the code may read rows beyond the size of the run.
    let is_whole = input.sizes == tensor.whole() || memory.program().has_independent_rows;
    let is_aligned = bytes.as_ptr().addr().is_multiple_of(tensor.element_bytes());
    // Clients may send any byte as a bool, but code expects 0 or 1.
    let is_valid = tensor.element != PrimitiveType::Pred;
    (is_whole && is_aligned && is_valid && !bytes.is_empty()).then_some(bytes)
}

/// Copies a tensor to the memory of its argument, from this row on.
fn gather(tensor: &Tensor, input: &Input<'_>, row: i64, argument: &mut [u8]) {
    let joined: Vec<u8>;
    let bytes = match input.buffers.as_slice() {
        [bytes] => bytes,
        buffers => {
            joined = buffers.concat();
            &joined[..]
        }
    };
    let valid: Vec<u8>;
    let bytes = match tensor.element {
        PrimitiveType::Pred => {
            valid = bytes.iter().map(|&byte| u8::from(byte != 0)).collect();
            &valid[..]
        }
        _ => bytes,
    };
    let part = Part { sizes: &input.sizes, whole: &tensor.whole(), row, element: tensor.element_bytes() };
    place(part, bytes, argument);
}

/// Sends the results of a request, whose rows begin at `first`. An error is sent in their place.
fn respond(model: &Model, memory: &Memory, job: &Job<'_>, sizes: &[i64], first: i64) -> Result<()> {
    let mut response = job.request.response()?;
    let filled = (|| {
        let requested = job.request.outputs()?;
        for (k, tensor) in model.signature.outputs.iter().enumerate() {
            let mut own = memory.program().interface.results()[tensor.number].true_sizes(sizes);
            if model.settings.rows.is_some() {
                own[0] = job.rows;
            }
            let whole = tensor.whole();
            let part = Part { sizes: &own, whole: &whole, row: first, element: tensor.element_bytes() };
            let bytes = dense_bytes(&own, tensor.element_bytes())
                .ok_or_else(|| Error::internal("a result exceeds the address space"))?;
            let sent = if own.is_empty() { &[1] } else { own.as_slice() };
            let described = (tensor.data_type(), sent);
            if requested.contains(&tensor.name) {
                let buffer = response.output(&tensor.name, described, bytes)?;
                take(part, memory.result(tensor.number), buffer);
            }
            if let Some((_, state)) = model.settings.states.iter().find(|(output, _)| *output == k) {
                let fill = |buffer: &mut [u8]| take(part, memory.result(tensor.number), buffer);
                job.request.update_state(state, described, bytes, fill)?;
            }
        }
        Ok(())
    })();
    match filled {
        Ok(()) => response.send(None),
        Err(error) => {
            response.send(Some(&Failure::Failed(Error::clone(&error))))?;
            Err(error)
        }
    }
}
