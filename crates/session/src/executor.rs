//! Runs plans. Ready nodes run on the threads of a pool; a cheap node runs on the thread that made
//! it ready.

mod execute;
pub(crate) mod pool;
mod state;

use crate::context;
use crate::device::DeviceId;
use crate::executor::pool::{Help, Pool};
use crate::kernels::{Background, Kernels, Site};
use crate::lock::lock;
use crate::plan::program::Program;
use crate::plan::{Kind, Plan, PlanNode, at_node};
use crate::recorder::Recorder;
use crate::recorder::profile::Span;
use crate::shared::Shared;
use crate::value::Value;
use state::State;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;
use support::{Error, Result};
use tf::DataType;

/// State, kernels and threads of a session.
pub(crate) struct Engine {
    pub(crate) shared: Shared,
    pub(crate) kernels: Arc<Kernels>,
    /// Compiles clusters that no run waits for.
    pub(crate) background: Background,
    pub(crate) pool: Pool,
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Time at which the run is aborted.
    pub(crate) deadline: Option<Instant>,
    /// Number of enclosing runs: functions that conditionals and loops call run nested.
    pub(crate) depth: usize,
}

/// A run of a plan.
struct Run {
    engine: Arc<Engine>,
    program: Arc<Program>,
    plan: Arc<Plan>,
    arguments: Vec<Value>,
    recorder: Option<Arc<Recorder>>,
    limits: Limits,
    state: Mutex<State>,
    /// Wakes the thread that began the run, which waits here while other threads run the last
    /// nodes.
    changed: Condvar,
}

/// Buffers that a thread reuses for each node.
#[derive(Default)]
struct Workspace {
    inputs: Vec<Value>,
    outputs: Vec<Option<Value>>,
}

/// Maximum nesting depth of function calls during a run.
const MAX_DEPTH: usize = 64;

/// Runs a plan on arguments and returns its results. A dead result is an error.
pub(crate) fn run(
    engine: &Arc<Engine>,
    program: &Arc<Program>,
    plan: &Arc<Plan>,
    arguments: Vec<Value>,
    recorder: Option<Arc<Recorder>>,
    limits: Limits,
) -> Result<Vec<Value>> {
    if limits.depth > MAX_DEPTH {
        return Err(Error::unsupported(format!(
            "function calls are nested more than {MAX_DEPTH} levels deep"
        )));
    }
    let run = Arc::new(Run {
        engine: engine.clone(),
        program: program.clone(),
        plan: plan.clone(),
        arguments,
        recorder,
        limits,
        state: Mutex::new(State::new(plan)),
        changed: Condvar::new(),
    });
    run.drive();
    let mut state = lock(&run.state);
    if let Some(error) = state.error.take() {
        return Err(error);
    }
    let results = state.results.drain(..).enumerate();
    let results = results.map(|(k, value)| {
        value.ok_or_else(|| {
            Error::invalid(format!(
                "Retval[{k}] does not have value: {} is on a branch of a conditional that was not taken; fetch the Merge of \
                 both branches instead, which always has a value",
                plan.fetched(k)
            ))
        })
    });
    results.collect()
}

impl Run {
    /// Runs ready nodes until the run is done.
    fn drive(self: &Arc<Self>) {
        let mut workspace = Workspace::default();
        let mut state = lock(&self.state);
        loop {
            state = self.work(state, &mut workspace);
            if state.is_done() {
                return;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn work<'s>(
        self: &'s Arc<Self>,
        mut state: std::sync::MutexGuard<'s, State>,
        workspace: &mut Workspace,
    ) -> std::sync::MutexGuard<'s, State> {
        while let Some(task) = state.next() {
            let node = &self.plan.nodes[task.node];
            let input_result = state.take_inputs(node, task, &mut workspace.inputs);
            let others = state.expensive.len();
            drop(state);
            if others > 0 {
                self.engine.pool.invite(self, others);
            }
            workspace.outputs.clear();
            let result = match input_result {
                Ok(()) if task.is_dead => Ok(()),
                Ok(()) => without_panic(|| self.execute_recorded(node, workspace))
                    .and_then(|()| self.check_deadline()),
                Err(error) => Err(error),
            };
            state = lock(&self.state);
            state.running -= 1;
            let result = match result {
                Ok(()) => {
                    let plan = &self.plan;
                    if let Kind::Fetch(k) = node.kind {
                        state.results[k] = workspace.inputs.pop();
                    }
                    state.deliver(plan, task, &mut workspace.outputs)
                }
                Err(error) => Err(at_node(error, &node.node)),
            };
            if let Err(error) = result {
                state.fail(error);
            }
            if state.is_done() {
                self.changed.notify_all();
            }
        }
        state
    }

    fn check_deadline(&self) -> Result<()> {
        match self.limits.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Error::invalid(
                "the step exceeded operation_timeout_in_ms of the session's config and was aborted: increase the \
                 timeout, or check that all loops terminate",
            )),
            _ => Ok(()),
        }
    }

    fn execute_recorded(&self, node: &PlanNode, workspace: &mut Workspace) -> Result<()> {
        let Some(recorder) = &self.recorder else { return self.execute(node, workspace) };
        let begin = recorder.now();
        crate::gpu::start_recording();
        let result = self.execute(node, workspace);
        let copies = crate::gpu::recorded_copies();
        result?;
        let end = recorder.now();
        let device = self.engine.shared.devices[node.device].name();
        let inputs = self.plan.input_names(node);
        recorder.ran(&node.node, inputs, device, Span { begin, end }, &workspace.outputs, copies);
        Ok(())
    }
}

impl Help for Run {
    /// Runs ready nodes until there are none.
    fn help(self: Arc<Self>) {
        let mut workspace = Workspace::default();
        let state = lock(&self.state);
        let state = self.work(state, &mut workspace);
        drop(state);
    }
}

impl context::Run for Run {
    fn call(&self, name: &str, device: DeviceId, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let plan = self.program.function(name, device, &self.engine.shared.resources)?;
        let limits = Limits { depth: self.limits.depth + 1, ..self.limits };
        run(&self.engine, &self.program, &plan, arguments, self.recorder.clone(), limits)
    }

    fn compiled(
        &self,
        node: &tf::Node,
        types: &[DataType],
        device: DeviceId,
        inputs: &mut Vec<Value>,
    ) -> Result<Vec<Option<Value>>> {
        let site = Arc::new(Site::new(node, types)?);
        let mut outputs = Vec::new();
        let shared = &self.engine.shared;
        let mut cx = context::Context { run: self, shared, node, device, inputs, outputs: &mut outputs };
        self.launcher().run(&site, &mut cx)?;
        Ok(outputs)
    }
}

/// Turns a panic into the node's error. Otherwise the node would never finish, and the run would
/// wait for it forever.
fn without_panic(execute: impl FnOnce() -> Result<()>) -> Result<()> {
    catch_unwind(AssertUnwindSafe(execute)).unwrap_or_else(|panic| Err(compiler::panicked(&*panic)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_of_its_node() {
        let places = [1, 2];
        let error = without_panic(|| panic!("place {} of {}", places[1], places.len())).expect_err("a panic");
        assert!(error.message().starts_with("place 2 of 2; this is a defect of tfcompile"), "{error}");
        assert!(without_panic(|| Ok(())).is_ok());
    }
}
