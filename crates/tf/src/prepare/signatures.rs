//! Signatures of ops and functions, applied to nodes.

use crate::DataType;
use crate::op_def;
use crate::proto::{AttrValue, FunctionDef, NodeDef, OpDef};
use std::cell::Cell;
use std::collections::BTreeMap;
use support::{Code, Error, Result};

/// Maximum total number of inputs and outputs of all nodes.
const MAX_TENSORS: usize = 100_000_000;

/// Op of a cluster that is compiled as a whole: the name of `XlaLaunch` in the first TensorFlow
/// releases with clusters.
const CLUSTER: &str = "_XlaLaunch";

/// The signatures that nodes can refer to: library functions first, then registered ops.
pub(super) struct Signatures<'a> {
    functions: BTreeMap<&'a str, (&'a FunctionDef, &'a OpDef)>,
    /// Number of inputs and outputs left until the limit.
    tensors_left: Cell<usize>,
}

/// Result of applying a signature to a node.
pub(super) struct Typed {
    pub(super) values: BTreeMap<String, AttrValue>,
    pub(super) input_types: Vec<DataType>,
    pub(super) output_types: Vec<DataType>,
    /// Start index of each output argument's outputs, followed by the number of outputs.
    pub(super) output_starts: Vec<usize>,
}

impl<'a> Signatures<'a> {
    pub(super) fn new(library: &'a [FunctionDef]) -> Result<Self> {
        let mut functions = BTreeMap::new();
        for function in library {
            let signature = function.signature.as_ref().filter(|s| !s.name.is_empty());
            let signature =
                signature.ok_or_else(|| Error::invalid("a function of the graph's library has no name"))?;
            if functions.insert(signature.name.as_str(), (function, signature)).is_some() {
                return Err(Error::invalid(format!(
                    "two library functions have the name '{}'",
                    signature.name
                )));
            }
        }
        Ok(Self { functions, tensors_left: Cell::new(MAX_TENSORS) })
    }

    /// Returns the signature of an op or function.
    pub(super) fn get(&self, op: &str) -> Option<&'a OpDef> {
        let registered = if op == CLUSTER { "XlaLaunch" } else { op };
        self.functions.get(op).map(|&(_, signature)| signature).or_else(|| op_def::lookup(registered))
    }

    /// Returns a function of the library with its signature.
    pub(super) fn function(&self, name: &str) -> Option<(&'a FunctionDef, &'a OpDef)> {
        self.functions.get(name).copied()
    }

    /// Adds default attributes, checks attributes, and computes the types of inputs and outputs.
    pub(super) fn apply(&self, node: &NodeDef, mut values: BTreeMap<String, AttrValue>) -> Result<Typed> {
        let at_node = |e: Error| e.context(format!("node '{}' (op {})", node.name, node.op));
        let signature =
            self.get(&node.op).ok_or_else(|| unregistered(&[(node.op.as_str(), node.name.as_str())]))?;
        op_def::fill_defaults(signature, &mut values).map_err(at_node)?;
        op_def::check_attributes(signature, &values).map_err(at_node)?;
        let (input_types, _) = op_def::flat_types(&signature.input_arg, &values).map_err(at_node)?;
        let (output_types, output_starts) =
            op_def::flat_types(&signature.output_arg, &values).map_err(at_node)?;
        let tensors = input_types.len() + output_types.len();
        let tensors_left = self.tensors_left.get().checked_sub(tensors).ok_or_else(|| {
            at_node(Error::invalid(format!(
                "the nodes of the graph have more than {MAX_TENSORS} inputs and outputs in total"
            )))
            .coded(Code::TooLarge)
        })?;
        self.tensors_left.set(tensors_left);
        Ok(Typed { values, input_types, output_types, output_starts })
    }

    /// Returns the attributes of a node, including defaults, and the types of its outputs.
    pub(super) fn output_types(
        &self,
        node: &NodeDef,
    ) -> Result<(BTreeMap<String, AttrValue>, Vec<DataType>)> {
        let typed = self.apply(node, node.attr.clone())?;
        Ok((typed.values, typed.output_types))
    }
}

/// Creates the error about all nodes with unregistered ops.
pub(super) fn unregistered(culprits: &[(&str, &str)]) -> Error {
    let culprits: Vec<String> =
        culprits.iter().map(|(op, node)| format!("op '{op}' (node '{node}') is not registered")).collect();
    Error::invalid(format!(
        "{}: no such op exists in TensorFlow 2.15, and the graph's library has no function of this name; feed the \
         node's outputs (with their types), or fetch nodes that do not depend on it",
        culprits.join("; ")
    ))
    .coded(Code::UnknownOp)
}
