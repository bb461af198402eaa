//! The view of a node and its run that host ops and kernels get.

use crate::device::DeviceId;
use crate::shared::Shared;
use crate::value::{Tensor, Value};
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value as Attr;

/// Services of the run that executes a node.
pub(crate) trait Run {
    /// Calls a library function of the graph on `device`.
    fn call(&self, name: &str, device: DeviceId, arguments: Vec<Value>) -> Result<Vec<Value>>;

    /// Runs the kernel of a node that is not in the plan. `types` are the types of its inputs.
    fn compiled(
        &self,
        node: &tf::Node,
        types: &[DataType],
        device: DeviceId,
        inputs: &mut Vec<Value>,
    ) -> Result<Vec<Option<Value>>>;
}

/// A node during its execution.
pub(crate) struct Context<'c> {
    pub(crate) run: &'c dyn Run,
    pub(crate) shared: &'c Shared,
    pub(crate) node: &'c tf::Node,
    pub(crate) device: DeviceId,
    pub(crate) inputs: &'c mut Vec<Value>,
    pub(crate) outputs: &'c mut Vec<Option<Value>>,
}

impl Context<'_> {
    /// Input `k`.
    pub(crate) fn input(&self, k: usize) -> Result<&Value> {
        let value = self.inputs.get(k);
        value.ok_or_else(|| {
            Error::invalid(format!("missing input {k}: the node has {} inputs", self.inputs.len()))
        })
    }

    /// The array at input `k`.
    pub(crate) fn tensor(&self, k: usize) -> Result<Tensor> {
        self.input(k)?.tensor().map_err(|error| error.context(format!("input {k}")))
    }

    /// The integers at input `k`.
    pub(crate) fn integers(&self, k: usize) -> Result<Vec<i64>> {
        self.tensor(k)?.to_i64s().map_err(|error| error.context(format!("input {k}")))
    }

    /// The single integer at input `k`.
    pub(crate) fn integer(&self, k: usize) -> Result<i64> {
        self.tensor(k)?.to_i64().map_err(|error| error.context(format!("input {k}")))
    }

    /// Runs the kernel of an op with one output on `inputs` and returns the result.
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
        outputs
            .pop()
            .flatten()
            .ok_or_else(|| Error::internal(format!("the kernel of {op} returned no result")))
    }

    /// Appends an output.
    pub(crate) fn push(&mut self, value: impl Into<Value>) {
        self.outputs.push(Some(value.into()));
    }

    /// Runs a function in place of the node: its results become the node's outputs.
    pub(crate) fn call_function(&mut self, name: &str, arguments: Vec<Value>) -> Result<()> {
        let results = self.run.call(name, self.device, arguments)?;
        self.deliver(results)
    }

    /// Appends a function's results as the node's outputs.
    pub(crate) fn deliver(&mut self, results: Vec<Value>) -> Result<()> {
        if results.len() != self.node.output_types.len() {
            return Err(Error::invalid(format!(
                "the function returns {} values, but the node has {} outputs",
                results.len(),
                self.node.output_types.len()
            )));
        }
        self.outputs.extend(results.into_iter().map(Some));
        Ok(())
    }
}
