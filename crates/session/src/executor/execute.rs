//! Execution of one node.

use super::{Run, Workspace};
use crate::context::Context;
use crate::kernels::Launcher;
use crate::op_kind;
use crate::ops::Prepared;
use crate::plan::{Copied, Kind, PlanNode};
use crate::value::Value;
use support::{Error, Result};

impl Run {
    /// Runs a live node, from inputs to outputs.
    pub(super) fn execute(&self, node: &PlanNode, workspace: &mut Workspace) -> Result<()> {
        let Workspace { inputs, outputs } = workspace;
        for &k in &node.reads {
            inputs[k] = inputs[k].clone().read()?;
        }
        for &Copied { input, from } in &node.copies {
            let devices = &self.engine.shared.devices;
            if let Some(input) = inputs.get_mut(input) {
                *input = crate::device::transfer(input, &devices[from], &devices[node.device])?;
            }
        }
        match &node.kind {
            Kind::NoOp | Kind::ControlTrigger => {}
            Kind::Fetch(_) => {
                // `Run::work` takes the value from the inputs.
                if let Some(value) = inputs.pop() {
                    let value = value.read()?;
                    on_host(&value)?;
                    inputs.push(value);
                }
            }
            Kind::Constant(value) => outputs.push(Some(value.clone())),
            Kind::Argument(k) => {
                let argument = self.arguments.get(*k).cloned();
                outputs
                    .push(Some(argument.ok_or_else(|| Error::internal("the run is missing an argument"))?));
            }
            Kind::Identity | Kind::Merge | Kind::Enter { .. } | Kind::Exit | Kind::NextIteration => {
                outputs.extend(inputs.drain(..).map(Some))
            }
            Kind::Switch => {
                on_host(&inputs[1])?;
                let is_true = inputs[1].tensor()?.truth()?;
                inputs.truncate(1);
                let value = inputs.pop();
                if is_true { outputs.extend([None, value]) } else { outputs.extend([value, None]) }
            }
            Kind::SwitchN => {
                on_host(&inputs[1])?;
                let branch = inputs[1].tensor()?.to_i64()?;
                inputs.truncate(1);
                let count = node.node.output_types.len();
                let selected = usize::try_from(branch).ok().filter(|&selected| selected < count);
                let selected = selected.unwrap_or(count.saturating_sub(1));
                outputs.resize(count, None);
                if let Some(output) = outputs.get_mut(selected) {
                    *output = inputs.pop();
                }
            }
            Kind::Variable { variable, is_reference } => {
                outputs.push(Some(Kind::variable_value(variable, *is_reference)));
            }
            Kind::Host(op) => {
                if !op_kind::keeps_operands(&node.node.op) {
                    inputs.iter().try_for_each(on_host)?;
                }
                op(&mut self.context(node, inputs, outputs))?;
                if outputs.len() != node.node.output_types.len() {
                    return Err(Error::internal(format!(
                        "the op produced {} outputs, expected {}",
                        outputs.len(),
                        node.node.output_types.len()
                    )));
                }
            }
            Kind::Compiled(site) => self.launcher().run(site, &mut self.context(node, inputs, outputs))?,
            Kind::Rewritten(rewritten) => {
                inputs.iter().try_for_each(on_host)?;
                let mut cx = self.context(node, inputs, outputs);
                match (rewritten.prepare)(&mut cx)? {
                    Prepared::Done => {}
                    Prepared::Launch(site) => self.launcher().run(&rewritten.sites[site], &mut cx)?,
                    Prepared::Reshape(site, sizes) => {
                        self.launcher().run(&rewritten.sites[site], &mut cx)?;
                        let output = cx.outputs.pop().flatten();
                        let result = output
                            .ok_or_else(|| Error::internal("the kernel returned no result"))?
                            .tensor()?;
                        let result = result.reshaped(&sizes).ok_or_else(|| {
                            Error::internal(format!(
                                "cannot reshape {} to the sizes {sizes:?}",
                                result.shape()
                            ))
                        })?;
                        cx.outputs.push(Some(result.into()));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn launcher(&self) -> Launcher<'_> {
        Launcher {
            kernels: &self.engine.kernels,
            background: &self.engine.background,
            library: &self.program.library,
            recorder: self.recorder.as_deref(),
        }
    }

    fn context<'c>(
        &'c self,
        node: &'c PlanNode,
        inputs: &'c mut Vec<Value>,
        outputs: &'c mut Vec<Option<Value>>,
    ) -> Context<'c> {
        let shared = &self.engine.shared;
        Context { run: self, shared, node: &node.node, device: node.device, inputs, outputs }
    }
}

/// Copies an array to the host if it is only on a GPU.
fn on_host(value: &Value) -> Result<()> {
    match value {
        Value::Tensor(tensor) => tensor.on_host().map(|_| ()),
        _ => Ok(()),
    }
}

impl Kind {
    /// True if the node is worth another thread.
    pub(crate) fn is_expensive(&self) -> bool {
        match self {
            Self::Compiled(site) => site.is_expensive(),
            Self::Rewritten(rewritten) => rewritten.sites.iter().any(|site| site.is_expensive()),
            _ => false,
        }
    }
}
