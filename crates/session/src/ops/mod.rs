//! Ops that the host runs: what has no arithmetic, or strings, or files.

mod arrays;
mod checkpoints;
mod draws;
mod functional;
mod lists;
mod random;
mod slices;
mod stacks;
mod strings;
mod tensor_arrays;
mod variables;

pub(crate) use functional::call_function;
pub(crate) use strings::summary;

use crate::executor::Run;
use crate::kernels::Site;
use crate::value::{Tensor, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value as Attr;

/// What an op of the host sees of its node.
pub(crate) struct Context<'c> {
    pub(crate) run: &'c Arc<Run>,
    pub(crate) node: &'c tf::Node,
    /// Where it is placed.
    pub(crate) device: usize,
    pub(crate) inputs: &'c mut Vec<Value>,
    pub(crate) outputs: &'c mut Vec<Option<Value>>,
}

/// Runs a node: makes as many outputs as it has.
pub(crate) type HostOp = fn(&mut Context<'_>) -> Result<()>;

/// A node whose kernel is another op's.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The nodes that may be compiled.
    pub(crate) sites: Vec<Arc<Site>>,
    /// Makes its inputs of the node's.
    pub(crate) prepare: fn(&mut Context<'_>) -> Result<Prepared>,
}

/// What is left to do behind [`Rewritten::prepare`].
pub(crate) enum Prepared {
    /// Nothing: the outputs are made.
    Done,
    /// Running the kernel of a site.
    Launch(usize),
    /// The same, and then its result gets these sizes.
    Reshape(usize, Vec<i64>),
}

type Row = (&'static str, HostOp);

const FAMILIES: &[&[Row]] = &[
    arrays::OPS,
    checkpoints::OPS,
    draws::OPS,
    functional::OPS,
    lists::OPS,
    stacks::OPS,
    strings::OPS,
    tensor_arrays::OPS,
    variables::OPS,
];

static BY_NAME: LazyLock<BTreeMap<&'static str, HostOp>> =
    LazyLock::new(|| FAMILIES.iter().copied().flatten().copied().collect());

/// The function of the host for a node.
pub(crate) fn find(node: &tf::Node) -> Option<HostOp> {
    if crate::plan::must_compile(node) {
        return None;
    }
    let is_variant = || node.attributes.ty("T").is_ok_and(|t| t == DataType::Variant);
    let of_variants = lists::OF_VARIANTS.iter().find(|(op, _)| *op == node.op).filter(|_| is_variant());
    of_variants.map(|(_, op)| *op).or_else(|| BY_NAME.get(node.op.as_str()).copied())
}

/// The kernel that a node has in place of its own op's.
pub(crate) fn rewrite(node: &tf::Node) -> Result<Option<Rewritten>> {
    match node.op.as_str() {
        "Slice" | "StridedSlice" => slices::rewrite(node),
        _ => random::rewrite(node),
    }
}

/// Why an op is refused that TensorFlow would run.
pub(crate) fn refusal(op: &str) -> Option<String> {
    let reason = if op.contains("Queue") {
        "queues are not run: feed what is taken from them"
    } else if op.contains("Reader") && !op.contains("ReadVariable") {
        "readers of files are not run: feed what is read"
    } else if op.contains("Iterator") || op.contains("Dataset") {
        "input pipelines are not run: feed what they make"
    } else if op.contains("HashTable") || op.starts_with("LookupTable") || op.contains("MutableHash") {
        "tables are not run: give the model as a SavedModel, whose tables become constants"
    } else if op.contains("Barrier") || op.contains("Accumulator") {
        "barriers and accumulators are not run: take the part of the graph behind them"
    } else if op.starts_with("PyFunc") || op == "EagerPyFunc" {
        "Python functions are not run: write it with TensorFlow's ops"
    } else {
        return None;
    };
    Some(format!("op {op} is not supported: {reason}"))
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
        attributes: impl IntoIterator<Item = (String, Attr)>,
        types: &[DataType],
        result: DataType,
        mut inputs: Vec<Value>,
    ) -> Result<Value> {
        let values = attributes.into_iter().map(|(name, value)| (name, value.into())).collect();
        let node = tf::Node {
            name: self.node.name.clone(),
            op: op.to_owned(),
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            attributes: tf::Attributes::new(&self.node.name, op, values),
            output_types: vec![result],
        };
        let site = Arc::new(Site::new(&node, types)?);
        let mut outputs = Vec::new();
        let mut cx = Context {
            run: self.run,
            node: &node,
            device: self.device,
            inputs: &mut inputs,
            outputs: &mut outputs,
        };
        crate::kernels::run(&site, &mut cx)?;
        outputs.pop().flatten().ok_or_else(|| Error::internal(format!("{op} made nothing")))
    }

    /// Makes the next output.
    pub(crate) fn push(&mut self, value: impl Into<Value>) {
        self.outputs.push(Some(value.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_has_one_row_and_is_registered() {
        let rows: Vec<&str> = FAMILIES.iter().copied().flatten().map(|row| row.0).collect();
        assert_eq!(rows.len(), BY_NAME.len(), "an op has two rows");
        for op in rows {
            assert!(tf::op_signature(op).is_some(), "{op} is no op of TensorFlow");
        }
    }

    #[test]
    fn what_is_refused_says_what_to_do() {
        assert!(refusal("QueueDequeueV2").is_some_and(|text| text.contains("feed what is taken")));
        assert!(refusal("ReaderReadV2").is_some_and(|text| text.contains("feed what is read")));
        assert_eq!(refusal("ReadVariableOp"), None);
        assert_eq!(refusal("MatMul"), None);
    }
}
