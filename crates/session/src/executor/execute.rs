//! One node.

use super::{Run, Workspace};
use crate::kernels;
use crate::ops::{Context, Prepared};
use crate::plan::{Kind, PlanNode};
use std::sync::Arc;
use support::{Error, Result};

impl Run {
    /// Runs a live node: inputs to outputs.
    pub(super) fn execute(self: &Arc<Self>, node: &PlanNode, workspace: &mut Workspace) -> Result<()> {
        let Workspace { inputs, outputs } = workspace;
        for &k in &node.reads {
            inputs[k] = inputs[k].clone().read()?;
        }
        for &(k, from) in &node.copies {
            let devices = &self.shared.devices;
            if let Some(input) = inputs.get_mut(k) {
                *input = crate::device::moved(input, &*devices[from], &*devices[node.device])?;
            }
        }
        match &node.kind {
            Kind::NoOp | Kind::ControlTrigger => {}
            Kind::Fetch(_) => {
                // The run takes it.
                if let Some(value) = inputs.pop() {
                    inputs.push(value.read()?);
                }
            }
            Kind::Constant(value) => outputs.push(Some(value.clone())),
            Kind::Argument(k) => {
                let argument = self.arguments.get(*k).cloned();
                outputs.push(Some(argument.ok_or_else(|| Error::internal("a run without its arguments"))?));
            }
            Kind::Identity | Kind::Merge | Kind::Enter { .. } | Kind::Exit | Kind::NextIteration => {
                outputs.extend(inputs.drain(..).map(Some))
            }
            Kind::Switch => {
                let taken = inputs[1].tensor()?.truth()?;
                inputs.truncate(1);
                let value = inputs.pop();
                if taken { outputs.extend([None, value]) } else { outputs.extend([value, None]) }
            }
            Kind::SwitchN => {
                let branch = inputs[1].tensor()?.to_i64()?;
                inputs.truncate(1);
                let count = node.node.output_types.len();
                let taken = usize::try_from(branch).ok().filter(|&taken| taken < count);
                let taken = taken.unwrap_or(count.saturating_sub(1));
                outputs.resize(count, None);
                if let Some(output) = outputs.get_mut(taken) {
                    *output = inputs.pop();
                }
            }
            Kind::Variable { variable, is_reference } => {
                outputs.push(Some(Kind::variable_value(variable, *is_reference)));
            }
            Kind::Host(op) => {
                op(&mut Context { run: self, node: &node.node, device: node.device, inputs, outputs })?;
                if outputs.len() != node.node.output_types.len() {
                    return Err(Error::internal(format!(
                        "{} outputs were made of {}",
                        outputs.len(),
                        node.node.output_types.len()
                    )));
                }
            }
            Kind::Compiled(site) => {
                kernels::run(
                    site,
                    &mut Context { run: self, node: &node.node, device: node.device, inputs, outputs },
                )?;
            }
            Kind::Rewritten(rewritten) => {
                let mut cx = Context { run: self, node: &node.node, device: node.device, inputs, outputs };
                match (rewritten.prepare)(&mut cx)? {
                    Prepared::Done => {}
                    Prepared::Launch(site) => kernels::run(&rewritten.sites[site], &mut cx)?,
                    Prepared::Reshape(site, sizes) => {
                        kernels::run(&rewritten.sites[site], &mut cx)?;
                        let made = cx.outputs.pop().flatten();
                        let made =
                            made.ok_or_else(|| Error::internal("a kernel without a result"))?.tensor()?;
                        let made = made.reshaped(&sizes).ok_or_else(|| {
                            Error::internal(format!("{} elements for the sizes {sizes:?}", made.shape()))
                        })?;
                        cx.outputs.push(Some(made.into()));
                    }
                }
            }
        }
        Ok(())
    }
}

impl Kind {
    /// Whether another thread is worth its while.
    pub(crate) fn is_expensive(&self) -> bool {
        match self {
            Self::Compiled(site) => site.is_expensive(),
            Self::Rewritten(rewritten) => rewritten.sites.iter().any(|site| site.is_expensive()),
            _ => false,
        }
    }
}
