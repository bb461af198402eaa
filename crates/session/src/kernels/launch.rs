//! Kernel calls: locking variables, allocating results, calling the code, and delivering its
//! results.

use super::Site;
use super::cache::{Kernel, Use};
use super::one_node::Source;
use super::timing::{Results, Timing};
use crate::buffer::Buffer;
use crate::context::Context;
use crate::device::Place;
use crate::lock::lock;
use crate::recorder::Recorder;
use crate::value::Variable;
use crate::value::{Storage, Tensor, Value};
use hlo::Output;
use jit::{Call, Operand};
use shape::ArrayShape;
use std::sync::{Arc, MutexGuard};
use support::{Error, Result};

/// The distinct variables of a node, in the order of its inputs.
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

/// The variables of a node, locked while its kernel runs.
pub(super) struct LockedVariables<'v> {
    variables: &'v [Arc<Variable>],
    guards: Vec<MutexGuard<'v, Option<Value>>>,
}

impl<'v> LockedVariables<'v> {
    pub(super) fn new(variables: &'v [Arc<Variable>]) -> Self {
        // All nodes lock in the same order, which prevents deadlock.
        let mut order: Vec<usize> = (0..variables.len()).collect();
        order.sort_by_key(|&at| Arc::as_ptr(&variables[at]));
        let mut guards: Vec<_> = order.into_iter().map(|at| (at, variables[at].hold())).collect();
        guards.sort_by_key(|(at, _)| *at);
        Self { variables, guards: guards.into_iter().map(|(_, guard)| guard).collect() }
    }

    /// Copies the current shapes of the variables, for use without the locks.
    pub(super) fn snapshot(&self) -> Result<ShapeSnapshot> {
        let shapes = self.variables.iter().zip(&self.guards).map(|(variable, guard)| match guard.as_ref() {
            Some(Value::Tensor(tensor)) => Ok(Some(tensor.shared_shape().clone())),
            Some(other) => Err(not_an_array(variable, other)),
            None => Ok(None),
        });
        Ok(ShapeSnapshot { shapes: shapes.collect::<Result<_>>()?, variables: self.variables.to_vec() })
    }
}

/// Shapes of a node's variables.
pub(super) trait Shapes {
    /// Position of an input's variable among the node's variables, and its shape if it has a value.
    fn variable(&self, input: &Value) -> Result<(usize, Option<Arc<ArrayShape>>)>;
}

impl Shapes for LockedVariables<'_> {
    fn variable(&self, input: &Value) -> Result<(usize, Option<Arc<ArrayShape>>)> {
        let (at, variable) = position(self.variables, input)?;
        match self.guards[at].as_ref() {
            Some(Value::Tensor(tensor)) => Ok((at, Some(tensor.shared_shape().clone()))),
            Some(other) => Err(not_an_array(variable, other)),
            None => Ok((at, None)),
        }
    }
}

/// Shapes of a node's variables at one moment. The variables are not locked.
pub(super) struct ShapeSnapshot {
    variables: Vec<Arc<Variable>>,
    shapes: Vec<Option<Arc<ArrayShape>>>,
}

impl Shapes for ShapeSnapshot {
    fn variable(&self, input: &Value) -> Result<(usize, Option<Arc<ArrayShape>>)> {
        let (at, _) = position(&self.variables, input)?;
        Ok((at, self.shapes[at].clone()))
    }
}

fn position<'v>(variables: &[Arc<Variable>], input: &'v Value) -> Result<(usize, &'v Variable)> {
    let variable = input.variable()?;
    let at = variables.iter().position(|locked| Arc::ptr_eq(locked, variable));
    Ok((at.ok_or_else(|| Error::internal("a variable of the node is not locked"))?, variable))
}

fn not_an_array(variable: &Variable, value: &Value) -> Error {
    Error::invalid(format!("variable '{}': expected an array, got {}", variable.node(), value.kind()))
}

/// Runs a kernel on the inputs of a node.
pub(super) fn launch(
    site: &Site,
    kernel: &Arc<Kernel>,
    locked: &mut LockedVariables<'_>,
    cx: &mut Context<'_>,
    recorder: Option<&Recorder>,
) -> Result<()> {
    let mut states: Vec<Option<Tensor>> = Vec::with_capacity(locked.guards.len());
    for (guard, usage) in locked.guards.iter_mut().zip(&kernel.variables) {
        let state = match usage {
            // Moved out, so that the kernel can update the memory in place unless an earlier reader
            // shares it.
            Use::Updates => guard.take(),
            Use::Reads | Use::Creates { is_read: true, .. } => guard.clone(),
            Use::Ignores | Use::Creates { is_read: false, .. } => {
                states.push(None);
                continue;
            }
        };
        match state {
            Some(Value::Tensor(tensor)) => states.push(Some(tensor)),
            _ => return Err(Error::internal("a variable has no array")),
        }
    }
    let gpu = cx.shared.devices[cx.device].gpu.as_ref();
    let result = match gpu {
        Some(gpu) => super::gpu_launch::call(gpu, site, kernel, &mut states, cx, recorder),
        None => call(site, kernel, &mut states, cx, recorder),
    };
    for ((guard, usage), state) in locked.guards.iter_mut().zip(&kernel.variables).zip(states) {
        if *usage == Use::Updates {
            **guard = state.map(Value::Tensor);
        }
    }
    deliver(kernel, result?, locked, cx)
}

fn call(
    site: &Site,
    kernel: &Arc<Kernel>,
    states: &mut [Option<Tensor>],
    cx: &Context<'_>,
    recorder: Option<&Recorder>,
) -> Result<Results> {
    let shared = cx.shared;
    let device = &shared.devices[cx.device];
    let code = kernel.executable.code();
    let (interface, memory) = (code.interface(), code.memory());
    let feeds = kernel.feeds.iter().map(|&k| match &cx.inputs[k] {
        Value::Tensor(tensor) => Ok(tensor),
        other => Err(Error::internal(format!("expected an array at input {k}, got {}", other.kind()))),
    });
    let feeds: Vec<&Tensor> = feeds.collect::<Result<_>>()?;
    let (given, rows) = given_sizes(kernel, cx.inputs)?;
    let mut padded: Vec<Option<Buffer>> = Vec::with_capacity(feeds.len());
    for (tensor, argument) in feeds.iter().zip(interface.arguments()) {
        let is_short = rows.is_none() && tensor.shape().sizes() != argument.shape.sizes();
        padded.push(if is_short { Some(in_corner(tensor, &argument.shape, device)?) } else { None });
    }
    let mut arguments: Vec<Operand<'_>> = Vec::with_capacity(interface.arguments().len());
    for (tensor, padded) in feeds.iter().zip(&padded) {
        arguments.push(Operand::Read(match padded {
            Some(buffer) => buffer,
            None => tensor.on_host()?,
        }));
    }
    arguments.extend(given.iter().map(|size| Operand::Read(size)));
    for (state, usage) in states.iter_mut().zip(&kernel.variables) {
        let Some(state) = state else { continue };
        arguments.push(match usage {
            Use::Updates => Operand::Write(state.make_mut()?),
            _ => Operand::Read(state.on_host()?),
        });
    }
    let shapes: Vec<Arc<ArrayShape>> = result_shapes(kernel, rows);
    let buffers = shapes.iter().map(|shape| device.allocate(shape.byte_size() as usize));
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
        // A node with persistent state uses its own memory.
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
        recorder.launched(site.launch(kernel, timing.span, ticks, None));
    }
    Ok(Results { buffers: buffers.into_iter().map(Storage::of_host).collect(), dynamic_sizes, rows })
}

/// Returns the sizes of the kernel's named dimensions, as arguments, and the number of rows if it
/// computes a batch in pieces.
fn given_sizes(kernel: &Kernel, inputs: &[Value]) -> Result<(Vec<Buffer>, Option<i64>)> {
    let mut rows = None;
    let mut sizes = Vec::with_capacity(kernel.sizes.len());
    for &(input, dimension) in &kernel.sizes {
        let Some(Value::Tensor(tensor)) = inputs.get(input) else {
            return Err(Error::internal(format!("expected an array at input {input}")));
        };
        let size = tensor.shape().size(dimension);
        let narrow = i32::try_from(size).map_err(|_| Error::internal("a size exceeds its range"))?;
        sizes.push(Buffer::from_bytes(&narrow.to_ne_bytes())?);
        rows = kernel.is_in_pieces().then_some(size);
    }
    Ok((sizes, rows))
}

/// Copies a tensor to the beginning of each dimension of a larger array. The rest is uninitialized.
fn in_corner(tensor: &Tensor, bounds: &ArrayShape, device: &Place) -> Result<Buffer> {
    let mut buffer = device.allocate(bounds.byte_size() as usize)?;
    let bytes = bounds.element_type.byte_size();
    copy_corner(tensor.on_host()?, &tensor.shape().sizes(), &mut buffer, &bounds.sizes(), bytes);
    Ok(buffer)
}

fn copy_corner(from: &[u8], sizes: &[i64], to: &mut [u8], bounds: &[i64], bytes: usize) {
    let count = |sizes: &[i64]| sizes.iter().product::<i64>() as usize * bytes;
    // Equal dimensions are contiguous in both.
    if sizes.get(1..) == bounds.get(1..) {
        return to[..from.len()].copy_from_slice(from);
    }
    let (row, into) = (count(&sizes[1..]), count(&bounds[1..]));
    for k in 0..sizes[0] as usize {
        let from = &from[k * row..(k + 1) * row];
        copy_corner(from, &sizes[1..], &mut to[k * into..(k + 1) * into], &bounds[1..], bytes);
    }
}

/// Shapes of a kernel's results: with the true number of rows, if it is known.
fn result_shapes(kernel: &Kernel, rows: Option<i64>) -> Vec<Arc<ArrayShape>> {
    let Some(rows) = rows else { return kernel.results.clone() };
    let shape = |(output, shape): (&Output, &Arc<ArrayShape>)| {
        if output.sizes().is_empty() {
            return shape.clone();
        }
        let mut sizes = shape.sizes();
        sizes[0] = rows;
        Arc::new(ArrayShape::new(shape.element_type, &sizes))
    };
    kernel.executable.interface().own_results().zip(&kernel.results).map(shape).collect()
}

/// Converts a kernel's results to the node's outputs and the new values of variables, cut to the
/// sizes determined by the run.
fn deliver(
    kernel: &Kernel,
    call_results: Results,
    locked: &mut LockedVariables<'_>,
    cx: &mut Context<'_>,
) -> Result<()> {
    let mut results: Vec<Option<Tensor>> = Vec::with_capacity(call_results.buffers.len());
    let outputs = kernel.executable.interface().own_results();
    let shapes = result_shapes(kernel, call_results.rows);
    for (k, ((output, shape), buffer)) in outputs.zip(shapes).zip(call_results.buffers).enumerate() {
        let tensor = Tensor::of_storage(shape, buffer);
        if output.sizes().is_empty() || call_results.rows.is_some() {
            results.push(Some(tensor));
            continue;
        }
        let corner = output.true_sizes(&call_results.dynamic_sizes);
        tensor.on_host()?;
        let cut = tensor.to_literal().corner(&corner);
        let cut = cut.ok_or_else(|| {
            Error::internal(format!("the sizes {corner:?} of result {k} exceed its bounds"))
        })?;
        results.push(Some(Tensor::from_literal(&cut)?));
    }
    for (k, usage) in kernel.variables.iter().enumerate() {
        let Use::Creates { result, .. } = usage else { continue };
        let value = results.get_mut(*result).and_then(Option::take);
        let value = value.ok_or_else(|| Error::internal("the new value of a variable is missing"))?;
        let value = Value::Tensor(value);
        locked.variables[k].check(&value)?;
        *locked.guards[k] = Some(value);
    }
    for output in &kernel.outputs {
        let value = match *output {
            Source::Result(k) => results.get_mut(k).and_then(Option::take).map(Value::Tensor),
            Source::Reference(k) => cx.inputs.get(k).cloned(),
        };
        let value = value.ok_or_else(|| Error::internal("the kernel has no result for an output"))?;
        cx.outputs.push(Some(value));
    }
    Ok(())
}
