//! Replaces resources by values, also in functions: variables become constants, and tables become
//! lookups in constant arrays.
//!
//! The pass follows each handle from its node through copies, calls, and control flow. A node that
//! reads the variable becomes a copy of the value. A node that looks up a key becomes a call of the
//! table's function. Each function that receives handles is copied once per combination of handles.
//! Only resources that the graph never writes can be bound.

mod body;
mod calls;

pub(crate) use body::constant;

use crate::DataType;
use crate::proto::{AttrValue, FunctionDef, FunctionDefLibrary, GraphDef, NodeDef, attr_value::Value};
use body::Body;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Replacement of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    /// A value of this type. `reference` is true for TensorFlow 1 reference variables, which
    /// consumers read without a read op.
    Value { data_type: DataType, reference: bool },
    /// A table: the functions that look up values and return the size. The handle itself becomes an
    /// unused number.
    Table { find: String, size: String },
}

impl Bound {
    /// Type of the value that replaces the handle.
    fn data_type(&self) -> DataType {
        match self {
            Self::Value { data_type, .. } => *data_type,
            Self::Table { .. } => DataType::Int32,
        }
    }

    fn is_reference(&self) -> bool {
        matches!(self, Self::Value { reference: true, .. })
    }
}

/// Bound resources of a graph.
#[derive(Debug, Default)]
pub(crate) struct Bindings {
    /// Replacement and constant for each node that creates a handle.
    pub(crate) nodes: BTreeMap<String, (Bound, NodeDef)>,
    /// Additional functions, which implement the tables.
    pub(crate) functions: Vec<FunctionDef>,
}

/// Limit for the depth of nested function calls.
const MAX_DEPTH: usize = 100;

/// Limit for the number of nodes in all copies of functions.
const MAX_NODES: usize = 1_000_000;

/// Returns the `needed` nodes of a graph and the library, with resources bound.
pub(crate) fn bind(graph: GraphDef, needed: &[bool], bindings: &Bindings) -> Result<GraphDef> {
    let empty = Vec::new();
    let library = graph.library.as_ref().map_or(&empty, |library| &library.function);
    let mut copies = Copies::new(library, &bindings.functions)?;
    let retained: Vec<&NodeDef> =
        graph.node.iter().zip(needed).filter(|(_, needed)| **needed).map(|(node, _)| node).collect();
    let roots = bindings.nodes.iter().map(|(name, (bound, _))| (name.as_str(), bound.clone())).collect();
    let body = Body::new(retained.iter().copied(), roots, &[], &mut copies)?;
    // Replacements of the retained nodes, in node order. Other nodes are moved, because a graph may
    // be large.
    let mut changes = Vec::new();
    for (at, node) in retained.iter().enumerate() {
        match bindings.nodes.get(&node.name) {
            Some((_, constant)) => changes.push((at, vec![constant.clone()])),
            None => changes.extend(body.rewritten(node, &mut copies)?.map(|rewritten| (at, rewritten.nodes))),
        }
    }
    let created = copies.created;
    let mut nodes = Vec::new();
    let mut changes = changes.into_iter().peekable();
    let retained = graph.node.into_iter().zip(needed).filter(|(_, needed)| **needed);
    for (at, (node, _)) in retained.enumerate() {
        match changes.next_if(|(changed, _)| *changed == at) {
            Some((_, replacement)) => nodes.extend(replacement),
            None => nodes.push(node),
        }
    }
    let mut library = graph.library.unwrap_or_default();
    library.function.extend(created);
    library.function.extend(bindings.functions.iter().cloned());
    let library = (library != FunctionDefLibrary::default()).then_some(library);
    Ok(GraphDef { node: nodes, versions: graph.versions, library })
}

/// Copy of a function, specialized for bound arguments.
#[derive(Clone)]
struct Copy {
    name: String,
    /// Binding of each result.
    results: Vec<Option<Bound>>,
}

/// Copies of functions created so far.
struct Copies<'a> {
    functions: BTreeMap<&'a str, &'a FunctionDef>,
    taken: BTreeSet<String>,
    known: BTreeMap<(String, Vec<Option<Bound>>), Copy>,
    created: Vec<FunctionDef>,
    nodes: usize,
    /// Functions being copied, outermost first.
    active: Vec<String>,
}

impl<'a> Copies<'a> {
    fn new(library: &'a [FunctionDef], more: &'a [FunctionDef]) -> Result<Self> {
        let mut functions = BTreeMap::new();
        for function in library.iter().chain(more) {
            let name = function.signature.as_ref().map_or("", |signature| signature.name.as_str());
            if name.is_empty() || functions.insert(name, function).is_some() {
                return Err(Error::invalid(format!(
                    "function name '{name}' in the graph's library is empty or not unique"
                )));
            }
        }
        let taken = functions.keys().map(|name| (*name).to_owned()).collect();
        let (known, created, active) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Self { functions, taken, known, created, nodes: 0, active })
    }

    /// True if the library has a function of this name.
    fn is_function(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Returns the copy of a function for the given bindings of its arguments. Creates it on first
    /// use.
    fn copy_of(&mut self, name: &str, arguments: &[Option<Bound>]) -> Result<Copy> {
        let key = (name.to_owned(), arguments.to_vec());
        if let Some(copy) = self.known.get(&key) {
            return Ok(copy.clone());
        }
        if self.active.iter().any(|active| active == name) || self.active.len() >= MAX_DEPTH {
            return Err(Error::unsupported(format!(
                "function '{name}' calls itself, or functions call each other more than {MAX_DEPTH} levels deep: {}",
                self.active.join(" -> ")
            )));
        }
        let function = *self.functions.get(name).ok_or_else(|| {
            Error::invalid(format!("function '{name}' is neither in the graph's library nor an op"))
        })?;
        self.active.push(name.to_owned());
        let copy = self.make(function, arguments).map_err(|e| e.context(format!("function '{name}'")))?;
        self.active.pop();
        self.known.insert(key, copy.clone());
        Ok(copy)
    }

    fn make(&mut self, function: &FunctionDef, arguments: &[Option<Bound>]) -> Result<Copy> {
        let mut copy = FunctionDef {
            signature: function.signature.clone(),
            attr: function.attr.clone(),
            ret: function.ret.clone(),
            control_ret: function.control_ret.clone(),
            arg_attr: BTreeMap::new(),
            node_def: Vec::new(),
        };
        let signature = copy.signature.get_or_insert_default();
        if signature.input_arg.len() != arguments.len() {
            return Err(Error::unsupported(format!(
                "functions with list arguments cannot take handles: the signature has {} arguments, the call passes {} tensors",
                signature.input_arg.len(),
                arguments.len()
            )));
        }
        self.nodes += function.node_def.len();
        if self.nodes > MAX_NODES {
            return Err(Error::invalid(format!("its copies have more than {MAX_NODES} nodes")));
        }
        let mut roots = BTreeMap::new();
        let stated = function.signature.iter().flat_map(|signature| &signature.input_arg);
        for ((arg, stated), bound) in signature.input_arg.iter_mut().zip(stated).zip(arguments) {
            let Some(bound) = bound else { continue };
            arg.r#type = bound.data_type().number();
            arg.type_attr.clear();
            roots.insert(stated.name.as_str(), bound.clone());
        }
        let names: Vec<&str> =
            function.signature.iter().flat_map(|s| &s.input_arg).map(|arg| arg.name.as_str()).collect();
        let body = Body::new(&function.node_def, roots, &names, self)?;
        let mut results = Vec::new();
        for arg in &mut signature.output_arg {
            let source = function.ret.get(&arg.name);
            let bound = source.and_then(|source| body.bound_of(source));
            if let Some(bound) = &bound {
                arg.r#type = bound.data_type().number();
                arg.type_attr.clear();
            }
            results.push(bound);
        }
        let (mut nodes, mut renamed) = (Vec::with_capacity(function.node_def.len()), BTreeMap::new());
        for node in &function.node_def {
            match body.rewritten(node, self)? {
                None => nodes.push(node.clone()),
                Some(rewritten) => {
                    nodes.extend(rewritten.nodes);
                    renamed.extend(rewritten.output.map(|output| (node.name.as_str(), output)));
                }
            }
        }
        let inputs = nodes.iter_mut().flat_map(|node| &mut node.input).chain(copy.ret.values_mut());
        inputs.for_each(|input| body::rename_output(input, &renamed));
        copy.node_def = nodes;
        signature.name = self.unused_name(&signature.name);
        let name = signature.name.clone();
        self.created.push(copy);
        Ok(Copy { name, results })
    }

    fn unused_name(&mut self, name: &str) -> String {
        let mut number = self.created.len();
        loop {
            let unused = format!("{name}__bound_{number}");
            if self.taken.insert(unused.clone()) {
                return unused;
            }
            number += 1;
        }
    }
}

/// Returns an attribute value that holds a type.
fn type_value(data_type: DataType) -> AttrValue {
    Value::Type(data_type.number()).into()
}
