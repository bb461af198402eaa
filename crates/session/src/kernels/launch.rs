//! Calls of kernels: variables held, memory for results, the call, and what came out.

use super::Site;
use super::cache::{Kernel, Use};
use super::one_node::Source;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::lock::lock;
use crate::recorder::Recorder;
use crate::recorder::profile::Span;
use crate::value::Variable;
use crate::value::{Tensor, Value};
use jit::{Call, Operand};
use shape::ArrayShape;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};
use support::{Error, Result};

/// The variables of a node, each once, in the order of its inputs.
pub(super) fn variables(site: &Site, inputs: &[Value]) -> Result<Vec<Arc<Variable>>> {
    let mut variables: Vec<Arc<Variable>> = Vec::new();
    for (k, input) in inputs.iter().enumerate() {
        if site.is_variable(k) {
            let variable = input.variable()?;
            if !variables.iter().any(|known| Arc::ptr_eq(known, variable)) {
                variables.push(variable.clone());
            }
        }
    }
    Ok(variables)
}

/// The variables of a node while its kernel runs: nobody else reads or writes them.
pub(super) struct Held<'v> {
    variables: &'v [Arc<Variable>],
    guards: Vec<MutexGuard<'v, Option<Value>>>,
}

impl<'v> Held<'v> {
    pub(super) fn new(variables: &'v [Arc<Variable>]) -> Self {
        // Taken in one order by all nodes, so that no two wait for each other.
        let mut order: Vec<usize> = (0..variables.len()).collect();
        order.sort_by_key(|&at| Arc::as_ptr(&variables[at]));
        let mut guards: Vec<_> = order.into_iter().map(|at| (at, variables[at].hold())).collect();
        guards.sort_by_key(|(at, _)| *at);
        Self { variables, guards: guards.into_iter().map(|(_, guard)| guard).collect() }
    }

    /// What is known of the variables now, for later.
    pub(super) fn seen(&self) -> Result<Seen> {
        let shapes = self.variables.iter().zip(&self.guards).map(|(variable, guard)| match guard.as_ref() {
            Some(Value::Tensor(tensor)) => Ok(Some(tensor.shared_shape().clone())),
            Some(other) => Err(no_array(variable, other)),
            None => Ok(None),
        });
        Ok(Seen { shapes: shapes.collect::<Result<_>>()?, variables: self.variables.to_vec() })
    }
}

/// The shapes of a node's variables.
pub(super) trait Shapes {
    /// Which of the node's variables an input is, by the order of the inputs, and its shape, if it has a value.
    fn variable(&self, input: &Value) -> Result<(usize, Option<Arc<ArrayShape>>)>;
}

impl Shapes for Held<'_> {
    fn variable(&self, input: &Value) -> Result<(usize, Option<Arc<ArrayShape>>)> {
        let (at, variable) = position(self.variables, input)?;
        match self.guards[at].as_ref() {
            Some(Value::Tensor(tensor)) => Ok((at, Some(tensor.shared_shape().clone()))),
            Some(other) => Err(no_array(variable, other)),
            None => Ok((at, None)),
        }
    }
}

/// The shapes of a node's variables as they were once; the variables are nobody's.
pub(super) struct Seen {
    variables: Vec<Arc<Variable>>,
    shapes: Vec<Option<Arc<ArrayShape>>>,
}

impl Shapes for Seen {
    fn variable(&self, input: &Value) -> Result<(usize, Option<Arc<ArrayShape>>)> {
        let (at, _) = position(&self.variables, input)?;
        Ok((at, self.shapes[at].clone()))
    }
}

fn position<'v>(variables: &[Arc<Variable>], input: &'v Value) -> Result<(usize, &'v Variable)> {
    let variable = input.variable()?;
    let at = variables.iter().position(|held| Arc::ptr_eq(held, variable));
    Ok((at.ok_or_else(|| Error::internal("a variable that is not held"))?, variable))
}

fn no_array(variable: &Variable, value: &Value) -> Error {
    Error::invalid(format!("variable '{}' is {}, but an array is wanted", variable.node(), value.kind()))
}

/// Runs a kernel on the inputs of a node.
pub(super) fn launch(
    site: &Site,
    kernel: &Arc<Kernel>,
    held: &mut Held<'_>,
    cx: &mut Context<'_>,
    recorder: Option<&Recorder>,
) -> Result<()> {
    let mut states: Vec<Option<Tensor>> = Vec::with_capacity(held.guards.len());
    for (guard, of) in held.guards.iter_mut().zip(&kernel.variables) {
        let state = match of {
            // Taken out, so that nobody else has its memory unless somebody read it before.
            Use::Updates => guard.take(),
            Use::Reads | Use::Makes { is_read: true, .. } => guard.clone(),
            Use::Leaves | Use::Makes { is_read: false, .. } => {
                states.push(None);
                continue;
            }
        };
        match state {
            Some(Value::Tensor(tensor)) => states.push(Some(tensor)),
            _ => return Err(Error::internal("a variable without an array")),
        }
    }
    let result = call(site, kernel, &mut states, cx, recorder);
    for ((guard, of), state) in held.guards.iter_mut().zip(&kernel.variables).zip(states) {
        if *of == Use::Updates {
            **guard = state.map(Value::Tensor);
        }
    }
    deliver(kernel, result?, held, cx)
}

/// Results of a kernel, and the sizes that the run decided.
struct Results {
    buffers: Vec<Buffer>,
    dynamic_sizes: Vec<i64>,
}

fn call(
    site: &Site,
    kernel: &Arc<Kernel>,
    states: &mut [Option<Tensor>],
    cx: &Context<'_>,
    recorder: Option<&Recorder>,
) -> Result<Results> {
    let shared = cx.shared;
    let device = &*shared.devices[cx.device];
    let code = kernel.executable.code();
    let (interface, memory) = (code.interface(), code.memory());
    let mut arguments: Vec<Operand<'_>> = Vec::with_capacity(interface.arguments().len());
    for &k in &kernel.feeds {
        match &cx.inputs[k] {
            Value::Tensor(tensor) => arguments.push(Operand::Read(tensor.bytes())),
            other => return Err(Error::internal(format!("input {k} is {}", other.kind()))),
        }
    }
    for (state, of) in states.iter_mut().zip(&kernel.variables) {
        let Some(state) = state else { continue };
        arguments.push(match of {
            Use::Updates => Operand::Write(state.make_mut()?),
            _ => Operand::Read(state.bytes()),
        });
    }
    let buffers = kernel.results.iter().map(|shape| device.allocate(shape.byte_size() as usize));
    let mut buffers: Vec<Buffer> = buffers.collect::<Result<_>>()?;
    let mut results: Vec<&mut [u8]> = buffers.iter_mut().map(|buffer| &mut buffer[..]).collect();
    let workers = shared.workers.as_ref().filter(|_| kernel.is_expensive);
    let count = workers.map_or(1, |workers| workers.count());
    let mut scratch = device.allocate(memory.scratch_bytes.saturating_mul(count))?;
    let mut dynamic_sizes = vec![0; interface.size_count()];
    let mut ticks = vec![0; memory.profile_counters];
    let mut run = |temps: &mut [u8]| {
        let call = &mut Call {
            arguments: &mut arguments,
            results: &mut results,
            temps,
            scratch: &mut scratch,
            workers,
            dynamic_sizes: &mut dynamic_sizes,
            profile_counters: &mut ticks,
        };
        Timing::of(kernel, recorder, || device.launch(code, call))
    };
    let timing = match kernel.persistent_bytes {
        0 => run(&mut device.allocate(memory.temps_bytes)?)?,
        // What a node keeps from run to run is its own.
        _ => {
            let state = shared.resources.state(&site.node.name, memory.temps_bytes)?;
            run(&mut lock(&state))?
        }
    };
    drop(results);
    if let Some(profile) = &kernel.counts.profile {
        profile.add(&ticks, timing.time);
    }
    if let Some(recorder) = recorder {
        recorder.launched(&kernel.counts, timing.span, ticks);
    }
    Ok(Results { buffers, dynamic_sizes })
}

/// Duration of a launch; zeros that nobody asks for.
struct Timing {
    /// By the processor's clock, for profiles.
    time: Duration,
    /// By the recorder's.
    span: Span,
}

impl Timing {
    /// Launches a kernel.
    fn of(kernel: &Kernel, recorder: Option<&Recorder>, launch: impl FnOnce() -> Result<()>) -> Result<Self> {
        let now = || recorder.map_or(0, Recorder::now);
        let begin = now();
        let began = kernel.counts.profile.is_some().then(Instant::now);
        launch()?;
        let time = began.map(|began| began.elapsed()).unwrap_or_default();
        Ok(Self { time, span: Span { begin, end: now() } })
    }
}

/// Makes the node's outputs and new values of variables of a kernel's results, as large as the run says.
fn deliver(kernel: &Kernel, made: Results, held: &mut Held<'_>, cx: &mut Context<'_>) -> Result<()> {
    let mut results: Vec<Option<Tensor>> = Vec::with_capacity(made.buffers.len());
    let outputs = kernel.executable.interface().own_results();
    for (k, ((output, shape), buffer)) in outputs.zip(&kernel.results).zip(made.buffers).enumerate() {
        let tensor = Tensor::new(shape.clone(), buffer);
        if output.sizes().is_empty() {
            results.push(Some(tensor));
            continue;
        }
        let corner = output.true_sizes(&made.dynamic_sizes);
        let cut = tensor.to_literal().corner(&corner);
        let cut = cut.ok_or_else(|| Error::internal(format!("result {k} came out with sizes {corner:?}")))?;
        results.push(Some(Tensor::from_literal(&cut)?));
    }
    for (k, of) in kernel.variables.iter().enumerate() {
        let Use::Makes { result, .. } = of else { continue };
        let made = results.get_mut(*result).and_then(Option::take);
        let made = made.ok_or_else(|| Error::internal("a variable without its new value"))?;
        let made = Value::Tensor(made);
        held.variables[k].check(&made)?;
        *held.guards[k] = Some(made);
    }
    for output in &kernel.outputs {
        let value = match *output {
            Source::Result(k) => results.get_mut(k).and_then(Option::take).map(Value::Tensor),
            Source::Reference(k) => cx.inputs.get(k).cloned(),
        };
        let value = value.ok_or_else(|| Error::internal("a kernel without the result of an output"))?;
        cx.outputs.push(Some(value));
    }
    Ok(())
}
