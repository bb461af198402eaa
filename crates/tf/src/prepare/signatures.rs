//! Signatures of ops and functions, applied to nodes.

use crate::DataType;
use crate::op_def;
use crate::proto::{AttrValue, FunctionDef, NodeDef, OpDef};
use std::cell::Cell;
use std::collections::BTreeMap;
use support::{Code, Error, Result};

/// The most inputs and outputs that all nodes together may have.
const MAX_TENSORS: usize = 100_000_000;

/// The op of a cluster that is compiled as one: `XlaLaunch` as TensorFlow's first releases with
/// clusters called it.
const CLUSTER: &str = "_XlaLaunch";

/// The signatures that nodes can refer to: library functions first, then registered ops.
pub(super) struct Signatures<'a> {
    functions: BTreeMap<&'a str, (&'a FunctionDef, &'a OpDef)>,
    /// Limit for the number of additional inputs and outputs.
    tensors_left: Cell<usize>,
}

/// A node whose signature is applied.
pub(super) struct Typed {
    pub(super) values: BTreeMap<String, AttrValue>,
    pub(super) input_types: Vec<DataType>,
    pub(super) output_types: Vec<DataType>,
    /// Where the outputs of each output argument begin, and the end.
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

    /// The signature of an op or function.
    pub(super) fn get(&self, op: &str) -> Option<&'a OpDef> {
        let registered = if op == CLUSTER { "XlaLaunch" } else { op };
        self.functions.get(op).map(|&(_, signature)| signature).or_else(|| op_def::lookup(registered))
    }

    /// A function of the library with its signature.
    pub(super) fn function(&self, name: &str) -> Option<(&'a FunctionDef, &'a OpDef)> {
        self.functions.get(name).copied()
    }

    /// Fills defaults in, checks attributes and finds the types of inputs and outputs.
    pub(super) fn apply(&self, node: &NodeDef, mut values: BTreeMap<String, AttrValue>) -> Result<Typed> {
        let at_node = |e: Error| e.context(format!("node '{}' (op {})", node.name, node.op));
        let signature =
            self.get(&node.op).ok_or_else(|| unregistered(&[(node.op.as_str(), node.name.as_str())]))?;
        op_def::fill_defaults(signature, &mut values).map_err(at_node)?;
        op_def::check_attributes(signature, &values).map_err(at_node)?;
        let (input_types, _) = op_def::flat_types(&signature.input_arg, &values).map_err(at_node)?;
        let (output_types, output_starts) =
            op_def::flat_types(&signature.output_arg, &values).map_err(at_node)?;
        let made = input_types.len() + output_types.len();
        let left = self.tensors_left.get().checked_sub(made).ok_or_else(|| {
            at_node(Error::invalid(format!(
                "the graph has more than {MAX_TENSORS} inputs and outputs in all"
            )))
            .coded(Code::TooLarge)
        })?;
        self.tensors_left.set(left);
        Ok(Typed { values, input_types, output_types, output_starts })
    }

    /// The signature of a node with the types of its outputs.
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
         node's outputs (with their type), or fetch something that does not need it",
        culprits.join("; ")
    ))
    .coded(Code::UnknownOp)
}
