//! Binds resources within one graph or function.

use super::{Bound, Copies, calls, type_value};
use crate::DataType;
use crate::proto::{AttrValue, NodeDef, TensorProto, TensorShapeProto, attr_value::Value};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Ops that forward the handle of their first input.
const COPIES: [&str; 6] = ["Enter", "Exit", "Identity", "Merge", "NextIteration", "Switch"];

/// Nodes of a graph or function.
pub(super) struct Body<'a> {
    nodes: BTreeMap<&'a str, &'a NodeDef>,
    /// Bound nodes and arguments.
    roots: BTreeMap<&'a str, Bound>,
    /// Bindings of the outputs of other nodes.
    handles: BTreeMap<&'a str, Vec<Option<Bound>>>,
    arguments: BTreeSet<&'a str>,
}

/// Replacement of a node.
pub(super) struct Rewritten {
    /// The replacement, preceded by the nodes that it needs.
    pub(super) nodes: Vec<NodeDef>,
    /// New name of the node's output, if references within a function must use a different one.
    pub(super) output: Option<&'static str>,
}

impl<'a> Body<'a> {
    /// Collects the nodes of a function with `arguments`, or of a graph, which has none.
    pub(super) fn new(
        nodes: impl IntoIterator<Item = &'a NodeDef>,
        roots: BTreeMap<&'a str, Bound>,
        arguments: &[&'a str],
        copies: &mut Copies<'_>,
    ) -> Result<Self> {
        let mut named = BTreeMap::new();
        for node in nodes {
            if named.insert(node.name.as_str(), node).is_some() {
                return Err(Error::invalid(format!("two nodes have the name '{}'", node.name)));
            }
        }
        let (handles, arguments) = (BTreeMap::new(), arguments.iter().copied().collect());
        let mut body = Self { nodes: named, roots, handles, arguments };
        body.resolve(copies)?;
        Ok(body)
    }

    /// Finds the bindings of the outputs of nodes that return handles. Visits each node once, after
    /// the nodes that its handles come from, so that long chains and wide fan-outs take linear
    /// time.
    fn resolve(&mut self, copies: &mut Copies<'_>) -> Result<()> {
        let mut seen = BTreeSet::new();
        for &root in self.nodes.values().copied().collect::<Vec<_>>().iter() {
            let mut work = vec![(root, false)];
            while let Some((node, ready)) = work.pop() {
                if ready {
                    if let Some(outputs) = self.outputs(node, copies)? {
                        self.handles.insert(&node.name, outputs);
                    }
                } else if self.passes_handles(node, copies) && seen.insert(node.name.as_str()) {
                    work.push((node, true));
                    let sources = node.input.iter().filter(|input| !input.starts_with('^'));
                    // The first input of a merge is the handle from before the loop.
                    let count = if is_copy(node) { 1 } else { usize::MAX };
                    let from =
                        sources.take(count).filter_map(|input| self.nodes.get(name_and_index(input).0));
                    work.extend(from.map(|node| (*node, false)));
                }
            }
        }
        Ok(())
    }

    /// True if a node may return a handle that it receives.
    fn passes_handles(&self, node: &NodeDef, copies: &Copies<'_>) -> bool {
        !self.roots.contains_key(node.name.as_str())
            && (is_copy(node) || node.op == "IdentityN" || calls::is_call(node, copies))
    }

    /// Bindings of the outputs of a node that may return handles. The single entry of a copy stands
    /// for all outputs.
    fn outputs(&self, node: &NodeDef, copies: &mut Copies<'_>) -> Result<Option<Vec<Option<Bound>>>> {
        if is_copy(node) {
            let input = node.input.first().filter(|input| !input.starts_with('^'));
            // Reading a reference yields a value.
            let is_reader = !node.op.starts_with("Ref");
            let bound = input.and_then(|input| self.bound_of(input));
            return Ok(bound.filter(|bound| !(is_reader && bound.is_reference())).map(|b| vec![Some(b)]));
        }
        let bound = self.bound_inputs(node);
        if bound.iter().all(Option::is_none) {
            return Ok(None);
        }
        match node.op.as_str() {
            "IdentityN" => Ok(Some(bound)),
            _ => calls::results(node, &bound, copies).map(Some),
        }
    }

    /// Binding of the handle that an input refers to.
    pub(super) fn bound_of(&self, input: &str) -> Option<Bound> {
        if input.starts_with('^') {
            return None;
        }
        let (name, index) = name_and_index(input);
        if let Some(bound) = self.roots.get(name) {
            return Some(bound.clone());
        }
        let outputs = self.handles.get(name)?;
        let index = if is_copy(self.nodes.get(name)?) { 0 } else { index };
        outputs.get(index).cloned().flatten()
    }

    /// Bindings of each data input of a node. References are excluded, because their consumers see
    /// values.
    fn bound_inputs(&self, node: &NodeDef) -> Vec<Option<Bound>> {
        let data = node.input.iter().filter(|input| !input.starts_with('^'));
        data.map(|input| self.bound_of(input).filter(|bound| !bound.is_reference())).collect()
    }

    /// True if a node reads or forwards a bound TensorFlow 1 reference variable.
    fn has_reference(&self, node: &NodeDef) -> bool {
        node.input.iter().any(|input| self.bound_of(input).is_some_and(|bound| bound.is_reference()))
    }

    /// Rewrites a node for its bound inputs. Returns `None` if no input is bound.
    pub(super) fn rewritten(&self, node: &NodeDef, copies: &mut Copies<'_>) -> Result<Option<Rewritten>> {
        let bound = self.bound_inputs(node);
        let one = |node: NodeDef| Some(Rewritten { nodes: vec![node], output: None });
        let has_reference = self.has_reference(node);
        if !has_reference && bound.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut rewritten = if has_reference { reader_of_reference(node)? } else { node.clone() };
        let Some((at, first)) = bound.iter().enumerate().find_map(|(at, b)| b.as_ref().map(|b| (at, b)))
        else {
            return Ok(one(rewritten));
        };
        match (node.op.as_str(), first) {
            _ if is_copy(&rewritten) => {
                rewritten.attr.insert("T".to_owned(), type_value(first.data_type()));
            }
            ("IdentityN", _) => calls::set_types(&mut rewritten, "T", &bound),
            _ if calls::is_call(node, copies) => calls::rewrite(&mut rewritten, &bound, copies)?,
            (_, Bound::Value { data_type, .. }) if at == 0 && bound.iter().flatten().count() == 1 => {
                return self.reader_of_value(rewritten, *data_type).map(Some);
            }
            ("LookupTableFind" | "LookupTableFindV2", Bound::Table { find, .. })
                if rewritten.input.len() >= 3 =>
            {
                rewritten.op.clone_from(find);
                rewritten.input.remove(0);
                rewritten.attr.clear();
            }
            ("LookupTableSize" | "LookupTableSizeV2", Bound::Table { size, .. }) => {
                rewritten.op.clone_from(size);
                rewritten.input.remove(0);
                rewritten.attr.clear();
            }
            _ => return Err(not_replaceable(node)),
        }
        Ok(one(rewritten))
    }

    /// Rewrites a node whose first input was the handle of a variable and is now its value.
    fn reader_of_value(&self, mut node: NodeDef, data_type: DataType) -> Result<Rewritten> {
        let t = type_value(data_type);
        let mut before = Vec::new();
        let mut output = None;
        match node.op.as_str() {
            "ReadVariableOp" => {
                node.op = "Identity".to_owned();
                node.attr = BTreeMap::from([("T".to_owned(), t)]);
                output = Some("output");
            }
            "VariableShape" => {
                node.op = "Shape".to_owned();
                node.attr.insert("T".to_owned(), t);
            }
            "ResourceGather" => {
                let batch_dims = match node.attr.get("batch_dims").and_then(|value| value.value.as_ref()) {
                    Some(Value::I(dims)) => i32::try_from(*dims).map_err(|_| not_replaceable(&node))?,
                    _ => 0,
                };
                let mut name = format!("{}/axis", node.name);
                while self.nodes.contains_key(name.as_str()) || self.arguments.contains(name.as_str()) {
                    name.push('_');
                }
                let axis = scalar(&name, DataType::Int32, &batch_dims.to_le_bytes());
                // Only functions have arguments, and within a function every handle comes from an
                // argument.
                let is_function = !self.arguments.is_empty();
                let reference = if is_function { format!("{name}:output:0") } else { name };
                node.op = "GatherV2".to_owned();
                node.input.insert(2.min(node.input.len()), reference);
                node.attr.remove("dtype");
                node.attr.remove("validate_indices");
                node.attr.insert("Tparams".to_owned(), t);
                node.attr.insert("Taxis".to_owned(), type_value(DataType::Int32));
                before.push(axis);
            }
            "ResourceGatherNd" => {
                node.op = "GatherNd".to_owned();
                node.attr.remove("dtype");
                node.attr.insert("Tparams".to_owned(), t);
            }
            "VarIsInitializedOp" => {
                let inputs = node.input.into_iter().filter(|input| input.starts_with('^')).collect();
                node = NodeDef { input: inputs, ..scalar(&node.name, DataType::Bool, &[1]) };
                output = Some("output");
            }
            "DisableCopyOnRead" => {
                node.op = "NoOp".to_owned();
                node.attr.clear();
                node.input.retain(|input| input.starts_with('^'));
            }
            _ => return Err(not_replaceable(&node)),
        }
        before.push(node);
        Ok(Rewritten { nodes: before, output })
    }
}

/// Rewrites a node that reads a TensorFlow 1 reference variable, which is now a constant.
fn reader_of_reference(node: &NodeDef) -> Result<NodeDef> {
    let mut node = node.clone();
    let writes = ["Assign", "Apply", "Scatter", "SparseApply", "CountUpTo", "DestroyTemporaryVariable"];
    match node.op.as_str() {
        "RefIdentity" | "RefSwitch" | "RefEnter" | "RefExit" | "RefMerge" | "RefNextIteration" => {
            node.op = node.op["Ref".len()..].to_owned();
        }
        "IsVariableInitialized" => {
            let inputs = node.input.into_iter().filter(|input| input.starts_with('^')).collect();
            node = NodeDef { input: inputs, ..scalar(&node.name, DataType::Bool, &[1]) };
        }
        op if writes.iter().any(|write| op.starts_with(write)) => return Err(not_replaceable(&node)),
        _ => {}
    }
    Ok(node)
}

/// True if a node returns the handle or reference of its first input.
fn is_copy(node: &NodeDef) -> bool {
    COPIES.contains(&node.op.strip_prefix("Ref").unwrap_or(&node.op))
}

fn not_replaceable(node: &NodeDef) -> Error {
    Error::unsupported(format!(
        "node '{}' (op {}) uses a variable or table in a way that a constant cannot replace; feed the variable \
         (--variables-to-feed), or choose fetches that only read it",
        node.name, node.op
    ))
}

/// Replaces the output name in `node:output:index`.
pub(super) fn rename_output(input: &mut String, renamed: &BTreeMap<&str, &'static str>) {
    let mut parts = input.splitn(3, ':');
    let (Some(name), Some(_), index) = (parts.next(), parts.next(), parts.next()) else { return };
    if let Some(output) = renamed.get(name) {
        *input = format!("{name}:{output}:{}", index.unwrap_or("0"));
    }
}

/// Node or argument of an input, and its trailing index: `n`, `n:1`, `n:output:1`.
pub(super) fn name_and_index(input: &str) -> (&str, usize) {
    match input.split_once(':') {
        Some((name, rest)) => {
            (name, rest.rsplit(':').next().and_then(|index| index.parse().ok()).unwrap_or(0))
        }
        None => (input, 0),
    }
}

/// Creates a constant with one element.
fn scalar(name: &str, data_type: DataType, bytes: &[u8]) -> NodeDef {
    constant(name, data_type, &[], Bytes::copy_from_slice(bytes))
}

/// Creates a constant with the given bytes.
pub(crate) fn constant(name: &str, data_type: DataType, sizes: &[i64], bytes: Bytes) -> NodeDef {
    let dim = sizes.iter().map(|&size| crate::proto::Dim { size, name: String::new() }).collect();
    let tensor = TensorProto {
        dtype: data_type.number(),
        tensor_shape: Some(TensorShapeProto { dim, unknown_rank: false }),
        tensor_content: bytes,
        ..TensorProto::default()
    };
    let attr: BTreeMap<String, AttrValue> = BTreeMap::from([
        ("dtype".to_owned(), type_value(data_type)),
        ("value".to_owned(), Value::Tensor(Box::new(tensor)).into()),
    ]);
    NodeDef { name: name.to_owned(), op: "Const".to_owned(), attr, ..NodeDef::default() }
}
