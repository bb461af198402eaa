//! View that ops of the host and kernels have of their node and of the run.

use crate::device::DeviceId;
use crate::shared::Shared;
use crate::value::{Tensor, Value};
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value as Attr;

/// Services of the run that a node stands in.
pub(crate) trait Run {
    /// Calls a function of the graph's library on a device.
    fn call(&self, name: &str, device: DeviceId, arguments: Vec<Value>) -> Result<Vec<Value>>;

    /// Runs the kernel of a node that the plan does not have. `types` are those of its inputs.
    fn compiled(
        &self,
        node: &tf::Node,
        types: &[DataType],
        device: DeviceId,
        inputs: &mut Vec<Value>,
    ) -> Result<Vec<Option<Value>>>;
}

/// A node that runs.
pub(crate) struct Context<'c> {
    pub(crate) run: &'c dyn Run,
    pub(crate) shared: &'c Shared,
    pub(crate) node: &'c tf::Node,
    pub(crate) device: DeviceId,
    pub(crate) inputs: &'c mut Vec<Value>,
    pub(crate) outputs: &'c mut Vec<Option<Value>>,
}

impl Context<'_> {
    /// An input.
    pub(crate) fn input(&self, k: usize) -> Result<&Value> {
        let value = self.inputs.get(k);
        value.ok_or_else(|| {
            Error::invalid(format!("the op wants an input {k}, there are {}", self.inputs.len()))
        })
    }

    /// The array at an input.
    pub(crate) fn tensor(&self, k: usize) -> Result<Tensor> {
        self.input(k)?.tensor().map_err(|error| error.context(format!("input {k}")))
    }

    /// The integers of an input.
    pub(crate) fn integers(&self, k: usize) -> Result<Vec<i64>> {
        self.tensor(k)?.to_i64s().map_err(|error| error.context(format!("input {k}")))
    }

    /// The one integer of an input.
    pub(crate) fn integer(&self, k: usize) -> Result<i64> {
        self.tensor(k)?.to_i64().map_err(|error| error.context(format!("input {k}")))
    }

    /// What the kernel of an op with one output makes of values.
    pub(crate) fn compiled(
        &self,
        op: &str,
        attributes: impl IntoIterator<Item = (&'static str, Attr)>,
        types: &[DataType],
        result: DataType,
        mut inputs: Vec<Value>,
    ) -> Result<Value> {
        let node = self.node.replacement(op, attributes, vec![result]);
        let mut outputs = self.run.compiled(&node, types, self.device, &mut inputs)?;
        outputs.pop().flatten().ok_or_else(|| Error::internal(format!("{op} made nothing")))
    }

    /// Makes the next output.
    pub(crate) fn push(&mut self, value: impl Into<Value>) {
        self.outputs.push(Some(value.into()));
    }

    /// Runs a function in place of the node: its results are the node's outputs.
    pub(crate) fn call_function(&mut self, name: &str, arguments: Vec<Value>) -> Result<()> {
        let results = self.run.call(name, self.device, arguments)?;
        self.deliver(results)
    }

    /// Makes the outputs of a function's results.
    pub(crate) fn deliver(&mut self, results: Vec<Value>) -> Result<()> {
        if results.len() != self.node.output_types.len() {
            return Err(Error::invalid(format!(
                "the function returns {} values, the node has {} outputs",
                results.len(),
                self.node.output_types.len()
            )));
        }
        self.outputs.extend(results.into_iter().map(Some));
        Ok(())
    }
}
